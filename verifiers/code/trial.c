#include <math.h>
#include <stdio.h>

#include "server/base/utf8.h"
#include "verifiers/code/trial_private.h"

#define SHOWN_BYTES 4096

static const char *const outcome_reasons[] = {
    [SANDBOX_ENDED] = NULL,
    [SANDBOX_TIMEOUT] = REASON_TIMEOUT,
    [SANDBOX_MEMORY] = "memory_limit",
    [SANDBOX_OUTPUT] = "output_limit",
    [SANDBOX_VIOLATION] = "sandbox_violation",
    [SANDBOX_NOT_COMPILED] = REASON_COMPILE,
    [SANDBOX_BROKEN] = FAILURE_SANDBOX,
};

void trial_fail(struct trial *trial, const char *code, const char *message)
{
    trial->failure_code = code;
    snprintf(trial->failure_message, sizeof(trial->failure_message), "%s", message);
}

struct sandbox_program trial_program(const struct trial *trial, struct text source, struct text input)
{
    return (struct sandbox_program){
        .language = trial->language, .source = source, .input = input, .limits = trial->limits};
}

/* No program runs beyond the time of the whole trial. */
static void cut_wall(const struct trial *trial, struct sandbox_program *program)
{
    int64_t left_ms = trial->left_us / 1000;

    if (program->limits.wall_ms > left_ms)
        program->limits.wall_ms = left_ms > 1 ? left_ms : 1;
}

/* The time of the programs themselves, without their waiting. */
static void take_time(struct trial *trial, const struct sandbox_result *results, size_t count)
{
    int64_t longest_us = 0;

    for (size_t i = 0; i < count; i++)
        if (results[i].wall_us > longest_us)
            longest_us = results[i].wall_us;
    trial->left_us -= longest_us;
}

/* A slot that has no testlib.h is as good as ever. */
static const char *broken_code(const struct sandbox_program *program, const struct sandbox_result *result)
{
    if (result->no_memory)
        return FAILURE_REFERENCE;
    return program->include_testlib && strstr(result->message, "testlib.h") ? FAILURE_CHECKER : FAILURE_SANDBOX;
}

bool trial_sandbox(struct trial *trial, const struct sandbox_program *programs, size_t count,
                   struct sandbox_result *ret_results)
{
    struct sandbox_program cut[2] = {{.records = false}};

    for (size_t i = 0; i < count; i++) {
        cut[i] = programs[i];
        cut_wall(trial, &cut[i]);
    }
    if (sandbox_run(trial->fd, cut, count, ret_results) < 0) {
        trial_fail(trial, FAILURE_SANDBOX, "the slot that runs programs is gone");
        return false;
    }
    take_time(trial, ret_results, count);
    for (size_t i = 0; i < count; i++)
        if (ret_results[i].outcome == SANDBOX_BROKEN) {
            trial_fail(trial, broken_code(&cut[i], &ret_results[i]), ret_results[i].message);
            return false;
        }
    return true;
}

const char *trial_reason(const struct sandbox_result *result)
{
    if (result->outcome != SANDBOX_ENDED)
        return outcome_reasons[result->outcome];
    return result->exit_code == 0 && result->signal == 0 ? NULL : REASON_RUNTIME;
}

/* --- the detail --- */

static json_t *shown(struct text text)
{
    _cleanup_buffer_ struct buffer mended;

    if (text.length_bytes > SHOWN_BYTES)
        text.length_bytes = SHOWN_BYTES;
    buffer_init(&mended, (size_t)SHOWN_BYTES * 3 + 1);
    utf8_append_mended(&mended, text);
    return json_stringn(buffer_text(&mended).data, mended.length_bytes);
}

static json_t *describe(size_t index, const char *reason, const struct sandbox_result *result)
{
    json_t *failed = json_pack("{s:I, s:s}", "index", (json_int_t)index, "reason", reason);

    if (!result)
        return failed;
    json_object_set_new(failed, "stdout", shown(result->standard_output));
    json_object_set_new(failed, "stderr", shown(result->standard_error));
    json_object_set_new(failed, "exit_code", result->exit_code < 0 ? json_null() : json_integer(result->exit_code));
    json_object_set_new(failed, "signal", result->signal ? json_integer(result->signal) : json_null());
    return failed;
}

bool trial_count(struct trial *trial, size_t index, double score, const char *reason,
                 const struct sandbox_result *result)
{
    trial->ran++;
    trial->score += score;
    trial->passed += !reason;
    if (reason && !trial->reason) {
        trial->reason = reason;
        trial->first_failed = describe(index, reason, result);
    }
    return !reason || !trial->all;
}

bool trial_is_late(struct trial *trial, size_t from)
{
    if (trial->left_us > 0)
        return false;
    for (size_t i = from; i < trial->chosen_count; i++)
        if (!trial_count(trial, trial->chosen[i], 0, REASON_TIMEOUT, NULL))
            break;
    return true;
}

/* --- tests with standard input --- */

/* Score of an output; NAN: the checker of the reference failed. */
static double score_output(struct trial *trial, const json_t *test, struct text output)
{
    struct text expected = json_text_of(json_object_get(test, "stdout"));

    if (trial->set->checker)
        return checker_score(trial, json_text_of(json_object_get(test, "stdin")), output, expected);
    return compare_output(output, expected, &trial->rule) ? 1 : 0;
}

static bool run_stdin(struct trial *trial, size_t index)
{
    const json_t *test = json_array_get(trial->set->tests, index);
    struct sandbox_program program = trial_program(trial, trial->source, json_text_of(json_object_get(test, "stdin")));
    _cleanup_(sandbox_result_finish) struct sandbox_result result = {.exit_code = -1};

    if (!trial_sandbox(trial, &program, 1, &result))
        return false;
    const char *reason = trial_reason(&result);
    double score = reason ? 0 : score_output(trial, test, result.standard_output);
    if (isnan(score))
        return false;
    return trial_count(trial, index, score, reason ? reason : score < 1 ? REASON_WRONG : NULL, &result);
}

void trial_run(struct trial *trial)
{
    if (trial->set->kind == TESTS_CALLS) {
        trial_run_calls(trial);
        return;
    }
    if (trial->set->kind == TESTS_ASSERTS) {
        trial_run_asserts(trial);
        return;
    }
    for (size_t i = 0; i < trial->chosen_count; i++)
        if (trial_is_late(trial, i) || !run_stdin(trial, trial->chosen[i]))
            return;
}

void trial_finish(struct trial *trial)
{
    json_decref(TAKE_PTR(trial->first_failed));
}
