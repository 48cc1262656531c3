/* admission: refuses at the POST a batch that no engine of its pool could sample. Loop thread. */
#ifndef SERVER_BATCHES_ADMISSION_H
#define SERVER_BATCHES_ADMISSION_H

#include "server/batches/live.h"
#include "server/spec/batch.h"

/* 0, or -1 with the call refused: no engine is configured, none belongs to the pool, none of the pool serves the model
 * or can be asked for what the sampling says. Unknown facts of an engine refuse nothing. */
int admission_check(struct batches *batches, struct call *call, const struct batch_spec *spec);
/* 0, or -1 with the call refused: a verifier asks a pool that has no engine, or the batch's own. */
int admission_check_judges(struct batches *batches, struct call *call, const struct batch_spec *spec);

#endif
