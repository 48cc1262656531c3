/* What pool.c and probe.c know of each other. */
#ifndef CLIENT_PROBE_H
#define CLIENT_PROBE_H

#include "client/pool.h"

/* Health after a failed request or probe. */
void engine_failed(struct engine *engine, const struct sample_error *error, int64_t now_us);

/* How long the pause after its failures in a row is. */
int64_t engine_pause_us(const struct engine *engine);

#endif
