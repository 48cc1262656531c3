/* manifest: the refusal of what a run's manifest does not allow. */
#ifndef SERVER_API_MANIFEST_H
#define SERVER_API_MANIFEST_H

#include "server/spec/manifest_hold.h"

struct request;
struct store_op;

/* Loop: refuses by MANIFEST_CONFLICT or OVER_BUDGET. hold NULL: of no difference. */
void manifest_refuse(struct request *request, const struct store_op *op, const struct manifest_hold *hold);

#endif
