/* Labels on rollouts: written whole or not at all, read in the order of their key, by an index. */
#include "tests/unit/store/fixture.h"

#include "server/store/sqlite/reader.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { MEMBERS = 3 };

static struct fixture *fixture;
static char rollouts[MEMBERS + 1][ID_BYTES]; /* the last one is not on record */

static int rollouts_on_record(void **state)
{
    char batch_id[ID_BYTES];
    char group_id[ID_BYTES];
    if (fixture_open(state) != 0)
        return -1;
    fixture = *state;
    record_batch(fixture, 1, MEMBERS + 1, batch_id);
    id_of_group(batch_id, 0, group_id);
    for (int64_t k = 0; k <= MEMBERS; k++) {
        struct store_rollout rollout = scored_rollout(k, 1);
        id_of_rollout(group_id, k, rollouts[k]);
        if (k < MEMBERS)
            assert_int_equal(insert(fixture, batch_id, 0, &rollout), STORE_OK);
    }
    return 0;
}

static struct store_label label(size_t rollout, const char *verifier, const char *by, bool truth)
{
    return (struct store_label){text_of(rollouts[rollout]), text_of(verifier), text_of(by), truth};
}

static enum store_status put(const struct store_label *labels, size_t count, size_t *ret_unknown)
{
    struct store_op op = {.kind = STORE_PUT_LABELS, .put_labels = {.labels = labels, .count = count}};
    enum store_status status = carry_out(fixture, &op);
    if (ret_unknown)
        *ret_unknown = op.put_labels.unknown;
    return status;
}

/* The labels of a visit, "math+ math- …". */
struct seen {
    char text[256];
    size_t most;
    size_t count;
};

static bool see(void *arg, const struct store_labelled *labelled)
{
    struct seen *seen = arg;
    size_t length = strlen(seen->text);
    assert_int_equal(labelled->revision, 12);
    assert_int_equal(labelled->purpose, STORE_TRAIN);
    snprintf(seen->text + length, sizeof(seen->text) - length, "%.*s%c ", (int)labelled->verifier.length_bytes,
             labelled->verifier.data, labelled->truth ? '+' : '-');
    return ++seen->count < seen->most;
}

static enum store_status visit(const char *run, struct text verifier, struct seen *seen)
{
    const struct store_label_visitor visitor = {seen, see};
    return store_visit_labels(fixture->reader, text_of(run), verifier, &visitor);
}

static void test_labels_are_visited_by_verifier_rollout_and_labeller(void **state)
{
    (void)state;
    const struct store_label labels[] = {label(1, "math", "b", true), label(0, "math", "b", false),
                                         label(1, "math", "a", false), label(2, "exact", "a", true)};
    struct seen all = {.most = 10};
    struct seen one = {.most = 10};
    struct seen first = {.most = 2};
    assert_int_equal(put(labels, 4, NULL), STORE_OK);
    assert_int_equal(visit("arith", TEXT_NONE, &all), STORE_OK);
    assert_string_equal(all.text, "exact+ math- math- math+ ");
    assert_int_equal(visit("arith", TEXT_LITERAL("exact"), &one), STORE_OK);
    assert_string_equal(one.text, "exact+ ");
    assert_int_equal(visit("arith", TEXT_NONE, &first), STORE_OK);
    assert_int_equal(first.count, 2);
}

static void test_the_last_label_of_a_key_counts(void **state)
{
    (void)state;
    const struct store_label twice[] = {label(0, "math", "a", false), label(0, "math", "a", true)};
    const struct store_label again = label(0, "math", "a", false);
    struct seen before = {.most = 10};
    struct seen after = {.most = 10};
    assert_int_equal(put(twice, 2, NULL), STORE_OK);
    assert_int_equal(visit("arith", TEXT_NONE, &before), STORE_OK);
    assert_string_equal(before.text, "math+ ");
    assert_int_equal(put(&again, 1, NULL), STORE_OK);
    assert_int_equal(visit("arith", TEXT_NONE, &after), STORE_OK);
    assert_string_equal(after.text, "math- ");
}

static void test_one_unknown_rollout_leaves_all_labels_unwritten(void **state)
{
    (void)state;
    const struct store_label labels[] = {label(0, "math", "a", true), label(MEMBERS, "math", "a", true)};
    struct seen seen = {.most = 10};
    size_t unknown = 0;
    assert_int_equal(put(labels, 2, &unknown), STORE_NOT_FOUND);
    assert_int_equal(unknown, 1);
    assert_int_equal(visit("arith", TEXT_NONE, &seen), STORE_OK);
    assert_string_equal(seen.text, "");
    assert_int_equal(visit("nobody", TEXT_NONE, &seen), STORE_NOT_FOUND);
}

static void test_a_rollout_of_a_run_that_is_being_deleted_takes_no_label(void **state)
{
    (void)state;
    const struct store_label one = label(0, "math", "a", true);
    assert_int_equal(by_hand(fixture, "INSERT INTO run_deletions (run, reason, requested_at_us, batches, group_count,"
                                      " rollouts) VALUES ('arith', 'request', 1, 1, 1, 3);"
                                      " UPDATE runs SET deletion_seq = last_insert_rowid() WHERE name = 'arith'"),
                     SQLITE_OK);
    assert_int_equal(put(&one, 1, NULL), STORE_NOT_FOUND);
}

/* No sorter, and no step that reads a whole table. */
static void test_visits_walk_the_key_of_labels(void **state)
{
    static const struct {
        enum statement which;
        const char *first;
    } visits[] = {{SQL_LIST_LABELS, "SEARCH l USING PRIMARY KEY (run_seq=?)"},
                  {SQL_LIST_VERIFIER_LABELS, "SEARCH l USING PRIMARY KEY (run_seq=? AND verifier=?)"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(visits); i++) {
        char sql[1024];
        sqlite3_stmt *plan = NULL;
        snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", statement_rows[visits[i].which].sql);
        assert_int_equal(sqlite3_prepare_v2(fixture->reader->database.handle, sql, -1, &plan, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(plan), SQLITE_ROW);
        assert_string_equal(sqlite3_column_text(plan, 3), visits[i].first);
        while (sqlite3_step(plan) == SQLITE_ROW)
            assert_int_equal(strncmp((const char *)sqlite3_column_text(plan, 3), "SEARCH ", 7), 0);
        sqlite3_finalize(plan);
    }
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, rollouts_on_record, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_labels_are_visited_by_verifier_rollout_and_labeller),
        CLAIM(test_the_last_label_of_a_key_counts),
        CLAIM(test_one_unknown_rollout_leaves_all_labels_unwritten),
        CLAIM(test_a_rollout_of_a_run_that_is_being_deleted_takes_no_label),
        CLAIM(test_visits_walk_the_key_of_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
