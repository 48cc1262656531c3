/* /v1/runs/{run}/leases: what its two files share. */
#ifndef SERVER_API_LEASES_H
#define SERVER_API_LEASES_H

#include "server/api/server.h"
#include "server/base/clock.h"
#include "server/http/http.h"
#include "server/render/share.h"
#include "server/store/store.h"

#define LEASE_MAX_US (INT64_C(720) * 3600 * US_PER_S)
#define LEASE_WAIT_MAX_US (INT64_C(24) * 3600 * US_PER_S)

/* 0, or -1 with the call refused. */
int lease_check_duration(struct call *call, int64_t lease_us);
/* By the status of an operation on a lease; `missing`: what NOT_FOUND is about, "run" or "lease". */
void lease_refuse(struct request *request, const struct store_op *op, const char *missing);

/* Worker, api/batch_tensors.c: a lease as a file of tensors. lease_id TEXT_NONE: nothing was ready. `share`: of one rank;
 * NULL: all of it. */
void lease_tensors_answer(struct call *call, struct text run, struct text lease_id, const struct lease_share *share);

#endif
