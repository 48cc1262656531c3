/* scores: a filter's conditions on verdicts and held-out scores of a rollout, which are JSON on record. Private to the
 * room. Pure. */
#ifndef SERVER_STORE_SQLITE_SCORES_H
#define SERVER_STORE_SQLITE_SCORES_H

#include "server/base/text.h"

#include <stdbool.h>

/* [{"id":…,"verdict":…,"reason":…},…]: whether one of them has all that is given; TEXT_NONE: any. */
bool scores_have_verdict(struct text verdicts, struct text id, struct text verdict, struct text reason);
/* {"id":{"score":…},…}: whether one score at least is as high. */
bool scores_reach(struct text scores, double minimum);

#endif
