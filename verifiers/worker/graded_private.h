/* graded: a verdict on each step of a completion, where a verifier's entry in the list says "steps".
 *
 * The score is the mean of the steps' scores. One unscored step makes the whole verdict unscored. A completion without a
 * step is wrong (no_answer), and so is one with more than PIECES_MAX of them (too_many_steps). */
#ifndef VERIFIERS_WORKER_GRADED_PRIVATE_H
#define VERIFIERS_WORKER_GRADED_PRIVATE_H

#include "server/base/json_write.h"
#include "verifiers/verifier.h"

struct graded {
    enum pieces_kind kind; /* PIECES_NONE: the completion is graded as a whole */
    struct piece *pieces;
    size_t count;
};

/* As the entry says. graded_finish() is needed. */
void graded_init(struct graded *graded, const json_t *entry, struct text completion);
void graded_finish(struct graded *graded);

/* True: *ret_verdict is the verdict. False: `input` is to be graded as it then is: by a verifier that grades the pieces
 * itself, or as a whole. */
bool graded_verdict(const struct graded *graded, const struct verifier *verifier, struct verifier_input *input,
                    struct verdict *ret_verdict);

/* Once it is said: a verdict without a score for each step is none, nor is one whose steps would not fit into the reply. */
void graded_settle(const struct graded *graded, const struct buffer *reply, struct verdict *verdict);

/* Inside of a verdict: "steps": [[end in bytes, score], …]; nothing where there are none. */
void graded_write(struct json_write *json, const struct graded *graded, const struct verdict *verdict);

#endif
