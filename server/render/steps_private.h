/* steps: the graded steps of a rollout with their places in its ids and in its text. Worker. */
#ifndef SERVER_RENDER_STEPS_PRIVATE_H
#define SERVER_RENDER_STEPS_PRIVATE_H

#include "server/base/json_write.h"
#include "server/store/rollout.h"

/* [{"verifier","start","end","byte_start","byte_end","text","score"}], the steps of one verdict behind those of another. */
void render_steps(struct json_write *json, const struct store_rollout *rollout);

#endif
