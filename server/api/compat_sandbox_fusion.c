/* POST /compat/sandbox_fusion/run_code: what clients of SandboxFusion ask, run in our sandbox (docs/compat.md).
 *
 * Its clients repeat a 504 alone, and take anything else that is no result for a wrong program. So whatever is the
 * service's own fault is a 504: a full queue, no sandbox, a time that is over (also before the client gives up). */
#include "server/api/routes.h"
#include "server/api/server.h"
#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/http/http.h"
#include "server/input/input.h"
#include "server/settings/settings.h"
#include "server/verify/program.h"

#include <math.h>
#include <stdio.h>

#define SECONDS_MAX 3600
#define MEMORY_MB 1024 /* where the request leaves it to us */
#define MEMORY_MAX_MB (1 << 20)
#define FILES_MAX 4
#define NAME_BYTES 63
#define CODE_BYTES (16 << 20)
/* Clients wait 10 s longer than both of their limits: before that they are told to come again. */
#define PATIENCE_US (8 * US_PER_S)
#define REPLY_BYTES ((size_t)64 << 20)
#define KILLED 9

static const struct {
    const char *asked;
    const char *language; /* of the sandbox */
    bool is_compiled;
} languages[] = {{"python", "python", false}, {"cpp", "cpp", true}, {"c", "c", true}, {"bash", "sh", false}};

struct run_code {
    struct server *server;
    struct request *client;
    struct verify_job job;
    struct verifier_list *list;
    struct buffer frame;
    struct loop_timer deadline;
    int64_t allowed_us;
    bool is_compiled;
    bool running;
};

static void run_code_destroy(void *parsed)
{
    struct run_code *run = parsed;

    verify_job_finish(&run->job);
    verifier_list_unref(run->list);
    buffer_finish(&run->frame);
    free(run);
}

/* --- the request --- */

struct run_code_fields {
    double compile_timeout;
    double run_timeout;
    int64_t memory_limit_mb;
    struct text code;
    struct text input;
    struct text language;
    json_t *files;
    json_t *fetch_files;
};

#define MEMBER(name) offsetof(struct run_code_fields, name)
static const struct field fields[] = {
    {"compile_timeout", FIELD_DOUBLE, 0, MEMBER(compile_timeout), 0.001, SECONDS_MAX, NULL},
    {"run_timeout", FIELD_DOUBLE, 0, MEMBER(run_timeout), 0.001, SECONDS_MAX, NULL},
    {"memory_limit_MB", FIELD_INT, 0, MEMBER(memory_limit_mb), -1, MEMORY_MAX_MB, NULL},
    {"code", FIELD_TEXT, FIELD_REQUIRED, MEMBER(code), 0, CODE_BYTES, NULL},
    {"stdin", FIELD_TEXT, FIELD_NULLABLE, MEMBER(input), 0, 0, NULL},
    {"language", FIELD_TEXT, FIELD_REQUIRED, MEMBER(language), 0, 0, NULL},
    {"files", FIELD_OBJECT, FIELD_NULLABLE, MEMBER(files), 0, 0, NULL},
    {"fetch_files", FIELD_ARRAY, FIELD_NULLABLE, MEMBER(fetch_files), 0, 0, NULL},
};

static int find_language(struct call *call, struct text asked)
{
    for (size_t i = 0; i < ARRAY_LENGTH(languages); i++)
        if (text_equals(asked, languages[i].asked))
            return (int)i;
    return call_refuse(call, ERR_INVALID_FIELD, "language", "expected python, cpp, c or bash");
}

/* The name of the program's own file begins like this. */
static bool is_name(const char *name)
{
    return *name && strlen(name) <= NAME_BYTES && !strchr(name, '/') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0 && strncmp(name, "solution", strlen("solution")) != 0;
}

static int add_file(struct call *call, const char *name, json_t *bytes, json_t *list)
{
    _cleanup_buffer_ struct buffer decoded;

    buffer_init(&decoded, SIZE_MAX);
    if (json_is_null(bytes))
        return 0;
    if (!is_name(name))
        return call_refuse(call, ERR_INVALID_FIELD, "files",
                           "expected names of 1 to %d bytes without a slash, which do not begin with solution",
                           NAME_BYTES);
    if (!json_is_string(bytes) || !base64_decode(json_text_of(bytes), &decoded))
        return call_refuse(call, ERR_INVALID_FIELD, "files", "expected base64");
    json_array_append_new(list, json_pack("{s:s, s:O}", "name", name, "base64", bytes));
    return 0;
}

/* NULL with the call refused. */
static json_t *read_files(struct call *call, const struct run_code_fields *read)
{
    json_t *list = json_array();
    const char *name;
    json_t *bytes;

    json_object_foreach (read->files, name, bytes)
        if (add_file(call, name, bytes, list) < 0) {
            json_decref(list);
            return NULL;
        }
    if (json_array_size(list) <= FILES_MAX)
        return list;
    json_decref(list);
    call_refuse(call, ERR_INVALID_FIELD, "files", "expected at most %d files", FILES_MAX);
    return NULL;
}

static json_t *options_of(const struct run_code_fields *read, size_t language, json_t *files)
{
    int64_t memory_mb = read->memory_limit_mb > 0 ? read->memory_limit_mb : MEMORY_MB;
    json_t *options = json_pack("{s:s, s:I, s:I, s:o}", "language", languages[language].language, "wall_ms",
                                (json_int_t)ceil(read->run_timeout * 1000), "memory_bytes", (json_int_t)memory_mb << 20,
                                "files", files);

    if (read->input.data)
        json_object_set_new(options, "stdin", json_stringn_nocheck(read->input.data, read->input.length_bytes));
    return options;
}

static int build(struct call *call, const struct run_code_fields *read, size_t language, struct run_code *run)
{
    json_t *files = read_files(call, read);

    if (!files)
        return -1;
    run->is_compiled = languages[language].is_compiled;
    run->allowed_us = (int64_t)((read->compile_timeout + read->run_timeout) * US_PER_S) + PATIENCE_US;
    run->list = program_list_create(options_of(read, language, files), run->allowed_us / US_PER_MS);
    if (!run->list)
        return call_refuse(call, ERR_INTERNAL, NULL, "the program does not fit into memory");
    buffer_init(&run->frame, REPLY_BYTES);
    if (verify_request_build(run->list, &(struct verify_subject){.completion = read->code, .completion_tokens = -1},
                             &run->frame) < 0)
        return call_refuse(call, ERR_BODY_TOO_LARGE, NULL, "code, stdin and files are larger than a worker reads");
    return 0;
}

static int read_request(struct json_input *input, struct run_code *run)
{
    struct run_code_fields read = {.compile_timeout = 10, .run_timeout = 10, .memory_limit_mb = -1};
    int language;

    if (json_read_object(input, input->root, "", fields, ARRAY_LENGTH(fields), &read) < 0)
        return -1;
    language = find_language(input->call, read.language);
    if (language < 0)
        return -1;
    if (json_array_size(read.fetch_files))
        return call_refuse(input->call, ERR_INVALID_FIELD, "fetch_files",
                           "what a program writes ends with it; expected no files");
    return build(input->call, &read, (size_t)language, run);
}

void run_code_parse(struct call *call)
{
    struct json_input input;
    struct run_code *run;

    if (!call->settings->compat_sandbox_fusion) {
        call_refuse(call, ERR_NOT_FOUND, NULL, "compat.sandbox_fusion is false");
        return;
    }
    if (json_input_init(&input, call, NULL) < 0)
        return;
    run = xcalloc(1, sizeof *run);
    call->parsed = run;
    call->parsed_destroy = run_code_destroy;
    read_request(&input, run);
    json_input_finish(&input);
}

/* --- the reply --- */

static int refuse_unrun(struct call *call, const struct program_result *result)
{
    return call_refuse(call, ERR_SANDBOX_UNAVAILABLE, NULL, "%s: %s", result->failure_code, result->failure_message);
}

static struct text text_in(const json_t *detail, const char *key)
{
    return json_text_of(json_object_get(detail, key));
}

static bool is_outcome(const json_t *detail, const char *name)
{
    return text_equals(text_in(detail, "outcome"), name);
}

/* As a parent in Python sees it. A program that went beyond a limit counts as killed, however it ended then. */
static int64_t return_code(const json_t *detail)
{
    int64_t number = json_integer_value(json_object_get(detail, "signal"));

    if (number > 0 || !is_outcome(detail, "ended"))
        return number > 0 ? -number : -KILLED;
    return json_integer_value(json_object_get(detail, "exit_code"));
}

static void write_compiled(struct json_write *json, bool succeeded, struct text said)
{
    json_object_begin(json);
    json_put_string(json, "status", "Finished");
    json_put_null(json, "execution_time");
    json_put_int(json, "return_code", succeeded ? 0 : 1);
    json_put_string(json, "stdout", "");
    json_put_text(json, "stderr", said);
    json_object_end(json);
}

static void write_ran(struct json_write *json, const json_t *detail)
{
    bool in_time = !is_outcome(detail, "timeout");
    int64_t wall_us = json_integer_value(json_object_get(detail, "wall_us"));

    json_object_begin(json);
    json_put_string(json, "status", in_time ? "Finished" : "TimeLimitExceeded");
    json_put_double(json, "execution_time", (double)wall_us / US_PER_S);
    if (in_time)
        json_put_int(json, "return_code", return_code(detail));
    else
        json_put_null(json, "return_code");
    json_put_text(json, "stdout", text_in(detail, "stdout"));
    json_put_text(json, "stderr", text_in(detail, "stderr"));
    json_object_end(json);
}

static void write_reply(struct json_write *json, const json_t *detail, bool is_compiled)
{
    bool compiled = !is_outcome(detail, "not_compiled");
    bool succeeded = is_outcome(detail, "ended") && return_code(detail) == 0;

    json_object_begin(json);
    json_put_string(json, "status", succeeded ? "Success" : "Failed");
    json_put_string(json, "message", "");
    json_key(json, "compile_result");
    if (is_compiled)
        write_compiled(json, compiled, compiled ? TEXT_LITERAL("") : text_in(detail, "stderr"));
    else
        json_write_null(json);
    json_key(json, "run_result");
    if (compiled)
        write_ran(json, detail);
    else
        json_write_null(json);
    json_put_null(json, "executor_pod_name");
    json_put_raw(json, "files", TEXT_LITERAL("{}"));
    json_object_end(json);
}

static void answer(struct call *call)
{
    const struct run_code *run = call->parsed;
    struct program_result result;
    struct json_write json;

    program_result_read(&run->job, &result);
    if (!result.detail) {
        refuse_unrun(call, &result);
    } else {
        json_write_init(&json, &call->reply.body);
        write_reply(&json, result.detail, run->is_compiled);
        call_answer_json(call, 200);
    }
    program_result_finish(&result);
}

/* --- on the loop --- */

static void ran(struct verify_job *job)
{
    struct run_code *run = (struct run_code *)((char *)job - offsetof(struct run_code, job));

    run->running = false;
    loop_timer_clear(run->server->loop, &run->deadline);
    request_continue_on_worker(run->client, answer);
}

static void stop(struct run_code *run)
{
    loop_timer_clear(run->server->loop, &run->deadline);
    if (run->running)
        verify_cancel_job(run->server->verify_pool, &run->job);
    run->running = false;
}

static void expired(void *arg)
{
    struct run_code *run = arg;

    stop(run);
    request_refuse(run->client, ERR_QUEUE_FULL, NULL,
                   "no slot was free in time; fewer requests at once wait for sandbox.slots of them");
}

/* When a worker has the job's result, it answers. */
static bool hung_up(struct request *client, void *arg)
{
    struct run_code *run = arg;
    bool waits = run->running;

    (void)client;
    stop(run);
    return waits;
}

void run_code_on_loop(void *owner, struct request *client)
{
    struct server *server = owner;
    struct call *call = request_call(client);
    struct run_code *run = call->parsed;

    if (!request_hold_parsed(client, sizeof *run + run->frame.capacity_bytes))
        return;
    run->server = server;
    run->client = client;
    run->job.frame = run->frame.data;
    run->job.frame_bytes = run->frame.length_bytes;
    verify_job_ask(&run->job, run->list, server->settings->verify_timeout_us);
    run->job.lane = VERIFY_SMALL;
    run->job.request_id = call->request_id;
    run->job.done = ran;
    run->running = verify_submit(server->verify_pool, &run->job);
    if (!run->running) {
        request_refuse(client, ERR_QUEUE_FULL, NULL, "sandbox.queue_limit programs wait for a slot");
        return;
    }
    request_on_hangup(client, hung_up, run);
    loop_timer_set(server->loop, &run->deadline, clock_monotonic_us() + run->allowed_us, expired, run);
}
