#include "server/batches/batches.h"

#include "server/base/cleanup.h"
#include "server/batches/live.h"
#include "server/batches/queues_private.h"
#include "server/batches/resume.h"
#include "server/batches/row_private.h"
#include "server/batches/runs.h"
#include "server/batches/step_private.h"
#include "server/batches/unread_private.h"
#include "server/batches/weight_update.h"
#include "server/engines/engines.h"
#include "server/runtime/memory.h"
#include "server/settings/settings.h"

static void engines_changed(void *arg)
{
    batches_wake(arg);
}

struct batches *batches_create(const struct batches_options *options)
{
    struct batches *batches = xcalloc(1, sizeof(*batches));
    batches->uses = *options;
    batches->step = batches_step;
    batches->posted_last = &batches->posted;
    batches->places_max = (size_t)options->settings->verify_queue;
    batches->program_places_max = (size_t)options->settings->sandbox_queue;
    batches->bytes_max = memory_for_batches_bytes(options->settings);
    batches->backlog_last = &batches->backlog_first;
    if (options->engines)
        engines_subscribe(options->engines, engines_changed, batches);
    store_health_init(options->loop, options->store, &batches->health);
    return batches;
}

void batches_destroy(struct batches *batches)
{
    if (!batches)
        return;
    loop_timer_clear(batches->uses.loop, &batches->step_timer);
    loop_timer_clear(batches->uses.loop, &batches->dispatch_timer);
    loop_timer_clear(batches->uses.loop, &batches->backlog_timer);
    store_health_finish(&batches->health);
    resume_finish(batches);
    unread_finish(batches);
    updates_finish(batches);
    runs_finish(batches);
    queues_finish(batches);
    free(batches);
}

void store_ops_finished(struct batches *batches, struct store_op *list)
{
    while (list) {
        struct store_op *op = list;
        list = op->next;
        store_health_note(&batches->health, op);
        op->done(op);
    }
    if (!batches->health.failing) /* else its timer does */
        rows_pump_backlog(batches);
}
