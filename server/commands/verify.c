/* rolloutd verify: one completion, judged as the service judges, and how it came about. */
#include "server/base/json_big.h"
#include "server/commands/commands.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/utf8.h"
#include "server/commands/safe_print_private.h"
#include "server/commands/sandbox_private.h"
#include "server/commands/verify_asked_private.h"
#include "server/commands/verify_once_private.h"
#include "server/http/call.h"
#include "server/runtime/limits.h"
#include "verifiers/registry.h"

#define COMMAND "verify"
#define INPUT_BYTES ((size_t)64 << 20) /* of what is read; what a worker takes is checked behind */
#define ONLY_VERIFIER "verifiers[0]."  /* of paths in messages: there is no list on the command line */
#define TIMEOUT_US (5 * US_PER_S)

enum { EXIT_CORRECT, EXIT_INCORRECT, EXIT_UNSCORED = 3 };

/* --- what is asked --- */

struct arguments {
    struct {
        const char *name; /* NULL: math */
        const char *options;
    } verifiers[VERIFIER_LIST_LIMIT];
    size_t verifier_count; /* --verifier; of none there is one without a name */
    const char *reference;
    const char *reference_json;
    const char *completion;
    const char *completion_file;
    const char *prompt;
    const char *replay;
    const char *config;
    int64_t completion_tokens; /* -1: not given */
    int64_t timeout_us;
    bool json;
    struct sandbox_settings sandbox; /* where a verifier runs programs */
    const struct settings *settings; /* where one asks what they name */
};

#define TAKE_TEXT(field)                                                                                               \
    static int take_##field(void *target, const char *value, char *ret_message)                                        \
    {                                                                                                                  \
        (void)ret_message;                                                                                             \
        ((struct arguments *)target)->field = value;                                                                   \
        return 0;                                                                                                      \
    }
TAKE_TEXT(reference)
TAKE_TEXT(reference_json)
TAKE_TEXT(completion)
TAKE_TEXT(completion_file)
TAKE_TEXT(prompt)
TAKE_TEXT(replay)
TAKE_TEXT(config)

static int take_verifier(void *target, const char *value, char *ret_message)
{
    struct arguments *arguments = target;

    if (arguments->verifier_count == VERIFIER_LIST_LIMIT) {
        snprintf(ret_message, COMMAND_MESSAGE_BYTES, "--verifier: given more than %d times", VERIFIER_LIST_LIMIT);
        return -1;
    }
    arguments->verifiers[arguments->verifier_count++].name = value;
    return 0;
}

static int take_options(void *target, const char *value, char *ret_message)
{
    struct arguments *arguments = target;
    size_t place = arguments->verifier_count ? arguments->verifier_count - 1 : 0;

    if (arguments->verifiers[place].options) {
        snprintf(ret_message, COMMAND_MESSAGE_BYTES, "--options: given twice for one verifier");
        return -1;
    }
    arguments->verifiers[place].options = value;
    return 0;
}

static int take_tokens(void *target, const char *value, char *ret_message)
{
    struct arguments *arguments = target;
    char *end;

    errno = 0;
    arguments->completion_tokens = strtoll(value, &end, 10);
    if (errno == 0 && *value && !*end && arguments->completion_tokens >= 0)
        return 0;
    snprintf(ret_message, COMMAND_MESSAGE_BYTES, "--completion-tokens: \"%.100s\": expected a number of tokens", value);
    return -1;
}

static int take_timeout(void *target, const char *value, char *ret_message)
{
    struct arguments *arguments = target;

    if (duration_parse(text_of(value), &arguments->timeout_us) && arguments->timeout_us > 0 &&
        arguments->timeout_us <= 86400 * US_PER_S)
        return 0;
    snprintf(ret_message, COMMAND_MESSAGE_BYTES, "--timeout: \"%.100s\": expected a duration, like 5s or 250ms", value);
    return -1;
}

static int take_json(void *target, const char *value, char *ret_message)
{
    (void)value;
    (void)ret_message;
    ((struct arguments *)target)->json = true;
    return 0;
}

const struct command_option verify_options[] = {
    {"--verifier", "NAME", take_verifier,
     "The verifier; may be repeated, for an option `of` that names another one; math."},
    {"--reference", "TEXT", take_reference, "The reference, as a text."},
    {"--reference-json", "JSON", take_reference_json, "The reference, as any JSON: a list of texts, an object."},
    {"--completion", "TEXT", take_completion, "The text to grade; - reads standard input."},
    {"--completion-file", "FILE", take_completion_file, "The same, from a file."},
    {"--options", "JSON", take_options,
     "The options of the --verifier before it, as an object; see GET /v1/verifiers."},
    {"--prompt", "TEXT", take_prompt, "The question that the completion answers, for verifiers that look at it."},
    {"--completion-tokens", "N", take_tokens, "How many tokens it had, likewise."},
    {"--replay", "FILE", take_replay, "All of this from a file that the service kept when a verifier crashed or hung."},
    {"--config", "FILE", take_config,
     "Settings: sandbox.* and python.venv for verifiers that run programs, externals and engines for those that ask."},
    {"--timeout", "DURATION", take_timeout,
     "Time limit of a verdict on a text; 5s. Programs have the limits of their verifier."},
    {"--json", NULL, take_json, "Print the verdict object alone."},
    {NULL, NULL, NULL, NULL},
};

/* The request to the worker; everything in it is owned. */
struct question {
    json_t *verifiers; /* as in a request */
    struct verifier_list *list;
    json_t *reference;
    struct buffer completion;
    char *prompt;
    int64_t completion_tokens;
};

static void question_finish(struct question *question)
{
    json_decref(question->verifiers);
    json_decref(question->reference);
    verifier_list_unref(question->list);
    buffer_finish(&question->completion);
    free(question->prompt);
}

static int refuse(const char *format, ...) _printf_(1, 2);

static int refuse(const char *format, ...)
{
    char message[COMMAND_MESSAGE_BYTES];
    va_list values;

    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    command_refuse(COMMAND, message);
    return -1;
}

static int read_stream(FILE *file, const char *name, struct buffer *out)
{
    char bytes[65536];
    size_t count;

    while (!out->failed && (count = fread(bytes, 1, sizeof bytes, file)) > 0)
        buffer_append(out, bytes, count);
    if (ferror(file))
        return refuse("%.300s: %s", name, strerror(errno));
    return out->failed ? refuse("%.300s: larger than %zu MiB", name, INPUT_BYTES >> 20) : 0;
}

static int read_file(const char *path, struct buffer *out)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    int result;

    if (!file)
        return refuse("%.300s: %s", path, strerror(errno));
    result = read_stream(file, path, out);
    if (file != stdin)
        fclose(file);
    return result;
}

static json_t *read_json(const char *name, struct text text)
{
    json_error_t error;
    json_t *value = json_big_load(text, JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);

    if (!value)
        refuse("%.200s: no JSON: %s (line %d, column %d)", name, error.text, error.line, error.column);
    return value;
}

static int read_reference(const struct arguments *arguments, struct question *question)
{
    if (arguments->reference && arguments->reference_json)
        return refuse("--reference and --reference-json exclude each other");
    if (arguments->reference_json) {
        question->reference = read_json("--reference-json", text_of(arguments->reference_json));
        return question->reference ? 0 : -1;
    }
    if (!arguments->reference)
        return 0;
    question->reference = json_string(arguments->reference);
    return question->reference ? 0 : refuse("--reference: no UTF-8");
}

static int read_completion(const struct arguments *arguments, struct question *question)
{
    if (!arguments->completion == !arguments->completion_file)
        return refuse("expected --completion TEXT (- for standard input) or --completion-file FILE");
    if (arguments->completion_file || strcmp(arguments->completion, "-") == 0)
        return read_file(arguments->completion_file ? arguments->completion_file : "-", &question->completion);
    buffer_append_string(&question->completion, arguments->completion);
    return 0;
}

/* The place-th --verifier as an entry of a request. NULL: refused. */
static json_t *read_verifier(const struct arguments *arguments, size_t place)
{
    const char *name = arguments->verifiers[place].name;
    const char *options = arguments->verifiers[place].options;
    json_t *verifier = json_object();

    if (json_object_set_new(verifier, "name", json_string(name ? name : "math")) < 0) {
        refuse("--verifier: no UTF-8");
        json_decref(verifier);
        return NULL;
    }
    if (options && json_object_set_new(verifier, "options", read_json("--options", text_of(options))) < 0) {
        json_decref(verifier);
        return NULL;
    }
    return verifier;
}

static int read_words(const struct arguments *arguments, struct question *question)
{
    size_t count = arguments->verifier_count ? arguments->verifier_count : 1;

    question->verifiers = json_array();
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(question->verifiers, read_verifier(arguments, i)) < 0)
            return -1;
    question->completion_tokens = arguments->completion_tokens;
    question->prompt = arguments->prompt ? xstrdup(arguments->prompt) : NULL;
    return read_reference(arguments, question) < 0 ? -1 : read_completion(arguments, question);
}

/* --- a kept file --- */

static json_t *without_record(const json_t *kept, size_t index)
{
    char made[32];
    const char *id = json_string_value(json_object_get(kept, "id"));
    const json_t *reference = json_object_get(kept, "reference");
    json_t *verifier = json_object();

    snprintf(made, sizeof made, "%.*s-%zu", 20, json_string_value(json_object_get(kept, "name")) ?: "", index);
    json_object_set(verifier, "name", json_object_get(kept, "name"));
    json_object_set(verifier, "options", json_object_get(kept, "options"));
    json_object_set_new(verifier, "id", json_string(id ? id : made));
    if (json_object_get(kept, "steps"))
        json_object_set(verifier, "steps", json_object_get(kept, "steps"));
    if (reference)
        json_object_set(verifier, "reference", (json_t *)(uintptr_t)reference);
    return verifier;
}

static int take_kept(const json_t *kept, const char *path, struct question *question)
{
    struct text completion = json_text_of(json_object_get(kept, "completion"));
    struct text prompt = json_text_of(json_object_get(kept, "prompt"));
    const json_t *tokens = json_object_get(kept, "completion_tokens");
    json_t *reference = json_object_get(kept, "reference");
    json_t *verifier;
    size_t i;

    if (!completion.data || !json_is_array(json_object_get(kept, "verifiers")))
        return refuse("%.300s: expected a file that the service kept: an object with verifiers and completion", path);
    question->verifiers = json_array();
    json_array_foreach (json_object_get(kept, "verifiers"), i, verifier)
        json_array_append_new(question->verifiers, without_record(verifier, i));
    buffer_append(&question->completion, completion.data, completion.length_bytes);
    question->prompt = prompt.data ? xstrndup(prompt.data, prompt.length_bytes) : NULL;
    question->completion_tokens = json_is_integer(tokens) ? json_integer_value(tokens) : -1;
    question->reference = json_is_null(reference) ? NULL : json_incref(reference);
    return 0;
}

static int read_kept(const char *path, struct question *question)
{
    _cleanup_buffer_ struct buffer content;
    json_t *kept;
    int result;

    buffer_init(&content, INPUT_BYTES);
    if (read_file(path, &content) < 0)
        return -1;
    kept = read_json(path, buffer_text(&content));
    result = kept ? take_kept(kept, path, question) : -1;
    json_decref(kept);
    return result;
}

/* --- the question --- */

static int say_refusal(const struct call *call)
{
    struct text body = buffer_text(&call->reply.body);
    json_t *root = json_loadb(body.data, body.length_bytes, 0, NULL);
    const json_t *error = json_object_get(root, "error");
    const char *path = json_string_value(json_object_get(error, "path"));
    const char *message = json_string_value(json_object_get(error, "message"));

    if (path && strncmp(path, ONLY_VERIFIER, strlen(ONLY_VERIFIER)) == 0)
        path += strlen(ONLY_VERIFIER);
    refuse("%.100s%s%.300s", path ? path : "", path ? ": " : "", message ? message : "the verifier is refused");
    json_decref(root);
    return -1;
}

static int read_list(struct question *question)
{
    struct call call;
    struct json_input input = {.call = &call};
    int result = 0;

    call_init(&call);
    question->list = verifier_list_read(&input, question->verifiers, "verifiers");
    if (!question->list)
        result = say_refusal(&call);
    call_finish(&call);
    return result;
}

static int read_question(const struct arguments *arguments, struct question *question)
{
    size_t bad_byte;

    buffer_init(&question->completion, INPUT_BYTES);
    if (arguments->replay ? read_kept(arguments->replay, question) < 0 : read_words(arguments, question) < 0)
        return -1;
    if (!utf8_is_valid(buffer_text(&question->completion), &bad_byte))
        return refuse("the completion is no UTF-8 (at byte %zu); the service would not have taken it", bad_byte);
    if (question->prompt && !utf8_is_valid(text_of(question->prompt), &bad_byte))
        return refuse("--prompt: no UTF-8");
    return read_list(question);
}

/* --- the answer --- */

static void print_part(const char *label, const json_t *value)
{
    struct text text = json_text_of(value);
    _cleanup_free_ char *dumped = text.data ? NULL : json_big_dump(value, JSON_COMPACT | JSON_ENCODE_ANY);

    printf("%-11s ", label);
    safe_print(stdout, text.data ? text : text_of(dumped));
    putchar('\n');
}

/* The verifier's own words: the value read from the text, and the decision. */
static void print_detail(const struct verdict_record *record)
{
    json_t *detail = record->detail_json ? json_loads(record->detail_json, JSON_ALLOW_NUL, NULL) : NULL;
    const json_t *start = json_object_get(detail, "start");
    const json_t *end = json_object_get(detail, "end");
    const char *key;
    json_t *value;

    json_object_foreach (detail, key, value)
        if (value != start && value != end)
            print_part(key, value);
    if (start && end)
        printf("%-12sbytes %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT "\n", "span", json_integer_value(start),
               json_integer_value(end));
    json_decref(detail);
}

static void print_verdict(const struct verifier_spec *spec, const struct verdict_record *record, const char *how)
{
    printf("%-12s%s %s, options %.12s\n", "verifier", spec->verifier->name,
           record->version[0] ? record->version : spec->version, spec->options_sha256);
    print_detail(record);
    if (record->kind == VERDICT_UNSCORED)
        printf("%-12s%s: %s\n", "failure", record->failure_code, record->failure_message);
    if (how[0] && record->kind == VERDICT_UNSCORED)
        printf("%-12s%s\n", "worker", how);
    printf("%-12s%s (%s)", "verdict", verdict_kind_names[record->kind], record->reason);
    if (record->kind != VERDICT_UNSCORED)
        printf(", score %.15g, %lld us", record->score, (long long)record->duration_us);
    putchar('\n');
}

static int exit_code(const struct verdict_set *set)
{
    int code = EXIT_CORRECT;

    for (size_t i = 0; i < set->count; i++) {
        if (set->verdicts[i].kind == VERDICT_UNSCORED)
            return EXIT_UNSCORED;
        if (set->verdicts[i].score <= 0)
            code = EXIT_INCORRECT;
    }
    return code;
}

static void print_json(const struct question *question, const struct verdict_set *set)
{
    _cleanup_buffer_ struct buffer out;
    struct json_write json;

    buffer_init(&out, INPUT_BYTES);
    json_write_init(&json, &out);
    if (set->count == 1)
        verdict_write(&json, &question->list->specs[0], &set->verdicts[0]);
    else
        verdict_set_write(&json, question->list, set);
    printf("%s\n", buffer_text(&out).data);
}

static int print_answer(const struct arguments *arguments, const struct question *question,
                        const struct verdict_set *set, const char *how)
{
    if (arguments->json)
        print_json(question, set);
    for (size_t i = 0; i < set->count && !arguments->json; i++)
        print_verdict(&question->list->specs[i], &set->verdicts[i], how);
    return exit_code(set);
}

/* --- the workers --- */

static void ask(const struct question *question, const struct arguments *arguments, struct verdict_set *ret_set,
                char ret_how[VERIFY_HOW_BYTES])
{
    _cleanup_free_ char *reference =
        question->reference ? json_big_dump(question->reference, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    _cleanup_buffer_ struct buffer frame;
    char message[SETTINGS_MESSAGE_BYTES];
    struct verify_once once;
    struct verify_job job;

    buffer_init(&frame, INPUT_BYTES * 2);
    ret_how[0] = 0;
    if (verify_request_build(question->list,
                             &(struct verify_subject){.completion = buffer_text(&question->completion),
                                                      .prompt = text_of(question->prompt),
                                                      .reference_json = text_of(reference),
                                                      .completion_tokens = question->completion_tokens},
                             &frame) < 0) {
        verdict_set_fail(question->list, "verifier_input_too_large",
                         "the completion and its reference are larger than a worker reads", false, ret_set);
        return;
    }
    if ((verifier_list_asks(question->list) || verifier_list_has_group(question->list)) && arguments->settings) {
        if (verify_asked(arguments->settings, question->list, &frame, arguments->timeout_us, ret_set, message) < 0)
            verdict_set_fail(question->list, "verifier_unavailable", message, false, ret_set);
        return;
    }
    if (verify_once_init(&once, &arguments->sandbox) < 0) {
        verdict_set_fail(question->list, "verifier_unavailable", "no text worker can be started", true, ret_set);
        return;
    }
    verify_once(&once, question->list, &frame, arguments->timeout_us, &job, ret_how);
    verdict_set_read(&job, ret_set);
    verify_job_finish(&job);
    verify_once_finish(&once);
}

/* --- how the reference is read: as an answer to itself --- */

/* The same verifier, but it looks for nothing else than the value in a box. False: not a reference of that kind. */
static bool make_mirror(const struct question *question, struct question *ret_mirror)
{
    struct text reference = json_text_of(question->reference);
    json_t *verifier = json_deep_copy(json_array_get(question->verifiers, 0));
    json_t *options = json_object();

    *ret_mirror = (struct question){.completion_tokens = -1};
    buffer_init(&ret_mirror->completion, INPUT_BYTES);
    json_object_update(options, json_object_get(verifier, "options"));
    json_object_set_new(options, "extract", json_string("boxed"));
    json_object_set_new(options, "form", json_string("any"));
    json_object_set_new(verifier, "options", options);
    ret_mirror->verifiers = json_pack("[o]", verifier);
    ret_mirror->reference = json_incref(question->reference);
    buffer_append_string(&ret_mirror->completion, "\\boxed{");
    buffer_append(&ret_mirror->completion, reference.data, reference.length_bytes);
    buffer_append_string(&ret_mirror->completion, "}");
    return read_list(ret_mirror) == 0;
}

static void print_reference(const struct arguments *arguments, const struct question *question)
{
    _cleanup_(question_finish) struct question mirror = {.completion_tokens = -1};
    char how[VERIFY_HOW_BYTES];
    struct verdict_set set;

    if (arguments->json || question->list->count != 1 || !json_is_string(question->reference) ||
        strcmp(question->list->specs[0].verifier->name, "math") != 0 || !make_mirror(question, &mirror))
        return;
    ask(&mirror, arguments, &set, how);
    json_t *detail = set.verdicts[0].detail_json ? json_loads(set.verdicts[0].detail_json, JSON_ALLOW_NUL, NULL) : NULL;
    if (json_object_get(detail, "read"))
        print_part("reference", json_object_get(detail, "read"));
    json_decref(detail);
    verdict_set_finish(&set);
}

static int read_sandbox(struct arguments *arguments)
{
    char message[SETTINGS_MESSAGE_BYTES];

    return command_sandbox(arguments->config, &arguments->sandbox, message) < 0 ? refuse("%s", message) : 0;
}

static bool needs_settings(const char *name)
{
    const struct verifier *verifier = name ? registry_find(text_of(name)) : NULL;

    return verifier && (verifier->asks_external || verifier->asks_engine);
}

/* For verifiers that ask what the settings name. A kept file may have one: whether it is there is said by whoever looks
 * for it. */
static int read_settings(struct arguments *arguments)
{
    char message[SETTINGS_MESSAGE_BYTES];
    bool needed = false;

    for (size_t i = 0; i < arguments->verifier_count; i++)
        needed = needed || needs_settings(arguments->verifiers[i].name);
    if (!needed && !arguments->replay)
        return 0;
    arguments->settings = command_settings(arguments->config, message);
    return !arguments->settings && needed ? refuse("%s", message) : 0;
}

int verify_command(int argc, char **argv)
{
    static const struct command_line line = {COMMAND, verify_options, NULL};
    _cleanup_(question_finish) struct question question = {.completion_tokens = -1};
    struct arguments arguments = {.completion_tokens = -1, .timeout_us = TIMEOUT_US};
    char how[VERIFY_HOW_BYTES];
    char limit[LIMITS_MESSAGE_BYTES];
    struct verdict_set set;
    int code;

    buffer_init(&question.completion, INPUT_BYTES);
    if (command_line_read(&line, argc, argv, &arguments) < 0 || read_settings(&arguments) < 0 ||
        read_question(&arguments, &question) < 0)
        return EXIT_USAGE;
    if (limits_check_worker(limit) < 0)
        return command_refuse(COMMAND, limit);
    if (verifier_list_runs_programs(question.list) && read_sandbox(&arguments) < 0)
        return EXIT_USAGE;
    ask(&question, &arguments, &set, how);
    print_reference(&arguments, &question);
    code = print_answer(&arguments, &question, &set, how);
    verdict_set_finish(&set);
    return fflush(stdout) == 0 ? code : EXIT_USAGE;
}
