#include "tests/unit/server/live_fixture.h"

#include "server/api/routes.h"
#include "server/engines/engines.h"
#include "server/http/http.h"
#include "server/runtime/metrics.h"

#include <stdio.h>

struct fixture *fixture;
struct server server;

static struct settings settings;

struct finished_ops {
    struct loop_message message;
    struct store_op *list;
};

static void deliver_finished(struct loop_message *message)
{
    struct finished_ops *finished = (struct finished_ops *)message;
    store_ops_finished(server.batches, finished->list);
    free(finished);
}

static void ops_finished(void *arg, struct store_op *list)
{
    (void)arg;
    struct finished_ops *finished = xcalloc(1, sizeof(*finished));
    finished->message.deliver = deliver_finished;
    finished->list = list;
    loop_post(server.loop, &finished->message);
}

int with_record(void **state)
{
    static struct settings_run run;
    char program[] = "rolloutd";
    char listen[] = "--listen=127.0.0.1:0";
    char *argv[] = {program, listen, NULL};
    char message[SETTINGS_MESSAGE_BYTES];
    if (settings_load(2, argv, &settings, &run, message) < 0) {
        print_error("%s\n", message);
        return -1;
    }
    if (fixture_open(state) < 0)
        return -1;
    fixture = *state;
    return 0;
}

int without_record(void **state)
{
    settings_finish(&settings);
    return fixture_close(state);
}

size_t unfinished_body(const char *run, char ret_body[UNFINISHED_BODY_BYTES])
{
    return (size_t)snprintf(
        ret_body, UNFINISHED_BODY_BYTES,
        "{\"run\":\"%s\",\"policy_revision\":1,\"seed\":7,\"sampling\":{\"n\":2,\"max_tokens\":8},"
        "\"verifiers\":[{\"name\":\"math\"}],\"groups\":[{\"task\":\"t\",\"prompt\":\"1+1=\",\"reference\":\"2\"}]}",
        run);
}

void leave_request(const char *run, struct text body, const char *key)
{
    struct store_op op = batch_op(1, 2);
    op.create_batch.run = text_of(run);
    op.create_batch.policy_revision = 1;
    op.create_batch.request = body;
    op.create_batch.idempotency_key = text_of(key);
    sha256_of(body.data, body.length_bytes, op.create_batch.request_sha256);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
}

void leave_unfinished(const char *run, const char *key)
{
    char body[UNFINISHED_BODY_BYTES];
    size_t length = unfinished_body(run, body);
    leave_request(run, (struct text){body, length}, key);
}

static struct engines no_engines; /* no settings are in force */

void server_begin(size_t queue_limit)
{
    const char *templates[ROUTE_COUNT];
    char message[200];
    for (size_t i = 0; i < routes.count; i++)
        templates[i] = routes.rows[i].pattern;
    metrics_setup(templates, routes.count);
    stop_store(fixture);
    fixture->options.finished = ops_finished;
    server = (struct server){.settings = &settings,
                             .engines = &no_engines,
                             .shares = {.clients = 100, .refusals = 4, .engines = 100},
                             .loop = loop_create()};
    assert_non_null(server.loop);
    start_store(fixture);
    server.store = fixture->store;
    server.workers =
        workers_create(server.loop, server.store, &(struct workers_limits){.threads = 1, .queue_limit = queue_limit});
    memory_trim_init(&server.trim, server.loop, server.workers);
    server.pool = pool_create(NULL, 0, message);
    server.batches = batches_create(&(struct batches_options){.settings = &settings,
                                                              .loop = server.loop,
                                                              .store = server.store,
                                                              .workers = server.workers,
                                                              .pool = server.pool,
                                                              .engines = &no_engines,
                                                              .trim = &server.trim});
    assert_true(server.workers && server.pool && server.batches);
}

void server_cancel_all(void)
{
    for (struct live_batch *live = server.batches->first, *next; live; live = next) {
        next = live->next;
        live_post(live, &(struct batch_event){.kind = EVENT_CANCEL});
    }
}

void server_end(void)
{
    http_destroy(server.http);
    workers_destroy(server.workers);
    store_reader_destroy(fixture->reader);
    store_close(fixture->store);
    fixture->reader = NULL;
    fixture->store = NULL;
    pool_destroy(server.pool);
    batches_destroy(server.batches);
    loop_destroy(server.loop);
    metrics_finish();
}
