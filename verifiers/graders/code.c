/* code: does the program of a completion do what the tests ask?
 *
 *   reference  tests with standard input, asserts, calls, or a row of a known data set (code/forms.h)
 *   program    the last fenced block of the language (code/block.h)
 *
 * Programs run in the slot of the worker (sandbox/sandbox.h). The expected values never get there: outputs and values are
 * compared here, asserts run in a sandbox of their own beside the program's. Reasons: pass, wrong_answer, no_code,
 * runtime_error, compile_error, timeout, memory_limit, output_limit, sandbox_violation. A slot that cannot run programs is
 * no wrong answer but the failure sandbox_unavailable. */
#include <math.h>

#include "verifiers/code/block.h"
#include "verifiers/code/choice.h"
#include "verifiers/code/limits.h"
#include "verifiers/code/trial.h"
#include "verifiers/rows.h"

#define PRELUDE_BYTES 65536
#define TESTS_MAX 1000000
#define FLOAT_TOLERANCE 1e-6

static const char *const languages[] = {"python", "sh", "c", "cpp", NULL};
static const char *const scores[] = {"all", "fraction", NULL};

static const struct verifier_option options[] = {
    {"language", OPTION_CHOICE, "null", languages, 0, 0, "of the program; null: the reference's, else python"},
    {"limits", OPTION_OBJECT, "{}", NULL, 0, 0,
     "of one program: wall_ms, cpu_ms, memory_mb, output_kb, procs, disk_kb; of the whole verdict: total_ms"},
    {"compare", OPTION_OBJECT, "{}", NULL, 0, 0, "of outputs: mode lines, exact, tokens, float or json; abs, rel"},
    {"score", OPTION_CHOICE, "\"all\"", scores, 0, 0,
     "all: 1 if every test passes; fraction: the share of those that do"},
    {"prelude", OPTION_TEXT, "\"\"", NULL, 0, PRELUDE_BYTES, "code that stands before the program"},
    {"entry", OPTION_TEXT, "null", NULL, 1, 256, "function to call where the reference names none"},
    {"max_tests", OPTION_INT, "null", NULL, 1, TESTS_MAX, "so many tests, chosen by the seed; null: all"},
    {"seed", OPTION_INT, "0", NULL, 0, 9007199254740991, "of the choice of tests"},
};

/* --- options --- */

static int read_rule(const json_t *compare, struct compare_rule *ret_rule)
{
    struct text mode = json_text_of(json_object_get(compare, "mode"));

    *ret_rule = (struct compare_rule){.mode = COMPARE_LINES};
    for (int i = 0; i < COMPARE_MODES && mode.data; i++)
        if (text_equals(mode, compare_mode_names[i]))
            ret_rule->mode = (enum compare_mode)i;
    double fallback = ret_rule->mode == COMPARE_FLOAT ? FLOAT_TOLERANCE : 0;
    ret_rule->tolerance.absolute = option_number(compare, "abs", fallback);
    ret_rule->tolerance.relative = option_number(compare, "rel", fallback);
    return mode.data && !text_equals(mode, compare_mode_names[ret_rule->mode]) ? -1 : 0;
}

static int check_compare(const json_t *compare, struct verifier_problem *ret_problem)
{
    struct compare_rule rule;
    const char *name;
    const json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)compare, name, value) {
        bool is_mode = strcmp(name, "mode") == 0;
        if (!is_mode && strcmp(name, "abs") != 0 && strcmp(name, "rel") != 0)
            return verifier_refuse(ret_problem, "compare", "%.64s is none of mode, abs, rel", name);
        if (!is_mode && (!json_is_number(value) || !(json_number_value(value) >= 0)))
            return verifier_refuse(ret_problem, "compare", "%s must be a number from 0", name);
        if (is_mode && !json_is_string(value))
            return verifier_refuse(ret_problem, "compare", "mode must be a string");
    }
    if (read_rule(compare, &rule) < 0)
        return verifier_refuse(ret_problem, "compare", "mode must be lines, exact, tokens, float or json");
    return 0;
}

static int check_options(const json_t *filled, struct verifier_problem *ret_problem)
{
    if (code_limits_check(json_object_get(filled, "limits"), ret_problem) < 0)
        return -1;
    return check_compare(json_object_get(filled, "compare"), ret_problem);
}

/* --- the reference --- */

static int find_language(const struct test_set *set, const json_t *filled, enum sandbox_language *ret_language,
                         struct verifier_problem *ret_problem)
{
    struct text given = option_text(filled, "language");

    *ret_language = SANDBOX_PYTHON;
    if (!given.data)
        given = text_of(set->language);
    if (given.data && !code_block_language(given, ret_language))
        return verifier_refuse(ret_problem, "", "its language is none of python, sh, c, cpp");
    if (set->kind != TESTS_STDIN && *ret_language != SANDBOX_PYTHON)
        return verifier_refuse(ret_problem, "", "calls and asserts are for programs in python");
    return 0;
}

static int read_reference(const json_t *reference, const json_t *filled, enum forms_depth depth,
                          struct test_set *ret_set, enum sandbox_language *ret_language,
                          struct verifier_problem *ret_problem)
{
    if (forms_read(reference, option_text(filled, "entry"), depth, ret_set, ret_problem) < 0 ||
        find_language(ret_set, filled, ret_language, ret_problem) < 0)
        return -1;
    return ret_set->checker ? checker_check(ret_set->checker, ret_problem) : 0;
}

static int check_reference(const json_t *reference, const json_t *filled, struct verifier_problem *ret_problem)
{
    _cleanup_(test_set_finish) struct test_set set = {.tests = NULL};
    enum sandbox_language language;

    return read_reference(reference, filled, FORMS_LOOK, &set, &language, ret_problem);
}

/* --- the program --- */

struct program {
    struct buffer code; /* the block */
    struct buffer source;
    struct buffer prelude;
};

static void program_init(struct program *program)
{
    buffer_init(&program->code, SIZE_MAX);
    buffer_init(&program->source, SIZE_MAX);
    buffer_init(&program->prelude, SIZE_MAX);
}

static void program_finish(struct program *program)
{
    buffer_finish(&program->code);
    buffer_finish(&program->source);
    buffer_finish(&program->prelude);
}

static void append_text(struct buffer *out, struct text text)
{
    if (!text.length_bytes)
        return;
    buffer_append(out, text.data, text.length_bytes);
    if (text.data[text.length_bytes - 1] != '\n')
        buffer_append_byte(out, '\n');
}

/* The text before the code: with standard input in one file with it, else run before it. */
static void build_program(struct program *program, const json_t *filled, struct trial *trial)
{
    struct text prelude = option_text(filled, "prelude");

    if (trial->set->kind == TESTS_STDIN) {
        append_text(&program->source, prelude);
    } else {
        if (trial->set->kind == TESTS_ASSERTS)
            append_text(&program->prelude, TEXT_LITERAL("from typing import *"));
        append_text(&program->prelude, prelude);
        append_text(&program->source, trial->set->prompt);
        trial->prompt_bytes = program->source.length_bytes;
    }
    append_text(&program->source, buffer_text(&program->code));
    trial->source = buffer_text(&program->source);
    trial->prelude = buffer_text(&program->prelude);
}

/* --- the verdict --- */

static void note_trial(struct verdict *verdict, struct trial *trial)
{
    json_object_set_new(verdict->detail, "tests",
                        json_pack("{s:I, s:I, s:I}", "chosen", (json_int_t)trial->chosen_count, "run",
                                  (json_int_t)trial->ran, "passed", (json_int_t)trial->passed));
    if (trial->first_failed)
        json_object_set(verdict->detail, "first_failed", trial->first_failed);
}

static void set_verdict(struct verdict *verdict, const struct trial *trial)
{
    double share = trial->score / (double)trial->chosen_count;

    if (trial->failure_code)
        verdict_fail(verdict, trial->failure_code, "%s", trial->failure_message);
    else if (!trial->reason)
        verdict_set(verdict, true, "pass");
    else if (trial->all || share <= 0)
        verdict_set(verdict, false, trial->reason);
    else
        verdict_set_score(verdict, share, trial->reason);
}

static void run_tests(struct trial *trial, const json_t *filled, struct verdict *ret_verdict)
{
    size_t count = json_array_size(trial->set->tests);
    _cleanup_free_ size_t *chosen = calloc(count, sizeof(*chosen));

    if (!chosen) {
        verdict_fail(ret_verdict, FAILURE_MEMORY, "there is no memory for the tests");
        return;
    }
    choose_tests(count, (size_t)option_number(filled, "max_tests", TESTS_MAX),
                 (uint64_t)option_number(filled, "seed", 0), chosen, &trial->chosen_count);
    trial->chosen = chosen;
    trial_run(trial);
    set_verdict(ret_verdict, trial);
    note_trial(ret_verdict, trial);
}

static void grade_program(const struct verifier_input *input, const struct test_set *set,
                          enum sandbox_language language, struct verdict *ret_verdict)
{
    _cleanup_(program_finish) struct program program;
    const json_t *limits = json_object_get(input->options, "limits");
    _cleanup_(trial_finish) struct trial trial = {
        .fd = input->sandbox_fd,
        .set = set,
        .language = language,
        .limits = code_limits_of(limits, set),
        .all = option_is(input->options, "score", "all"),
        .left_us = code_limits_total_us(limits),
    };
    struct text span;

    program_init(&program);
    if (!code_block_find(input->completion, language, &span, &program.code)) {
        verdict_set(ret_verdict, false, "no_code");
        return;
    }
    verdict_note_extracted(ret_verdict, input->completion, span);
    json_object_set_new(ret_verdict->detail, "language", json_string(sandbox_language_names[language]));
    if (input->sandbox_fd < 0) {
        verdict_fail(ret_verdict, FAILURE_SANDBOX, "there is no sandbox here to run programs in");
        return;
    }
    read_rule(json_object_get(input->options, "compare"), &trial.rule);
    build_program(&program, input->options, &trial);
    run_tests(&trial, input->options, ret_verdict);
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    _cleanup_(test_set_finish) struct test_set set = {.tests = NULL};
    struct verifier_problem problem;
    enum sandbox_language language;

    if (read_reference(input->reference, input->options, FORMS_UNPACK, &set, &language, &problem) < 0)
        verdict_fail(ret_verdict, FAILURE_REFERENCE, "the reference %s", problem.message);
    else
        grade_program(input, &set, language, ret_verdict);
}

const struct verifier verifier_code = {
    .name = "code",
    .version = "1",
    .help = "what the program of the completion gets in the tests, each run in a sandbox",
    .needs_reference = true,
    .runs_programs = true,
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_options = check_options,
    .check_reference = check_reference,
    .grade = grade,
};
