/* reward: requests to servers of reward models, and the place of the number in their replies.
 *
 * Each payload is a row: its path, its body, and a JSON pointer into the reply. Values go as they are. Pure. */
#ifndef VERIFIERS_JUDGE_REWARD_H
#define VERIFIERS_JUDGE_REWARD_H

#include "server/base/buffer.h"
#include "verifiers/judge/rule.h"
#include "verifiers/judge/template.h"

struct reward_payload;

extern const char *const reward_payload_names[]; /* "score" …, NULL; the first one is the default */
const struct reward_payload *reward_payload_at(size_t place);

const char *reward_endpoint(const struct reward_payload *payload);
bool reward_takes_label(const struct reward_payload *payload);
bool reward_says_model(const struct reward_payload *payload);
bool reward_wants_steps(const struct reward_payload *payload); /* one call for all of them */

/* One completion with its prompt; steps: the texts of its steps, for a payload that wants them. */
struct reward_sample {
    struct text prompt, completion;
    const json_t *reference; /* NULL: none, sent as null */
    const struct text *steps;
    size_t step_count;
};

void reward_put_body(const struct reward_payload *payload, const struct reward_sample *sample, struct buffer *out);

/* count: 1, or the number of steps. False: the numbers do not stand there, as ret_problem says (a sentence). */
#define REWARD_PROBLEM_BYTES 120
bool reward_read(const struct judge_rule *rule, const json_t *body, size_t count, double *ret_numbers,
                 char ret_problem[REWARD_PROBLEM_BYTES]);

#endif
