/* Checkers of a reference: programs that say whether an output is right, in a sandbox of their own. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/base/number.h"
#include "verifiers/code/trial_private.h"

#define CHECKER_FAILED (-1.0)  /* it broke, for whatever reason */
#define CHECKER_REFUSES (-2.0) /* it says that the reference is at fault, and may be made to */

enum { FILE_INPUT, FILE_OUTPUT, FILE_ANSWER, FILES };
static const char *const file_names[FILES] = {"input", "output", "answer"};

static double read_testlib(const struct sandbox_result *result)
{
    static const double scores[] = {1, 0, 0, CHECKER_REFUSES};

    if (result->outcome != SANDBOX_ENDED || result->exit_code < 0 || result->exit_code > 3)
        return CHECKER_FAILED;
    return scores[result->exit_code];
}

static double read_open_r1(const struct sandbox_result *result)
{
    struct text word;
    struct text last = TEXT_NONE;
    struct number number;
    size_t at = 0;

    if (trial_reason(result))
        return CHECKER_FAILED;
    while (next_word(result->standard_output, &at, &word))
        last = word;
    if (!last.data || number_parse(last.data, last.data + last.length_bytes, &number) != last.data + last.length_bytes)
        return CHECKER_FAILED;
    return number.value >= 0 && number.value <= 1 ? number.value : CHECKER_FAILED;
}

static const struct protocol {
    const char *name;
    int arguments[FILES];
    double (*read)(const struct sandbox_result *result);
} protocols[] = {
    {"testlib", {FILE_INPUT, FILE_OUTPUT, FILE_ANSWER}, read_testlib},
    {"openr1", {FILE_INPUT, FILE_ANSWER, FILE_OUTPUT}, read_open_r1},
};

static const struct protocol *find_protocol(const json_t *checker)
{
    for (size_t i = 0; i < ARRAY_LENGTH(protocols); i++)
        if (text_equals(json_text_of(json_object_get(checker, "protocol")), protocols[i].name))
            return &protocols[i];
    return NULL;
}

/* SANDBOX_LANGUAGES: there is none. */
static enum sandbox_language language_of(const json_t *checker)
{
    struct text name = json_text_of(json_object_get(checker, "language"));

    for (int i = 0; i < SANDBOX_COMMAND; i++)
        if (text_equals(name, sandbox_language_names[i]))
            return (enum sandbox_language)i;
    return SANDBOX_LANGUAGES;
}

int checker_check(const json_t *checker, struct verifier_problem *ret_problem)
{
    if (!json_is_object(checker) || !json_is_string(json_object_get(checker, "source")))
        return verifier_refuse(ret_problem, "", "a checker must have a text \"source\"");
    if (!find_protocol(checker))
        return verifier_refuse(ret_problem, "", "the protocol of a checker must be testlib or openr1");
    if (language_of(checker) == SANDBOX_LANGUAGES)
        return verifier_refuse(ret_problem, "", "the language of a checker must be python, sh, c or cpp");
    return 0;
}

/* One run of the checker; NAN: its sandbox is broken. It may print what it was given. */
static double run_checker(struct trial *trial, const struct text files[FILES])
{
    const json_t *checker = trial->set->checker;
    const struct protocol *protocol = find_protocol(checker);
    struct text source = json_text_of(json_object_get(checker, "source"));
    struct sandbox_program program = trial_program(trial, source, TEXT_LITERAL(""));
    _cleanup_(sandbox_result_finish) struct sandbox_result result = {.exit_code = -1};

    program.language = language_of(checker);
    program.include_testlib =
        source.data && memmem(source.data, source.length_bytes, "testlib.h", strlen("testlib.h")) != NULL;
    program.file_count = program.argument_count = FILES;
    for (int i = 0; i < FILES; i++) {
        program.files[i] = (struct sandbox_file){file_names[i], files[i]};
        program.arguments[i] = file_names[protocol->arguments[i]];
        program.limits.output_bytes += (int64_t)files[i].length_bytes;
    }
    if (program.limits.output_bytes > SANDBOX_OUTPUT_LIMIT_BYTES)
        program.limits.output_bytes = SANDBOX_OUTPUT_LIMIT_BYTES;
    return trial_sandbox(trial, &program, 1, &result) ? protocol->read(&result) : NAN;
}

/* If the checker breaks on the answer file too, the fault is the reference's, else the output's. */
static double second_opinion(struct trial *trial, struct text input, struct text answer)
{
    double score = run_checker(trial, (const struct text[FILES]){input, answer, answer});

    if (isnan(score) || score >= 0)
        return isnan(score) ? NAN : 0;
    trial_fail(trial, FAILURE_CHECKER, "the reference's checker fails on the answer file, too");
    return NAN;
}

/* It says that the answer file is at fault: an output is better than it. Or the output is such that the checker stumbles
 * over it, which must not save a program from its 0. Then it stumbles again where that output is the answer file. */
static double third_opinion(struct trial *trial, struct text input, struct text output, struct text answer)
{
    double score = second_opinion(trial, input, answer);

    if (isnan(score))
        return NAN;
    score = run_checker(trial, (const struct text[FILES]){input, answer, output});
    if (isnan(score) || score < 0)
        return isnan(score) ? NAN : 0;
    trial_fail(trial, FAILURE_CHECKER, "the reference's checker says that the answer file is at fault (exit code 3)");
    return NAN;
}

double checker_score(struct trial *trial, struct text input, struct text output, struct text answer)
{
    double score = run_checker(trial, (const struct text[FILES]){input, output, answer});

    if (score == CHECKER_FAILED)
        return second_opinion(trial, input, answer);
    return score == CHECKER_REFUSES ? third_opinion(trial, input, output, answer) : score;
}
