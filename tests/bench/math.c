/* The math verifier alone: verdicts of one process, and of a worker process through its socket.
 *
 *     math CASES ROUNDS [in-flight …]
 *
 * CASES: a line of JSON for each, {"id","completion","reference","options"}. Each is judged ROUNDS times, all of them
 * in turn, on one thread. One line of JSON for each case: its id, whether it is paid, the reason, the CPU time of the
 * slowest and of the fastest round in ns. Then a line with the totals; then one for each number of requests in flight:
 * wall and CPU time of all cases through a worker. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "server/base/cleanup.h"
#include "verifiers/worker/worker.h"

struct one {
    json_t *root; /* of the line */
    struct verifier_input input;
    json_t *options;
    bool paid;
    char reason[40];
    int64_t fastest_ns;
    int64_t slowest_ns;
};

struct all {
    struct one *one;
    size_t count;
};

static int64_t time_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void stop(const char *what)
{
    fprintf(stderr, "math: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- reading ------------------------------------------------------------------------------------------------ */

static void read_case(char *line, size_t length_bytes, struct all *all)
{
    struct verifier_problem problem;
    struct one one = {.root = json_loadb(line, length_bytes, JSON_ALLOW_NUL, NULL), .fastest_ns = INT64_MAX};

    if (!one.root)
        stop("a line is no JSON");
    one.options = registry_fill_options(registry_find(text_of("math")), json_object_get(one.root, "options"), &problem);
    if (!one.options)
        stop(problem.message);
    one.input = (struct verifier_input){
        .completion = json_text_of(json_object_get(one.root, "completion")),
        .reference = json_object_get(one.root, "reference"),
        .options = one.options,
        .completion_tokens = -1,
        .sandbox_fd = -1,
    };
    all->one = xrealloc(all->one, (all->count + 1) * sizeof(*all->one));
    all->one[all->count++] = one;
}

static void read_cases(const char *path, struct all *ret_all)
{
    FILE *file = fopen(path, "r");
    _cleanup_free_ char *line = NULL;
    size_t room_bytes = 0;
    ssize_t length_bytes;

    if (!file)
        stop(path);
    while ((length_bytes = getline(&line, &room_bytes, file)) > 0)
        read_case(line, (size_t)length_bytes, ret_all);
    fclose(file);
}

/* --- one process ----------------------------------------------------------------------------------------------- */

static void grade(struct one *one)
{
    int64_t before_ns = time_ns(CLOCK_THREAD_CPUTIME_ID);
    struct verdict verdict;

    registry_grade(registry_find(text_of("math")), &one->input, &verdict);
    int64_t took_ns = time_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
    one->paid = verdict.kind == VERDICT_CORRECT;
    snprintf(one->reason, sizeof one->reason, "%s", verdict.failure_code ? verdict.failure_code : verdict.reason);
    one->fastest_ns = took_ns < one->fastest_ns ? took_ns : one->fastest_ns;
    one->slowest_ns = took_ns > one->slowest_ns ? took_ns : one->slowest_ns;
    verdict_finish(&verdict);
}

/* VmHWM: unlike ru_maxrss it does not count what the process was before it called exec. */
static long peak_kib(pid_t pid)
{
    char path[40];
    char line[200];
    long kib = 0;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return kib;
}

static void grade_all(const struct all *all, int rounds)
{
    int64_t wall_ns = time_ns(CLOCK_MONOTONIC);
    int64_t cpu_ns = time_ns(CLOCK_PROCESS_CPUTIME_ID);

    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < all->count; i++)
            grade(&all->one[i]);
    cpu_ns = time_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    wall_ns = time_ns(CLOCK_MONOTONIC) - wall_ns;
    for (size_t i = 0; i < all->count; i++)
        printf("{\"id\":\"%s\",\"paid\":%s,\"reason\":\"%s\",\"fastest_ns\":%lld,\"slowest_ns\":%lld}\n",
               json_string_value(json_object_get(all->one[i].root, "id")), all->one[i].paid ? "true" : "false",
               all->one[i].reason, (long long)all->one[i].fastest_ns, (long long)all->one[i].slowest_ns);
    printf("{\"verdicts\":%zu,\"cpu_ns\":%lld,\"wall_ns\":%lld,\"peak_kib\":%ld}\n", all->count * (size_t)rounds,
           (long long)cpu_ns, (long long)wall_ns, peak_kib(getpid()));
    fflush(stdout);
}

/* --- through a worker ----------------------------------------------------------------------------------------------
 */

static void put_frame(const struct one *one, struct buffer *out)
{
    json_t *request =
        json_pack("{s:O,s:O?,s:[{s:s,s:O}]}", "completion", json_object_get(one->root, "completion"), "reference",
                  one->input.reference, "verifiers", "name", "math", "options", one->options);
    _cleanup_free_ char *body = json_dumps(request, JSON_COMPACT);
    char header[REQUEST_HEADER_BYTES];
    size_t length_bytes = strlen(body);

    frame_put_length(header, length_bytes);
    request_put_left_out(header, 0);
    buffer_append(out, header, sizeof header);
    buffer_append(out, body, length_bytes);
    json_decref(request);
}

static int start_worker(pid_t *ret_pid)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        stop("socketpair");
    *ret_pid = fork();
    if (*ret_pid == 0) {
        close(pair[0]);
        worker_main(pair[1], NULL, NULL);
    }
    close(pair[1]);
    return pair[0];
}

static void read_exactly(int fd, char *room, size_t length_bytes)
{
    for (size_t had_bytes = 0; had_bytes < length_bytes;) {
        ssize_t count = read(fd, room + had_bytes, length_bytes - had_bytes);
        if (count <= 0)
            stop("the worker ended");
        had_bytes += (size_t)count;
    }
}

static void skip_reply(int fd)
{
    static char room[WORKER_REPLY_LIMIT_BYTES];
    char header[FRAME_HEADER_BYTES];

    read_exactly(fd, header, sizeof header);
    read_exactly(fd, room, frame_get_length(header));
}

static void ask_in_turns(int fd, const struct buffer *frames, size_t count, size_t in_flight)
{
    for (size_t at = 0; at < count; at += in_flight) {
        size_t end = at + in_flight < count ? at + in_flight : count;
        struct buffer together;

        buffer_init(&together, SIZE_MAX);
        for (size_t i = at; i < end; i++)
            buffer_append(&together, frames[i].data, frames[i].length_bytes);
        if (write(fd, together.data, together.length_bytes) != (ssize_t)together.length_bytes)
            stop("write");
        for (size_t i = at; i < end; i++)
            skip_reply(fd);
        buffer_finish(&together);
    }
}

static void through_worker(const struct all *all, size_t in_flight)
{
    struct buffer *frames = xcalloc(all->count, sizeof(*frames));
    pid_t pid;
    int fd = start_worker(&pid);

    for (size_t i = 0; i < all->count; i++) {
        buffer_init(&frames[i], VERIFIER_FRAME_LIMIT_BYTES);
        put_frame(&all->one[i], &frames[i]);
    }
    ask_in_turns(fd, frames, all->count, in_flight);
    int64_t wall_ns = time_ns(CLOCK_MONOTONIC);
    ask_in_turns(fd, frames, all->count, in_flight);
    wall_ns = time_ns(CLOCK_MONOTONIC) - wall_ns;
    long worker_kib = peak_kib(pid);
    close(fd);
    waitpid(pid, NULL, 0);
    printf("{\"in_flight\":%zu,\"verdicts\":%zu,\"wall_ns\":%lld,\"worker_peak_kib\":%ld}\n", in_flight, all->count,
           (long long)wall_ns, worker_kib);
    fflush(stdout);
    for (size_t i = 0; i < all->count; i++)
        buffer_finish(&frames[i]);
    free(frames);
}

int main(int argc, char **argv)
{
    struct all all = {0};

    if (argc < 3)
        return fprintf(stderr, "usage: math CASES ROUNDS [in-flight …]\n"), 2;
    read_cases(argv[1], &all);
    grade_all(&all, atoi(argv[2]));
    for (int i = 3; i < argc; i++)
        through_worker(&all, strtoul(argv[i], NULL, 10));
    for (size_t i = 0; i < all.count; i++) {
        json_decref(all.one[i].root);
        json_decref(all.one[i].options);
    }
    free(all.one);
    return 0;
}
