/* Rollouts made durable for each second, through the store's own writer: 10 KiB each, as the peers' (durable_rate.py).
 *
 *     store FOLDER [rollouts] [commit_rows] [plain]
 *
 * A rollout: 512 ids and 512 log-probabilities (4 KiB), 6,000 bytes of text, a verdict. They are inserted as fast as
 * the store takes them, each group is closed behind its members as in the service. The text is packed beforehand, as
 * workers do it; `plain`: it is not. One line of JSON. */
#include "server/store/store.h"

#include "server/base/clock.h"
#include "server/store/packed.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MEMBERS = 8, TOKENS = 512, TEXT_BYTES = 6000, OUTSTANDING = 4096 };

struct bench {
    struct store *store;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t outstanding, failed;
};

static struct bench bench = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static uint32_t ids[TOKENS];
static float logprobs[TOKENS];
static char text[TEXT_BYTES + 1];
static struct buffer packed;
static struct text packed_text;

static void *room(size_t count, size_t size_bytes)
{
    void *memory = calloc(count, size_bytes);
    if (!memory)
        abort();
    return memory;
}

static void finished(void *arg, struct store_op *list)
{
    (void)arg;
    pthread_mutex_lock(&bench.lock);
    for (; list; list = list->next) {
        bench.outstanding--;
        bench.failed += list->status != STORE_OK;
    }
    pthread_cond_signal(&bench.changed);
    pthread_mutex_unlock(&bench.lock);
}

static void wait_until_at_most(size_t count)
{
    pthread_mutex_lock(&bench.lock);
    while (bench.outstanding > count)
        pthread_cond_wait(&bench.changed, &bench.lock);
    pthread_mutex_unlock(&bench.lock);
}

static void submit(struct store_op *op)
{
    wait_until_at_most(OUTSTANDING);
    pthread_mutex_lock(&bench.lock);
    bench.outstanding++;
    pthread_mutex_unlock(&bench.lock);
    if (!store_submit(bench.store, op))
        abort();
}

static void create_batch(size_t groups, char ret_id[ID_BYTES])
{
    struct store_new_group *list = room(groups, sizeof(*list));
    struct store_op op = {.kind = STORE_CREATE_BATCH};
    for (size_t i = 0; i < groups; i++)
        list[i] = (struct store_new_group){.task = TEXT_LITERAL("sum"), .n = MEMBERS, .draw = (int64_t)i};
    op.create_batch = (struct store_create_batch){.run = TEXT_LITERAL("bench"),
                                                  .max_staleness = -1,
                                                  .request = TEXT_LITERAL("{}"),
                                                  .content_type = TEXT_LITERAL("application/json"),
                                                  .sampling = TEXT_LITERAL("{}"),
                                                  .objective = TEXT_LITERAL("{}"),
                                                  .verifiers = TEXT_LITERAL("[]"),
                                                  .deadline_us = INT64_C(4000000000000000),
                                                  .groups = list,
                                                  .group_count = groups};
    id_new_batch(op.create_batch.id);
    submit(&op);
    wait_until_at_most(0);
    memcpy(ret_id, op.create_batch.id, ID_BYTES);
    free(list);
}

static struct store_rollout make_rollout(void)
{
    struct store_rollout rollout;
    store_rollout_init(&rollout);
    rollout.reward = 1;
    rollout.engine = TEXT_LITERAL("e1");
    rollout.attempts = 1;
    rollout.finish_reason = TEXT_LITERAL("stop");
    rollout.logprobs_mode = STORE_LOGPROBS_RAW;
    rollout.text = (struct text){text, TEXT_BYTES};
    rollout.packed_text = packed_text;
    rollout.verdicts = TEXT_LITERAL("[{\"name\":\"math\",\"score\":1.0}]");
    rollout.rewards = TEXT_LITERAL("{\"math\":{\"score\":1.0,\"weight\":1.0}}");
    rollout.completion_ids = ids;
    rollout.logprobs = logprobs;
    rollout.token_count = TOKENS;
    return rollout;
}

static void insert_groups(const char *batch_id, size_t groups)
{
    static const double advantages[MEMBERS];
    struct store_rollout *rows = room(groups * MEMBERS, sizeof(*rows));
    struct store_op *ops = room(groups * (MEMBERS + 1), sizeof(*ops));
    char(*names)[ID_BYTES] = room(groups, sizeof(*names));
    for (size_t g = 0; g < groups; g++) {
        struct store_op *op = &ops[g * (MEMBERS + 1)];
        id_of_group(batch_id, (int64_t)g, names[g]);
        for (size_t i = 0; i < MEMBERS; i++, op++) {
            rows[g * MEMBERS + i] = make_rollout();
            rows[g * MEMBERS + i].sample_index = (int64_t)i;
            *op = (struct store_op){.kind = STORE_INSERT_ROLLOUT};
            op->insert_rollout = (struct store_insert_rollout){.group_id = names[g], .rollout = &rows[g * MEMBERS + i]};
            submit(op);
        }
        *op = (struct store_op){.kind = STORE_CLOSE_GROUP};
        op->close_group =
            (struct store_close_group){.group_id = names[g], .n = MEMBERS, .advantage = advantages, .reward_mean = 1};
        submit(op);
    }
    wait_until_at_most(0);
    free(names);
    free(ops);
    free(rows);
}

static void fill_arrays(void)
{
    for (size_t i = 0; i < TOKENS; i++) {
        ids[i] = (uint32_t)(i * 2654435761U >> 15);
        logprobs[i] = -(float)(i % 97) / 31.0F;
    }
    uint32_t number = 1;
    for (size_t i = 0; i < TEXT_BYTES; i++) {
        number = number * 1664525 + 1013904223;
        text[i] = (char)('a' + (number >> 24) % 16); /* packing halves it, as it does words */
    }
}

static void pack_text(int argc, char **argv)
{
    buffer_init(&packed, TEXT_BYTES + STORE_PACK_ROOM_BYTES);
    if (argc <= 4 || strcmp(argv[4], "plain") != 0)
        packed_text = store_pack_text((struct text){text, TEXT_BYTES}, &packed);
}

int main(int argc, char **argv)
{
    size_t groups = (argc > 2 ? strtoul(argv[2], NULL, 10) : 16384) / MEMBERS;
    char path[512];
    char id[ID_BYTES];
    char message[STORE_MESSAGE_BYTES];
    int error;
    if (argc < 2 || groups == 0) {
        fprintf(stderr, "usage: store FOLDER [rollouts] [commit_rows] [plain]\n");
        return 2;
    }
    snprintf(path, sizeof(path), "%s/store-bench.db", argv[1]);
    struct store_options options = {.path = path,
                                    .commit_rows = argc > 3 ? strtoul(argv[3], NULL, 10) : 256,
                                    .commit_delay_us = 2 * US_PER_MS,
                                    .finished = finished};
    bench.store = store_open(&options, message, &error);
    if (!bench.store) {
        fprintf(stderr, "store: %s\n", message);
        return 1;
    }
    fill_arrays();
    pack_text(argc, argv);
    create_batch(groups, id);
    uint64_t commits = store_metrics(bench.store)->commits;
    clock_t cpu = clock();
    int64_t began_us = clock_monotonic_us();
    insert_groups(id, groups);
    double seconds = (double)(clock_monotonic_us() - began_us) / US_PER_S;
    cpu = clock() - cpu;
    commits = store_metrics(bench.store)->commits - commits;
    double count = (double)(groups * MEMBERS);
    printf("{\"rollouts\": %.0f, \"failed\": %zu, \"per_second\": %.0f, \"cpu_us_per_rollout\": %.1f, "
           "\"per_commit\": %.0f}\n",
           count, bench.failed, count / seconds, (double)cpu / CLOCKS_PER_SEC * 1e6 / count, count / (double)commits);
    store_close(bench.store);
    return bench.failed > 0;
}
