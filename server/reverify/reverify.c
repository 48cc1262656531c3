/* The reverifications that run: a few at a time, and the rest in the order in which they came. */
#include "server/reverify/reverify.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/record/store_desk.h"
#include "server/reverify/page_private.h"
#include "server/runtime/metrics.h"
#include "server/runtime/workers.h"
#include "server/settings/settings.h"

#include <stdio.h>

#define OPEN_MAX 64
#define ACTIVE_MAX 2 /* each has a page in memory */
#define AT_ONCE 32   /* jobs of one of them in the pools */
#define ASKING 64    /* the same, where servers are asked */
#define AGAIN_US (20 * US_PER_MS)
#define READ_AGAIN_US (1 * US_PER_S)

struct reverifying {
    struct job job; /* first: reads a page, makes its rows */
    struct store_errand errand;
    struct reverify *all;
    struct reverifying *next;
    char id[ID_BYTES];
    char *run; /* NUL-terminated, for the pool */
    struct reverify_request *request;
    char place[64]; /* cursor of the page that is read next */
    struct reverify_page page;
    size_t started; /* items of the page */
    size_t running;
    bool unread; /* the record could not be read */
    bool active; /* its turn has come */
    bool on_worker;
    bool in_store; /* the store has its errand, or will */
    bool stopped;  /* its end is on record */
    char why[192]; /* it fails */
    struct loop_timer again;
};

/* Those on record that run, read after a start. */
struct resuming {
    struct job job; /* first */
    struct reverify *all;
    struct loop_timer again;
    struct reverifying *first; /* in their order */
    bool unread;
};

struct reverify {
    struct reverify_uses uses;
    struct reverifying *first;
    size_t count;
    struct resuming resuming;
};

static void look(struct reverify *all);
static void read_next(struct reverifying *self);
static void pump(struct reverifying *self);

/* --- life ---------------------------------------------------------------------------------------------------------- */

static struct reverifying *create(struct reverify *all, const char *id, struct text run,
                                  struct reverify_request *request)
{
    struct reverifying *self = xcalloc(1, sizeof *self);

    self->all = all;
    self->errand.loop = all->uses.loop;
    self->errand.store = all->uses.store;
    self->request = request;
    self->run = xstrndup(run.data, run.length_bytes);
    snprintf(self->id, sizeof self->id, "%s", id);
    return self;
}

static void destroy(struct reverifying *self)
{
    loop_timer_clear(self->all->uses.loop, &self->again);
    store_desk_drop(&self->errand);
    page_finish(&self->page);
    reverify_request_destroy(self->request);
    free(self->run);
    free(self);
}

static struct reverifying **find(struct reverify *all, const char *id)
{
    struct reverifying **link = &all->first;

    while (*link && strcmp((*link)->id, id) != 0)
        link = &(*link)->next;
    return link;
}

static void end(struct reverifying *self)
{
    struct reverify *all = self->all;
    struct reverifying **link = find(all, self->id);

    *link = self->next;
    all->count--;
    destroy(self);
    look(all);
}

static void add(struct reverify *all, struct reverifying *self)
{
    struct reverifying **link = find(all, self->id);

    if (*link) {
        destroy(self);
        return;
    }
    *link = self;
    all->count++;
}

static void fail(struct reverifying *self, const char *code, const char *message);

/* Begins those whose turn it is. */
static void look(struct reverify *all)
{
    size_t active = 0;

    metric_set(METRIC_REVERIFICATIONS_RUNNING, 0, (int64_t)all->count);
    for (struct reverifying *self = all->first; self && active < ACTIVE_MAX; self = self->next) {
        active++;
        if (self->active)
            continue;
        self->active = true;
        if (self->request)
            read_next(self);
        else
            fail(self, "request_unreadable", self->why);
    }
}

/* --- a page ends ---------------------------------------------------------------------------------------------------- */

static void log_end(const struct reverifying *self, const char *how)
{
    log_event(LOG_LEVEL_INFO, how, "reverification", self->id, "run", self->run, NULL);
}

static void recorded(struct store_op *op)
{
    struct reverifying *self = op->context;
    bool is_last = !op->record_judged.place.data;

    if (store_desk_send_again(&self->errand))
        return;
    self->in_store = false;
    if (op->status == STORE_OK)
        metric_add(METRIC_REVERIFIED, 0, (int64_t)self->page.count);
    if (op->status == STORE_OK && is_last)
        log_end(self, "reverification complete");
    snprintf(self->place, sizeof self->place, "%s", self->page.next);
    page_finish(&self->page);
    if (op->status == STORE_OK && !is_last && !self->stopped)
        read_next(self);
    else if (op->status == STORE_REFUSED)
        fail(self, "store_refused", op->message);
    else
        end(self); /* complete, ended meanwhile, or deleted with its run */
}

static void record(struct reverifying *self)
{
    struct store_op *op = &self->errand.op;

    *op = (struct store_op){.kind = STORE_RECORD_JUDGED, .done = recorded, .context = self};
    snprintf(op->record_judged.id, sizeof op->record_judged.id, "%s", self->id);
    op->record_judged.rows = self->page.rows;
    op->record_judged.count = self->page.count;
    op->record_judged.place = self->page.next[0] ? text_of(self->page.next) : TEXT_NONE;
    self->in_store = true;
    store_desk_send(&self->errand);
}

static void failed(struct store_op *op)
{
    struct reverifying *self = op->context;

    if (store_desk_send_again(&self->errand))
        return;
    self->in_store = false;
    end(self);
}

static void fail(struct reverifying *self, const char *code, const char *message)
{
    struct store_op *op = &self->errand.op;

    if (message != self->why)
        snprintf(self->why, sizeof self->why, "%s", message);
    log_event(LOG_LEVEL_ERROR, "reverification failed", "reverification", self->id, "run", self->run, "code", code,
              "why", self->why, NULL);
    *op = (struct store_op){.kind = STORE_END_REVERIFICATION, .done = failed, .context = self};
    snprintf(op->end_reverification.id, sizeof op->end_reverification.id, "%s", self->id);
    op->end_reverification.state = STORE_REVERIFY_FAILED;
    op->end_reverification.failure_code = text_of(code);
    op->end_reverification.failure_message = text_of(self->why);
    self->in_store = true;
    store_desk_send(&self->errand);
}

/* --- workers --------------------------------------------------------------------------------------------------------- */

static void submit_again(void *arg)
{
    struct reverifying *self = arg;

    self->on_worker = workers_submit(self->all->uses.workers, &self->job);
    if (!self->on_worker) /* its lane is full */
        loop_timer_set(self->all->uses.loop, &self->again, clock_monotonic_us() + AGAIN_US, submit_again, self);
}

static void submit(struct reverifying *self, void (*run)(struct job *job, struct store_reader *reader),
                   void (*done)(struct job *job))
{
    self->job.lane = LANE_RECORD;
    self->job.run = run;
    self->job.done = done;
    submit_again(self);
}

/* Worker. */
static void judge_page(struct job *job, struct store_reader *reader)
{
    struct reverifying *self = (struct reverifying *)job;

    (void)reader;
    page_judge(&self->page, self->request->verifiers);
}

static void page_is_judged(struct job *job)
{
    struct reverifying *self = (struct reverifying *)job;

    self->on_worker = false;
    if (self->stopped)
        end(self);
    else
        record(self);
}

/* --- its items ------------------------------------------------------------------------------------------------------- */

static void item_done(struct verify_job *job)
{
    struct reverify_item *item = (struct reverify_item *)job;
    struct reverifying *self = item->owner;

    item->running = false;
    self->running--;
    buffer_finish(&item->frame);
    pump(self);
}

static bool start_item(struct reverifying *self, struct reverify_item *item)
{
    const struct reverify_uses *uses = &self->all->uses;

    item->owner = self;
    item->job.frame = item->frame.data;
    item->job.frame_bytes = item->frame.length_bytes;
    verify_job_ask(&item->job, self->request->verifiers, uses->settings->verify_timeout_us);
    item->job.run = self->run;
    item->job.rollout = item->rollout->id;
    item->job.lane = VERIFY_SPARE;
    item->job.done = item_done;
    item->running = verify_submit(uses->pool, &item->job);
    self->running += item->running;
    return item->running;
}

static void pump_again(void *arg)
{
    pump(arg);
}

static void pump(struct reverifying *self)
{
    size_t most = verifier_list_asks(self->request->verifiers) ? ASKING : AT_ONCE;

    for (; self->started < self->page.count && self->running < most; self->started++) {
        struct reverify_item *item = &self->page.items[self->started];
        if (item->frame.length_bytes == 0 || start_item(self, item)) /* without a frame it has failed */
            continue;
        loop_timer_set(self->all->uses.loop, &self->again, clock_monotonic_us() + AGAIN_US, pump_again, self);
        return;
    }
    if (self->started < self->page.count || self->running > 0 || self->on_worker)
        return;
    loop_timer_clear(self->all->uses.loop, &self->again);
    submit(self, judge_page, page_is_judged);
}

/* --- the next page ----------------------------------------------------------------------------------------------------- */

/* Worker. */
static void read_page(struct job *job, struct store_reader *reader)
{
    struct reverifying *self = (struct reverifying *)job;

    self->unread = !reader || page_read(reader, self->request, self->place, &self->page) < 0;
    if (self->unread)
        page_finish(&self->page);
}

static void read_again(void *arg)
{
    read_next(arg);
}

static void page_is_read(struct job *job)
{
    struct reverifying *self = (struct reverifying *)job;

    self->on_worker = false;
    self->started = 0;
    if (self->stopped)
        end(self);
    else if (self->unread)
        loop_timer_set(self->all->uses.loop, &self->again, clock_monotonic_us() + READ_AGAIN_US, read_again, self);
    else
        pump(self);
}

static void read_next(struct reverifying *self)
{
    submit(self, read_page, page_is_read);
}

/* --- from outside ------------------------------------------------------------------------------------------------------ */

struct reverify *reverify_create(const struct reverify_uses *uses)
{
    struct reverify *all = xcalloc(1, sizeof *all);

    all->uses = *uses;
    all->resuming.all = all;
    return all;
}

void reverify_destroy(struct reverify *all)
{
    if (!all)
        return;
    loop_timer_clear(all->uses.loop, &all->resuming.again);
    while (all->first) {
        struct reverifying *self = all->first;
        all->first = self->next;
        destroy(self);
    }
    while (all->resuming.first) {
        struct reverifying *self = all->resuming.first;
        all->resuming.first = self->next;
        destroy(self);
    }
    free(all);
}

bool reverify_is_full(const struct reverify *all)
{
    return all->count >= OPEN_MAX;
}

bool reverify_at(const struct reverify *all, size_t place, const char **ret_id, const char **ret_run)
{
    const struct reverifying *self = all->first;

    while (self && place-- > 0)
        self = self->next;
    if (!self)
        return false;
    *ret_id = self->id;
    *ret_run = self->run;
    return true;
}

void reverify_begin(struct reverify *all, const char *id, struct reverify_request *request)
{
    request->input.call = NULL;
    add(all, create(all, id, request->filter.run, request));
    look(all);
}

void reverify_stop(struct reverify *all, const char *id)
{
    struct reverifying *self = *find(all, id);

    if (!self)
        return;
    self->stopped = true;
    for (size_t i = 0; i < self->started && self->running > 0; i++)
        if (self->page.items[i].running) {
            verify_cancel_job(all->uses.pool, &self->page.items[i].job);
            self->page.items[i].running = false;
            self->running--;
        }
    if (!self->on_worker && !self->in_store)
        end(self);
}

/* --- after a start ------------------------------------------------------------------------------------------------------ */

/* Says why the recorded request cannot be read now: an external that is gone, for example. */
static void take_refusal(const struct call *call, char ret_why[192])
{
    snprintf(ret_why, 192, "%.100s: %.80s", call->reply.path ? call->reply.path : "request",
             call->reply.message ? call->reply.message : "cannot be read");
}

/* Worker. Reads the recorded request as if it had just come. */
static struct reverifying *read_one(struct reverify *all, struct store_reader *reader,
                                    const struct store_reverification *row)
{
    struct reverify_request *request;
    struct reverifying *self;
    struct call call;

    call_init(&call);
    call.resumed = true;
    call.settings = all->uses.settings;
    call.reader = reader;
    call.request_id = "resume";
    call.content_type = "application/json";
    call.body = xstrndup(row->request.data, row->request.length_bytes);
    call.body_bytes = row->request.length_bytes;
    request = reverify_request_read(&call);
    self = create(all, row->id, row->run, request);
    if (request) {
        request->input.call = NULL;
        request->rollouts = row->rollouts;
        request->last_rollout = row->last_rollout;
        snprintf(self->place, sizeof self->place, "%s", row->place.data ? row->place.data : "");
    } else {
        take_refusal(&call, self->why);
    }
    call_finish(&call);
    return self;
}

/* Worker. */
static void read_running(struct job *job, struct store_reader *reader)
{
    struct resuming *resuming = (struct resuming *)job;
    _cleanup_(store_reverifications_finish) struct store_reverifications found = {0};
    struct reverifying **link = &resuming->first;

    resuming->unread = !reader || store_running_reverifications(reader, &found) != STORE_OK;
    for (size_t i = 0; !resuming->unread && i < found.count; i++) {
        *link = read_one(resuming->all, reader, &found.items[i]);
        link = &(*link)->next;
    }
}

static void resume_later(void *arg)
{
    reverify_resume(arg);
}

static void running_are_read(struct job *job)
{
    struct resuming *resuming = (struct resuming *)job;
    struct reverify *all = resuming->all;

    if (resuming->unread) {
        loop_timer_set(all->uses.loop, &resuming->again, clock_monotonic_us() + READ_AGAIN_US, resume_later, all);
        return;
    }
    while (resuming->first) {
        struct reverifying *self = resuming->first;
        resuming->first = self->next;
        self->next = NULL;
        log_end(self, "reverification resumed");
        add(all, self);
    }
    look(all);
}

void reverify_resume(struct reverify *all)
{
    struct resuming *resuming = &all->resuming;

    resuming->job.lane = LANE_RECORD;
    resuming->job.run = read_running;
    resuming->job.done = running_are_read;
    workers_submit_reserved(all->uses.workers, &resuming->job);
}
