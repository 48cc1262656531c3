/* dummy: is the completion the reference, byte for byte? tests/rooms/adding.py adds it to a copy of the tree. */
#include "verifiers/rows.h"

static int check_reference(const json_t *reference, const json_t *filled, struct verifier_problem *ret_problem)
{
    (void)filled;
    return json_is_string(reference) ? 0 : verifier_refuse(ret_problem, "", "the reference is no text");
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    bool same = text_same(input->completion, json_text_of(input->reference));
    struct verifier_problem problem;

    if (check_reference(input->reference, input->options, &problem) < 0)
        verdict_fail(ret_verdict, "reference_unreadable", "%s", problem.message);
    else
        verdict_set(ret_verdict, same, same ? "equal" : "different");
}

const struct verifier verifier_dummy = {
    .name = "dummy",
    .version = "1",
    .help = "1 if the completion is the reference",
    .needs_reference = true,
    .check_reference = check_reference,
    .grade = grade,
};
