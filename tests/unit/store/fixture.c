#include "tests/unit/store/fixture.h"

#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint32_t some_ids[] = {10, 11, 2};
static const float some_logprobs[] = {-0.5F, -1.25F, -0.125F};

static void count_finished(void *arg, struct store_op *list)
{
    struct fixture *fixture = arg;
    pthread_mutex_lock(&fixture->lock);
    for (; list; list = list->next)
        fixture->finished++;
    pthread_cond_broadcast(&fixture->changed);
    pthread_mutex_unlock(&fixture->lock);
}

int fixture_directory(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    pthread_mutex_init(&fixture->lock, NULL);
    pthread_cond_init(&fixture->changed, NULL);
    snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/store-test-XXXXXX");
    if (!mkdtemp(fixture->directory))
        return -1;
    snprintf(fixture->path, sizeof(fixture->path), "%s/record.db", fixture->directory);
    fixture->options =
        (struct store_options){.path = fixture->path, .finished = count_finished, .finished_arg = fixture};
    *state = fixture;
    return 0;
}

void start_store(struct fixture *fixture)
{
    fixture->store = store_open(&fixture->options, fixture->message, &fixture->error);
    if (!fixture->store)
        fail_msg("store_open: %s", fixture->message);
    fixture->reader = store_reader_create(fixture->store, fixture->message);
    if (!fixture->reader)
        fail_msg("store_reader_create: %s", fixture->message);
}

void stop_store(struct fixture *fixture)
{
    store_reader_destroy(fixture->reader);
    store_close(fixture->store);
    fixture->reader = NULL;
    fixture->store = NULL;
}

int fixture_open(void **state)
{
    if (fixture_directory(state) < 0)
        return -1;
    start_store(*state);
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

int fixture_close(void **state)
{
    struct fixture *fixture = *state;
    stop_store(fixture);
    nftw(fixture->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    pthread_cond_destroy(&fixture->changed);
    pthread_mutex_destroy(&fixture->lock);
    free(fixture);
    return 0;
}

void wait_finished(struct fixture *fixture, size_t count)
{
    pthread_mutex_lock(&fixture->lock);
    while (fixture->finished < count)
        pthread_cond_wait(&fixture->changed, &fixture->lock);
    pthread_mutex_unlock(&fixture->lock);
}

enum store_status carry_out(struct fixture *fixture, struct store_op *op)
{
    pthread_mutex_lock(&fixture->lock);
    size_t before = fixture->finished;
    pthread_mutex_unlock(&fixture->lock);
    assert_true(store_submit(fixture->store, op));
    wait_finished(fixture, before + 1);
    return op->status;
}

struct store_op batch_op(size_t groups, int64_t n)
{
    static struct store_new_group list[1000];
    static char tasks[1000][32];
    struct store_op op = {.kind = STORE_CREATE_BATCH};
    struct store_create_batch *batch = &op.create_batch;
    for (size_t i = 0; i < groups; i++) {
        snprintf(tasks[i], sizeof(tasks[i]), "task-%zu", i);
        list[i] = (struct store_new_group){.task = text_of(tasks[i]), .n = n};
    }
    id_new_batch(batch->id);
    batch->run = TEXT_LITERAL("arith");
    batch->policy_revision = 12;
    batch->max_staleness = -1;
    batch->pass_threshold = 1;
    batch->seed = 7;
    batch->request = TEXT_LITERAL("{\"run\":\"arith\"}");
    batch->content_type = TEXT_LITERAL("application/json");
    batch->sampling = TEXT_LITERAL("{\"n\":2}");
    batch->objective = TEXT_LITERAL("{\"preset\":\"grpo\"}");
    batch->verifiers = TEXT_LITERAL("[]");
    batch->deadline_us = INT64_C(4000000000000000);
    batch->groups = list;
    batch->group_count = groups;
    return op;
}

void record_batch(struct fixture *fixture, size_t groups, int64_t n, char ret_id[ID_BYTES])
{
    struct store_op op = batch_op(groups, n);
    enum store_status status = carry_out(fixture, &op);
    if (status != STORE_OK)
        fail_msg("record_batch: %d %s", status, op.message);
    memcpy(ret_id, op.create_batch.id, ID_BYTES);
}

struct store_rollout scored_rollout(int64_t sample_index, double reward)
{
    struct store_rollout rollout;
    store_rollout_init(&rollout);
    rollout.sample_index = sample_index;
    rollout.reward = reward;
    rollout.engine = TEXT_LITERAL("e1");
    rollout.policy_revision = rollout.revision_at_end = 12;
    rollout.attempts = 1;
    rollout.seed = UINT64_C(3068566343491767147);
    rollout.seed_sent = INT64_C(3068566343491767147);
    rollout.seed_honoured = STORE_KNOWN_YES;
    rollout.finish_reason = TEXT_LITERAL("stop");
    rollout.logprobs_mode = STORE_LOGPROBS_RAW;
    rollout.text = TEXT_LITERAL("forty\0two");
    rollout.rewards = TEXT_LITERAL("{\"math\":{\"score\":1.0,\"weight\":1.0}}");
    rollout.verdicts = TEXT_LITERAL("[]");
    rollout.completion_ids = some_ids;
    rollout.logprobs = some_logprobs;
    rollout.token_count = 3;
    return rollout;
}

struct store_rollout failed_rollout(int64_t sample_index)
{
    struct store_rollout rollout;
    store_rollout_init(&rollout);
    rollout.sample_index = sample_index;
    rollout.state = STORE_ROLLOUT_FAILED;
    rollout.policy_revision = 12;
    rollout.attempts = 3;
    rollout.seed = 5;
    rollout.failure = (struct store_failure){TEXT_LITERAL("sample"), TEXT_LITERAL("engine_timeout"),
                                             TEXT_LITERAL("no answer within 10m"), true, 3};
    return rollout;
}

enum store_status insert(struct fixture *fixture, const char *batch_id, int64_t group,
                         const struct store_rollout *rollout)
{
    char group_id[ID_BYTES];
    id_of_group(batch_id, group, group_id);
    struct store_op op = {.kind = STORE_INSERT_ROLLOUT, .insert_rollout = {.group_id = group_id, .rollout = rollout}};
    return carry_out(fixture, &op);
}

enum store_status close_group(struct fixture *fixture, const char *batch_id, int64_t group, size_t n,
                              const double *advantage, double mean, double std)
{
    char group_id[ID_BYTES];
    id_of_group(batch_id, group, group_id);
    struct store_op op = {
        .kind = STORE_CLOSE_GROUP,
        .close_group = {.group_id = group_id, .n = n, .advantage = advantage, .reward_mean = mean, .reward_std = std}};
    return carry_out(fixture, &op);
}

enum store_status close_batch(struct fixture *fixture, const char *batch_id, enum store_batch_state how)
{
    struct store_op op = {.kind = STORE_CLOSE_BATCH,
                          .close_batch = {.batch_id = batch_id,
                                          .state = how,
                                          .loss = NAN,
                                          .notes = TEXT_LITERAL("[]"),
                                          .summary = TEXT_LITERAL("{}")}};
    return carry_out(fixture, &op);
}

int by_hand(struct fixture *fixture, const char *sql)
{
    sqlite3 *handle = NULL;
    assert_int_equal(sqlite3_open(fixture->path, &handle), SQLITE_OK);
    sqlite3_busy_timeout(handle, 5000);
    int result = sqlite3_exec(handle, sql, NULL, NULL, NULL);
    sqlite3_close(handle);
    return result;
}

int64_t number_by_hand(struct fixture *fixture, const char *sql)
{
    sqlite3 *handle = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(fixture->path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return number;
}

void file_digest(const char *path, char ret_hex[SHA256_HEX_BYTES])
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    static char bytes[1 << 22];
    size_t length = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    uint8_t digest[SHA256_BYTES];
    sha256_of(bytes, length, digest);
    sha256_hex(digest, ret_hex);
}
