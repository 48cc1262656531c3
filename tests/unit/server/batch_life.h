/* Shared by the tests of a batch's life: one batch with a made-up clock. */
#ifndef TESTS_SERVER_BATCH_LIFE_H
#define TESTS_SERVER_BATCH_LIFE_H

#include "server/batches/batch.h"

#include "server/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SECOND US_PER_S

struct life {
    struct batch batch;
    struct actions actions;
    int64_t now_us;
};

void end_life(struct life *life);
/* One event; the actions that it caused are in `actions`. */
void happen(struct life *life, enum batch_event_kind kind, uint32_t index);
bool acted(const struct life *life, enum action_kind kind, uint32_t index);
/* From its dispatch to its row. */
void score(struct life *life, uint32_t index);

#endif
