/* refill: a batch's reserve of groups, and the rule by which they replace others. Any thread. */
#ifndef SERVER_SPEC_REFILL_H
#define SERVER_SPEC_REFILL_H

#include "server/base/text.h"
#include "server/objective/objective.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch_spec;
struct json_input;
struct json_write;

enum refill_exhausted { REFILL_SHORT, REFILL_DELIVER, REFILL_FAIL };
extern const char *const refill_exhausted_names[]; /* ended by NULL */

struct refill_spec {
    bool wanted;          /* groups are checked */
    struct text metric;   /* "reward", or the id of a verifier */
    struct text verifier; /* that id; TEXT_NONE: the reward before shaping */
    int rule;             /* of the objective's `filter` (objective/knobs.h) */
    double tol, lo, hi;
    int exhausted; /* enum refill_exhausted: of a group without a replacement left */
    int64_t max_extra_groups;
};

/* object: the request's `refill`; NULL: defaults. 0, or -1 with the call refused. */
int refill_read(struct json_input *input, const json_t *object, struct refill_spec *ret_refill);
/* Once the groups are read: each of them has the metric. */
int refill_check(const struct batch_spec *spec);

/* The same from `summary.refill` of a batch (refill_write()). -1: it is none. The texts are the summary's. */
int refill_read_summary(const json_t *summary, struct refill_spec *ret_refill);
/* Members of an open object: metric, rule, its bounds, exhausted. */
void refill_write(struct json_write *json, const struct refill_spec *refill);

/* The raw metric of a scored member: its reward, or its score by the verifier. rewards, heldout: JSON as on record. NAN:
 * none. */
double refill_metric(const struct refill_spec *refill, double reward, struct text rewards, struct text heldout);
/* Whether these values teach nothing, by the rule: fewer than two never do. NAN: no value. */
bool refill_is_flat(const struct refill_spec *refill, const struct objective_knobs *objective, const double *values,
                    size_t count);
/* Mean, deviation (by the objective's ddof) and variance of values. */
void refill_describe(const struct refill_spec *refill, const struct objective_knobs *objective, const double *values,
                     size_t count, struct objective_group *ret_statistics);

/* Groups that may be drawn. */
size_t refill_draws_max(const struct batch_spec *spec);

#endif
