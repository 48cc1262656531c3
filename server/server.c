/* Start and stop of the service: what is made first goes last. */
#include "server/api/server.h"

#include "server/api/alarms.h"
#include "server/api/compat_rewards.h"
#include "server/api/routes.h"
#include "server/api/service.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/signals.h"
#include "server/batches/live.h"
#include "server/batches/resume.h"
#include "server/batches/runs.h"
#include "server/delivery/delivery.h"
#include "server/engines/engines.h"
#include "server/http/http.h"
#include "server/input/memory.h"
#include "server/reverify/reverify.h"
#include "server/runtime/memory.h"
#include "server/runtime/metrics.h"
#include "server/settings/settings.h"
#include "server/verify/calls.h"
#include "server/verify/externals.h"
#include "server/verify/incidents.h"
#include "server/verify/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#define QUEUE_MARGIN 1024  /* jobs of requests, beside those that samples reserve */
#define COMMIT_PATIENCE 25 /* rows wait so many times commit_delay for others, as long as others are under way */
#define GAUGE_PERIOD_US (5 * US_PER_S)
#define LOOK_AT_MIGRATION_US (20 * US_PER_MS)
#define LOOK_AT_WORKERS_US (5 * US_PER_MS)
#define WORKERS_PATIENCE_US (15 * US_PER_S)
#define EXIT_CANNOT_START 1

/* --- hosts for the rooms that do not know the loop ----------------------------------------------------- */

static void *host_watch(void *arg, int fd, uint32_t events, void (*ready)(void *, uint32_t), void *ready_arg)
{
    struct server *server = arg;
    return loop_watch(server->loop, fd, events, ready, ready_arg);
}

static void host_modify(void *arg, void *source, uint32_t events)
{
    (void)arg;
    loop_modify(source, events);
}

static void host_unwatch(void *arg, void *source)
{
    (void)arg;
    loop_unwatch(source);
}

static void host_set_timer(void *arg, int64_t at_us, void (*expired)(void *), void *timer_arg)
{
    struct server *server = arg;
    if (at_us == NEVER_US)
        loop_timer_clear(server->loop, &server->transport_timer);
    else
        loop_timer_set(server->loop, &server->transport_timer, at_us, expired, timer_arg);
}

/* From the writer's thread to the loop: the operations it has finished, as one message. */
struct finished_ops {
    struct loop_message message;
    struct server *server;
    struct store_op *list;
};

static void deliver_finished(struct loop_message *message)
{
    struct finished_ops *finished = (struct finished_ops *)message;
    store_ops_finished(finished->server->batches, finished->list);
    free(finished);
}

static void ops_finished(void *arg, struct store_op *list)
{
    struct server *server = arg;
    struct finished_ops *finished = xcalloc(1, sizeof(*finished));
    finished->message.deliver = deliver_finished;
    finished->server = server;
    finished->list = list;
    loop_post(server->loop, &finished->message);
}

/* The last operations of the writer came after the last turn of the loop: they are on record, and their senders are gone. */
static void forget_finished(struct server *server)
{
    struct loop_message *message = server->loop ? loop_take_messages(server->loop) : NULL;
    while (message) {
        struct loop_message *next = message->next;
        if (message->deliver == deliver_finished)
            free(message);
        message = next;
    }
}

/* --- parts ------------------------------------------------------------------------------------------------ */

static int cannot_start(const char *message)
{
    fprintf(stderr, "rolloutd: %s\n", message);
    return EXIT_CANNOT_START;
}

static void count_commit(size_t operations, int64_t duration_us)
{
    metric_observe_us(METRIC_COMMIT_SECONDS, duration_us);
    metric_observe(METRIC_COMMIT_ROWS, (int64_t)operations);
}

static bool open_store(struct server *server)
{
    const struct settings *settings = server->settings;
    struct store_options options = {.path = settings->database,
                                    .durability_normal = settings->durability == DURABILITY_NORMAL,
                                    .commit_rows = (size_t)settings->commit_rows,
                                    .commit_delay_us = settings->commit_delay_us,
                                    .commit_patience_us = COMMIT_PATIENCE * settings->commit_delay_us,
                                    .cache_bytes = memory_cache_bytes(settings),
                                    .retention = {.keep_us = settings->retention_keep_us,
                                                  .most_bytes = (int64_t)settings->retention_max_bytes,
                                                  .spare_us = settings->retention_idle_us,
                                                  .except = settings->retention_except},
                                    .finished = ops_finished,
                                    .finished_arg = server,
                                    .committed = count_commit};
    char message[STORE_MESSAGE_BYTES];
    int error;
    server->store = store_open(&options, message, &error);
    if (!server->store)
        cannot_start(message);
    return server->store != NULL;
}

static bool make_pool(struct server *server)
{
    const struct settings *settings = server->settings;
    char message[SETTINGS_MESSAGE_BYTES];
    server->engines = engines_create(&(struct engines_options){.settings = settings,
                                                               .loop = server->loop,
                                                               .workers = server->workers,
                                                               .store = server->store,
                                                               .token = &server->token,
                                                               .argc = server->argc,
                                                               .argv = server->argv},
                                     message);
    if (!server->engines)
        return cannot_start(message) == 0;
    server->pool = server->engines->pool;
    pool_set_rules(server->pool, &(struct pool_rules){.pause_max_us = settings->engine_pause_max_us,
                                                      .down_timeout_us = settings->engine_down_timeout_us,
                                                      .retry_ratio = settings->engine_retry_ratio,
                                                      .check_us = settings->engine_check_interval_us,
                                                      .ask_samples = settings->engine_probe_samples == 1});
    return true;
}

static bool make_transport(struct server *server)
{
    struct transport_host host = {.arg = server,
                                  .watch = host_watch,
                                  .modify = host_modify,
                                  .unwatch = host_unwatch,
                                  .set_timer = host_set_timer};
    struct transport_settings settings = {.connections_max = pool_in_flight_limit(server->pool) + 8,
                                          .descriptors_max = server->shares.engines,
                                          .user_agent = "rolloutd/" ROLLOUTD_VERSION};
    server->transport = transport_create(&host, &settings);
    if (!server->transport)
        return cannot_start("the HTTP client library did not start") == 0;
    engines_connect(server->engines, server->transport);
    return true;
}

/* The spawner of the code workers starts in the background. */
static void make_verify_pools(struct server *server, const struct spawner *spawner)
{
    const struct settings *settings = server->settings;
    struct spawner none = {0, -1};
    struct sandbox_settings sandbox;

    sandbox_settings_of(settings, &sandbox);
    server->verify_pool =
        verify_pool_create(server->loop, spawner,
                           &(struct verify_pool_limits){.kind = WORKER_TEXT,
                                                        .at_once = (size_t)settings->text_workers,
                                                        .queue_limit = (size_t)settings->verify_queue + QUEUE_MARGIN});
    server->code_pool =
        verify_pool_create(server->loop, &none,
                           &(struct verify_pool_limits){.kind = WORKER_CODE,
                                                        .at_once = (size_t)settings->sandbox_slots,
                                                        .queue_limit = (size_t)settings->sandbox_queue + QUEUE_MARGIN,
                                                        .sandbox = sandbox});
    verify_pool_join(server->verify_pool, server->code_pool);
}

static void judge_called(void *arg, const struct engine *engine, enum engine_state before, bool failed)
{
    struct server *server = arg;
    engine_log_change(engine, before);
    if (failed)
        engines_probe(server->engines);
}

static void make_verifiers(struct server *server, const struct spawner *spawner)
{
    const struct settings *settings = server->settings;
    struct verify_observer observer;

    make_verify_pools(server, spawner);
    server->calls = verify_calls_create(&(struct verify_calls_uses){.settings = settings,
                                                                    .loop = server->loop,
                                                                    .workers = server->workers,
                                                                    .transport = server->transport,
                                                                    .engines = server->pool,
                                                                    .called = judge_called,
                                                                    .called_arg = server},
                                        server->verify_pool);
    server->verify = (struct verify_context){.loop = server->loop,
                                             .workers = server->workers,
                                             .pool = server->verify_pool,
                                             .item_timeout_us = settings->verify_timeout_us};
    server->incidents =
        incidents_create(server->workers, &(struct incidents_rules){.database = settings->database,
                                                                    .keep_files = settings->crashes_keep,
                                                                    .keep_bytes = settings->crashes_keep_bytes,
                                                                    .alarm_share = settings->crashes_alarm,
                                                                    .window = settings->crashes_window});
    incidents_observe(server->incidents, &observer);
    verify_pool_observe(server->verify_pool, &observer);
    verify_pool_observe(server->code_pool, &observer);
}

static void batch_ended(void *arg, const struct live_batch *live)
{
    struct server *server = arg;
    if (live->spec->purpose == (int)STORE_TRAIN)
        alarms_batch_ended(server->alarms, live->run->name);
}

static bool make_parts(struct server *server, const struct spawner *spawner)
{
    const struct settings *settings = server->settings;
    char message[256];

    server->loop = loop_create();
    if (!server->loop)
        return cannot_start("the event loop did not start") == 0;
    if (!open_store(server))
        return false;
    server->workers = workers_create(server->loop, server->store,
                                     &(struct workers_limits){.threads = (size_t)settings->workers,
                                                              .readers = (size_t)settings->readers,
                                                              .queue_limit = QUEUE_MARGIN});
    if (!server->workers)
        return cannot_start("no worker thread could be started") == 0;
    memory_trim_init(&server->trim, server->loop, server->workers);
    if (!make_pool(server) || !make_transport(server))
        return false;
    make_verifiers(server, spawner);
    server->alarms = alarms_create(server->workers, settings);
    server->batches = batches_create(&(struct batches_options){.settings = settings,
                                                               .loop = server->loop,
                                                               .store = server->store,
                                                               .workers = server->workers,
                                                               .transport = server->transport,
                                                               .pool = server->pool,
                                                               .engines = server->engines,
                                                               .verify_pool = server->verify_pool,
                                                               .trim = &server->trim,
                                                               .batch_ended = batch_ended,
                                                               .batch_ended_arg = server});
    server->delivery = delivery_create(&(struct delivery_options){
        .loop = server->loop, .store = server->store, .workers = server->workers, .batches = server->batches});
    server->reverify = reverify_create(&(struct reverify_uses){.settings = settings,
                                                               .loop = server->loop,
                                                               .workers = server->workers,
                                                               .store = server->store,
                                                               .pool = server->verify_pool});
    server->http = routes_serve(server, server->url, message);
    if (!server->http)
        return cannot_start(message) == 0;
    return true;
}

/* Mirror of make_parts(). Memory of unfinished batches is left to the kernel: they continue at the next start, from the
 * record. */
static void unmake_parts(struct server *server)
{
    http_destroy(server->http);
    if (server->transport)
        transport_destroy(server->transport);
    workers_destroy(server->workers);
    store_close(server->store);
    forget_finished(server);
    verify_pool_destroy(server->verify_pool);
    verify_pool_destroy(server->code_pool);
    verify_calls_destroy(server->calls);
    reverify_destroy(server->reverify);
    incidents_destroy(server->incidents);
    engines_destroy(server->engines);
    free(TAKE_PTR(server->token));
    if (server->batches && server->batches->count == 0) {
        delivery_destroy(server->delivery);
        batches_destroy(server->batches);
        loop_destroy(server->loop);
    }
    alarms_destroy(server->alarms);
}

/* --- running -------------------------------------------------------------------------------------------------- */

static void signalled(void *arg, uint32_t events)
{
    (void)events;
    struct server *server = arg;
    struct signalfd_siginfo info;
    while (read(server->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo != SIGHUP)
            server_drain(server);
        else if (!http_is_draining(server->http)) {
            engines_reload(server->engines);
            verify_pool_try_again(server->code_pool);
        }
    }
}

static bool watch_signals(struct server *server)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    server->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (server->signal_fd < 0)
        return false;
    server->signal_source = loop_watch(server->loop, server->signal_fd, EPOLLIN, signalled, server);
    return true;
}

/* Before threads, so that all of them inherit the mask. */
static void prepare_process(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signals_ignore_meaningless();
}

static bool write_ready_file(struct server *server)
{
    const char *path = server->settings->ready_file;
    if (!path)
        return true;
    _cleanup_free_ char *temporary = xasprintf("%s.new", path);
    _cleanup_close_ int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    char line[160];
    int length = snprintf(line, sizeof(line), "%s\n", server->url);
    if (fd < 0 || write(fd, line, (size_t)length) != length || rename(temporary, path) < 0)
        return false;
    return true;
}

static void announce(struct server *server)
{
    log_event(LOG_LEVEL_INFO, "ready", "url", server->url, "database", server->settings->database, NULL);
    if (write_ready_file(server))
        return;
    cannot_start("the ready file cannot be written");
    server->failed = true;
    loop_stop(server->loop);
}

/* The ready file promises a text worker. Without one the service starts too, after a while. */
static void await_text_worker(void *arg)
{
    struct server *server = arg;
    if (!verify_pool_is_starting(server->verify_pool)) {
        announce(server);
    } else if (loop_now_us(server->loop) < server->announce_by_us) {
        loop_timer_set(server->loop, &server->start_timer, loop_now_us(server->loop) + LOOK_AT_WORKERS_US,
                       await_text_worker, server);
    } else {
        log_event(LOG_LEVEL_WARNING, "no text worker has started yet; the service starts without", NULL);
        announce(server);
    }
}

static void resumed(void *arg)
{
    struct server *server = arg;
    delivery_begin(server->delivery);
    server->announce_by_us = loop_now_us(server->loop) + WORKERS_PATIENCE_US;
    await_text_worker(server);
}

static void refresh_gauges(void *arg)
{
    struct server *server = arg;
    service_set_gauges(server);
    memory_trim_if_grown(&server->trim);
    loop_timer_set(server->loop, &server->gauge_timer, loop_now_us(server->loop) + GAUGE_PERIOD_US, refresh_gauges,
                   server);
}

static int64_t before_wait(void *arg)
{
    struct server *server = arg;
    int64_t limit_us = http_run(server->http);
    workers_flush(server->workers);
    return limit_us;
}

/* Unfinished batches are read back when all can be read. */
static void begin_service(void *arg)
{
    struct server *server = arg;
    bool migrating = store_is_migrating(server->store);
    http_set_migrating(server->http, migrating);
    if (migrating) {
        loop_timer_set(server->loop, &server->start_timer, loop_now_us(server->loop) + LOOK_AT_MIGRATION_US,
                       begin_service, server);
        return;
    }
    server_drop_old_drafts(server);
    alarms_begin(server->alarms);
    reverify_resume(server->reverify);
    resume_unfinished(server->batches, resumed, server);
}

static void run(struct server *server)
{
    engines_probe(server->engines);
    refresh_gauges(server);
    begin_service(server);
    loop_run(server->loop, before_wait, server);
    loop_unwatch(server->signal_source);
    close(server->signal_fd);
}

static void log_unknown(const char *name, const char *nearest)
{
    log_event(LOG_LEVEL_WARNING, "there is no setting of this name", "variable", name, "did_you_mean", nearest, NULL);
}

static void log_fewer_clients(const struct descriptor_shares *shares)
{
    char clients[24];
    char engines[24];
    snprintf(clients, sizeof(clients), "%zu", shares->clients);
    snprintf(engines, sizeof(engines), "%zu", shares->engines);
    log_event(LOG_LEVEL_WARNING, "the limit of open files (ulimit -n) allows fewer clients than connection_limit",
              "clients", clients, "engine_connections", engines, NULL);
}

int server_run(const struct settings *settings, int argc, char **argv)
{
    static struct server the_server; /* reachable to the end, for whatever unfinished batches leave behind */
    struct server *server = &the_server;
    const char *templates[ROUTE_COUNT];
    char message[LIMITS_MESSAGE_BYTES];
    struct spawner spawner;

    log_setup((enum log_level)settings->log_level, (enum log_format)settings->log_format);
    settings_find_unknown(log_unknown);
    prepare_process();
    if (limits_check(settings, true, &server->shares, message) < 0)
        return cannot_start(message);
    if (server->shares.clients < (size_t)settings->connection_limit)
        log_fewer_clients(&server->shares);
    memory_setup(settings);
    json_memory_setup(memory_for_trees_bytes(settings));
    for (size_t i = 0; i < routes.count; i++)
        templates[i] = routes.rows[i].pattern;
    metrics_setup(templates, routes.count);
    externals_setup(settings);
    char compat_message[COMPAT_MESSAGE_BYTES];
    if (compat_rewards_check(settings, compat_message) < 0)
        return cannot_start(compat_message);
    server->settings = settings;
    server->token = settings->token ? xstrdup(settings->token) : NULL;
    server->argc = argc;
    server->argv = argv;
    if (spawner_start(&spawner) < 0)
        return cannot_start("the spawner of the text workers did not start");
    bool made = make_parts(server, &spawner);
    if (made && !watch_signals(server))
        made = cannot_start("signals cannot be watched") == 0;
    if (made)
        run(server);
    else if (!server->verify_pool)
        spawner_stop(&spawner);
    unmake_parts(server);
    metrics_finish();
    externals_finish();
    log_event(LOG_LEVEL_INFO, made ? "stopped" : "not started", NULL);
    return made && !server->failed ? 0 : EXIT_CANNOT_START;
}
