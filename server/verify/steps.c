/* The ends of graded steps: from bytes of the text to tokens. */
#include "server/verify/spec.h"

#include <math.h>
#include <stdio.h>

static bool is_unplaced(const struct verdict_record *record)
{
    for (size_t i = 0; i < record->step_count; i++)
        if (record->steps[i].end == 0)
            return true;
    return false;
}

static void fail(struct verdict_record *record, const char *code, const char *message)
{
    record->kind = VERDICT_UNSCORED;
    record->score = NAN;
    snprintf(record->reason, sizeof record->reason, "%s", code);
    snprintf(record->failure_code, sizeof record->failure_code, "%s", code);
    snprintf(record->failure_message, sizeof record->failure_message, "%s", message);
    free(TAKE_PTR(record->steps));
    record->step_count = 0;
}

/* Both ends never fall, so that one pass over the tokens finds all. False: a step ends behind the last token. */
static bool place(struct verdict_record *record, const uint32_t *token_ends, size_t token_count)
{
    size_t token = 0;

    for (size_t i = 0; i < record->step_count; i++) {
        struct verdict_step *step = &record->steps[i];
        if (step->end > 0) {
            if (step->byte_end == 0 && step->end <= token_count)
                step->byte_end = token_ends[step->end - 1];
            continue;
        }
        while (token < token_count && token_ends[token] < step->byte_end)
            token++;
        if (token == token_count)
            return false;
        step->end = (uint32_t)token + 1;
    }
    return true;
}

void verdict_set_place_steps(struct verdict_set *set, const uint32_t *token_ends, size_t token_count)
{
    for (size_t i = 0; i < set->count; i++) {
        struct verdict_record *record = &set->verdicts[i];
        if (!token_ends && is_unplaced(record))
            fail(record, "no_token_offsets",
                 "its steps end at bytes of the text, and it is not known which tokens end where: give token_ends");
        else if (token_ends && !place(record, token_ends, token_count))
            fail(record, "verifier_crashed", "a step ends behind the last token");
    }
}
