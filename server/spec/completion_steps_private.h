/* completion_steps: token ends and graded steps of a completion that the request brings itself. */
#ifndef SERVER_SPEC_COMPLETION_STEPS_PRIVATE_H
#define SERVER_SPEC_COMPLETION_STEPS_PRIVATE_H

#include "server/spec/batch.h"

/* The byte of the text behind each token: one for each id, never falling, the last is the length of the text. Ids and text
 * of the completion were read. path: of the completion. 0, or -1 with the call refused. */
int completion_read_token_ends(struct batch_spec *spec, const char *path, const struct numbers *numbers,
                               struct completion_spec *completion);

/* The `steps` of one reward (value NULL: none). Token ends were read. path: of the reward. 0, or -1 with the call refused. */
int completion_read_steps(struct batch_spec *spec, const char *path, const json_t *value,
                          const struct completion_spec *completion, struct given_score *ret_score);

#endif
