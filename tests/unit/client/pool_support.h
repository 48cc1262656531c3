/* Pools for unit tests: their engines answer their probes as vLLM does. */
#ifndef TESTS_UNIT_CLIENT_POOL_SUPPORT_H
#define TESTS_UNIT_CLIENT_POOL_SUPPORT_H

#include "client/pool/pool.h"

/* All that are due. */
void answer_probes(struct pool *pool, int64_t now_us);
/* A pool with engines that have answered. pool_destroy() is needed. */
struct pool *pool_of(const struct pool_engine *settings, size_t count);

#endif
