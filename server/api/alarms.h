/* alarms: the raised alarms of all runs. A worker checks a run after each training batch; an alarm ends with its cause.
 * Loop thread. In memory: after a start recent runs are checked once, any other at the end of its next batch. */
#ifndef SERVER_API_ALARMS_H
#define SERVER_API_ALARMS_H

#include "server/base/json_write.h"
#include "server/base/text.h"

struct alarms;
struct settings;
struct workers;

/* Both outlive it. */
struct alarms *alarms_create(struct workers *workers, const struct settings *settings);
void alarms_destroy(struct alarms *alarms); /* behind workers_destroy(); NULL is fine */

/* The record can be read: its recent runs are checked, in the background. Once. */
void alarms_begin(struct alarms *alarms);
/* A training batch of the run of this name is on record. */
void alarms_batch_ended(struct alarms *alarms, const char *name);
/* The run is deleted. */
void alarms_forget(struct alarms *alarms, const char *name);

/* "alarms": [{"run","alarm","revision","from_revision","value","threshold","engine","verifier","since","evidence"}], of one run or
 * (TEXT_NONE) of all. */
void alarms_write(const struct alarms *alarms, struct text name, struct json_write *json);
/* Into rolloutd_alarms. */
void alarms_set_gauges(const struct alarms *alarms);

#endif
