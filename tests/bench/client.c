/* The cost of the client part alone: the transport and the vLLM adapter on a loop of their own, as the peer in
 * peers/client_asyncio.py: requests are built, sent, and their replies read into ids and log-probabilities.
 *
 *     client URL [requests] [in flight]
 *
 * The engine is peers/fake_engine.c, which says in each reply how long it held the request: what is left of the time
 * that a sample took is the client's. One line of JSON. */
#include "client/adapters/adapter.h"
#include "client/transport/transport.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

enum { EVENTS = 256, PROMPT_BYTES = 256 };

struct source {
    int fd;
    void (*ready)(void *arg, uint32_t events);
    void *arg;
};

struct slot {
    struct sample_request request;
    struct exchange exchange;
    struct engine_call call;
    int64_t began_us;
    bool is_first; /* it opens the connection */
};

static struct bench {
    const char *url;
    int epoll_fd;
    struct transport *transport;
    struct source *dead; /* freed after the events that may still name it */
    int64_t timer_us;
    void (*expired)(void *arg);
    void *timer_arg;
    size_t to_send, to_end;
    double *added_ms, *warm_ms;
    size_t added_count, warm_count;
} bench = {.timer_us = NEVER_US};

/* --- the host ------------------------------------------------------------------------------------ */

static void *watch(void *arg, int fd, uint32_t events, void (*ready)(void *, uint32_t), void *ready_arg)
{
    struct source *source = xcalloc(1, sizeof(*source));
    struct epoll_event event = {.events = events, .data.ptr = source};
    (void)arg;
    *source = (struct source){fd, ready, ready_arg};
    return epoll_ctl(bench.epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? source : NULL;
}

static void modify(void *arg, void *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    (void)arg;
    epoll_ctl(bench.epoll_fd, EPOLL_CTL_MOD, ((struct source *)source)->fd, &event);
}

static void unwatch(void *arg, void *handle)
{
    struct source *source = handle;
    (void)arg;
    epoll_ctl(bench.epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
    *source = (struct source){.fd = -1, .arg = bench.dead};
    bench.dead = source;
}

static void set_timer(void *arg, int64_t at_us, void (*expired)(void *), void *timer_arg)
{
    (void)arg;
    bench.timer_us = at_us;
    bench.expired = expired;
    bench.timer_arg = timer_arg;
}

static void run_once(void)
{
    struct epoll_event events[EVENTS];
    int64_t left_us = bench.timer_us - clock_monotonic_us();
    int wait_ms = bench.timer_us == NEVER_US ? -1 : left_us <= 0 ? 0 : (int)((left_us + 999) / 1000);
    int count = epoll_wait(bench.epoll_fd, events, EVENTS, wait_ms);
    for (int i = 0; i < count; i++) {
        struct source *source = events[i].data.ptr;
        if (source->fd >= 0)
            source->ready(source->arg, events[i].events);
    }
    while (bench.dead) {
        struct source *source = bench.dead;
        bench.dead = source->arg;
        free(source);
    }
    if (bench.timer_us > clock_monotonic_us())
        return;
    bench.timer_us = NEVER_US;
    bench.expired(bench.timer_arg);
}

/* --- samples ------------------------------------------------------------------------------------- */

static void send_next(struct slot *slot);

static void end(const char *what, const char *why)
{
    fprintf(stderr, "client: %s: %s\n", what, why);
    exit(1);
}

static void replied(void *arg, struct transfer_reply *reply)
{
    struct slot *slot = arg;
    struct engine_reply seen = {.status = reply->status, .body = buffer_text(&reply->body)};
    struct sample sample;
    struct sample_error error;
    if (reply->result != TRANSFER_DONE)
        end("transfer", reply->problem);
    if (exchange_parse(&slot->exchange, &seen, &sample, &error) != EXCHANGE_SAMPLE)
        end("reply", error.message);
    int64_t held_us = sample.engine_revision.data ? strtoll(sample.engine_revision.data, NULL, 10) : 0;
    double added_ms = (double)(clock_monotonic_us() - slot->began_us - held_us) / 1000;
    bench.added_ms[bench.added_count++] = added_ms;
    if (!slot->is_first)
        bench.warm_ms[bench.warm_count++] = added_ms;
    sample_finish(&sample);
    exchange_finish(&slot->exchange);
    engine_call_finish(&slot->call);
    slot->is_first = false;
    bench.to_end--;
    if (bench.to_send)
        send_next(slot);
}

static void send_next(struct slot *slot)
{
    struct sample_error error;
    bench.to_send--;
    slot->began_us = clock_monotonic_us();
    slot->request.seed++;
    exchange_init(&slot->exchange, engine_adapter_find(TEXT_LITERAL("vllm")), &slot->request);
    if (!exchange_build(&slot->exchange, &slot->call, &error))
        end("request", error.message);
    struct transfer_request request = {.base_url = bench.url,
                                       .path = slot->call.path,
                                       .method = slot->call.method,
                                       .request_id = "b_01m8mdjk03eppvc5424y1a3fn3-00000-00000.1",
                                       .body = buffer_text(&slot->call.body),
                                       .timeout_us = 600 * US_PER_S,
                                       .reply_limit_bytes = exchange_reply_limit_bytes(&slot->exchange)};
    transport_start(bench.transport, &request, replied, slot);
}

/* --- figures ------------------------------------------------------------------------------------- */

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double quantile(const double *sorted, size_t count, double share)
{
    return count ? sorted[(size_t)(share * (double)(count - 1))] : 0;
}

static void print_figures(size_t requests, double cpu, double wall)
{
    qsort(bench.added_ms, bench.added_count, sizeof(double), by_value);
    qsort(bench.warm_ms, bench.warm_count, sizeof(double), by_value);
    printf("{\"who\": \"client_lib\", \"cpu_s_per_1000\": %.4f, \"added_ms_p50\": %.3f, \"added_ms_p99\": %.3f, "
           "\"warm_ms_p50\": %.3f, \"warm_ms_p99\": %.3f, \"wall_s\": %.3f}\n",
           cpu * 1000 / (double)requests, quantile(bench.added_ms, bench.added_count, 0.5),
           quantile(bench.added_ms, bench.added_count, 0.99), quantile(bench.warm_ms, bench.warm_count, 0.5),
           quantile(bench.warm_ms, bench.warm_count, 0.99), wall);
}

int main(int argc, char **argv)
{
    size_t requests = argc > 2 ? strtoul(argv[2], NULL, 10) : 4096;
    size_t in_flight = argc > 3 ? strtoul(argv[3], NULL, 10) : 64;
    char prompt[PROMPT_BYTES + 1];
    struct rlimit files;
    if (argc < 2 || requests == 0 || in_flight == 0)
        end("usage", "client URL [requests] [in flight]");
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    memset(prompt, 'a', PROMPT_BYTES);
    prompt[PROMPT_BYTES] = '\0';
    bench.url = argv[1];
    bench.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    bench.transport = transport_create(
        &(struct transport_host){.watch = watch, .modify = modify, .unwatch = unwatch, .set_timer = set_timer},
        &(struct transport_settings){.connections_max = in_flight + 8, .user_agent = "rolloutd/bench"});
    bench.to_send = bench.to_end = requests;
    bench.added_ms = xcalloc(requests, sizeof(double));
    bench.warm_ms = xcalloc(requests, sizeof(double));
    struct slot *slots = xcalloc(in_flight, sizeof(*slots));
    double cpu = cpu_seconds();
    int64_t began_us = clock_monotonic_us();
    for (size_t i = 0; i < in_flight && bench.to_send; i++) {
        slots[i].is_first = true;
        slots[i].request = (struct sample_request){
            .prompt = text_of(prompt),
            .sampling = {.max_tokens = 48, .temperature = 1, .top_p = 1},
            .model = TEXT_LITERAL("fake"),
            .seed = i << 32,
        };
        send_next(&slots[i]);
    }
    while (bench.to_end)
        run_once();
    print_figures(requests, cpu_seconds() - cpu, (double)(clock_monotonic_us() - began_us) / US_PER_S);
    transport_destroy(bench.transport);
    return 0;
}
