/* pass_at: pass@k and maj@k of a batch's groups, for its summary.
 *
 * pass@k of a group: 1 - C(n-c, k)/C(n, k), n judged members, c of them correct (Chen et al., arXiv 2107.03374, 2.1).
 * maj@k: whether the answer that most of the first k judged members gave is correct; correct ones count as one answer,
 * whatever they look like; a tie goes to the answer that came first; who gave no answer does not vote. Means over the
 * groups that have k judged members. Standard errors are clustered by task: draws of one task are not independent
 * (Miller, arXiv 2411.00640, section 2.2). */
#ifndef SERVER_SPEC_PASS_AT_H
#define SERVER_SPEC_PASS_AT_H

#include "server/base/json_write.h"
#include "server/http/call.h"
#include "server/store/store.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PASS_AT_MAX 16
#define PASS_THRESHOLD 1.0 /* of a batch that names none */

struct pass_spec {
    int64_t k[PASS_AT_MAX];
    size_t count;         /* 0: not asked for */
    struct text verifier; /* whose score decides; TEXT_NONE: the first held-out one of a member, else its reward */
    double threshold;     /* correct is a score of at least this */
};

/* `pass_at`, a list of integers of at least 1; NULL is an empty one. 0, or -1 with the call refused. */
int pass_at_read(struct call *call, const json_t *list, int64_t ret_k[PASS_AT_MAX], size_t *ret_count);

struct pass_tally;
struct pass_tally *pass_tally_create(const struct pass_spec *spec, size_t group_count);
void pass_tally_destroy(struct pass_tally *tally); /* NULL is fine */
/* The members of one group in the order of their sample_index, with verdicts. task outlives the
 * tally. */
void pass_tally_add(struct pass_tally *tally, struct text task, const struct store_rollout *rollouts, size_t count);
/* A value for each group in the order of adding, of the place-th k: pass@k, maj@k. NAN: too few judged members. NULL for
 * maj@k if no verdict names the answer. The tally's. */
const double *pass_tally_passes(const struct pass_tally *tally, size_t place);
const double *pass_tally_majorities(const struct pass_tally *tally, size_t place);
/* Members of an open object: "pass_at_k" and "maj_at_k" (null if no verdict says what was answered). */
void pass_tally_write(const struct pass_tally *tally, struct json_write *json);
/* Groups that had fewer judged members than some k. */
size_t pass_tally_short(const struct pass_tally *tally);

#endif
