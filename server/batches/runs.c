#include "server/batches/runs.h"

#include "server/base/cleanup.h"
#include "server/batches/batches.h"
#include "server/batches/queues_private.h"

static void forget_run(struct batches *batches, struct run_state *run)
{
    for (size_t i = 0; i < batches->queue_count; i++)
        if (batches->queues[i]->run == run)
            batches->queues[i]->run = NULL;
    HASH_DEL(batches->runs, run);
    free(run->name);
    free(run);
}

struct run_state *runs_find(const struct batches *batches, struct text name)
{
    struct run_state *run;
    HASH_FIND(hh, batches->runs, name.data, name.length_bytes, run);
    return run;
}

struct run_state *runs_find_or_add(struct batches *batches, struct text name)
{
    struct run_state *run = runs_find(batches, name);
    if (run)
        return run;
    run = xcalloc(1, sizeof(*run));
    run->name = xstrndup(name.data, name.length_bytes);
    run->revision = -1;
    HASH_ADD_KEYPTR(hh, batches->runs, run->name, name.length_bytes, run);
    return run;
}

void runs_forget_if_idle(struct batches *batches, struct run_state *run)
{
    if (run->batches == 0 && !run->update && batches->resumed)
        forget_run(batches, run);
}

void runs_declared(struct batches *batches, const struct store_declare_policy *declared)
{
    struct run_state *run =
        batches->resumed ? runs_find(batches, declared->run) : runs_find_or_add(batches, declared->run);
    if (!run)
        return; /* the next batch of the run reads it from the record */
    run->revision = declared->current_revision;
    run->incarnation = declared->incarnation;
}

void runs_resumed(struct batches *batches)
{
    struct run_state *run;
    struct run_state *next;
    batches->resumed = true;
    HASH_ITER(hh, batches->runs, run, next)
    {
        runs_forget_if_idle(batches, run);
    }
}

void runs_finish(struct batches *batches)
{
    struct run_state *run;
    struct run_state *next;
    HASH_ITER(hh, batches->runs, run, next)
    {
        forget_run(batches, run);
    }
}
