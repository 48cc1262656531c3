#include "server/commands/verify_asked_private.h"

#include <stdio.h>

#include "client/pool/pool.h"
#include "client/transport/transport.h"
#include "server/base/clock.h"
#include "server/runtime/loop.h"
#include "server/runtime/workers.h"
#include "server/verify/calls.h"
#include "server/verify/judges.h"
#include "server/verify/sandbox.h"

#define CONNECTIONS 64
#define QUEUE 64

struct bench {
    struct verify_job job; /* first */
    struct loop *loop;
    struct workers *workers;
    struct transport *transport;
    struct loop_timer transport_timer;
    struct pool *engines;
    struct verify_pool *text, *code;
    struct verify_calls *calls;
};

/* --- the loop, for the transport ------------------------------------------------------------------------------------ */

static void *watch(void *arg, int fd, uint32_t events, void (*ready)(void *, uint32_t), void *ready_arg)
{
    return loop_watch(((struct bench *)arg)->loop, fd, events, ready, ready_arg);
}

static void modify(void *arg, void *source, uint32_t events)
{
    (void)arg;
    loop_modify(source, events);
}

static void unwatch(void *arg, void *source)
{
    (void)arg;
    loop_unwatch(source);
}

static void set_timer(void *arg, int64_t at_us, void (*expired)(void *), void *timer_arg)
{
    struct bench *bench = arg;

    if (at_us == NEVER_US)
        loop_timer_clear(bench->loop, &bench->transport_timer);
    else
        loop_timer_set(bench->loop, &bench->transport_timer, at_us, expired, timer_arg);
}

static int64_t before_wait(void *arg)
{
    workers_flush(((struct bench *)arg)->workers);
    return NEVER_US;
}

static void done(struct verify_job *job)
{
    loop_stop(((struct bench *)job)->loop);
}

/* --- parts ------------------------------------------------------------------------------------------------------------ */

static struct pool *make_engines(const struct settings *settings, char ret_message[SETTINGS_MESSAGE_BYTES])
{
    char message[POOL_MESSAGE_BYTES] = "";
    struct pool *pool = pool_create(NULL, 0, message);

    for (size_t i = 0; i < settings->engine_count && !message[0]; i++) {
        const struct engine_settings *engine = &settings->engines[i];
        pool_add(pool,
                 &(struct pool_engine){.name = engine->name,
                                       .pool = engine->pool,
                                       .url = engine->url,
                                       .kind = engine->kind,
                                       .model = engine->model,
                                       .token = engine->token,
                                       .unasked = true},
                 message);
    }
    snprintf(ret_message, SETTINGS_MESSAGE_BYTES, "%s", message);
    if (message[0])
        pool_destroy(TAKE_PTR(pool));
    return pool;
}

static void make_pools(struct bench *bench, const struct settings *settings, const struct verifier_list *list)
{
    struct spawner none = {0, -1};
    struct sandbox_settings sandbox;

    sandbox_settings_of(settings, &sandbox);
    bench->text = verify_pool_create(
        bench->loop, &none, &(struct verify_pool_limits){.kind = WORKER_TEXT, .at_once = 1, .queue_limit = QUEUE});
    if (verifier_list_runs_programs(list)) {
        bench->code = verify_pool_create(
            bench->loop, &none,
            &(struct verify_pool_limits){.kind = WORKER_CODE, .at_once = 1, .queue_limit = QUEUE, .sandbox = sandbox});
        verify_pool_join(bench->text, bench->code);
    }
    bench->calls = verify_calls_create(&(struct verify_calls_uses){.settings = settings,
                                                                   .loop = bench->loop,
                                                                   .workers = bench->workers,
                                                                   .transport = bench->transport,
                                                                   .engines = bench->engines},
                                       bench->text);
}

static int make_parts(struct bench *bench, const struct settings *settings, const struct verifier_list *list,
                      char ret_message[SETTINGS_MESSAGE_BYTES])
{
    struct transport_host host = {bench, watch, modify, unwatch, set_timer};
    struct transport_settings transport = {.connections_max = CONNECTIONS, .user_agent = "rolloutd/" ROLLOUTD_VERSION};

    bench->engines = make_engines(settings, ret_message);
    if (!bench->engines)
        return -1;
    snprintf(ret_message, SETTINGS_MESSAGE_BYTES, "the event loop or its threads did not start");
    bench->loop = loop_create();
    if (!bench->loop)
        return -1;
    bench->workers = workers_create(bench->loop, NULL, &(struct workers_limits){.threads = 1, .queue_limit = QUEUE});
    bench->transport = transport_create(&host, &transport);
    if (!bench->workers || !bench->transport)
        return -1;
    make_pools(bench, settings, list);
    return 0;
}

static void unmake_parts(struct bench *bench)
{
    if (bench->transport)
        transport_destroy(bench->transport);
    if (bench->workers)
        workers_destroy(bench->workers);
    verify_pool_destroy(bench->text);
    verify_pool_destroy(bench->code);
    verify_calls_destroy(bench->calls);
    pool_destroy(bench->engines);
    if (bench->loop)
        loop_destroy(bench->loop);
}

/* --- one job ------------------------------------------------------------------------------------------------------------ */

static int check_judges(struct bench *bench, const struct verifier_list *list, char ret_message[SETTINGS_MESSAGE_BYTES])
{
    struct verifier_problem problem;
    size_t index;

    if (judges_check_item(bench->engines, list, &index, &problem) == 0)
        return 0;
    snprintf(ret_message, SETTINGS_MESSAGE_BYTES, "verifiers[%zu].options.%s: %.400s", index, problem.name,
             problem.message);
    return -1;
}

int verify_asked(const struct settings *settings, const struct verifier_list *list, const struct buffer *frame,
                 int64_t timeout_us, struct verdict_set *ret_set, char ret_message[SETTINGS_MESSAGE_BYTES])
{
    struct bench bench = {.job = {.lane = VERIFY_SMALL, .done = done}};
    int result = make_parts(&bench, settings, list, ret_message);

    if (result == 0)
        result = check_judges(&bench, list, ret_message);
    if (result == 0) {
        bench.job.frame = frame->data;
        bench.job.frame_bytes = frame->length_bytes;
        verify_job_ask(&bench.job, list, timeout_us);
        if (verify_submit(bench.text, &bench.job))
            loop_run(bench.loop, before_wait, &bench);
        verdict_set_read(&bench.job, ret_set);
        verify_job_finish(&bench.job);
    }
    unmake_parts(&bench);
    return result;
}
