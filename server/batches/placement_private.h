/* placement: the ends of a sample's steps as tokens, where the engine's reply has no bytes of its tokens: asked of
 * its /detokenize, by halves. The text of the first k ids ends behind or before a step's end; about log2(ids) questions
 * find the token. Loop thread, unless marked "worker"; never both at once. */
#ifndef SERVER_BATCHES_PLACEMENT_PRIVATE_H
#define SERVER_BATCHES_PLACEMENT_PRIVATE_H

#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct placement;
struct transport;
struct verdict_set;

struct placement_sample {
    struct transport *transport;
    struct engine *engine; /* is held */
    struct text model;     /* TEXT_NONE: not sent */
    struct text text;
    const uint32_t *ids;
    size_t id_count;
};

/* Copies what it needs. NULL: this engine is not asked. */
struct placement *placement_create(const struct placement_sample *sample);
void placement_destroy(struct placement *placement); /* cancels what is asked; NULL is fine */

/* Worker: what is looked for. False: there is nothing to ask, or too much. */
bool placement_aim(struct placement *placement, const struct verdict_set *set);
/* Asks the next questions; `replied` is called once all of them have an answer or none, never from inside. */
void placement_send(struct placement *placement, int64_t timeout_us, void (*replied)(void *arg), void *arg);
/* Worker: reads the answers. True: there is more to ask. */
bool placement_read(struct placement *placement);
/* Worker: once there is no more to ask: a byte behind each token, [id_count], as verdict_set_place_steps() wants it. NULL: the
 * engine did not answer, or its text is not the sample's. */
const uint32_t *placement_ends(const struct placement *placement);

#endif
