/* rolloutd check-references: which references of a data set no verifier could grade against, and why. */
#include "server/base/json_big.h"
#include "server/commands/references_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "server/base/json_write.h"
#include "server/commands/safe_print_private.h"
#include "server/runtime/limits.h"

#define COMMAND REFERENCES_COMMAND
#define TREE_BYTES ((size_t)256 << 20) /* of the values of one line */
#define SHOWN_BYTES 120                /* of a reference in a message */

/* --- the command line --- */

static int take_file(void *target, const char *value, char ret_message[COMMAND_MESSAGE_BYTES])
{
    struct references_arguments *arguments = target;

    if (arguments->file) {
        snprintf(ret_message, COMMAND_MESSAGE_BYTES, "%.200s: expected one file", value);
        return -1;
    }
    arguments->file = value;
    return 0;
}

static int take_verifier(void *target, const char *value, char ret_message[COMMAND_MESSAGE_BYTES])
{
    struct references_arguments *arguments = target;
    const struct verifier *verifier = registry_find(text_of(value));

    if (!verifier) {
        char advice[ADVICE_BYTES];
        registry_advise(text_of(value), advice);
        snprintf(ret_message, COMMAND_MESSAGE_BYTES, "--verifier: \"%.100s\": %s", value, advice);
        return -1;
    }
    if (arguments->count == REFERENCES_VERIFIERS_MAX) {
        snprintf(ret_message, COMMAND_MESSAGE_BYTES, "--verifier: given more than %d times", REFERENCES_VERIFIERS_MAX);
        return -1;
    }
    arguments->asked[arguments->count++].verifier = verifier;
    return 0;
}

static int take_options(void *target, const char *value, char ret_message[COMMAND_MESSAGE_BYTES])
{
    struct references_arguments *arguments = target;
    size_t place = arguments->count ? arguments->count - 1 : 0;

    if (arguments->options[place]) {
        snprintf(ret_message, COMMAND_MESSAGE_BYTES, "--options: given twice for one verifier");
        return -1;
    }
    arguments->options[place] = value;
    return 0;
}

static int take_field(void *target, const char *value, char ret_message[COMMAND_MESSAGE_BYTES])
{
    (void)ret_message;
    ((struct references_arguments *)target)->field = value;
    return 0;
}

static int take_set(void *target, const char *value, char ret_message[COMMAND_MESSAGE_BYTES])
{
    (void)ret_message;
    ((struct references_arguments *)target)->set = value;
    return 0;
}

static int take_config(void *target, const char *value, char ret_message[COMMAND_MESSAGE_BYTES])
{
    (void)ret_message;
    ((struct references_arguments *)target)->config = value;
    return 0;
}

static int take_database(void *target, const char *value, char ret_message[COMMAND_MESSAGE_BYTES])
{
    (void)ret_message;
    ((struct references_arguments *)target)->database = value;
    return 0;
}

static int take_json(void *target, const char *value, char ret_message[COMMAND_MESSAGE_BYTES])
{
    (void)value;
    (void)ret_message;
    ((struct references_arguments *)target)->json = true;
    return 0;
}

const struct command_option check_references_options[] = {
    {"--verifier", "NAME", take_verifier, "For which verifier; may be repeated; math."},
    {"--options", "JSON", take_options, "The options of the --verifier before it, as an object."},
    {"--field", "NAME", take_field, "Where the reference stands in a line, like answer or a.b; reference."},
    {"--set", "NAME", take_set, "Check this task set on record, and no FILE."},
    {"--database", "FILE", take_database, "The record of --set; by default the setting database."},
    {"--config", "FILE", take_config, "The service's settings; also from ROLLOUTD_CONFIG."},
    {"--json", NULL, take_json, "Print an object a line, the summary last."},
    {NULL, NULL, NULL, NULL},
};

static int fill_options(struct references_arguments *arguments, size_t place)
{
    const char *text = arguments->options[place];
    struct references_asked *asked = &arguments->asked[place];
    struct verifier_problem problem;
    char message[COMMAND_MESSAGE_BYTES];
    json_error_t error;
    json_t *given = text ? json_loads(text, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error) : NULL;

    if (text && !given) {
        snprintf(message, sizeof message, "--options: no JSON: %s (line %d, column %d)", error.text, error.line,
                 error.column);
        return -command_refuse(COMMAND, message);
    }
    asked->options = registry_fill_options(asked->verifier, given, &problem);
    json_decref(given);
    if (asked->options)
        return 0;
    snprintf(message, sizeof message, "--options: %s %s%s%s", asked->verifier->name, problem.name,
             problem.name[0] ? " " : "", problem.message);
    return -command_refuse(COMMAND, message);
}

/* NULL: they go together. */
static const char *find_contradiction(const struct references_arguments *arguments)
{
    if (!arguments->set && !arguments->file)
        return "expected a file, or - for standard input, or --set NAME";
    if (arguments->set && arguments->file)
        return "--set: expected no file beside it";
    if (arguments->set && arguments->field)
        return "--field: a task of a set has its reference in no other field";
    if (!arguments->set && (arguments->database || arguments->config))
        return "--database and --config go with --set";
    return NULL;
}

static int complete(struct references_arguments *arguments)
{
    const char *contradiction = find_contradiction(arguments);

    if (contradiction)
        return -command_refuse(COMMAND, contradiction);
    if (!arguments->field)
        arguments->field = "reference";
    if (!arguments->count)
        arguments->asked[arguments->count++].verifier = registry_find(TEXT_LITERAL("math"));
    for (size_t i = 0; i < arguments->count; i++)
        if (fill_options(arguments, i) < 0)
            return -1;
    return 0;
}

static void arguments_finish(struct references_arguments *arguments)
{
    for (size_t i = 0; i < arguments->count; i++)
        json_decref(arguments->asked[i].options);
}

/* --- what is said --- */

struct finding {
    size_t line;
    const char *task;     /* of a set; NULL: none */
    const char *code;     /* "reference_unreadable", "invalid_json", "missing_field", "line_too_long" */
    const char *verifier; /* NULL: the line is no task */
    const char *message;
    const json_t *reference;
};

static void say_json(const struct references_arguments *arguments, const struct finding *finding)
{
    _cleanup_free_ char *reference =
        finding->reference ? json_big_dump(finding->reference, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    _cleanup_buffer_ struct buffer out;
    struct json_write json;

    buffer_init(&out, (size_t)2 * VERIFIER_PROGRAM_FRAME_LIMIT_BYTES);
    json_write_init(&json, &out);
    json_object_begin(&json);
    json_put_int(&json, "line", (int64_t)finding->line);
    if (arguments->set)
        json_put_string(&json, "task", finding->task);
    json_put_string(&json, "code", finding->code);
    json_put_string(&json, "verifier", finding->verifier);
    json_put_string(&json, "message", finding->message);
    json_put_raw(&json, "reference", text_of(reference));
    json_object_end(&json);
    printf("%s\n", buffer_text(&out).data);
}

static void print_reference(const json_t *reference)
{
    struct text text = json_text_of(reference);
    _cleanup_free_ char *dumped = text.data ? NULL : json_big_dump(reference, JSON_COMPACT | JSON_ENCODE_ANY);
    bool cut;

    if (!text.data)
        text = text_of(dumped);
    cut = text.length_bytes > SHOWN_BYTES;
    text.length_bytes = cut ? SHOWN_BYTES : text.length_bytes;
    while (cut && text.length_bytes && (text.data[text.length_bytes] & 0xc0) == 0x80)
        text.length_bytes--;
    fputs("  ", stdout);
    safe_print(stdout, text);
    puts(cut ? "…" : "");
}

static void say(const struct references_arguments *arguments, const struct finding *finding)
{
    if (arguments->json) {
        say_json(arguments, finding);
        return;
    }
    printf("%s:%zu: ", arguments->set ? arguments->set : arguments->file, finding->line);
    if (finding->task) {
        safe_print(stdout, text_of(finding->task));
        fputs(": ", stdout);
    }
    printf("%s%s", finding->verifier ? finding->verifier : "", finding->verifier ? ": " : "");
    safe_print(stdout, text_of(finding->message));
    putchar('\n');
    if (finding->reference)
        print_reference(finding->reference);
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

static void say_summary(const struct references_arguments *arguments, const struct references_counts *counts)
{
    if (arguments->json) {
        printf("{\"tasks\":%zu,\"unreadable\":%zu,\"%s\":%zu}\n", counts->tasks, counts->unreadable,
               arguments->set ? "without_reference" : "broken_lines", counts->broken);
        return;
    }
    printf("%zu task%s%s, %zu reference%s that cannot be read, ", counts->tasks, plural(counts->tasks),
           arguments->set ? " with a reference" : "", counts->unreadable, plural(counts->unreadable));
    if (arguments->set)
        printf("%zu task%s without one\n", counts->broken, plural(counts->broken));
    else
        printf("%zu line%s that %s no task\n", counts->broken, plural(counts->broken),
               counts->broken == 1 ? "is" : "are");
}

/* --- one line --- */

void references_say_broken(const struct references_arguments *arguments, struct references_counts *counts, size_t line,
                           const char *task, const char *code, const char *message)
{
    say(arguments, &(struct finding){line, task, code, NULL, message, NULL});
    counts->broken++;
}

static void say_broken(const struct references_arguments *arguments, struct references_counts *counts, size_t line,
                       const char *code, const char *message)
{
    references_say_broken(arguments, counts, line, NULL, code, message);
}

/* A name that is there as a whole wins over a path. */
static const json_t *find_field(const json_t *task, const char *path)
{
    const json_t *whole = json_object_get(task, path);

    while (!whole && task && strchr(path, '.')) {
        size_t step_bytes = strcspn(path, ".");
        task = json_object_getn(task, path, step_bytes);
        path += step_bytes + 1;
        whole = json_object_get(task, path);
    }
    return whole;
}

void references_check_one(const struct references_arguments *arguments, struct references_counts *counts, size_t line,
                          const char *task, const json_t *reference)
{
    for (size_t i = 0; i < arguments->count; i++) {
        const struct references_asked *asked = &arguments->asked[i];
        const struct verifier *verifier = asked->verifier;
        struct verifier_problem problem = {"", ""};
        if ((!verifier->check_reference || verifier->check_reference(reference, asked->options, &problem) == 0) &&
            (!verifier->check_value || verifier->check_value(reference, asked->options, &problem) == 0))
            continue;
        say(arguments,
            &(struct finding){line, task, "reference_unreadable", verifier->name, problem.message, reference});
        counts->unreadable++;
    }
}

static void check_task(const struct references_arguments *arguments, struct references_counts *counts, size_t line,
                       const json_t *task)
{
    const json_t *reference = find_field(task, arguments->field);
    char message[COMMAND_MESSAGE_BYTES];

    if (!json_is_object(task)) {
        say_broken(arguments, counts, line, "invalid_json", "expected an object");
        return;
    }
    if (!reference || json_is_null(reference)) {
        snprintf(message, sizeof message, "there is no field %.200s", arguments->field);
        say_broken(arguments, counts, line, "missing_field", message);
        return;
    }
    counts->tasks++;
    references_check_one(arguments, counts, line, NULL, reference);
}

static bool is_blank(struct text text)
{
    for (size_t i = 0; i < text.length_bytes; i++)
        if (!strchr(" \t\r\n", text.data[i]) || !text.data[i])
            return false;
    return true;
}

static void check_line(const struct references_arguments *arguments, struct references_counts *counts, size_t line,
                       struct text text)
{
    enum json_memory_end end;
    char message[COMMAND_MESSAGE_BYTES];
    size_t held_bytes;
    json_error_t error;
    json_t *task;

    if (is_blank(text))
        return;
    json_memory_begin();
    task = json_big_load(text, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    end = json_memory_end(&held_bytes);
    if (task) {
        check_task(arguments, counts, line, task);
    } else if (end != JSON_MEMORY_FITS) {
        say_broken(arguments, counts, line, "line_too_long", "its values take more than 256 MiB of memory");
    } else {
        snprintf(message, sizeof message, "no JSON: %s (column %d)", error.text, error.column);
        say_broken(arguments, counts, line, "invalid_json", message);
    }
    json_decref(task);
    json_memory_give(held_bytes);
}

/* --- the file --- */

static size_t line_limit_bytes(const struct references_arguments *arguments)
{
    for (size_t i = 0; i < arguments->count; i++)
        if (arguments->asked[i].verifier->runs_programs)
            return VERIFIER_PROGRAM_FRAME_LIMIT_BYTES;
    return VERIFIER_FRAME_LIMIT_BYTES;
}

static void end_line(const struct references_arguments *arguments, struct references_counts *counts, size_t line,
                     struct buffer *text)
{
    if (text->failed)
        say_broken(arguments, counts, line, "line_too_long",
                   line_limit_bytes(arguments) == VERIFIER_FRAME_LIMIT_BYTES
                       ? "longer than 8 MiB, which no verifier would read"
                       : "longer than 32 MiB, which no verifier would read");
    else
        check_line(arguments, counts, line, buffer_text(text));
    buffer_clear(text);
}

/* Lines of any length in bounded memory: what is too long is read over. */
static void check_stream(const struct references_arguments *arguments, struct references_counts *counts, FILE *file)
{
    _cleanup_buffer_ struct buffer text;
    size_t line = 1;
    int byte;

    buffer_init(&text, line_limit_bytes(arguments));
    while ((byte = getc_unlocked(file)) != EOF) {
        if (byte != '\n') {
            buffer_append_byte(&text, (char)byte);
            continue;
        }
        end_line(arguments, counts, line, &text);
        line++;
    }
    if (text.length_bytes || text.failed)
        end_line(arguments, counts, line, &text);
}

/* 0, or EXIT_USAGE: what is wrong was printed. */
static int check_file(const struct references_arguments *arguments, struct references_counts *counts)
{
    FILE *file = strcmp(arguments->file, "-") == 0 ? stdin : fopen(arguments->file, "rb");
    char message[COMMAND_MESSAGE_BYTES];
    bool failed;

    if (file)
        check_stream(arguments, counts, file);
    failed = !file || ferror(file);
    if (failed) {
        snprintf(message, sizeof message, "%.300s: %s", arguments->file, strerror(errno));
        command_refuse(COMMAND, message);
    }
    if (file && file != stdin)
        fclose(file);
    return failed ? EXIT_USAGE : 0;
}

static int check(const struct references_arguments *arguments)
{
    struct references_counts counts = {0, 0, 0};

    if ((arguments->set ? references_check_set(arguments, &counts) : check_file(arguments, &counts)) != 0)
        return EXIT_USAGE;
    say_summary(arguments, &counts);
    if (fflush(stdout) != 0)
        return EXIT_USAGE;
    return counts.unreadable || counts.broken ? 1 : 0;
}

int check_references_command(int argc, char **argv)
{
    static const struct command_line line = {COMMAND, check_references_options, take_file};
    _cleanup_(arguments_finish) struct references_arguments arguments = {0};
    char limit[LIMITS_MESSAGE_BYTES];

    json_memory_setup(TREE_BYTES);
    if (command_line_read(&line, argc, argv, &arguments) < 0 || complete(&arguments) < 0)
        return EXIT_USAGE;
    if (limits_check_worker(limit) < 0)
        return command_refuse(COMMAND, limit);
    return check(&arguments);
}
