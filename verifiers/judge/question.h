/* question: a question to a judge, as the body of a request.
 *
 * A verdict asks once, or once for each step, each vote and each order of the two answers. The rule alone
 * determines the asks, so that the replies can be told apart without a note. Pure; any thread. */
#ifndef VERIFIERS_JUDGE_QUESTION_H
#define VERIFIERS_JUDGE_QUESTION_H

#include "server/base/buffer.h"
#include "verifiers/judge/chat.h"
#include "verifiers/judge/rule.h"
#include "verifiers/verifier.h"

struct judge_ask {
    size_t step; /* 0 without steps */
    int64_t seed;
    bool swapped; /* completion and reference in each other's place */
};

/* How many asks a verdict takes; those of one step follow each other, and so do both orders of one vote. */
size_t judge_ask_count(const struct judge_rule *rule, const struct verifier_input *input);
size_t judge_asks_a_step(const struct judge_rule *rule);
struct judge_ask judge_ask_at(const struct judge_rule *rule, size_t index);

/* True: a value that the question names is not there, as ret_problem says. */
bool judge_lacks_a_value(const struct judge_rule *rule, const struct verifier_input *input,
                         struct judge_problem *ret_problem);

/* The whole body without its model. */
void judge_put_body(const struct judge_rule *rule, const struct verifier_input *input, const struct judge_ask *ask,
                    struct buffer *out);

#endif
