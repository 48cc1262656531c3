#include "tests/unit/store/fixture.h"

#include <stdio.h>
#include <string.h>

static struct fixture *fixture;

static void use(void **state)
{
    fixture = *state;
}

enum { TASKS_MAX = 2000 };

static struct store_new_task *made_up_tasks(size_t first, size_t count)
{
    static struct store_new_task tasks[TASKS_MAX];
    static char names[TASKS_MAX][32];
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof(names[i]), "gsm-%zu", first + i);
        tasks[i] = (struct store_new_task){.line = (int64_t)(first + i + 1),
                                           .task = text_of(names[i]),
                                           .split = (first + i) % 10 ? TEXT_LITERAL("train") : TEXT_LITERAL("test"),
                                           .has_reference = true,
                                           .tags = TEXT_LITERAL("{\"source\":\"gsm8k\"}")};
        store_content_make(text_of(names[i]), NULL, &tasks[i].prompt); /* too short to be packed */
        store_content_make(TEXT_LITERAL("\"42\""), NULL, &tasks[i].reference);
    }
    return tasks;
}

/* Into the draft *set_seq, or a new one if it is 0. */
static enum store_status add(int64_t *set_seq, size_t first, size_t count, struct store_op *op)
{
    *op = (struct store_op){
        .kind = STORE_ADD_TASKS,
        .add_tasks = {
            .set_seq = *set_seq, .set = TEXT_LITERAL("gsm"), .tasks = made_up_tasks(first, count), .count = count}};
    enum store_status status = carry_out(fixture, op);
    *set_seq = op->add_tasks.set_seq;
    return status;
}

static int64_t draft_of(size_t count)
{
    struct store_op op;
    int64_t set_seq = 0;
    assert_int_equal(add(&set_seq, 0, count, &op), STORE_OK);
    return set_seq;
}

static enum store_status freeze(int64_t set_seq, const char *content)
{
    const struct store_split splits[] = {{TEXT_LITERAL("train"), 9}, {TEXT_LITERAL("test"), 1}};
    struct store_op op = {
        .kind = STORE_FREEZE_TASKSET,
        .freeze_taskset = {.set_seq = set_seq, .set = TEXT_LITERAL("gsm"), .splits = splits, .split_count = 2}};
    sha256_of(content, strlen(content), op.freeze_taskset.sha256);
    return carry_out(fixture, &op);
}

/* Drops until nothing is left; returns how many operations it took. */
static size_t drop(int64_t from_seq, int64_t to_seq)
{
    struct store_op op = {.kind = STORE_DROP_DRAFTS, .drop_drafts = {.from_seq = from_seq, .to_seq = to_seq}};
    size_t operations = 0;
    do {
        assert_int_equal(carry_out(fixture, &op), STORE_OK);
        operations++;
    } while (op.drop_drafts.more);
    return operations;
}

static enum store_status find(const char *task)
{
    struct store_tasks found;
    enum store_status status = store_find_task(fixture->reader, TEXT_LITERAL("gsm"), text_of(task), &found);
    store_tasks_finish(&found);
    return status;
}

static void test_a_draft_is_invisible_until_it_is_frozen(void **state)
{
    use(state);
    struct store_tasksets sets;
    int64_t set_seq = draft_of(10);
    assert_int_equal(store_read_taskset(fixture->reader, TEXT_LITERAL("gsm"), &sets), STORE_NOT_FOUND);
    store_tasksets_finish(&sets);
    assert_int_equal(store_list_tasksets(fixture->reader, TEXT_NONE, 10, &sets), STORE_OK);
    assert_int_equal(sets.count, 0);
    store_tasksets_finish(&sets);
    assert_int_equal(find("gsm-3"), STORE_NOT_FOUND);
    assert_int_equal(freeze(set_seq, "a"), STORE_OK);
    assert_int_equal(find("gsm-3"), STORE_OK);
    assert_int_equal(store_read_taskset(fixture->reader, TEXT_LITERAL("gsm"), &sets), STORE_OK);
    assert_int_equal(sets.sets[0].tasks, 10);
    assert_int_equal(sets.sets[0].split_count, 2);
    assert_true(text_equals(sets.sets[0].splits[0].split, "test"));
    assert_int_equal(sets.sets[0].splits[0].tasks, 1);
    store_tasksets_finish(&sets);
}

static void test_a_frozen_set_takes_no_other_content(void **state)
{
    use(state);
    assert_int_equal(freeze(draft_of(10), "a"), STORE_OK);
    assert_int_equal(freeze(draft_of(10), "a"), STORE_EXISTS);
    assert_int_equal(freeze(draft_of(10), "b"), STORE_STATE_CONFLICT);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM tasksets WHERE sha256 IS NOT NULL"), 1);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM taskset_splits"), 2);
}

static void test_a_name_that_is_there_twice_is_refused_with_both_places(void **state)
{
    use(state);
    struct store_op op;
    int64_t set_seq = draft_of(10);
    assert_int_equal(add(&set_seq, 8, 5, &op), STORE_EXISTS);
    assert_int_equal(op.add_tasks.wrong, 0);
    assert_int_equal(op.add_tasks.first_line, 9);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM taskset_tasks"), 10);
    assert_int_equal(add(&set_seq, 10, 5, &op), STORE_OK); /* nothing of the refused ones is left */
}

static void test_equal_references_are_on_record_once(void **state)
{
    use(state);
    draft_of(100);
    draft_of(100);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM contents"), 101);
}

static void test_a_draft_is_dropped_in_bounded_operations_with_its_unshared_contents(void **state)
{
    use(state);
    int64_t kept = draft_of(10);
    assert_int_equal(freeze(kept, "a"), STORE_OK);
    int64_t dropped = draft_of(TASKS_MAX);
    assert_true(drop(dropped, dropped) > 3);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM tasksets"), 1);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM taskset_tasks"), 10);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM contents"), 11);
    assert_int_equal(find("gsm-3"), STORE_OK);
}

static void test_drafts_of_before_are_dropped_and_newer_ones_and_sets_stay(void **state)
{
    use(state);
    int64_t kept = draft_of(10);
    assert_int_equal(freeze(kept, "a"), STORE_OK);
    assert_int_equal(store_last_old_draft(fixture->store), 0);
    int64_t old = draft_of(10);
    stop_store(fixture);
    start_store(fixture);
    assert_int_equal(store_last_old_draft(fixture->store), old);
    draft_of(10);
    assert_int_equal(drop(0, old), 1);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM tasksets WHERE sha256 IS NULL"), 1);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM taskset_tasks"), 20);
}

static void test_tasks_are_listed_by_page_and_split(void **state)
{
    use(state);
    assert_int_equal(freeze(draft_of(1000), "a"), STORE_OK);
    struct store_tasks page;
    char next[64] = "";
    size_t seen = 0;
    do {
        struct text cursor = *next ? text_of(next) : TEXT_NONE;
        assert_int_equal(store_list_tasks(fixture->reader, TEXT_LITERAL("gsm"), TEXT_LITERAL("test"), cursor,
                                          &(struct store_page_limits){7, 100, SIZE_MAX}, &page),
                         STORE_OK);
        for (size_t i = 0; i < page.count; i++) {
            assert_int_equal(page.tasks[i].line, 10 * (int64_t)seen++ + 1);
            assert_true(text_same(page.tasks[i].prompt, page.tasks[i].task));
            assert_true(text_equals(page.tasks[i].reference, "\"42\""));
            assert_true(text_equals(page.tasks[i].tags, "{\"source\":\"gsm8k\"}"));
        }
        memcpy(next, page.next, sizeof(next));
        store_tasks_finish(&page);
    } while (*next);
    assert_int_equal(seen, 100);
    assert_int_equal(store_list_tasks(fixture->reader, TEXT_LITERAL("nobody"), TEXT_NONE, TEXT_NONE,
                                      &(struct store_page_limits){7, 100, SIZE_MAX}, &page),
                     STORE_NOT_FOUND);
    store_tasks_finish(&page);
}

static void test_a_group_says_of_which_set_and_split_its_task_is(void **state)
{
    use(state);
    struct store_tasks found;
    struct store_group group;
    struct store_new_group made = {.task = TEXT_LITERAL("gsm-0"), .n = 1};
    char group_id[ID_BYTES];
    assert_int_equal(freeze(draft_of(10), "a"), STORE_OK);
    assert_int_equal(store_find_task(fixture->reader, TEXT_LITERAL("gsm"), TEXT_LITERAL("gsm-0"), &found), STORE_OK);
    made.set_task_seq = found.tasks[0].seq;
    store_tasks_finish(&found);
    struct store_op op = batch_op(1, 1);
    op.create_batch.groups = &made;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    id_of_group(op.create_batch.id, 0, group_id);
    assert_int_equal(store_read_group(fixture->reader, text_of(group_id), 0, &group), STORE_OK);
    assert_true(text_equals(group.set, "gsm") && text_equals(group.split, "test"));
    store_group_finish(&group);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_a_draft_is_invisible_until_it_is_frozen),
        CLAIM(test_a_frozen_set_takes_no_other_content),
        CLAIM(test_a_name_that_is_there_twice_is_refused_with_both_places),
        CLAIM(test_equal_references_are_on_record_once),
        CLAIM(test_a_draft_is_dropped_in_bounded_operations_with_its_unshared_contents),
        CLAIM(test_drafts_of_before_are_dropped_and_newer_ones_and_sets_stay),
        CLAIM(test_tasks_are_listed_by_page_and_split),
        CLAIM(test_a_group_says_of_which_set_and_split_its_task_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
