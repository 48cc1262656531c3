#include "verifiers/worker/worker.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/json_big.h"
#include "server/base/json_write.h"
#include "server/base/sanitizer.h"
#include "server/base/whole.h"
#include "verifiers/registry.h"
#include "verifiers/worker/graded_private.h"

#define DATA_LIMIT_BYTES (96u << 20) /* beside what the program and its libraries map: a frame and its calls */
/* A frame of 32 MiB, its values, tests that were packed in it, and what a program wrote. */
#define CODE_DATA_LIMIT_BYTES (512u << 20)
#define STACK_LIMIT_BYTES (8u << 20)
#define KEEP_FRAME_BYTES (1u << 20)
#define READ_BYTES ((size_t)64 << 10)

const char *const sandbox_level_names[] = {
    [SANDBOX_LEVEL_NONE] = "none", [SANDBOX_LEVEL_REDUCED] = "reduced", [SANDBOX_LEVEL_FULL] = "full"};

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
    json_put_bool(json, "retryable", verdict->retryable);
    json_object_end(json);
}

static void write_verdict(struct json_write *json, const struct graded *graded, const struct verdict *verdict,
                          int64_t duration_us)
{
    _cleanup_free_ char *detail = verdict->detail ? json_dumps(verdict->detail, JSON_COMPACT) : NULL;

    json_object_begin(json);
    json_put_double(json, "score", verdict->kind == VERDICT_UNSCORED ? NAN : verdict->score);
    json_put_string(json, "verdict", verdict_kind_names[verdict->kind]);
    json_put_string(json, "reason", verdict->reason);
    json_put_raw(json, "detail", text_of(detail));
    graded_write(json, graded, verdict);
    write_failure(json, verdict);
    if (verdict->own_version[0])
        json_put_string(json, "version", verdict->own_version);
    json_put_int(json, "duration_us", duration_us);
    json_object_end(json);
}

/* Each verdict on programs names the level at which they ran, unless its verifier knows better. */
static void note_level(const struct sandbox_settings *sandbox, struct verdict *verdict)
{
    if (!verdict->detail)
        verdict->detail = json_object();
    if (!json_object_get(verdict->detail, "sandbox"))
        json_object_set_new(verdict->detail, "sandbox", json_string(sandbox_level_names[sandbox->level]));
}

/* The slot cannot be used again, or never could: the service has another pair made. */
static void note_slot(const struct worker_means *means, const struct verdict *verdict)
{
    if (means->page && verdict->failure_code && strcmp(verdict->failure_code, SANDBOX_UNAVAILABLE) == 0)
        atomic_store_explicit(&means->page->lost_slot, true, memory_order_release);
}

static const struct verifier *find_verifier(struct text name)
{
    return text_equals(name, verifier_program.name) ? &verifier_program : registry_find(name);
}

static void write_call(struct json_write *json, const json_t *call)
{
    json_object_begin(json);
    json_put_text(json, "path", json_text_of(json_object_get(call, "path")));
    json_put_text(json, "body", json_text_of(json_object_get(call, "body")));
    json_put_bool(json, "model", json_is_true(json_object_get(call, "model")));
    json_object_end(json);
}

static void write_calls(struct json_write *json, const json_t *calls)
{
    const json_t *call;
    size_t i;

    json_object_begin(json);
    json_key(json, "calls");
    json_array_begin(json);
    json_array_foreach (calls, i, call)
        write_call(json, call);
    json_array_end(json);
    json_object_end(json);
}

/* True: it has to ask first, and what is written. */
static bool plan(const struct verifier *verifier, const struct verifier_input *input, struct verdict *verdict,
                 struct json_write *json)
{
    json_t *calls = json_array();
    bool asks = registry_plan(verifier, input, calls, verdict);

    if (asks)
        write_calls(json, calls);
    json_decref(calls);
    return asks;
}

/* False: it has to ask first, and its calls are written. */
static bool grade(const struct verifier *verifier, const struct graded *graded, struct verifier_input *input,
                  struct verdict *ret_verdict, struct json_write *json)
{
    if (graded_verdict(graded, verifier, input, ret_verdict))
        return true;
    if (verifier->plan && !input->replies)
        return !plan(verifier, input, ret_verdict, json);
    registry_grade(verifier, input, ret_verdict);
    return true;
}

static int answer_one(const json_t *wanted, const struct verifier_input *shared, const struct worker_means *means,
                      struct json_write *json)
{
    const struct verifier *verifier = find_verifier(json_text_of(json_object_get(wanted, "name")));
    const json_t *own = json_object_get(wanted, "reference");
    struct verifier_input input = *shared;
    _cleanup_(graded_finish) struct graded graded;
    struct verdict verdict;
    int64_t started_us = clock_monotonic_us();

    graded_init(&graded, wanted, input.completion);
    if (!verifier)
        return -1;
    input.options = json_object_get(wanted, "options");
    input.external = json_object_get(wanted, "external");
    if (own)
        input.reference = own;
    if (!grade(verifier, &graded, &input, &verdict, json))
        return 0;
    if (verifier->runs_programs && means->sandbox) {
        note_level(means->sandbox, &verdict);
        note_slot(means, &verdict);
    }
    graded_settle(&graded, json->out, &verdict);
    write_verdict(json, &graded, &verdict, clock_monotonic_us() - started_us);
    verdict_finish(&verdict);
    return 0;
}

/* Those of one request: each is on the page before it begins. */
struct turn {
    uint64_t left_out;
    const struct worker_means *means;
    uint64_t at;
};

static int answer_turn(const json_t *wanted, size_t index, const struct turn *turn, struct verifier_input *shared,
                       struct json_write *json)
{
    const json_t *replies = json_array_get(json_object_get(shared->request, "replies"), index);

    if (index < VERIFIER_LIST_LIMIT && turn->left_out >> index & 1) {
        json_write_null(json);
        return 0;
    }
    if (turn->means->page)
        atomic_store_explicit(&turn->means->page->at, turn->at + index, memory_order_relaxed);
    shared->replies = json_is_array(replies) ? replies : NULL;
    return answer_one(wanted, shared, turn->means, json);
}

/* A message's text: its content, or the first text among its parts. */
static struct text text_of_message(const json_t *message)
{
    const json_t *content = json_object_get(message, "content");
    size_t i;
    const json_t *part;

    json_array_foreach (content, i, part)
        if (json_is_string(json_object_get(part, "text")))
            return json_text_of(json_object_get(part, "text"));
    return json_text_of(content);
}

/* The prompt, or what a user said last. */
static struct text prompt_of(const json_t *request)
{
    const json_t *messages = json_object_get(request, "messages");
    struct text prompt = json_text_of(json_object_get(request, "prompt"));

    for (size_t i = json_array_size(messages); i-- > 0 && !prompt.data;) {
        const json_t *message = json_array_get(messages, i);
        if (text_equals(json_text_of(json_object_get(message, "role")), "user"))
            return text_of_message(message);
    }
    return prompt;
}

static int answer_all(const json_t *request, const struct turn *turn, struct json_write *json)
{
    const json_t *tokens = json_object_get(request, "completion_tokens");
    const json_t *wanted;
    const json_t *list = json_object_get(request, "verifiers");
    struct verifier_input shared = {
        .completion = json_text_of(json_object_get(request, "completion")),
        .prompt = prompt_of(request),
        .reference = json_object_get(request, "reference"),
        .completion_tokens = json_is_integer(tokens) ? json_integer_value(tokens) : -1,
        .request = request,
        .sandbox_fd = turn->means->slot_fd,
    };
    size_t i;

    if (!shared.completion.data || !json_is_array(list) || json_array_size(list) > VERIFIER_LIST_LIMIT)
        return -1;
    json_object_begin(json);
    json_key(json, "verdicts");
    json_array_begin(json);
    json_array_foreach (list, i, wanted)
        if (answer_turn(wanted, i, turn, &shared, json) < 0)
            return -1;
    json_array_end(json);
    json_object_end(json);
    return 0;
}

static void note_no_memory(struct worker_page *page)
{
    if (page)
        atomic_store_explicit(&page->no_memory, true, memory_order_release);
}

int worker_answer(struct text request, uint64_t left_out, const struct worker_means *means, uint64_t at,
                  struct buffer *out)
{
    json_t *root = json_big_load(request, JSON_ALLOW_NUL, NULL);
    struct turn turn = {left_out, means, at};
    struct json_write json;
    int result;

    if (!root && request.length_bytes > KEEP_FRAME_BYTES) /* the service writes JSON: it was not the form */
        note_no_memory(means->page);
    json_write_init(&json, out);
    result = root ? answer_all(root, &turn, &json) : -1;
    json_decref(root);
    if (means->page)
        atomic_store_explicit(&means->page->at, WORKER_READS, memory_order_relaxed);
    if (out->failed && out->length_bytes < out->maximum_bytes / 2)
        note_no_memory(means->page);
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

void request_put_left_out(char *frame, uint64_t left_out)
{
    for (int i = 0; i < 8; i++)
        frame[FRAME_HEADER_BYTES + i] = (char)(left_out >> (8 * i));
}

uint64_t request_get_left_out(const char header[REQUEST_HEADER_BYTES])
{
    uint64_t left_out = 0;

    for (int i = 0; i < 8; i++)
        left_out |= (uint64_t)(unsigned char)header[FRAME_HEADER_BYTES + i] << (8 * i);
    return left_out;
}

/* Requests that have come: several of them can be read with one call. */
struct inbox {
    int fd;
    size_t frame_limit_bytes;
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
static int read_request(struct inbox *inbox, struct text *ret_frame, uint64_t *ret_left_out)
{
    if (left_bytes(inbox) == 0 && inbox->bytes.capacity_bytes > KEEP_FRAME_BYTES) {
        buffer_finish(&inbox->bytes);
        inbox->used_bytes = 0;
    }
    if (read_until(inbox, REQUEST_HEADER_BYTES) < 0)
        return -1;
    size_t length_bytes = frame_get_length(inbox->bytes.data + inbox->used_bytes);
    if (length_bytes > inbox->frame_limit_bytes || read_until(inbox, REQUEST_HEADER_BYTES + length_bytes) < 0)
        return -1;
    *ret_left_out = request_get_left_out(inbox->bytes.data + inbox->used_bytes);
    *ret_frame = (struct text){inbox->bytes.data + inbox->used_bytes + REQUEST_HEADER_BYTES, length_bytes};
    inbox->used_bytes += REQUEST_HEADER_BYTES + length_bytes;
    return 0;
}

static bool lost_slot(const struct worker_means *means)
{
    return means->page && atomic_load_explicit(&means->page->lost_slot, memory_order_relaxed);
}

/* Each reply is written at once: if the worker ends, the service must know at which request. */
static int serve_one(struct inbox *inbox, const struct worker_means *means, uint64_t number, struct buffer *reply)
{
    struct text request;
    uint64_t left_out;

    buffer_clear(reply);
    buffer_append(reply, (char[FRAME_HEADER_BYTES]){0}, FRAME_HEADER_BYTES);
    if (read_request(inbox, &request, &left_out) < 0 ||
        worker_answer(request, left_out, means, WORKER_AT(number, 0), reply) < 0)
        return -1;
    frame_put_length(reply->data, reply->length_bytes - FRAME_HEADER_BYTES);
    return write_whole(inbox->fd, reply->data, reply->length_bytes) < 0 || lost_slot(means) ? -1 : 0;
}

/* --- lock-down --- */

#if UNDER_SANITIZER

/* A sanitizer reserves terabytes and calls what the filter refuses; the strict profile is tested without one. */
static int limit_resources(bool has_slot)
{
    (void)has_slot;
    return setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}

static int load_filter(void)
{
    return 0;
}

#else

/* Bytes mapped now: the program and its libraries. 0: unknown. */
static rlim_t mapped_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    char line[128] = "";
    unsigned long pages = 0;

    if (file && fgets(line, sizeof(line), file))
        pages = strtoul(line, NULL, 10);
    if (file)
        fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Data is what counts; address space bounds the rest: what cannot be written takes page tables, too. */
static int limit_resources(bool has_slot)
{
    rlim_t mapped = mapped_bytes();
    rlim_t data = has_slot ? CODE_DATA_LIMIT_BYTES : DATA_LIMIT_BYTES;
    const struct {
        int resource;
        rlim_t limit;
    } limits[] = {
        {RLIMIT_CORE, 0},
        {RLIMIT_FSIZE, 0},
        {RLIMIT_NPROC, 0},
        {RLIMIT_NOFILE, has_slot ? WORKER_SLOT_FD + 1 : WORKER_SLOT_FD},
        {RLIMIT_MEMLOCK, 0},
        {RLIMIT_MSGQUEUE, 0},
        {RLIMIT_DATA, data},
        {RLIMIT_STACK, STACK_LIMIT_BYTES},
        {RLIMIT_AS, mapped + data + STACK_LIMIT_BYTES},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(limits) && mapped; i++)
        if (setrlimit(limits[i].resource, &(struct rlimit){limits[i].limit, limits[i].limit}) < 0)
            return -1;
    return mapped ? 0 : -1;
}

/* Memory of its own that RLIMIT_DATA counts: no shared mapping, no second stack, no huge pages, none that is a file. */
static int allow_memory(scmp_filter_ctx filter)
{
    const unsigned refused = MAP_TYPE | MAP_GROWSDOWN | MAP_HUGETLB | MAP_LOCKED;
    int result = seccomp_rule_add(
        filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
        SCMP_A3(SCMP_CMP_MASKED_EQ, refused | MAP_ANONYMOUS, (scmp_datum_t)(MAP_PRIVATE | MAP_ANONYMOUS)));

    /* realloc() does just this. A size of 0 would map shared pages a second time. */
    return result < 0 ? result
                      : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mremap), 2, SCMP_A1(SCMP_CMP_NE, 0),
                                         SCMP_A3(SCMP_CMP_EQ, MREMAP_MAYMOVE));
}

/* System calls for memory, the socket and the clock; none that names a file, a process or an address. glibc's qsort
 * calls sysinfo above 1 KiB. Anything else ends the process. */
static int load_filter(void)
{
    static const int allowed[] = {
        SCMP_SYS(read),
        SCMP_SYS(write),
        SCMP_SYS(exit_group),
        SCMP_SYS(exit),
        SCMP_SYS(brk),
        SCMP_SYS(munmap),
        SCMP_SYS(madvise),
        SCMP_SYS(futex),
        SCMP_SYS(rt_sigreturn),
        SCMP_SYS(clock_gettime),
        SCMP_SYS(gettimeofday),
        SCMP_SYS(sysinfo),
        SCMP_SYS(restart_syscall),
    };
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    int result = filter ? 0 : -ENOMEM;

    for (size_t i = 0; i < ARRAY_LENGTH(allowed) && result == 0; i++)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
    if (result == 0)
        result = allow_memory(filter);
    if (result == 0)
        result = seccomp_load(filter);
    seccomp_release(filter);
    errno = -result;
    return result < 0 ? -1 : 0;
}

#endif

int worker_lock_down(bool has_slot)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return -1;
    return limit_resources(has_slot) < 0 ? -1 : load_filter();
}

static struct worker_page *own_page;

static void exhausted(void)
{
    note_no_memory(own_page);
}

void worker_main(int fd, const struct sandbox_settings *sandbox, struct worker_page *page)
{
    struct worker_means means = {sandbox, sandbox ? WORKER_SLOT_FD : -1, page};
    struct inbox inbox = {
        .fd = fd, .frame_limit_bytes = sandbox ? VERIFIER_PROGRAM_FRAME_LIMIT_BYTES : WORKER_ANSWERS_FRAME_LIMIT_BYTES};
    struct buffer reply;

    /* Now, while jansson can still read the random bytes it seeds its hash tables with. */
    own_page = page;
    memory_exhausted = exhausted;
    json_object_seed(0);
    json_big_prepare();
    buffer_init(&inbox.bytes, inbox.frame_limit_bytes + REQUEST_HEADER_BYTES + READ_BYTES);
    buffer_init(&reply, sandbox ? WORKER_PROGRAM_REPLY_LIMIT_BYTES : WORKER_REPLY_LIMIT_BYTES);
    if (worker_lock_down(sandbox != NULL) < 0)
        _exit(2);
    for (uint64_t number = 0; serve_one(&inbox, &means, number, &reply) == 0; number++)
        continue;
    _exit(1);
}
