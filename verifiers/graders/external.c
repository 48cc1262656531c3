/* external: a reward function of the user's own, which the settings name.
 *
 * Its command is run in the slot of the worker, once for each completion, or stays there and is given one line for each:
 * one JSON object on standard input, one on standard output, which is parsed here, in a locked-down process. Anything else than a reply (no JSON, no score,
 * an exit code, the end of its time) is a failure, never a number: verifier_crashed, verifier_timeout,
 * external_invalid_reply. A failure that the function itself reports is external_failed.
 *
 * One with a URL is asked by the service: the object is the body of the call, and its reply is parsed here alike. A
 * call without an answer is external_unreachable, external_overloaded, verifier_timeout or external_failed.
 *
 * The service puts the function beside the options, as "external": {"asked": by its URL, "command": texts, "files":
 * [{"name", "base64"}], "timeout_ms", "memory_bytes", "venv": NULL or a path, "bare": without a sandbox, "persistent": it
 * stays}. */
#include <math.h>
#include <stdio.h>

#include "server/base/hash.h"
#include "server/base/json_big.h"
#include "server/base/utf8.h"
#include "verifiers/rows.h"
#include "verifiers/sandbox/sandbox.h"
#include "verifiers/text/extract.h"
#include "verifiers/worker/worker.h"

#define FAILURE_CRASHED "verifier_crashed"
#define FAILURE_TIMEOUT "verifier_timeout"
#define FAILURE_REPLY "external_invalid_reply"
#define FAILURE_OWN "external_failed"

#define NAME_BYTES 64
#define OUTPUT_BYTES (INT64_C(1) << 20)
#define DISK_BYTES (INT64_C(64) << 20)
#define PROCESSES 16
#define PROCESSORS 4 /* that it may keep busy for its whole time */
#define DAY_MS INT64_C(86400000)
#define FILES_BYTES ((size_t)1 << 20)
#define DETAIL_BYTES 16384
#define SAID_BYTES 100 /* of standard error, in a message */

static const struct verifier_option options[] = {
    {"name", OPTION_TEXT, NULL, NULL, 1, NAME_BYTES, "of an entry of the setting externals"},
};

/* --- there --- */

static bool is_of_group(const struct verifier_input *input)
{
    return json_is_true(json_object_get(input->external, "group"));
}

/* Its own keys of the request, null for one that is not there. */
static json_t *input_of(const struct verifier_input *input)
{
    static const char *const keys[] = {"id", "task", "prompt", "messages", "completion", "completion_ids", "metadata"};
    json_t *object = json_object();

    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        json_t *value = json_object_get(input->request, keys[i]);
        json_object_set_new(object, keys[i], value ? json_incref(value) : json_null());
    }
    json_object_set_new(object, "reference",
                        input->reference ? json_incref((json_t *)(uintptr_t)input->reference) : json_null());
    json_object_set_new(object, "siblings", json_null());
    if (is_of_group(input)) { /* the request has a completion because every one has */
        json_object_set_new(object, "completion", json_null());
        json_object_set(object, "siblings", json_object_get(input->request, "members"));
    }
    return object;
}

static int64_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* The texts of the program point into the external and, for its files, into `bytes`. -1: it is not one of ours. */
static int add_files(const json_t *external, struct buffer *bytes, struct sandbox_program *program)
{
    const json_t *file;
    size_t starts[SANDBOX_FILES_MAX];
    size_t i;

    if (json_array_size(json_object_get(external, "files")) > SANDBOX_FILES_MAX)
        return -1;
    json_array_foreach (json_object_get(external, "files"), i, file) {
        starts[i] = bytes->length_bytes;
        program->files[i].name = json_string_value(json_object_get(file, "name"));
        if (!program->files[i].name || !base64_decode(json_text_of(json_object_get(file, "base64")), bytes))
            return -1;
        program->files[i].bytes.length_bytes = bytes->length_bytes - starts[i];
        program->file_count++;
    }
    for (i = 0; i < program->file_count; i++) /* they stay where they are from now on */
        program->files[i].bytes.data = bytes->length_bytes ? bytes->data + starts[i] : "";
    return 0;
}

static int describe_program(const json_t *external, struct buffer *bytes, struct sandbox_program *program)
{
    int64_t timeout_ms = number_of(external, "timeout_ms");
    const json_t *word;
    size_t i;

    *program = (struct sandbox_program){
        .language = SANDBOX_COMMAND,
        .limits = {.wall_ms = timeout_ms,
                   .cpu_ms = timeout_ms > DAY_MS / PROCESSORS ? DAY_MS : timeout_ms * PROCESSORS,
                   .memory_bytes = number_of(external, "memory_bytes"),
                   .output_bytes = OUTPUT_BYTES,
                   .disk_bytes = DISK_BYTES,
                   .processes = PROCESSES},
        .venv = json_string_value(json_object_get(external, "venv")),
        .stay = json_is_true(json_object_get(external, "persistent")) ? SANDBOX_STAYS : SANDBOX_ONCE,
        .bare = json_is_true(json_object_get(external, "bare")),
    };
    if (json_array_size(json_object_get(external, "command")) > SANDBOX_ARGUMENTS_MAX)
        return -1;
    json_array_foreach (json_object_get(external, "command"), i, word)
        program->arguments[program->argument_count++] = json_string_value(word);
    return add_files(external, bytes, program);
}

/* --- back --- */

/* The end of what it wrote to standard error, in one line. */
static void take_said(struct text error, char ret_said[SAID_BYTES * 4])
{
    _cleanup_buffer_ struct buffer mended;

    error = text_trimmed(error);
    if (error.length_bytes > SAID_BYTES) {
        error.data += error.length_bytes - SAID_BYTES;
        error.length_bytes = SAID_BYTES;
    }
    buffer_init(&mended, (size_t)SAID_BYTES * 3 + 1);
    utf8_append_mended(&mended, error);
    snprintf(ret_said, SAID_BYTES * 4, "%s%.*s", mended.length_bytes ? ": " : "", (int)mended.length_bytes,
             mended.length_bytes ? mended.data : "");
    for (char *at = ret_said; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
}

/* False: it did not end as a program that says a score does. */
static bool check_end(const struct sandbox_result *result, bool stays, struct verdict *verdict)
{
    static const char *const ends[] = {
        [SANDBOX_MEMORY] = "the command took more than its memory",
        [SANDBOX_OUTPUT] = "the command wrote more than 1 MiB",
        [SANDBOX_VIOLATION] = "the command made a system call that ends it",
        [SANDBOX_NOT_COMPILED] = "the command was not compiled",
    };
    char said[SAID_BYTES * 4];

    take_said(result->standard_error, said);
    if (result->outcome == SANDBOX_ANSWERED) {
        if (result->message[0])
            verdict_fail(verdict, FAILURE_REPLY, "the command wrote %s", result->message);
        return !result->message[0];
    }
    if (result->outcome == SANDBOX_BROKEN && strncmp(result->message, "exec", 4) == 0)
        verdict_fail(verdict, FAILURE_CRASHED, "the command cannot be run: %s", result->message);
    else if (result->outcome == SANDBOX_BROKEN)
        verdict_fail(verdict, SANDBOX_UNAVAILABLE, "%s", result->message);
    else if (result->outcome == SANDBOX_TIMEOUT)
        verdict_fail(verdict, FAILURE_TIMEOUT, "the command did not end in its time%s", said);
    else if (result->outcome != SANDBOX_ENDED)
        verdict_fail(verdict, FAILURE_CRASHED, "%s%s", ends[result->outcome], said);
    else if (result->signal)
        verdict_fail(verdict, FAILURE_CRASHED, "the command ended by signal %d%s", result->signal, said);
    else if (result->exit_code != 0)
        verdict_fail(verdict, FAILURE_CRASHED, "the command ended with code %d%s", result->exit_code, said);
    else if (stays)
        verdict_fail(verdict, FAILURE_CRASHED, "the command ended before its answer%s", said);
    return !verdict->failure_code;
}

static bool is_code(struct text text)
{
    if (text.length_bytes == 0 || text.length_bytes >= VERDICT_REASON_BYTES)
        return false;
    for (size_t i = 0; i < text.length_bytes; i++)
        if (!text.data[i] || !strchr("abcdefghijklmnopqrstuvwxyz0123456789_", text.data[i]))
            return false;
    return true;
}

static bool is_given(const json_t *value)
{
    return value && !json_is_null(value);
}

/* Its own words go below a key of their own: it cannot say at which level it ran. */
static bool take_detail(const json_t *detail, struct verdict *verdict)
{
    if (!is_given(detail))
        return true;
    if (!json_is_object(detail) || json_dumpb(detail, NULL, 0, JSON_COMPACT) > DETAIL_BYTES) {
        verdict_fail(verdict, FAILURE_REPLY, "detail must be an object of at most 16 KiB, or null");
        return false;
    }
    json_object_set(verdict->detail, "said", (json_t *)(uintptr_t)detail);
    return true;
}

/* A text, or {"code", "message"}. */
static void take_failure(const json_t *failure, struct verdict *verdict)
{
    struct text code = json_text_of(json_object_get(failure, "code"));
    struct text message = json_text_of(json_is_string(failure) ? failure : json_object_get(failure, "message"));

    verdict_fail(verdict, FAILURE_OWN, "%.*s%s%.*s", code.data ? (int)code.length_bytes : 0, code.data ? code.data : "",
                 code.length_bytes && message.length_bytes ? ": " : "", message.data ? (int)message.length_bytes : 0,
                 message.data ? message.data : "");
}

/* Only a server may say its version. */
static const char *unknown_key(const json_t *reply, const char *const *known, size_t count)
{
    const char *key;
    const json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)reply, key, value) {
        size_t i = 0;
        while (i < count && strcmp(key, known[i]) != 0)
            i++;
        if (i == count)
            return key;
    }
    return NULL;
}

static void take_score(const json_t *score, const json_t *reason, struct verdict *verdict)
{
    struct text code = json_text_of(reason);

    if (is_given(reason) && !is_code(code)) {
        verdict_fail(verdict, FAILURE_REPLY, "reason must be 1 to 47 of a-z 0-9 _, or null");
        return;
    }
    snprintf(verdict->own_reason, sizeof verdict->own_reason, "%.*s", code.data ? (int)code.length_bytes : 6,
             code.data ? code.data : "scored");
    verdict_set_score(verdict, json_number_value(score), verdict->own_reason);
}

/* False: it is none that can be put on record. */
static bool take_version(const json_t *version, struct verdict *verdict)
{
    struct text text = json_text_of(version);
    bool fits = text.length_bytes > 0 && text.length_bytes < sizeof verdict->own_version;

    if (!is_given(version))
        return true;
    for (size_t i = 0; i < text.length_bytes && fits; i++)
        fits = text.data[i] > ' ' && text.data[i] <= '~';
    if (fits)
        snprintf(verdict->own_version, sizeof verdict->own_version, "%.*s", (int)text.length_bytes, text.data);
    else
        verdict_fail(verdict, FAILURE_REPLY, "version must be 1 to 71 printable characters of ASCII without a blank");
    return fits;
}

/* A score or a failure, with its detail. */
static void take_verdict(const json_t *reply, struct verdict *verdict)
{
    const json_t *score = json_object_get(reply, "score");
    const json_t *failure = json_object_get(reply, "failure");

    if (is_given(score) && is_given(failure))
        verdict_fail(verdict, FAILURE_REPLY, "the reply has a score and a failure: one of them");
    else if (!take_detail(json_object_get(reply, "detail"), verdict))
        return;
    else if (is_given(failure))
        take_failure(failure, verdict);
    else if (!json_is_number(score))
        verdict_fail(verdict, FAILURE_REPLY, "the reply has neither a score that is a number nor a failure");
    else if (fabs(json_number_value(score)) <= VERDICT_SCORE_MAX)
        take_score(score, json_object_get(reply, "reason"), verdict);
    else
        verdict_fail(verdict, FAILURE_REPLY, "the score is beyond 1e100");
}

static void take_reply(const json_t *reply, bool asked, struct verdict *verdict)
{
    static const char *const known[] = {"score", "reason", "detail", "failure", "version"};
    const char *unknown = unknown_key(reply, known, ARRAY_LENGTH(known) - !asked);

    if (!json_is_object(reply))
        verdict_fail(verdict, FAILURE_REPLY, "the reply is no object");
    else if (unknown)
        verdict_fail(verdict, FAILURE_REPLY, "the reply has a key %.40s; known are score, reason, detail, failure%s",
                     unknown, asked ? ", version" : "");
    else if (take_version(json_object_get(reply, "version"), verdict))
        take_verdict(reply, verdict);
}

/* --- of a group --- */

/* As the service reads a verdict (worker.h). */
static json_t *verdict_as_json(const struct verdict *verdict)
{
    const char *kind = verdict_kind_names[verdict->kind];
    json_t *json = json_pack("{s:s, s:s, s:O?}", "verdict", kind, "reason", verdict->reason, "detail", verdict->detail);

    if (verdict->kind == VERDICT_UNSCORED) {
        json_object_set_new(json, "score", json_null());
        json_object_set_new(
            json, "failure",
            json_pack("{s:s, s:s}", "code", verdict->failure_code, "message", verdict->failure_message));
    } else {
        json_object_set_new(json, "score", json_real(verdict->score));
        json_object_set_new(json, "failure", json_null());
    }
    return json;
}

/* Of one that has no completion nothing that is said counts: nobody is paid for it. */
static json_t *member_verdict(const json_t *member, const json_t *said)
{
    struct verdict one = {.kind = VERDICT_UNSCORED, .detail = json_object()};

    if (json_object_get(member, "failure"))
        verdict_fail(&one, FAILURE_REPLY, "it has no completion");
    else
        take_reply(said, false, &one);
    json_t *json = verdict_as_json(&one);
    verdict_finish(&one);
    return json;
}

static void take_siblings(const json_t *members, const json_t *said, struct verdict *verdict)
{
    json_t *verdicts = json_array();
    const json_t *member;
    size_t i;

    json_array_foreach (members, i, member)
        json_array_append_new(verdicts, member_verdict(member, json_array_get(said, i)));
    json_object_set_new(verdict->detail, "members", verdicts);
    verdict_set_score(verdict, 0, "siblings");
}

static void take_group(const json_t *reply, const json_t *members, bool asked, struct verdict *verdict)
{
    static const char *const known[] = {"siblings", "failure", "version"};
    const json_t *said = json_object_get(reply, "siblings");
    const json_t *failure = json_object_get(reply, "failure");
    const char *unknown = unknown_key(reply, known, ARRAY_LENGTH(known) - !asked);

    if (!json_is_object(reply))
        verdict_fail(verdict, FAILURE_REPLY, "the reply is no object");
    else if (unknown)
        verdict_fail(verdict, FAILURE_REPLY, "the reply has a key %.40s; known are siblings, failure%s", unknown,
                     asked ? ", version" : "");
    else if (is_given(said) && is_given(failure))
        verdict_fail(verdict, FAILURE_REPLY, "the reply has siblings and a failure: one of them");
    else if (!take_version(json_object_get(reply, "version"), verdict))
        return;
    else if (is_given(failure))
        take_failure(failure, verdict);
    else if (json_is_array(said) && json_array_size(said) == json_array_size(members))
        take_siblings(members, said, verdict);
    else
        verdict_fail(verdict, FAILURE_REPLY, "siblings must be a list of %zu, one for each member",
                     json_array_size(members));
}

static void read_reply(const struct verifier_input *input, struct text output, bool asked, struct verdict *verdict)
{
    json_error_t error;
    json_t *reply = json_loadb(output.data, output.length_bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);

    if (reply && is_of_group(input))
        take_group(reply, json_object_get(input->request, "members"), asked, verdict);
    else if (reply)
        take_reply(reply, asked, verdict);
    else
        verdict_fail(verdict, FAILURE_REPLY, "%s is not one JSON object: %.100s",
                     asked ? "the reply" : "standard output", error.text);
    json_decref(reply);
}

/* --- the verdict --- */

/* One that says what is no reply may say anything at the next line. */
static void let_leave(const struct verifier_input *input, struct sandbox_program *program)
{
    _cleanup_(sandbox_result_finish) struct sandbox_result result = {.exit_code = -1};

    program->stay = SANDBOX_LEAVES;
    (void)sandbox_run(input->sandbox_fd, program, 1, &result); /* a slot that is gone took it along */
}

static void run(const struct verifier_input *input, struct sandbox_program *program, struct verdict *verdict)
{
    _cleanup_(sandbox_result_finish) struct sandbox_result result = {.exit_code = -1};
    json_t *object = input_of(input);
    _cleanup_free_ char *text = json_big_dump(object, JSON_COMPACT);
    _cleanup_free_ char *line = text && program->stay == SANDBOX_STAYS ? xasprintf("%s\n", text) : NULL;

    json_decref(object);
    program->input = text_of(line ? line : text);
    if (!text)
        verdict_fail(verdict, FAILURE_CRASHED, "there is no memory for the input of the command");
    else if (sandbox_run(input->sandbox_fd, program, 1, &result) < 0)
        verdict_fail(verdict, SANDBOX_UNAVAILABLE, "the slot that runs programs is gone");
    else if (check_end(&result, program->stay == SANDBOX_STAYS, verdict))
        read_reply(input, result.standard_output, false, verdict);
    if (program->stay == SANDBOX_STAYS && verdict->failure_code && strcmp(verdict->failure_code, FAILURE_REPLY) == 0)
        let_leave(input, program);
}

/* --- by its URL --- */

/* Translates the failure of a call: the codes of sampling speak of engines, users of a reward function do not. */
static void take_call_failure(const json_t *failure, struct verdict *verdict)
{
    static const struct {
        const char *call, *code;
    } codes[] = {{"engine_timeout", FAILURE_TIMEOUT},
                 {"engine_unreachable", "external_unreachable"},
                 {"engine_overloaded", "external_overloaded"},
                 {"invalid_reply", FAILURE_REPLY}};
    struct text code = json_text_of(json_object_get(failure, "code"));
    struct text message = json_text_of(json_object_get(failure, "message"));
    const char *own = FAILURE_OWN;
    static const char engine[] = "the engine ";

    for (size_t i = 0; i < ARRAY_LENGTH(codes); i++)
        if (text_equals(code, codes[i].call))
            own = codes[i].code;
    const char *said = message.data ? message.data : "";
    bool of_engine = strncmp(said, engine, sizeof engine - 1) == 0;
    verdict_fail(verdict, own, "%s%s", of_engine ? "the server " : "", said + (of_engine ? sizeof engine - 1 : 0));
    verdict->retryable = json_is_true(json_object_get(failure, "retryable"));
}

static void grade_reply(const struct verifier_input *input, struct verdict *verdict)
{
    const json_t *reply = json_array_get(input->replies, 0);
    const json_t *failure = json_object_get(reply, "failure");
    struct text body = json_text_of(json_object_get(reply, "body"));

    if (failure)
        take_call_failure(failure, verdict);
    else if (!body.data || json_object_get(reply, "mended"))
        verdict_fail(verdict, FAILURE_REPLY, "the reply is no UTF-8");
    else
        read_reply(input, body, true, verdict);
}

static bool is_asked(const struct verifier_input *input)
{
    return json_is_true(json_object_get(input->external, "asked"));
}

static json_t *named_detail(const struct verifier_input *input)
{
    return json_pack("{s:O}", "external", json_object_get(input->options, "name"));
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict);

static bool plan(const struct verifier_input *input, json_t *calls, struct verdict *ret_verdict)
{
    if (!is_asked(input)) {
        grade(input, ret_verdict);
        return false;
    }
    json_t *object = input_of(input);
    _cleanup_free_ char *text = json_big_dump(object, JSON_COMPACT);

    json_decref(object);
    if (!text || json_array_append_new(calls, json_pack("{s:s, s:s}", "path", "/", "body", text)) < 0) {
        verdict_fail(ret_verdict, "verifier_input_too_large", "there is no memory for the request");
        return false;
    }
    return true;
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    _cleanup_buffer_ struct buffer files;
    struct sandbox_program program;

    buffer_init(&files, FILES_BYTES);
    if (!input->external) {
        verdict_fail(ret_verdict, FAILURE_CRASHED, "there is no external of this name here");
        return;
    }
    if (is_asked(input)) {
        ret_verdict->detail = named_detail(input);
        grade_reply(input, ret_verdict);
        return;
    }
    if (describe_program(input->external, &files, &program) < 0) {
        verdict_fail(ret_verdict, FAILURE_CRASHED, "the external cannot be read");
        return;
    }
    ret_verdict->detail = named_detail(input);
    if (program.bare)
        json_object_set_new(ret_verdict->detail, "sandbox", json_string("none"));
    if (input->sandbox_fd < 0) {
        verdict_fail(ret_verdict, SANDBOX_UNAVAILABLE, "there is no sandbox here to run commands in");
        return;
    }
    run(input, &program, ret_verdict);
}

const struct verifier verifier_external = {
    .name = "external",
    .version = "1",
    .help = "what a reward function of your own says, which the settings name",
    .asks_external = true,
    .runs_programs = true,
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .plan = plan,
    .grade = grade,
};
