#include "verifiers/verifier.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "server/base/buffer.h"
#include "server/base/utf8.h"

const char *const verdict_kind_names[VERDICT_KINDS + 1] = {
    [VERDICT_CORRECT] = "correct",
    [VERDICT_INCORRECT] = "incorrect",
    [VERDICT_SCORED] = "scored",
    [VERDICT_UNSCORED] = "unscored",
};

const char *const option_kind_names[OPTION_KINDS] = {
    [OPTION_BOOL] = "boolean",
    [OPTION_INT] = "integer",
    [OPTION_NUMBER] = "number",
    [OPTION_TEXT] = "string",
    [OPTION_CHOICE] = "choice",
    [OPTION_TEXTS] = "array of strings",
    [OPTION_OBJECT] = "object",
    [OPTION_ANY] = "any",
    [OPTION_MESSAGES] = "string or messages",
    [OPTION_SWITCH] = "boolean or object",
};

void verdict_set(struct verdict *verdict, bool correct, const char *reason)
{
    verdict->kind = correct ? VERDICT_CORRECT : VERDICT_INCORRECT;
    verdict->score = correct ? 1 : 0;
    verdict->reason = reason;
}

void verdict_set_score(struct verdict *verdict, double score, const char *reason)
{
    verdict->kind = VERDICT_SCORED;
    verdict->score = score;
    verdict->reason = reason;
}

void verdict_fail(struct verdict *verdict, const char *code, const char *format, ...)
{
    va_list arguments;

    verdict->kind = VERDICT_UNSCORED;
    verdict->score = 0;
    verdict->reason = code;
    verdict->failure_code = code;
    va_start(arguments, format);
    vsnprintf(verdict->failure_message, sizeof verdict->failure_message, format, arguments);
    va_end(arguments);
}

void verdict_set_steps(struct verdict *verdict, const double *scores, size_t count)
{
    double sum = 0;

    free(verdict->step_scores);
    verdict->step_scores = xcalloc(count + 1, sizeof *scores);
    verdict->step_count = count;
    for (size_t i = 0; i < count; i++) {
        verdict->step_scores[i] = scores[i];
        sum += scores[i];
    }
    if (count == 0)
        verdict_set(verdict, false, "no_answer");
    else if (isfinite(sum))
        verdict_set_score(verdict, sum / (double)count, "steps");
    else
        verdict_fail(verdict, "verifier_crashed", "the scores of the steps have no mean");
}

void verdict_finish(struct verdict *verdict)
{
    json_decref(verdict->detail);
    free(verdict->step_scores);
    verdict->detail = NULL;
    verdict->step_scores = NULL;
}

#define EXTRACTED_BYTES 256

void verdict_note_extracted(struct verdict *verdict, struct text completion, struct text extracted)
{
    _cleanup_buffer_ struct buffer shown;
    struct text cut = extracted;

    if (!verdict->detail)
        verdict->detail = json_object();
    if (cut.length_bytes > EXTRACTED_BYTES)
        cut.length_bytes = EXTRACTED_BYTES;
    /* The cut may have split a character: mending shows the rest of it as U+FFFD. */
    buffer_init(&shown, (size_t)EXTRACTED_BYTES * 3 + 1);
    utf8_append_mended(&shown, cut);
    json_object_set_new(verdict->detail, "extracted", json_stringn(buffer_text(&shown).data, shown.length_bytes));
    if (extracted.data >= completion.data && extracted.data <= completion.data + completion.length_bytes) {
        json_int_t start = extracted.data - completion.data;
        json_object_set_new(verdict->detail, "start", json_integer(start));
        json_object_set_new(verdict->detail, "end", json_integer(start + (json_int_t)extracted.length_bytes));
    }
}

bool verdict_misses_length(struct verdict *verdict, const struct verifier_input *input)
{
    if (input->completion_tokens < 0) {
        verdict_fail(verdict, "missing_field",
                     "the number of tokens is unknown: no completion_ids, no completion_tokens");
        return true;
    }
    verdict->detail = json_pack("{s:I}", "length", (json_int_t)input->completion_tokens);
    return false;
}

struct settled settle_correct_alone(const json_t *options, double own, double of)
{
    (void)options;
    return of > 0 ? (struct settled){own, NULL} : (struct settled){0, "of_wrong"};
}

int verifier_refuse(struct verifier_problem *problem, const char *name, const char *format, ...)
{
    va_list arguments;

    snprintf(problem->name, sizeof problem->name, "%s", name);
    va_start(arguments, format);
    vsnprintf(problem->message, sizeof problem->message, format, arguments);
    va_end(arguments);
    return -1;
}

bool option_is_true(const json_t *options, const char *name)
{
    return json_is_true(json_object_get(options, name));
}

double option_number(const json_t *options, const char *name, double if_null)
{
    const json_t *value = json_object_get(options, name);
    return json_is_number(value) ? json_number_value(value) : if_null;
}

struct text option_text(const json_t *options, const char *name)
{
    return json_text_of(json_object_get(options, name));
}

bool option_is(const json_t *options, const char *name, const char *value)
{
    return text_equals(option_text(options, name), value);
}
