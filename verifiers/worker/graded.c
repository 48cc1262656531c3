#include "verifiers/worker/graded_private.h"

#include <stdio.h>

#include "verifiers/registry.h"

#define STEP_BYTES 32 /* "[1048576,0.6666666666666666]," */

void graded_init(struct graded *graded, const json_t *entry, struct text completion)
{
    *graded = (struct graded){.kind = pieces_kind_of(json_text_of(json_object_get(entry, "steps")))};
    if (graded->kind != PIECES_NONE)
        graded->pieces = pieces_of(completion, graded->kind, &graded->count);
}

void graded_finish(struct graded *graded)
{
    free(graded->pieces);
    *graded = (struct graded){PIECES_NONE, NULL, 0};
}

/* The first step without a score decides. */
static void fail_at(size_t index, const struct verdict *step, struct verdict *ret_verdict)
{
    *ret_verdict = (struct verdict){.kind = VERDICT_UNSCORED};
    verdict_fail(ret_verdict, step->failure_code, "step %zu: %s", index, step->failure_message);
}

static void grade_each(const struct graded *graded, const struct verifier *verifier, const struct verifier_input *input,
                       struct verdict *ret_verdict)
{
    _cleanup_free_ double *scores = xcalloc(graded->count + 1, sizeof *scores);
    struct verifier_input piece = *input;

    piece.completion_tokens = -1;
    for (size_t i = 0; i < graded->count; i++) {
        struct verdict verdict;
        piece.completion = graded->pieces[i].text;
        registry_grade(verifier, &piece, &verdict);
        scores[i] = verdict.score;
        if (verdict.kind == VERDICT_UNSCORED) {
            fail_at(i, &verdict, ret_verdict);
            verdict_finish(&verdict);
            return;
        }
        verdict_finish(&verdict);
    }
    verdict_set_steps(ret_verdict, scores, graded->count);
}

bool graded_verdict(const struct graded *graded, const struct verifier *verifier, struct verifier_input *input,
                    struct verdict *ret_verdict)
{
    if (graded->kind == PIECES_NONE)
        return false;
    *ret_verdict = (struct verdict){.kind = VERDICT_UNSCORED};
    if (graded->count == 0 || graded->count > PIECES_MAX) {
        verdict_set_steps(ret_verdict, NULL, 0);
        ret_verdict->reason = graded->count == 0 ? "no_answer" : "too_many_steps";
        return true;
    }
    if (verifier->grades_pieces) {
        input->pieces = graded->pieces;
        input->piece_count = graded->count;
        return false;
    }
    grade_each(graded, verifier, input, ret_verdict);
    return true;
}

void graded_settle(const struct graded *graded, const struct buffer *reply, struct verdict *verdict)
{
    size_t room_bytes = reply->maximum_bytes - reply->length_bytes;

    if (graded->kind == PIECES_NONE || verdict->kind == VERDICT_UNSCORED)
        return;
    if (!verdict->step_scores || (verdict->step_count > 0 && verdict->step_count != graded->count))
        verdict_fail(verdict, "verifier_crashed", "%zu scores for %zu steps", verdict->step_count, graded->count);
    else if (verdict->step_count * STEP_BYTES > room_bytes / 2)
        verdict_fail(verdict, "verifier_input_too_large", "the %zu steps do not fit into the reply of the worker",
                     graded->count);
}

void graded_write(struct json_write *json, const struct graded *graded, const struct verdict *verdict)
{
    if (graded->kind == PIECES_NONE || verdict->kind == VERDICT_UNSCORED)
        return;
    json_key(json, "steps");
    json_array_begin(json);
    for (size_t i = 0; i < verdict->step_count; i++) {
        json_array_begin(json);
        json_int(json, (int64_t)graded->pieces[i].end_bytes);
        json_double(json, verdict->step_scores[i]);
        json_array_end(json);
    }
    json_array_end(json);
}
