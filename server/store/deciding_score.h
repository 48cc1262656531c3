/* deciding_score: the score that decides whether a rollout is solved. Pure. */
#ifndef STORE_DECIDING_SCORE_H
#define STORE_DECIDING_SCORE_H

#include "server/base/json_scan.h"
#include "server/base/text.h"

/* The score of pass_verifier, its batch's; without one that of the first held-out verifier; without one the reward. NAN:
 * there is no such score. rewards, heldout: JSON as on record, {"id":{"score":…},…}. */
double store_deciding_score(struct text pass_verifier, struct text rewards, struct text heldout, double reward);

/* The next value is {"score":…}, as on record: reads it. NAN: it has no score. */
double store_scan_score(struct json_scan *scan);

#endif
