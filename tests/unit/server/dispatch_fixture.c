#include "tests/unit/server/dispatch_fixture.h"

#include "server/base/clock.h"
#include "server/engines/engines.h"
#include "server/runtime/memory.h"
#include "server/settings/settings.h"
#include "server/verify/pool.h"

#include <math.h>
#include <stdio.h>

#define TIMERS_MAX 64
#define JOBS_MAX 64

struct world world;

static struct settings the_settings;
static struct loop_timer *timers[TIMERS_MAX];
static size_t timer_count;
static struct job *jobs[JOBS_MAX];
static size_t job_count;
static struct store_op *submitted[ROWS_MAX];
static size_t op_count;
static struct verify_job *questions[JOBS_MAX];

/* --- the clock and the loop -------------------------------------------------------------------------------- */

int64_t __wrap_clock_monotonic_us(void);
int64_t __wrap_clock_monotonic_us(void)
{
    return world.now_us;
}

int64_t __wrap_clock_utc_us(void);
int64_t __wrap_clock_utc_us(void)
{
    return world.now_us;
}

int64_t loop_now_us(const struct loop *loop)
{
    (void)loop;
    return world.now_us;
}

void loop_timer_clear(struct loop *loop, struct loop_timer *timer)
{
    (void)loop;
    if (!timer->place)
        return;
    timers[timer->place - 1] = timers[--timer_count];
    timers[timer->place - 1]->place = timer->place;
    timer->place = 0;
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer, int64_t at_us, void (*expired)(void *arg), void *arg)
{
    loop_timer_clear(loop, timer);
    assert_true(timer_count < TIMERS_MAX);
    timers[timer_count++] = timer;
    *timer = (struct loop_timer){.at_us = at_us, .place = timer_count, .expired = expired, .arg = arg};
}

static struct loop_timer *first_timer(void)
{
    struct loop_timer *first = NULL;
    for (size_t i = 0; i < timer_count; i++)
        if (!first || timers[i]->at_us < first->at_us)
            first = timers[i];
    return first;
}

static bool expire_one(int64_t until_us)
{
    struct loop_timer *timer = first_timer();
    if (!timer || timer->at_us > until_us)
        return false;
    world.now_us = timer->at_us > world.now_us ? timer->at_us : world.now_us;
    loop_timer_clear(NULL, timer);
    timer->expired(timer->arg);
    return true;
}

/* --- workers and store ------------------------------------------------------------------------------------- */

void workers_submit_reserved(struct workers *workers, struct job *job)
{
    (void)workers;
    assert_true(job_count < JOBS_MAX);
    jobs[job_count++] = job;
}

static bool run_one_job(void)
{
    if (world.workers_stand || job_count == 0)
        return false;
    struct job *job = jobs[0];
    job_count--;
    for (size_t i = 0; i < job_count; i++)
        jobs[i] = jobs[i + 1];
    job->run(job, NULL);
    job->done(job);
    return true;
}

bool store_reserve(struct store *store, size_t ops)
{
    (void)store;
    world.reserved += ops;
    return true;
}

void store_release(struct store *store, size_t ops)
{
    (void)store;
    assert_true(world.reserved >= ops);
    world.reserved -= ops;
}

bool store_submit(struct store *store, struct store_op *op)
{
    (void)store;
    assert_true(op_count < ROWS_MAX);
    if (op->reserved)
        store_release(store, 1);
    submitted[op_count++] = op;
    return true;
}

static void copy_text(char *to, size_t size_bytes, struct text text)
{
    snprintf(to, size_bytes, "%.*s", (int)text.length_bytes, text.data ? text.data : "");
}

static void record(const struct store_rollout *values)
{
    struct recorded *row = &world.rows[world.row_count++];
    assert_true(world.row_count <= ROWS_MAX);
    row->sample_index = values->sample_index;
    row->state = values->state;
    row->attempts = values->attempts;
    row->has_text = values->text.data != NULL;
    copy_text(row->failure, sizeof(row->failure), values->failure.code);
    copy_text(row->engine, sizeof(row->engine), values->engine);
}

static bool commit_one(void)
{
    if (world.store_stands || op_count == 0)
        return false;
    struct store_op *op = submitted[0];
    op_count--;
    for (size_t i = 0; i < op_count; i++)
        submitted[i] = submitted[i + 1];
    if (op->kind == STORE_INSERT_ROLLOUT)
        record(op->insert_rollout.rollout);
    op->status = STORE_OK;
    op->done(op);
    return true;
}

void world_settle(void)
{
    while (expire_one(world.now_us) || run_one_job() || commit_one())
        ;
}

void world_advance(int64_t us)
{
    int64_t until_us = world.now_us + us;
    do
        world_settle();
    while (expire_one(until_us));
    world.now_us = until_us;
    world_settle();
}

const struct recorded *row_of(int64_t sample_index)
{
    for (size_t i = 0; i < world.row_count; i++)
        if (world.rows[i].sample_index == sample_index)
            return &world.rows[i];
    return NULL;
}

/* --- engines ----------------------------------------------------------------------------------------------- */

struct transfer *transport_start(struct transport *transport, const struct transfer_request *request,
                                 void (*done)(void *arg, struct transfer_reply *reply), void *arg)
{
    (void)transport;
    struct sent *sent = &world.sent[world.sent_count++];
    assert_true(world.sent_count <= SENT_MAX);
    assert_true(request->timeout_us > 0);
    *sent = (struct sent){.done = done, .arg = arg};
    snprintf(sent->engine, sizeof(sent->engine), "%s", request->base_url);
    snprintf(sent->request_id, sizeof(sent->request_id), "%s", request->request_id);
    return (struct transfer *)sent;
}

void transport_cancel(struct transfer *transfer)
{
    struct sent *sent = (struct sent *)transfer;
    assert_false(sent->over);
    sent->over = sent->cancelled = true;
}

void transport_send(struct transport *transport, const struct transfer_request *request, struct buffer *body)
{
    (void)transport;
    (void)request;
    buffer_finish(body);
}

bool transport_has_room(const struct transport *transport)
{
    (void)transport;
    return !world.no_room;
}

static void reply(size_t index, int status, const char *body)
{
    struct sent *sent = &world.sent[index];
    struct transfer_reply answer = {.result = TRANSFER_DONE, .status = status, .connected = true, .sends = 1};
    assert_true(index < world.sent_count && !sent->over);
    sent->over = true;
    snprintf(answer.content_type, sizeof(answer.content_type), "application/json");
    buffer_init(&answer.body, 4096);
    buffer_append(&answer.body, body, strlen(body));
    sent->done(sent->arg, &answer);
    buffer_finish(&answer.body);
    world_settle();
}

void sent_answer(size_t index)
{
    reply(index, 200, "{\"choices\":[{\"index\":0,\"text\":\"2\",\"finish_reason\":\"stop\"}]}");
}

void sent_refuse(size_t index, int status)
{
    reply(index, status, "{\"error\":{\"message\":\"no\"}}");
}

size_t sent_open(void)
{
    size_t open = 0;
    for (size_t i = 0; i < world.sent_count; i++)
        open += !world.sent[i].over;
    return open;
}

size_t sent_to(const char *url)
{
    size_t count = 0;
    for (size_t i = 0; i < world.sent_count; i++)
        count += strcmp(world.sent[i].engine, url) == 0;
    return count;
}

static void bring_up(struct pool *pool)
{
    struct engine *engine;
    int64_t at_us;
    while ((engine = pool_probe_due(pool, world.now_us, &at_us))) {
        struct engine_call call;
        int64_t timeout_us;
        bool goes_on = true;
        while (goes_on && engine_probe_build(engine, world.now_us, &call, &timeout_us)) {
            bool models = strcmp(call.path, "/v1/models") == 0;
            struct engine_reply answer = {.status = models ? 200 : 404,
                                          .body =
                                              text_of(models ? "{\"object\":\"list\",\"data\":[{\"id\":\"m\"}]}" : "")};
            engine_call_finish(&call);
            goes_on = engine_probe_reply(engine, &answer, NULL, world.now_us);
        }
        assert_int_equal(engine->state, ENGINE_UP);
    }
}

void engines_probe(struct engines *engines)
{
    (void)engines;
}

void engines_subscribe(struct engines *engines, void (*changed)(void *arg), void *arg)
{
    (void)engines;
    (void)changed;
    (void)arg;
}

void engine_log_change(const struct engine *engine, enum engine_state before)
{
    (void)engine;
    (void)before;
}

/* --- text workers ------------------------------------------------------------------------------------------ */

bool verify_submit(struct verify_pool *pool, struct verify_job *job)
{
    (void)pool;
    assert_true(world.asked < JOBS_MAX);
    questions[world.asked++] = job;
    return true;
}

void verify_cancel_job(struct verify_pool *pool, struct verify_job *job)
{
    (void)pool;
    for (size_t i = 0; i < world.asked; i++)
        if (questions[i] == job) {
            questions[i] = questions[--world.asked];
            return;
        }
    fail_msg("the text workers do not have this job");
}

void text_workers_answer(void)
{
    while (world.asked > 0) {
        struct verify_job *job = questions[--world.asked];
        job->done(job);
    }
}

int verify_request_build(const struct verifier_list *list, const struct verify_subject *subject, struct buffer *out)
{
    (void)list;
    buffer_append(out, subject->completion.data, subject->completion.length_bytes);
    return 0;
}

void verdict_set_read(const struct verify_job *job, struct verdict_set *ret_set)
{
    (void)job;
    *ret_set = (struct verdict_set){0};
}

void verdict_set_count(const struct verdict_set *set, const struct verifier_list *list)
{
    (void)set;
    (void)list;
}

void verdict_set_add_given(struct verdict_set *set, const struct given_score *given, size_t count)
{
    (void)set;
    (void)given;
    (void)count;
}

void verdict_set_place_steps(struct verdict_set *set, const uint32_t *token_ends, size_t token_count)
{
    (void)set;
    (void)token_ends;
    (void)token_count;
}

void verdict_set_finish(struct verdict_set *set)
{
    (void)set;
}

/* No group is judged as a whole here. */
void verdict_set_read_members(const struct verify_job *job, size_t count, struct verdict_set *ret_set)
{
    (void)count;
    verdict_set_read(job, ret_set);
}

void verify_member_write(const struct verify_subject *subject, struct buffer *out)
{
    (void)subject;
    (void)out;
}

void verdict_records_free(struct verdict_record *records, size_t count)
{
    (void)count;
    free(records);
}

struct verifier_list *verifier_list_ref(struct verifier_list *list)
{
    return list;
}

void verifier_list_unref(struct verifier_list *list)
{
    (void)list;
}

size_t verdict_set_undecided(const struct verdict_set *set)
{
    (void)set;
    return 0;
}

void verdict_set_write(struct json_write *json, const struct verifier_list *list, const struct verdict_set *set)
{
    (void)json;
    (void)list;
    (void)set;
}

void rewards_write(struct json_write *json, const struct verifier_list *list, const struct verdict_set *set)
{
    (void)json;
    (void)list;
    (void)set;
}

void heldout_write(struct json_write *json, const struct verifier_list *list, const struct verdict_set *set)
{
    (void)json;
    (void)list;
    (void)set;
}

struct reward reward_combine(const struct verifier_list *list, const struct verdict_set *set,
                             enum reward_missing missing)
{
    (void)list;
    (void)set;
    (void)missing;
    return (struct reward){.value = 1, .rewarded = true};
}

/* --- batches ----------------------------------------------------------------------------------------------- */

static void give_completions(struct batch_spec *spec)
{
    struct group_spec *group = &spec->groups[0];
    spec->origin = BATCH_GIVEN;
    group->completion_count = spec->rollout_count;
    group->completions = xcalloc(spec->rollout_count, sizeof(struct completion_spec));
    for (size_t i = 0; i < spec->rollout_count; i++)
        group->completions[i] =
            (struct completion_spec){.text = TEXT_LITERAL("2"), .seed = -1, .verifiers = group->verifiers};
}

static struct batch_spec *spec_of(const struct plan *plan)
{
    static struct verifier_list none;
    static const struct verifier verifier = {.name = "any", .version = "1"};
    struct batch_spec *spec = xcalloc(1, sizeof(*spec));
    struct verifier_list *one = xcalloc(1, sizeof(*one) + sizeof(one->specs[0]));
    one->count = 1;
    one->specs[0].verifier = &verifier;
    spec->owned = xcalloc(1, sizeof(void *));
    spec->owned[0] = one;
    spec->run = text_of(plan->run ? plan->run : "r");
    spec->policy_revision = -1;
    spec->pool = plan->pool ? text_of(plan->pool) : TEXT_NONE;
    spec->model = plan->model ? text_of(plan->model) : TEXT_NONE;
    spec->rollout_timeout_us = 50 * US_PER_S;
    spec->group_count = 1;
    spec->first_group_count = 1;
    spec->rollout_count = (size_t)plan->rollouts;
    spec->groups = xcalloc(1, sizeof(struct group_spec));
    spec->groups[0] = (struct group_spec){.task = TEXT_LITERAL("t"),
                                          .n = plan->rollouts,
                                          .prompt = TEXT_LITERAL("1+1="),
                                          .sampling = {.max_tokens = 8, .temperature = 1, .top_p = 1},
                                          .verifiers = plan->verified ? one : &none};
    if (plan->given)
        give_completions(spec);
    return spec;
}

void batch_spec_destroy(struct batch_spec *spec)
{
    free(spec->owned[0]);
    free(spec->owned);
    free(spec->groups[0].completions);
    free(spec->groups);
    free(spec);
}

struct live_batch *world_batch(const struct plan *plan)
{
    static unsigned number;
    int64_t deadline_us = plan->deadline_us ? plan->deadline_us : 100 * US_PER_S;
    char id[ID_BYTES];
    snprintf(id, sizeof(id), "b%u", ++number);
    struct live_batch *live = live_create(world.batches, spec_of(plan), id, world.now_us + deadline_us);
    live_start(live);
    return live;
}

static struct engines no_engines; /* no settings are in force */

void world_begin(const struct pool_engine *engines, size_t count, int64_t verify_queue)
{
    char message[POOL_MESSAGE_BYTES];
    world = (struct world){.now_us = 1000 * US_PER_S};
    timer_count = job_count = op_count = 0;
    the_settings = (struct settings){.verify_queue = verify_queue,
                                     .engine_attempts = 3,
                                     .engine_backoff_min_us = 100 * US_PER_MS,
                                     .engine_backoff_max_us = US_PER_S,
                                     .engine_connect_timeout_us = US_PER_S,
                                     .verify_timeout_us = US_PER_S};
    world.pool = pool_create(engines, count, message);
    assert_non_null(world.pool);
    bring_up(world.pool);
    world.batches = batches_create(
        &(struct batches_options){.settings = &the_settings, .pool = world.pool, .engines = &no_engines});
    world.batches->resumed = true;
}

void world_end(void)
{
    assert_int_equal(world.batches->count, 0);
    assert_int_equal(world.batches->places, 0);
    assert_int_equal(world.batches->bytes, 0);
    assert_int_equal(world.reserved, 0);
    assert_int_equal(sent_open(), 0);
    batches_destroy(world.batches);
    for (size_t i = 0; i < pool_count(world.pool); i++)
        assert_int_equal(pool_at(world.pool, i)->in_flight, 0);
    pool_destroy(world.pool);
    assert_int_equal(timer_count, 0);
}
