/* registry: THE table of verifiers. Adding one is a file, a row in rows.c and a test. Any thread. */
#ifndef VERIFIERS_REGISTRY_H
#define VERIFIERS_REGISTRY_H

#include "server/base/buffer.h"
#include "server/base/nearest.h"
#include "verifiers/verifier.h"

extern const struct verifier *const verifiers[];
extern const size_t verifier_count;

/* In no list: runs one program and grades nothing (graders/program.c). */
extern const struct verifier verifier_program;

const struct verifier *registry_find(struct text name); /* NULL: unknown */

/* Where there is none of this name: the end of the search (base/nearest.h). */
void registry_advise(struct text name, char ret_advice[ADVICE_BYTES]);

/* Checks a client's options (NULL: none given) against the table and check_options, and returns a new object with every
 * option, defaults filled in, in the table's order. NULL with the problem if one is unknown, missing, of a wrong type
 * or out of range. */
json_t *registry_fill_options(const struct verifier *verifier, const json_t *options,
                              struct verifier_problem *ret_problem);

/* The calls that a verifier with a plan needs before its verdict. False: none, *ret_verdict is its verdict; then `calls`
 * may hold anything. */
bool registry_plan(const struct verifier *verifier, const struct verifier_input *input, json_t *calls,
                   struct verdict *ret_verdict);

/* A verdict for one completion, by name: an unknown reference, a bad score, anything irregular becomes a failure. */
void registry_grade(const struct verifier *verifier, const struct verifier_input *input, struct verdict *ret_verdict);

/* Limits that GET /v1/verifiers reports. */
#define VERIFIER_FRAME_LIMIT_BYTES (8u << 20)          /* one completion with its references, as JSON */
#define VERIFIER_PROGRAM_FRAME_LIMIT_BYTES (32u << 20) /* the same, where a verifier of its list runs programs */
#define VERIFIER_LIST_LIMIT 64                         /* verifiers of one completion */
#define VERIFIER_CALLS_MAX 256                         /* of one verdict */
#define VERIFIER_CALLS_BYTES ((size_t)4 << 20)         /* their bodies */
#define VERIFIER_REPLIES_BYTES ((size_t)4 << 20)       /* what came back for one completion, as JSON */

#endif
