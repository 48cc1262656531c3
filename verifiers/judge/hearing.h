/* hearing: the replies of a judge, and the verdict that follows from them.
 *
 * A reply that failed, is off the form, contradicts itself or is cut off makes the verdict unscored with a code of its
 * own, whatever the others say: it is no vote. All of them are in the detail. Pure; any thread. */
#ifndef VERIFIERS_JUDGE_HEARING_H
#define VERIFIERS_JUDGE_HEARING_H

#include "verifiers/judge/rule.h"
#include "verifiers/verifier.h"

/* input->replies: one for each ask (question.h). The detail of *verdict is set: "asks", "engine_model",
 * "engine_version", "label". */
void judge_hear(const struct judge_rule *rule, const struct verifier_input *input, struct verdict *verdict);

#endif
