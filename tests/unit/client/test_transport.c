/* The transport against a real server on the loopback that misbehaves on request. */
#include "support.h"

#include "client/transport/transport_private.h"
#include "server/base/clock.h"
#include "stub_server.h"
#include "tiny_loop.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_BYTES (64 * 1024 * 1024)

struct world {
    struct stub_server server;
    struct tiny_loop loop;
    struct transport *transport;
};

struct outcome {
    bool done;
    struct transfer_reply reply; /* with its body */
};

/* --- help ---------------------------------------------------------------------------------------- */

static atomic_int lookups;

static int lookup(const char *host, const char *port, char *ret_addresses, size_t size_bytes)
{
    int turn = lookups++;

    (void)port;
    if (strcmp(host, "slow.test") == 0)
        sleep(2);
    if (strcmp(host, "nowhere.test") == 0) {
        snprintf(ret_addresses, size_bytes, "no such name");
        return -1;
    }
    /* moves.test: nothing listens at its first address */
    snprintf(ret_addresses, size_bytes, strcmp(host, "moves.test") == 0 && turn == 0 ? "127.0.0.99" : "127.0.0.1");
    return 0;
}

static int set_up(void **state)
{
    struct world *world = xcalloc(1, sizeof(*world));
    struct transport_host host;

    stub_server_start(&world->server);
    tiny_loop_init(&world->loop);
    host = tiny_loop_host(&world->loop);
    world->transport = transport_create(
        &host, &(struct transport_settings){.connections_max = 64, .user_agent = "test/1", .lookup = lookup});
    lookups = 0;
    *state = world;
    return world->transport ? 0 : -1;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    transport_destroy(world->transport);
    stub_server_stop(&world->server);
    free(world);
    return 0;
}

static void take(void *arg, struct transfer_reply *reply)
{
    struct outcome *outcome = arg;

    outcome->reply = *reply;
    reply->body = (struct buffer){.data = NULL};
    outcome->done = true;
}

static struct transfer_request request_for(const struct world *world, const char *path)
{
    return (struct transfer_request){.base_url = world->server.url,
                                     .path = path,
                                     .method = "POST",
                                     .body = TEXT_LITERAL("{}"),
                                     .timeout_us = 5 * US_PER_S,
                                     .reply_limit_bytes = LIMIT_BYTES};
}

static struct outcome ask(struct world *world, const struct transfer_request *request)
{
    struct outcome outcome = {.done = false};

    transport_start(world->transport, request, take, &outcome);
    assert_false(outcome.done);
    assert_true(tiny_loop_run(&world->loop, &outcome.done, 10 * US_PER_S));
    assert_int_equal(world->transport->count, 0);
    return outcome;
}

static struct outcome ask_path(struct world *world, const char *path)
{
    struct transfer_request request = request_for(world, path);

    return ask(world, &request);
}

static void assert_result(struct world *world, const char *path, enum transfer_result want)
{
    struct outcome outcome = ask_path(world, path);

    if (outcome.reply.result != want)
        fail_msg("%s is %s: %s", path, transfer_result_names[outcome.reply.result], outcome.reply.problem);
    assert_int_equal(want == TRANSFER_DONE, !*outcome.reply.problem);
    buffer_finish(&outcome.reply.body);
}

/* --- whole replies ------------------------------------------------------------------------------- */

static void test_a_reply_comes_whole(void **state)
{
    struct world *world = *state;
    struct outcome outcome = ask_path(world, "/ok");

    assert_int_equal(outcome.reply.result, TRANSFER_DONE);
    assert_int_equal(outcome.reply.status, 200);
    assert_string_equal(outcome.reply.body.data, "{\"ok\":true}");
    assert_string_equal(outcome.reply.content_type, "application/json");
    assert_string_equal(outcome.reply.retry_after, "");
    assert_true(outcome.reply.connected);
    assert_false(outcome.reply.reused);
    buffer_finish(&outcome.reply.body);
}

static void test_a_request_says_who_asks_and_nothing_too_much(void **state)
{
    struct world *world = *state;
    struct transfer_request request = request_for(world, "/echo");
    struct outcome outcome;
    const char *text;

    request.bearer_token = "secret";
    request.request_id = "r-17";
    request.body = (struct text)TEXT_LITERAL("{\"prompt\":\"hi\"}");
    outcome = ask(world, &request);
    text = outcome.reply.body.data;
    assert_non_null(strstr(text, "POST /echo HTTP/1.1\r\n"));
    assert_non_null(strstr(text, "\r\nAuthorization: Bearer secret\r\n"));
    assert_non_null(strstr(text, "\r\nX-Request-Id: r-17\r\n"));
    assert_non_null(strstr(text, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(text, "\r\nUser-Agent: test/1\r\n"));
    assert_non_null(strstr(text, "\r\n\r\n{\"prompt\":\"hi\"}"));
    assert_null(strstr(text, "Expect"));
    assert_null(strstr(text, "Accept-Encoding"));
    buffer_finish(&outcome.reply.body);
}

static void test_a_get_has_no_body(void **state)
{
    struct world *world = *state;
    struct transfer_request request = request_for(world, "/echo");
    struct outcome outcome;

    request.method = "GET";
    request.body = TEXT_NONE;
    outcome = ask(world, &request);
    assert_non_null(strstr(outcome.reply.body.data, "GET /echo HTTP/1.1\r\n"));
    assert_null(strstr(outcome.reply.body.data, "Content-Length"));
    buffer_finish(&outcome.reply.body);
}

static void test_ten_megabytes_come_whole(void **state)
{
    struct world *world = *state;
    struct outcome outcome = ask_path(world, "/big");

    assert_int_equal(outcome.reply.result, TRANSFER_DONE);
    assert_int_equal(outcome.reply.body.length_bytes, 10 * 1024 * 1024);
    buffer_finish(&outcome.reply.body);
}

static void test_retry_after_is_handed_on(void **state)
{
    struct world *world = *state;
    struct outcome outcome = ask_path(world, "/busy");

    assert_int_equal(outcome.reply.result, TRANSFER_DONE);
    assert_int_equal(outcome.reply.status, 429);
    assert_string_equal(outcome.reply.retry_after, "7");
    buffer_finish(&outcome.reply.body);
}

static void test_a_redirect_is_an_answer_not_an_order(void **state)
{
    struct world *world = *state;
    struct outcome outcome = ask_path(world, "/redirect");

    assert_int_equal(outcome.reply.status, 302);
    assert_int_equal(world->server.requests, 1);
    buffer_finish(&outcome.reply.body);
}

static void test_an_interim_reply_is_passed_over(void **state)
{
    struct world *world = *state;
    struct outcome outcome = ask_path(world, "/continue");

    assert_int_equal(outcome.reply.result, TRANSFER_DONE);
    assert_int_equal(outcome.reply.status, 200);
    assert_string_equal(outcome.reply.body.data, "{\"ok\":true}");
    buffer_finish(&outcome.reply.body);
}

/* --- broken replies ------------------------------------------------------------------------------ */

static void test_half_a_body_or_header_is_cut(void **state)
{
    assert_result(*state, "/half", TRANSFER_CUT);
    assert_result(*state, "/chunk-cut", TRANSFER_CUT);
    assert_result(*state, "/header-cut", TRANSFER_CUT);
}

/* curl does not tell a byte that begins no header from none. */
static void test_one_byte_is_as_good_as_none_and_unreachable(void **state)
{
    assert_result(*state, "/one-byte", TRANSFER_UNREACHABLE);
    assert_result(*state, "/nothing", TRANSFER_UNREACHABLE);
}

static void test_a_reply_that_is_no_http_is_cut(void **state)
{
    assert_result(*state, "/no-http", TRANSFER_CUT);
}

static void test_a_body_over_the_limit_is_stopped(void **state)
{
    struct world *world = *state;
    struct transfer_request request = request_for(world, "/endless");
    struct outcome outcome;

    request.reply_limit_bytes = 100000;
    outcome = ask(world, &request);
    assert_int_equal(outcome.reply.result, TRANSFER_TOO_LARGE);
    buffer_finish(&outcome.reply.body);
    request.path = "/big"; /* this one says its length */
    outcome = ask(world, &request);
    assert_int_equal(outcome.reply.result, TRANSFER_TOO_LARGE);
    buffer_finish(&outcome.reply.body);
}

static void test_headers_without_end_are_stopped(void **state)
{
    static const char *const paths[] = {"/endless-headers", "/long-header"};

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct outcome outcome = ask_path(*state, paths[i]);

        assert_int_equal(outcome.reply.result, TRANSFER_TOO_LARGE);
        assert_string_equal(outcome.reply.problem, "its headers are too long");
        buffer_finish(&outcome.reply.body);
    }
}

static void test_nobody_listening_is_unreachable(void **state)
{
    struct world *world = *state;
    struct transfer_request request = request_for(world, "/ok");
    struct outcome outcome;

    request.base_url = "http://127.0.0.1:1";
    outcome = ask(world, &request);
    assert_int_equal(outcome.reply.result, TRANSFER_UNREACHABLE);
    assert_false(outcome.reply.connected);
    assert_non_null(strstr(outcome.reply.problem, "127.0.0.1"));
}

static void test_a_request_that_cannot_be_sent_ends_through_the_callback(void **state)
{
    struct world *world = *state;
    struct transfer_request request = request_for(world, "/ok");
    struct outcome outcome;

    request.bearer_token = "a\r\nX-Evil: 1";
    outcome = ask(world, &request);
    assert_int_equal(outcome.reply.result, TRANSFER_BAD_REQUEST);
    request.bearer_token = NULL;
    request.base_url = "http://[::1";
    outcome = ask(world, &request);
    assert_int_equal(outcome.reply.result, TRANSFER_BAD_REQUEST);
    assert_int_equal(world->server.connections, 0);
}

/* --- time ---------------------------------------------------------------------------------------- */

static void test_a_hanging_engine_times_out_and_is_hung_up_on(void **state)
{
    struct world *world = *state;
    struct transfer_request request = request_for(world, "/hang");
    int64_t began_us = clock_monotonic_us();
    struct outcome outcome;

    request.timeout_us = 200000;
    outcome = ask(world, &request);
    assert_int_equal(outcome.reply.result, TRANSFER_TIMEOUT);
    assert_true(clock_monotonic_us() - began_us >= 190000);
    assert_true(clock_monotonic_us() - began_us < 2000000);
    for (int i = 0; i < 1000 && !world->server.hung_up; i++)
        usleep(1000);
    assert_int_equal(world->server.hung_up, 1);
}

static void test_cancelling_closes_the_connection_and_calls_nobody_back(void **state)
{
    struct world *world = *state;
    struct transfer_request request = request_for(world, "/hang");
    struct outcome outcome = {.done = false};
    bool never = false;
    struct transfer *transfer = transport_start(world->transport, &request, take, &outcome);

    while (!world->server.requests)
        tiny_loop_run(&world->loop, &never, 5000);
    transport_cancel(transfer);
    assert_int_equal(world->transport->count, 0);
    for (int i = 0; i < 1000 && !world->server.hung_up; i++)
        usleep(1000);
    assert_int_equal(world->server.hung_up, 1);
    tiny_loop_run(&world->loop, &never, 20000);
    assert_false(outcome.done);
}

/* --- connections --------------------------------------------------------------------------------- */

static void test_a_forgotten_request_arrives(void **state)
{
    struct world *world = *state;
    struct transfer_request request = request_for(world, "/ok");
    struct buffer body;
    bool never = false;

    buffer_init(&body, 64);
    buffer_append_string(&body, "{\"rid\":\"r1\"}");
    transport_send(world->transport, &request, &body);
    assert_null(body.data);
    while (world->transport->count)
        tiny_loop_run(&world->loop, &never, 20 * US_PER_MS);
    assert_int_equal(world->server.requests, 1);
}

static void test_a_forgotten_request_may_fail_or_be_dropped(void **state)
{
    struct world *world = *state;
    struct transfer_request request = request_for(world, "/hang");
    struct buffer body;
    bool never = false;

    buffer_init(&body, 64);
    buffer_append_string(&body, "{}");
    request.timeout_us = 20 * US_PER_MS;
    transport_send(world->transport, &request, &body);
    while (world->transport->count)
        tiny_loop_run(&world->loop, &never, 20 * US_PER_MS);
    buffer_append_string(&body, "{}");
    request.timeout_us = 5 * US_PER_S;
    transport_send(world->transport, &request, &body); /* and the end comes */
}

static void test_a_connection_is_used_again(void **state)
{
    struct world *world = *state;
    struct outcome outcome;

    for (int i = 0; i < 5; i++) {
        outcome = ask_path(world, "/ok");
        assert_int_equal(outcome.reply.result, TRANSFER_DONE);
        assert_int_equal(outcome.reply.reused, i > 0);
        buffer_finish(&outcome.reply.body);
    }
    assert_int_equal(world->server.connections, 1);
    assert_int_equal(world->server.requests, 5);
}

static void test_a_dead_connection_in_the_pool_is_nobodys_failure(void **state)
{
    struct world *world = *state;

    assert_result(world, "/stale", TRANSFER_DONE);
    assert_result(world, "/ok", TRANSFER_DONE);
    assert_int_equal(world->server.connections, 2);
    assert_int_equal(world->server.requests, 3); /* the second was sent twice */
}

static void test_many_at_once_all_come_back(void **state)
{
    enum { COUNT = 100 };
    struct world *world = *state;
    struct transfer_request request = request_for(world, "/ok");
    struct outcome outcomes[COUNT] = {{.done = false}};

    for (int i = 0; i < COUNT; i++)
        transport_start(world->transport, &request, take, &outcomes[i]);
    assert_int_equal(world->transport->count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_true(tiny_loop_run(&world->loop, &outcomes[i].done, 10 * US_PER_S));
        assert_int_equal(outcomes[i].reply.result, TRANSFER_DONE);
        buffer_finish(&outcomes[i].reply.body);
    }
}

struct pair {
    struct world *world;
    struct transfer *other;
    struct outcome next;
};

static void cancel_the_other(void *arg, struct transfer_reply *reply)
{
    struct pair *pair = arg;
    struct transfer_request request = request_for(pair->world, "/ok");

    (void)reply;
    transport_cancel(pair->other);
    transport_start(pair->world->transport, &request, take, &pair->next);
}

static void test_a_callback_may_cancel_and_start_others(void **state)
{
    struct world *world = *state;
    struct transfer_request hang = request_for(world, "/hang"), bad = request_for(world, "/ok");
    struct outcome outcome = {.done = false};
    struct pair pair = {.world = world};

    bad.base_url = "http://[::1";
    pair.other = transport_start(world->transport, &hang, take, &outcome);
    transport_start(world->transport, &bad, cancel_the_other, &pair);
    assert_true(tiny_loop_run(&world->loop, &pair.next.done, 5 * US_PER_S));
    assert_int_equal(pair.next.reply.result, TRANSFER_DONE);
    assert_false(outcome.done);
    assert_int_equal(world->transport->count, 0);
    buffer_finish(&pair.next.reply.body);
}

static void test_the_end_drops_what_is_in_flight(void **state)
{
    struct world *world = *state;
    struct transfer_request request = request_for(world, "/hang");
    static struct outcome outcome;
    bool never = false;

    transport_start(world->transport, &request, take, &outcome);
    tiny_loop_run(&world->loop, &never, 20000);
    transport_start(world->transport, &request, take, &outcome);
    /* tear_down() destroys the transport */
}

static void test_no_proxy_is_asked_whatever_the_environment_says(void **state)
{
    static const char *const names[] = {"http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"};

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        setenv(names[i], "http://127.0.0.1:9", 1);
    assert_result(*state, "/ok", TRANSFER_DONE);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        unsetenv(names[i]);
}

/* --- names --------------------------------------------------------------------------------------- */

static struct outcome ask_host(struct world *world, const char *host)
{
    struct transfer_request request = request_for(world, "/ok");
    char *url = xasprintf("http://%s:%d", host, world->server.port);
    struct outcome outcome;

    request.base_url = url;
    outcome = ask(world, &request);
    buffer_finish(&outcome.reply.body);
    free(url);
    return outcome;
}

static void test_a_name_is_looked_up_once(void **state)
{
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask_host(*state, "engine.test").reply.result, TRANSFER_DONE);
    assert_int_equal(lookups, 1);
}

static void test_a_name_without_address_is_unreachable_and_says_why(void **state)
{
    struct outcome outcome = ask_host(*state, "nowhere.test");

    assert_int_equal(outcome.reply.result, TRANSFER_UNREACHABLE);
    assert_string_equal(outcome.reply.problem, "no such name");
    ask_host(*state, "nowhere.test");
    assert_int_equal(lookups, 2); /* it is asked again */
}

static void test_an_address_that_fails_is_looked_up_anew(void **state)
{
    assert_int_equal(ask_host(*state, "moves.test").reply.result, TRANSFER_UNREACHABLE);
    assert_int_equal(ask_host(*state, "moves.test").reply.result, TRANSFER_DONE);
    assert_int_equal(lookups, 2);
}

static void test_the_system_knows_the_addresses_of_localhost(void **state)
{
    char addresses[RESOLVED_BYTES];

    (void)state;
    assert_int_equal(resolver_getaddrinfo("localhost", "80", addresses, sizeof(addresses)), 0);
    for (char *rest = addresses, *one; (one = strsep(&rest, ","));)
        assert_true(strcmp(one, "[::1]") == 0 || strncmp(one, "127.", 4) == 0);
    /* Without room for one there is none, rather than half of it. */
    assert_int_equal(resolver_getaddrinfo("localhost", "80", addresses, 5), -1);
}

static void test_an_address_is_not_looked_up(void **state)
{
    static const char *const urls[] = {"http://127.0.0.1:1", "http://[::1]:1", "http://[::1%251]:1"};

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct transfer_request request = request_for(*state, "/ok");
        request.base_url = urls[i];
        struct outcome outcome = ask(*state, &request);
        assert_int_equal(outcome.reply.result, TRANSFER_UNREACHABLE);
        buffer_finish(&outcome.reply.body);
    }
    assert_int_equal(lookups, 0);
}

static void test_a_hanging_lookup_holds_up_nobody(void **state)
{
    struct world *world = *state;
    struct transfer_request slow = request_for(world, "/ok"), fast = slow;
    struct outcome outcome = {.done = false}, late = {.done = false}, cancelled = {.done = false};
    int64_t began_us = clock_monotonic_us();

    slow.base_url = "http://slow.test:9000";
    slow.connect_timeout_us = 300000;
    transport_start(world->transport, &slow, take, &late);
    transport_cancel(transport_start(world->transport, &slow, take, &cancelled));
    transport_start(world->transport, &fast, take, &outcome);
    assert_true(tiny_loop_run(&world->loop, &outcome.done, US_PER_S));
    assert_int_equal(outcome.reply.result, TRANSFER_DONE);
    assert_true(clock_monotonic_us() - began_us < 250000);
    buffer_finish(&outcome.reply.body);
    assert_true(tiny_loop_run(&world->loop, &late.done, US_PER_S));
    assert_int_equal(late.reply.result, TRANSFER_UNREACHABLE);
    assert_true(clock_monotonic_us() - began_us < 1000000);
    assert_int_equal(lookups, 1); /* one thread for a name, however many wait */
    assert_true(world->loop.longest_us < 100000);
    assert_false(cancelled.done);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_reply_comes_whole),
        TEST(a_request_says_who_asks_and_nothing_too_much),
        TEST(a_get_has_no_body),
        TEST(ten_megabytes_come_whole),
        TEST(retry_after_is_handed_on),
        TEST(a_redirect_is_an_answer_not_an_order),
        TEST(an_interim_reply_is_passed_over),
        TEST(half_a_body_or_header_is_cut),
        TEST(one_byte_is_as_good_as_none_and_unreachable),
        TEST(a_reply_that_is_no_http_is_cut),
        TEST(a_body_over_the_limit_is_stopped),
        TEST(headers_without_end_are_stopped),
        TEST(nobody_listening_is_unreachable),
        TEST(a_request_that_cannot_be_sent_ends_through_the_callback),
        TEST(a_hanging_engine_times_out_and_is_hung_up_on),
        TEST(cancelling_closes_the_connection_and_calls_nobody_back),
        TEST(a_forgotten_request_arrives),
        TEST(a_forgotten_request_may_fail_or_be_dropped),
        TEST(a_connection_is_used_again),
        TEST(a_dead_connection_in_the_pool_is_nobodys_failure),
        TEST(many_at_once_all_come_back),
        TEST(a_callback_may_cancel_and_start_others),
        TEST(the_end_drops_what_is_in_flight),
        TEST(no_proxy_is_asked_whatever_the_environment_says),
        TEST(a_name_is_looked_up_once),
        TEST(a_name_without_address_is_unreachable_and_says_why),
        TEST(an_address_that_fails_is_looked_up_anew),
        TEST(the_system_knows_the_addresses_of_localhost),
        TEST(an_address_is_not_looked_up),
        TEST(a_hanging_lookup_holds_up_nobody),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
