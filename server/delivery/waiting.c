/* Requests that wait for groups of their run. */
#include "server/delivery/delivery_private.h"

#include "server/base/clock.h"
#include "server/record/store_health.h"

/* --- the list of a run ---------------------------------------------------------------------------------- */

static struct waiting_run *find_run(const struct delivery *delivery, struct text name)
{
    struct waiting_run *run;
    HASH_FIND(hh, delivery->runs, name.data, name.length_bytes, run);
    return run;
}

static void join_run(struct delivery *delivery, struct lease_request *request)
{
    struct text name = request->op.take_lease.run;
    struct waiting_run *run = find_run(delivery, name);
    if (!run) {
        run = xcalloc(1, sizeof(*run));
        run->name = xstrndup(name.data, name.length_bytes);
        HASH_ADD_KEYPTR(hh, delivery->runs, run->name, name.length_bytes, run);
    }
    request->run = run;
    request->previous = run->last;
    request->next = NULL;
    if (run->last)
        run->last->next = request;
    else
        run->first = request;
    run->last = request;
    run->count++;
    delivery->waiting++;
}

static void leave_run(struct delivery *delivery, struct lease_request *request)
{
    struct waiting_run *run = TAKE_PTR(request->run);
    if (!run)
        return;
    if (request->previous)
        request->previous->next = request->next;
    else
        run->first = request->next;
    if (request->next)
        request->next->previous = request->previous;
    else
        run->last = request->previous;
    if (run->trying == request)
        run->trying = NULL;
    delivery->waiting--;
    if (--run->count > 0)
        return;
    HASH_DEL(delivery->runs, run);
    free(run->name);
    free(run);
}

/* --- one request ------------------------------------------------------------------------------------------ */

static void tried(struct store_op *op);
static void time_has_come(void *arg);

static bool is_over(const struct lease_request *request)
{
    return loop_now_us(request->delivery->uses.loop) >= request->until_us;
}

static void set_timer(struct lease_request *request)
{
    loop_timer_set(request->delivery->uses.loop, &request->timer, request->until_us, time_has_come, request);
}

/* False: the queue is full. */
static bool try_it(struct lease_request *request)
{
    struct store_take_lease *take = &request->op.take_lease;
    request->op.kind = STORE_TAKE_LEASE;
    request->op.done = tried;
    request->op.context = request;
    take->partly = !request->exact && is_over(request);
    request->short_by = 0;
    request->busy = store_submit(request->delivery->uses.store, &request->op);
    return request->busy;
}

/* The store's queue is full. */
static void try_later(struct lease_request *request)
{
    struct loop *loop = request->delivery->uses.loop;
    loop_timer_set(loop, &request->timer, loop_now_us(loop) + STORE_RETRY_US, time_has_come, request);
}

/* The first one that could have what it lacked. */
static void pump(struct waiting_run *run)
{
    struct lease_request *request = run->trying ? NULL : run->first;
    while (request && (request->busy || request->left || request->short_by > 0))
        request = request->next;
    if (!request)
        return;
    if (try_it(request))
        run->trying = request;
    else
        try_later(request);
}

static void end(struct lease_request *request)
{
    struct delivery *delivery = request->delivery;
    loop_timer_clear(delivery->uses.loop, &request->timer);
    leave_run(delivery, request);
    request->done(request);
}

/* The time is over, and nothing was ready. */
static void end_empty(struct lease_request *request)
{
    request->op.status = STORE_OK;
    request->op.take_lease.taken = false;
    end(request);
}

/* At the end of the wait, or a while after the store's queue was full. */
static void time_has_come(void *arg)
{
    struct lease_request *request = arg;
    if (request->busy)
        return; /* tried() looks at the clock */
    if (!is_over(request)) {
        set_timer(request);
        pump(request->run);
    } else if (request->exact)
        end_empty(request);
    else if (!try_it(request))
        try_later(request);
}

/* --- what the record said ----------------------------------------------------------------------------------- */

static bool has_key(const struct lease_request *request, struct text key)
{
    return key.data && text_same(request->op.take_lease.key.key, key);
}

/* Others wait for groups that are gone now; a request with the same key is to get the same lease. */
static void note_taken(struct waiting_run *run, const struct lease_request *by)
{
    const struct store_take_lease *took = &by->op.take_lease;
    for (struct lease_request *request = run->first; request; request = request->next)
        if (has_key(request, took->key.key))
            request->short_by = 0;
        else if (!request->busy)
            request->short_by += took->lease.group_count;
}

/* short_by holds, below 0, what became ready while the store had it: perhaps it was seen there. */
static void wait_on(struct lease_request *request)
{
    const struct store_take_lease *take = &request->op.take_lease;
    request->short_by += take->again ? 0 : take->wanted - take->eligible;
    set_timer(request);
    pump(request->run);
}

/* The client is told. Others of its run may have something now: what it left, or the same lease. */
static void end_tried(struct lease_request *request)
{
    struct delivery *delivery = request->delivery;
    const struct store_take_lease *take = &request->op.take_lease;
    struct waiting_run *run = find_run(delivery, take->run);

    if (run && request->op.status == STORE_OK && take->taken)
        note_taken(run, request);
    if (request->op.status == STORE_OK && take->taken)
        delivery_expires(delivery, take->lease.expires_at_us);
    leave_run(delivery, request);
    run = find_run(delivery, take->run);
    if (run)
        pump(run);
    end(request);
}

static bool has_ended(const struct lease_request *request)
{
    const struct store_take_lease *take = &request->op.take_lease;
    if (request->op.status != STORE_OK || take->taken || request->left)
        return true;
    return !take->again && is_over(request) && (take->partly || request->exact);
}

static void tried(struct store_op *op)
{
    struct lease_request *request = op->context;

    request->busy = false;
    if (request->run && request->run->trying == request)
        request->run->trying = NULL;
    if (has_ended(request))
        end_tried(request);
    else if (!op->take_lease.again && !is_over(request))
        wait_on(request);
    else if (!try_it(request))
        try_later(request);
}

/* --- doors --------------------------------------------------------------------------------------------------- */

void waiting_wake(struct delivery *delivery, struct text run_name, size_t groups)
{
    struct waiting_run *run = find_run(delivery, run_name);
    if (!run)
        return;
    for (struct lease_request *request = run->first; request; request = request->next)
        if (groups == SIZE_MAX)
            request->short_by = request->busy ? -request->op.take_lease.wanted : 0;
        else
            request->short_by -= (int64_t)groups;
    pump(run);
}

void waiting_wake_all(struct delivery *delivery)
{
    struct waiting_run *run;
    struct waiting_run *next;
    HASH_ITER(hh, delivery->runs, run, next)
    waiting_wake(delivery, text_of(run->name), SIZE_MAX);
}

bool delivery_ask(struct delivery *delivery, struct lease_request *request)
{
    request->delivery = delivery;
    if (!is_over(request))
        join_run(delivery, request);
    if (try_it(request))
        return true;
    leave_run(delivery, request);
    return false;
}

bool delivery_leave(struct lease_request *request)
{
    request->left = true;
    if (request->busy)
        return false;
    loop_timer_clear(request->delivery->uses.loop, &request->timer);
    leave_run(request->delivery, request);
    return true;
}

size_t delivery_waiting(const struct delivery *delivery, struct text run)
{
    const struct waiting_run *waiting = run.data ? find_run(delivery, run) : NULL;
    return run.data ? (waiting ? waiting->count : 0) : delivery->waiting;
}
