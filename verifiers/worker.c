#include "verifiers/worker.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "verifiers/registry.h"
#include "verifiers/sanitizer.h"

#define DATA_LIMIT_BYTES (256u << 20)
#define STACK_LIMIT_BYTES (8u << 20)
#define KEEP_FRAME_BYTES (1u << 20)
#define READ_BYTES ((size_t)64 << 10)

/* --- one request --- */

static void write_failure(struct json_write *json, const struct verdict *verdict)
{
    if (!verdict->failure_code) {
        json_put_null(json, "failure");
        return;
    }
    json_key(json, "failure");
    json_object_begin(json);
    json_put_string(json, "code", verdict->failure_code);
    json_put_string(json, "message", verdict->failure_message);
    json_object_end(json);
}

static void write_verdict(struct json_write *json, const struct verdict *verdict, int64_t duration_us)
{
    _cleanup_free_ char *detail = verdict->detail ? json_dumps(verdict->detail, JSON_COMPACT) : NULL;

    json_object_begin(json);
    json_put_double(json, "score", verdict->kind == VERDICT_UNSCORED ? NAN : verdict->score);
    json_put_string(json, "verdict", verdict_kind_names[verdict->kind]);
    json_put_string(json, "reason", verdict->reason);
    json_put_raw(json, "detail", text_of(detail));
    write_failure(json, verdict);
    json_put_int(json, "duration_us", duration_us);
    json_object_end(json);
}

static int answer_one(const json_t *wanted, const struct verifier_input *shared, struct json_write *json)
{
    const struct verifier *verifier = registry_find(json_text_of(json_object_get(wanted, "name")));
    const json_t *own = json_object_get(wanted, "reference");
    struct verifier_input input = *shared;
    struct verdict verdict;
    int64_t started_us;

    if (!verifier)
        return -1;
    input.options = json_object_get(wanted, "options");
    if (own)
        input.reference = own;
    started_us = clock_monotonic_us();
    registry_judge(verifier, &input, &verdict);
    write_verdict(json, &verdict, clock_monotonic_us() - started_us);
    verdict_finish(&verdict);
    return 0;
}

static int answer_all(const json_t *request, struct json_write *json)
{
    const json_t *tokens = json_object_get(request, "completion_tokens");
    const json_t *wanted;
    const json_t *list = json_object_get(request, "verifiers");
    struct verifier_input shared = {
        .completion = json_text_of(json_object_get(request, "completion")),
        .prompt = json_text_of(json_object_get(request, "prompt")),
        .reference = json_object_get(request, "reference"),
        .completion_tokens = json_is_integer(tokens) ? json_integer_value(tokens) : -1,
    };
    size_t i;

    if (!shared.completion.data || !json_is_array(list))
        return -1;
    json_object_begin(json);
    json_key(json, "verdicts");
    json_array_begin(json);
    json_array_foreach(list, i, wanted) if (answer_one(wanted, &shared, json) < 0) return -1;
    json_array_end(json);
    json_object_end(json);
    return 0;
}

int worker_answer(struct text request, struct buffer *out)
{
    json_t *root = json_loadb(request.data, request.length_bytes, JSON_ALLOW_NUL, NULL);
    struct json_write json;
    int result;

    json_write_init(&json, out);
    result = root ? answer_all(root, &json) : -1;
    json_decref(root);
    return result < 0 || out->failed ? -1 : 0;
}

/* --- frames --- */

void frame_put_length(char ret_header[FRAME_HEADER_BYTES], size_t length_bytes)
{
    for (int i = 0; i < FRAME_HEADER_BYTES; i++)
        ret_header[i] = (char)(length_bytes >> (8 * i));
}

size_t frame_get_length(const char header[FRAME_HEADER_BYTES])
{
    size_t length_bytes = 0;

    for (int i = 0; i < FRAME_HEADER_BYTES; i++)
        length_bytes |= (size_t)(unsigned char)header[i] << (8 * i);
    return length_bytes;
}

static int write_all(int fd, const char *bytes, size_t length_bytes)
{
    while (length_bytes) {
        ssize_t count = write(fd, bytes, length_bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return -1;
        bytes += count;
        length_bytes -= (size_t)count;
    }
    return 0;
}

/* Requests that have come: several of them can be read with one call. */
struct inbox {
    int fd;
    struct buffer bytes;
    size_t used_bytes; /* of those in front */
};

static size_t left_bytes(const struct inbox *inbox)
{
    return inbox->bytes.length_bytes - inbox->used_bytes;
}

/* At least so many that are not used yet. */
static int read_until(struct inbox *inbox, size_t wanted_bytes)
{
    while (left_bytes(inbox) < wanted_bytes) {
        size_t missing_bytes = wanted_bytes - left_bytes(inbox);
        size_t room_bytes = missing_bytes > READ_BYTES ? missing_bytes : READ_BYTES;
        buffer_drop_front(&inbox->bytes, inbox->used_bytes);
        inbox->used_bytes = 0;
        char *room = buffer_reserve(&inbox->bytes, room_bytes);
        ssize_t count = room ? read(inbox->fd, room, room_bytes) : -1;
        if (count < 0 && room && errno == EINTR)
            continue;
        if (count <= 0)
            return -1;
        inbox->bytes.length_bytes += (size_t)count;
    }
    return 0;
}

/* *ret_frame lives until the next one is read. */
static int read_frame(struct inbox *inbox, struct text *ret_frame)
{
    if (left_bytes(inbox) == 0 && inbox->bytes.capacity_bytes > KEEP_FRAME_BYTES) {
        buffer_finish(&inbox->bytes);
        inbox->used_bytes = 0;
    }
    if (read_until(inbox, FRAME_HEADER_BYTES) < 0)
        return -1;
    size_t length_bytes = frame_get_length(inbox->bytes.data + inbox->used_bytes);
    if (length_bytes > VERIFIER_FRAME_LIMIT_BYTES || read_until(inbox, FRAME_HEADER_BYTES + length_bytes) < 0)
        return -1;
    *ret_frame = (struct text){inbox->bytes.data + inbox->used_bytes + FRAME_HEADER_BYTES, length_bytes};
    inbox->used_bytes += FRAME_HEADER_BYTES + length_bytes;
    return 0;
}

/* Each reply is written at once: whoever waits must know at which request it ends, if it does. */
static int serve_one(struct inbox *inbox, struct buffer *reply)
{
    struct text request;

    buffer_clear(reply);
    buffer_append(reply, (char[FRAME_HEADER_BYTES]){0}, FRAME_HEADER_BYTES);
    if (read_frame(inbox, &request) < 0 || worker_answer(request, reply) < 0)
        return -1;
    frame_put_length(reply->data, reply->length_bytes - FRAME_HEADER_BYTES);
    return write_all(inbox->fd, reply->data, reply->length_bytes);
}

/* --- lock-down --- */

#if UNDER_SANITIZER

/* A sanitizer reserves terabytes and calls what the filter refuses; the strict profile is tested without one. */
static int limit_resources(void)
{
    return setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}

static int load_filter(void)
{
    return 0;
}

#else

static int limit_resources(void)
{
    static const struct {
        int resource;
        rlim_t limit;
    } limits[] = {
        {RLIMIT_CORE, 0},
        {RLIMIT_FSIZE, 0},
        {RLIMIT_NPROC, 0},
        {RLIMIT_NOFILE, 4},
        {RLIMIT_MEMLOCK, 0},
        {RLIMIT_MSGQUEUE, 0},
        {RLIMIT_DATA, DATA_LIMIT_BYTES},
        {RLIMIT_STACK, STACK_LIMIT_BYTES},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(limits); i++)
        if (setrlimit(limits[i].resource, &(struct rlimit){limits[i].limit, limits[i].limit}) < 0)
            return -1;
    return 0;
}

/* What memory, the socket and the clock need, and nothing that names a file, a process or an address. glibc's qsort
 * calls sysinfo above 1 KiB. Anything else ends the process. */
static int load_filter(void)
{
    static const int allowed[] = {
        SCMP_SYS(read),    SCMP_SYS(write),           SCMP_SYS(exit_group),    SCMP_SYS(exit),
        SCMP_SYS(brk),     SCMP_SYS(munmap),          SCMP_SYS(mremap),        SCMP_SYS(madvise),
        SCMP_SYS(futex),   SCMP_SYS(rt_sigreturn),    SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday),
        SCMP_SYS(sysinfo), SCMP_SYS(restart_syscall),
    };
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    int result = filter ? 0 : -ENOMEM;

    for (size_t i = 0; i < ARRAY_LENGTH(allowed) && result == 0; i++)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
    if (result == 0)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
                                  SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS));
    if (result == 0)
        result = seccomp_load(filter);
    seccomp_release(filter);
    errno = -result;
    return result < 0 ? -1 : 0;
}

#endif

int worker_lock_down(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return -1;
    return limit_resources() < 0 ? -1 : load_filter();
}

void worker_main(int fd)
{
    struct inbox inbox = {.fd = fd};
    struct buffer reply;

    /* Now, while jansson can still read the random bytes it seeds its hash tables with. */
    json_object_seed(0);
    buffer_init(&inbox.bytes, VERIFIER_FRAME_LIMIT_BYTES + FRAME_HEADER_BYTES + READ_BYTES);
    buffer_init(&reply, WORKER_REPLY_LIMIT_BYTES);
    if (worker_lock_down() < 0)
        _exit(2);
    while (serve_one(&inbox, &reply) == 0)
        continue;
    _exit(1);
}
