/* manifest: the refusal of requests that contradict the run's manifest. */
#ifndef SERVER_API_MANIFEST_H
#define SERVER_API_MANIFEST_H

#include "server/spec/manifest_hold.h"

struct request;
struct store_op;

/* Loop: refuses with MANIFEST_CONFLICT or OVER_BUDGET. hold NULL: the refusal names no difference. */
void manifest_refuse(struct request *request, const struct store_op *op, const struct manifest_hold *hold);

#endif
