/* Acknowledged rows are on disk, and none twice: through kill -9, a full disk, a full queue. */
#include "tests/unit/store/fixture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fixture *fixture;

static void use(void **state)
{
    fixture = *state;
}

/* ---- kill -9
 * ---------------------------------------------------------------------------------------------------------------- */

enum { CHILD_GROUPS = 1000 };

static int acknowledgements = -1;

/* In the child: writes the group index of each committed row into the pipe. */
static void acknowledge(void *arg, struct store_op *list)
{
    (void)arg;
    while (list) {
        struct store_op *op = list;
        list = op->next; /* before the operation is given away */
        if (op->kind == STORE_INSERT_ROLLOUT && op->status == STORE_OK) {
            int32_t group = (int32_t)(intptr_t)op->context;
            if (write(acknowledgements, &group, sizeof(group)) != sizeof(group))
                _exit(1);
        }
    }
}

static void write_for_ever(const char *batch_id)
{
    static struct store_op ops[CHILD_GROUPS];
    static char group_ids[CHILD_GROUPS][ID_BYTES];
    struct store_rollout rollout = scored_rollout(0, 1.0);
    fixture->options.finished = acknowledge;
    fixture->options.commit_rows = 5;
    struct store *store = store_open(&fixture->options, fixture->message, &fixture->error);
    if (!store)
        _exit(2);
    for (intptr_t g = 0; g < CHILD_GROUPS; g++) {
        id_of_group(batch_id, g, group_ids[g]);
        ops[g] = (struct store_op){.kind = STORE_INSERT_ROLLOUT,
                                   .context = (void *)g,
                                   .insert_rollout = {.group_id = group_ids[g], .rollout = &rollout}};
        while (!store_submit(store, &ops[g]))
            usleep(100);
    }
    for (;;)
        pause();
}

static void test_kill_9_loses_nothing_that_was_acknowledged_and_repeats_nothing(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    start_store(fixture);
    record_batch(fixture, CHILD_GROUPS, 1, batch_id);
    stop_store(fixture);
    bool acknowledged[CHILD_GROUPS] = {false};
    size_t count = 0;
    for (size_t round = 0; round < 8; round++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            acknowledgements = ends[1];
            write_for_ever(batch_id);
        }
        close(ends[1]);
        int32_t group;
        for (size_t i = 0; i < 17 + round * 13 && read(ends[0], &group, sizeof(group)) == sizeof(group); i++, count++)
            acknowledged[group] = true;
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        while (read(ends[0], &group, sizeof(group)) == sizeof(group)) {
            acknowledged[group] = true;
            count++;
        }
        close(ends[0]);
    }
    start_store(fixture);
    struct store_members members;
    assert_int_equal(store_read_batch_members(fixture->reader, text_of(batch_id), &members), STORE_OK);
    bool present[CHILD_GROUPS] = {false};
    for (size_t i = 0; i < members.count; i++) {
        assert_false(present[members.members[i].group_index]);
        present[members.members[i].group_index] = true;
    }
    for (size_t g = 0; g < CHILD_GROUPS; g++)
        assert_true(present[g] || !acknowledged[g]);
    assert_true(count > 0 && members.count >= count);
    assert_int_equal(number_by_hand(fixture, "SELECT scored FROM batches"), (int64_t)members.count);
    store_members_finish(&members);
}

/* ---- a full disk
 * ------------------------------------------------------------------------------------------------------------ */

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_a_full_disk_is_said_and_over_when_there_is_room_again(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    char text[20000];
    memset(text, 't', sizeof(text));
    signal(SIGXFSZ, SIG_IGN);
    record_batch(fixture, 400, 1, batch_id);
    struct store_rollout rollout = scored_rollout(0, 1.0);
    rollout.text = (struct text){text, sizeof(text)};
    limit_files(4 * 1024 * 1024);
    int64_t stored = 0;
    while (stored < 400 && insert(fixture, batch_id, stored, &rollout) == STORE_OK)
        stored++;
    assert_true(stored > 10 && stored < 400);
    assert_true(store_metrics(fixture->store)->disk_full);
    for (int i = 0; i < 3; i++)
        assert_int_equal(insert(fixture, batch_id, stored, &rollout), STORE_DISK_FULL);
    struct store_batch batch;
    assert_int_equal(store_read_batch(fixture->reader, text_of(batch_id), &batch), STORE_OK); /* reads still work */
    assert_int_equal(batch.scored, stored);
    store_batch_finish(&batch);
    limit_files(RLIM_INFINITY);
    assert_int_equal(insert(fixture, batch_id, stored, &rollout), STORE_OK);
    assert_false(store_metrics(fixture->store)->disk_full);
    stop_store(fixture);
    start_store(fixture);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM rollouts"), stored + 1);
    assert_int_equal(by_hand(fixture, "PRAGMA integrity_check"), 0);
}

static void test_all_of_a_group_that_was_not_committed_are_told_so(void **state)
{
    use(state);
    enum { OPS = 8 };
    char batch_id[ID_BYTES];
    static char text[400000];
    memset(text, 't', sizeof(text));
    signal(SIGXFSZ, SIG_IGN);
    stop_store(fixture);
    fixture->options.commit_delay_us = 200000; /* so that they are one group */
    fixture->options.commit_rows = OPS;
    start_store(fixture);
    record_batch(fixture, OPS, 1, batch_id);
    struct store_rollout rollout = scored_rollout(0, 1.0);
    rollout.text = (struct text){text, sizeof(text)};
    struct store_op ops[OPS];
    char group_ids[OPS][ID_BYTES];
    limit_files(1024 * 1024);
    size_t before = fixture->finished;
    for (size_t i = 0; i < OPS; i++) {
        id_of_group(batch_id, (int64_t)i, group_ids[i]);
        ops[i] = (struct store_op){.kind = STORE_INSERT_ROLLOUT,
                                   .insert_rollout = {.group_id = group_ids[i], .rollout = &rollout}};
        assert_true(store_submit(fixture->store, &ops[i]));
    }
    wait_finished(fixture, before + OPS);
    limit_files(RLIM_INFINITY);
    for (size_t i = 0; i < OPS; i++)
        assert_int_equal(ops[i].status, STORE_DISK_FULL);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM rollouts"), 0);
}

/* ---- group commit
 * ----------------------------------------------------------------------------------------------------------- */

static struct store_reader *checking_reader;
static char checked_group_ids[256][ID_BYTES];

/* On the writer thread, when operations are handed back: a reader of its own sees all of them already. */
static void check_committed(void *arg, struct store_op *list)
{
    struct fixture *self = arg;
    for (struct store_op *op = list; op; op = op->next) {
        if (op->kind != STORE_INSERT_ROLLOUT)
            continue;
        struct store_members members;
        assert_int_equal(store_read_group_members(checking_reader, text_of(op->insert_rollout.group_id), &members),
                         STORE_OK);
        assert_int_equal(members.count, 1);
        store_members_finish(&members);
    }
    pthread_mutex_lock(&self->lock);
    for (; list; list = list->next)
        self->finished++;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static void test_operations_are_handed_back_only_after_their_commit_and_many_share_one(void **state)
{
    use(state);
    enum { OPS = 256 };
    char batch_id[ID_BYTES];
    static struct store_op ops[OPS];
    stop_store(fixture);
    fixture->options.finished = check_committed;
    start_store(fixture);
    checking_reader = store_reader_create(fixture->store, fixture->message);
    record_batch(fixture, OPS, 1, batch_id);
    uint64_t commits = store_metrics(fixture->store)->commits;
    size_t before = fixture->finished;
    struct store_rollout rollout = scored_rollout(0, 1.0);
    for (size_t i = 0; i < OPS; i++) {
        id_of_group(batch_id, (int64_t)i, checked_group_ids[i]);
        ops[i] = (struct store_op){.kind = STORE_INSERT_ROLLOUT,
                                   .insert_rollout = {.group_id = checked_group_ids[i], .rollout = &rollout}};
        assert_true(store_submit(fixture->store, &ops[i]));
    }
    wait_finished(fixture, before + OPS);
    uint64_t used = store_metrics(fixture->store)->commits - commits;
    assert_true(used >= OPS / 64 && used < OPS);
    assert_int_equal(store_metrics(fixture->store)->rollouts, OPS);
    for (size_t i = 0; i < OPS; i++)
        assert_int_equal(ops[i].insert_rollout.seq, i + 1);
    store_reader_destroy(checking_reader);
}

/* ---- the queue
 * -------------------------------------------------------------------------------------------------------------- */

/* The second finds out only after its row was written that its text is refused. */
static void test_an_operation_that_fails_halfway_takes_nothing_of_its_company_along(void **state)
{
    use(state);
    enum { OPS = 5 };
    static const enum store_status expected[OPS] = {STORE_OK, STORE_REFUSED, STORE_OK, STORE_EXISTS, STORE_OK};
    char batch_id[ID_BYTES];
    char group_ids[3][ID_BYTES];
    struct store_op ops[OPS];
    const double advantage = 0.5;
    record_batch(fixture, 3, 1, batch_id);
    stop_store(fixture);
    fixture->options.commit_delay_us = INT64_C(3600000000); /* they are committed when all have come */
    fixture->options.commit_rows = OPS;
    start_store(fixture);
    struct store_rollout rollout = scored_rollout(0, 1.0);
    struct store_rollout refused = rollout;
    refused.text_replaced = -1;
    for (int64_t g = 0; g < 3; g++) {
        id_of_group(batch_id, g, group_ids[g]);
        ops[g] = (struct store_op){.kind = STORE_INSERT_ROLLOUT,
                                   .insert_rollout = {.group_id = group_ids[g], .rollout = &rollout}};
    }
    ops[1].insert_rollout.rollout = &refused;
    ops[3] = ops[0];
    ops[4] = (struct store_op){
        .kind = STORE_CLOSE_GROUP,
        .close_group = {.group_id = group_ids[2], .n = 1, .advantage = &advantage, .reward_mean = 1, .reward_std = 0}};
    size_t before = fixture->finished;
    for (size_t i = 0; i < OPS; i++)
        assert_true(store_submit(fixture->store, &ops[i]));
    wait_finished(fixture, before + OPS);
    for (size_t i = 0; i < OPS; i++)
        assert_int_equal(ops[i].status, expected[i]);
    assert_int_equal(store_metrics(fixture->store)->commits, 1);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM rollouts"), 2);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM rollout_texts"), 2);
    assert_int_equal(number_by_hand(fixture, "SELECT scored FROM batches"), 2);
    assert_int_equal(number_by_hand(fixture, "SELECT scored FROM runs"), 2);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM rollouts WHERE advantage = 0.5"), 1);
}

static struct store_op row_op(const char *group_id, const struct store_rollout *rollout)
{
    return (struct store_op){
        .kind = STORE_INSERT_ROLLOUT, .reserved = true, .insert_rollout = {.group_id = group_id, .rollout = rollout}};
}

/* While a place is reserved a row waits an hour here; whatever shows that nobody else comes, or that somebody waits,
 * ends that. */
static void test_rows_wait_for_those_under_way_and_for_nobody_else(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    char group_ids[4][ID_BYTES];
    struct store_op rows[4];
    struct store_rollout rollout = scored_rollout(0, 1.0);
    record_batch(fixture, 4, 1, batch_id);
    stop_store(fixture);
    fixture->options.commit_delay_us = 1;
    fixture->options.commit_patience_us = INT64_C(3600000000);
    start_store(fixture);
    for (int64_t g = 0; g < 4; g++) {
        id_of_group(batch_id, g, group_ids[g]);
        rows[g] = row_op(group_ids[g], &rollout);
    }
    size_t before = fixture->finished;
    assert_true(store_reserve(fixture->store, 2)); /* the last of those under way */
    assert_true(store_submit(fixture->store, &rows[0]));
    assert_true(store_submit(fixture->store, &rows[1]));
    wait_finished(fixture, before + 2);
    assert_int_equal(store_metrics(fixture->store)->commits, 1);
    assert_true(store_reserve(fixture->store, 2)); /* one that will not come */
    assert_true(store_submit(fixture->store, &rows[2]));
    store_release(fixture->store, 1);
    wait_finished(fixture, before + 3);
    assert_true(store_reserve(fixture->store, 2)); /* somebody who waits */
    assert_true(store_submit(fixture->store, &rows[3]));
    struct store_op declare = {.kind = STORE_DECLARE_POLICY,
                               .declare_policy = {.run = TEXT_LITERAL("arith"), .revision = 40, .rewind_to_step = -1}};
    assert_true(store_submit(fixture->store, &declare));
    wait_finished(fixture, before + 5);
    assert_int_equal(store_metrics(fixture->store)->commits, 3);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(rows[i].status, STORE_OK);
    assert_int_equal(declare.status, STORE_OK);
    store_release(fixture->store, 1);
}

static void test_the_queue_is_bounded_and_reserved_places_are_kept(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_batch(fixture, 1, 1, batch_id);
    stop_store(fixture);
    fixture->options.queue_ops = 4;
    start_store(fixture);
    assert_false(store_reserve(fixture->store, 5));
    assert_true(store_reserve(fixture->store, 4));
    assert_false(store_reserve(fixture->store, 1));
    struct store_op op = batch_op(1, 1);
    assert_false(store_submit(fixture->store, &op)); /* all places are promised to others */
    op.reserved = true;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    store_release(fixture->store, 3);
    assert_true(store_reserve(fixture->store, 4));
    store_release(fixture->store, 4);
    struct store_op free_op = batch_op(1, 1);
    assert_int_equal(carry_out(fixture, &free_op), STORE_OK);
}

static void test_an_operation_larger_than_the_queue_s_bytes_is_not_taken(void **state)
{
    use(state);
    stop_store(fixture);
    fixture->options.queue_bytes = 4096;
    start_store(fixture);
    static char body[5000];
    struct store_op op = batch_op(1, 1);
    op.create_batch.request = (struct text){body, sizeof(body)};
    assert_false(store_submit(fixture->store, &op));
    op.create_batch.request.length_bytes = 10;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
}

static void test_operations_queued_at_the_end_are_still_written(void **state)
{
    use(state);
    enum { OPS = 200 };
    char batch_id[ID_BYTES];
    static struct store_op ops[OPS];
    static char group_ids[OPS][ID_BYTES];
    record_batch(fixture, OPS, 1, batch_id);
    struct store_rollout rollout = scored_rollout(0, 1.0);
    for (size_t i = 0; i < OPS; i++) {
        id_of_group(batch_id, (int64_t)i, group_ids[i]);
        ops[i] = (struct store_op){.kind = STORE_INSERT_ROLLOUT,
                                   .insert_rollout = {.group_id = group_ids[i], .rollout = &rollout}};
        assert_true(store_submit(fixture->store, &ops[i]));
    }
    stop_store(fixture);
    assert_int_equal(fixture->finished, 1 + OPS);
    for (size_t i = 0; i < OPS; i++)
        assert_int_equal(ops[i].status, STORE_OK);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM rollouts"), OPS);
    char wal[160];
    snprintf(wal, sizeof(wal), "%s-wal", fixture->path);
    assert_int_equal(access(wal, F_OK), -1);
}

/* ---- readers beside the writer
 * ---------------------------------------------------------------------------------------------- */

static atomic_bool reading_is_over;

static void *read_for_a_while(void *arg)
{
    const char *batch_id = arg;
    char message[STORE_MESSAGE_BYTES];
    struct store_reader *reader = store_reader_create(fixture->store, message);
    assert_non_null(reader);
    int64_t last = 0;
    while (!atomic_load(&reading_is_over)) {
        struct store_batch batch;
        struct store_members members;
        assert_int_equal(store_read_batch(reader, text_of(batch_id), &batch), STORE_OK);
        assert_int_equal(store_read_batch_members(reader, text_of(batch_id), &members), STORE_OK);
        assert_true(batch.scored >= last && (int64_t)members.count >= batch.scored);
        last = batch.scored;
        store_batch_finish(&batch);
        store_members_finish(&members);
    }
    store_reader_destroy(reader);
    return NULL;
}

static void test_readers_see_whole_commits_while_the_writer_writes(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_batch(fixture, 300, 1, batch_id);
    pthread_t threads[2];
    atomic_store(&reading_is_over, false);
    for (size_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, read_for_a_while, batch_id);
    struct store_rollout rollout = scored_rollout(0, 1.0);
    for (int64_t g = 0; g < 300; g++)
        assert_int_equal(insert(fixture, batch_id, g, &rollout), STORE_OK);
    atomic_store(&reading_is_over, true);
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kill_9_loses_nothing_that_was_acknowledged_and_repeats_nothing,
                                        fixture_directory, fixture_close),
        CLAIM(test_a_full_disk_is_said_and_over_when_there_is_room_again),
        CLAIM(test_all_of_a_group_that_was_not_committed_are_told_so),
        CLAIM(test_operations_are_handed_back_only_after_their_commit_and_many_share_one),
        CLAIM(test_an_operation_that_fails_halfway_takes_nothing_of_its_company_along),
        CLAIM(test_rows_wait_for_those_under_way_and_for_nobody_else),
        CLAIM(test_the_queue_is_bounded_and_reserved_places_are_kept),
        CLAIM(test_an_operation_larger_than_the_queue_s_bytes_is_not_taken),
        CLAIM(test_operations_queued_at_the_end_are_still_written),
        CLAIM(test_readers_see_whole_commits_while_the_writer_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
