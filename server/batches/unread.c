#include "server/batches/unread_private.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/ids.h"
#include "server/batches/batches.h"
#include "server/record/store_desk.h"

#include <math.h>
#include <stdio.h>

struct unread_batch {
    struct store_errand errand;
    struct loop_timer timer; /* its deadline */
    char id[ID_BYTES];
    struct unread_batch *next;
};

static void unread_closed(struct store_op *op)
{
    struct unread_batch *unread = op->context;
    (void)store_desk_send_again(&unread->errand);
}

static void unread_ended(void *arg)
{
    struct unread_batch *unread = arg;
    struct store_op *op = &unread->errand.op;
    *op = (struct store_op){.kind = STORE_CLOSE_BATCH, .done = unread_closed, .context = unread};
    op->close_batch = (struct store_close_batch){
        .batch_id = unread->id,
        .state = STORE_BATCH_EXPIRED,
        .loss = NAN,
        .notes = TEXT_LITERAL("[\"after a restart the request could not be read: the rest was never sampled\"]"),
    };
    store_desk_send(&unread->errand);
}

void unread_add(struct batches *batches, const char *batch_id, int64_t deadline_utc_us)
{
    struct unread_batch *unread = xcalloc(1, sizeof(*unread));
    unread->errand.loop = batches->uses.loop;
    unread->errand.store = batches->uses.store;
    unread->next = batches->unread;
    batches->unread = unread;
    snprintf(unread->id, sizeof(unread->id), "%s", batch_id);
    loop_timer_set(batches->uses.loop, &unread->timer, clock_monotonic_us() + deadline_utc_us - clock_utc_us(),
                   unread_ended, unread);
}

void unread_finish(struct batches *batches)
{
    for (struct unread_batch *unread = batches->unread, *next; unread; unread = next) {
        next = unread->next;
        loop_timer_clear(batches->uses.loop, &unread->timer);
        store_desk_drop(&unread->errand);
        free(unread);
    }
}
