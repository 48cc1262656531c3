/* The rest of the room that the tests of dispatch leave out: groups and batches are closed at once. */
#include "tests/unit/server/dispatch_fixture.h"

#include "server/batches/closing_private.h"
#include "server/batches/refill_private.h"
#include "server/batches/resume.h"
#include "server/batches/unread_private.h"
#include "server/batches/unstored.h"
#include "server/runtime/memory.h"
#include "server/settings/settings.h"

void live_close_group(struct live_batch *live, uint32_t group)
{
    live_post(live, &(struct batch_event){.kind = EVENT_GROUP_CLOSED, .index = group});
}

/* No batch here has a reserve. */

size_t refill_draws_max(const struct batch_spec *spec)
{
    (void)spec;
    return 0;
}

double refill_metric(const struct refill_spec *refill, double reward, struct text rewards, struct text heldout)
{
    (void)refill;
    (void)reward;
    (void)rewards;
    (void)heldout;
    fail();
    return 0;
}

void refill_weigh_group(struct live_batch *live, uint32_t group)
{
    (void)live;
    (void)group;
    fail();
}

void live_drop_group(struct live_batch *live, uint32_t group)
{
    (void)live;
    (void)group;
    fail();
}

void live_close_whole(struct live_batch *live)
{
    (void)live;
    fail();
}

void live_close_batch(struct live_batch *live)
{
    world.ended++;
    live_post(live, &(struct batch_event){.kind = EVENT_BATCH_CLOSED});
}

void unread_finish(struct batches *batches)
{
    (void)batches;
}

void resume_finish(struct batches *batches)
{
    (void)batches;
}

void unstored_destroy(struct unstored *unstored, size_t rollout_count)
{
    (void)unstored;
    (void)rollout_count;
}

void unstored_keep_rollout(struct live_batch *live, uint32_t index, const struct store_rollout *row,
                           struct verification *verification)
{
    (void)live;
    (void)index;
    (void)row;
    (void)verification;
}

int64_t memory_for_batches_bytes(const struct settings *settings)
{
    (void)settings;
    return INT64_C(1) << 30;
}

void memory_freed(struct memory_trim *self, size_t bytes)
{
    (void)self;
    (void)bytes;
}
