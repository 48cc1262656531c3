/* calibration: how well a verifier's scores agree with labels: confusion, precision and recall.
 *
 * A rollout is positive if its score is 1 at least. A label counts against the first verdict of its verifier; where that
 * has no score, or where there is none, it is in no cell. Of several labellers each label counts. Worker threads. */
#ifndef SERVER_REPORTS_CALIBRATION_H
#define SERVER_REPORTS_CALIBRATION_H

#include "server/http/call.h"
#include "server/store/store.h"

#define CALIBRATION_LABELS_MAX 200000
#define CALIBRATION_ALARM_LABELS 20 /* fewer are no evidence */

enum calibration_key { CALIBRATION_WHOLE = -1, CALIBRATION_BY_REVISION, CALIBRATION_BY_REASON };
extern const char *const calibration_key_names[]; /* ended by NULL */

struct calibration_query {
    struct text run;
    struct text verifier;               /* an id; TEXT_NONE: all */
    int by;                             /* enum calibration_key */
    int purpose;                        /* enum store_purpose */
    int64_t incarnation;                /* -1: the surviving line, each revision in its latest incarnation */
    int64_t revision_min, revision_max; /* -1: open */
};

/* GET /v1/calibration, with its reader in the call; answers or refuses. */
void calibration_answer(struct call *call, const struct calibration_query *query);

#endif
