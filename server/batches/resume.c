/* After a start: the unfinished batches of this service continue. Requests are read again by the same code as when they
 * came; rollouts that are on record stay as they are, the others are sampled with the same seeds. */
#include "server/batches/resume.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/batches/live.h"
#include "server/batches/runs.h"
#include "server/batches/unread_private.h"
#include "server/batches/weight_update.h"
#include "server/runtime/workers.h"
#include "server/store/request.h"

#include <math.h>
#include <stdio.h>

#define TRY_AGAIN_US (1 * US_PER_S)

struct resumed_group {
    bool closed;
    bool dropped;
};

struct resumed {
    struct resumed *next;
    struct batch_spec *spec;
    struct store_members members;
    struct resumed_group *groups; /* [group_count], on record */
    size_t group_count;
    double *metrics; /* [member]; of the refill; NULL: there is none */
    char id[ID_BYTES];
    char request_id[REQUEST_ID_BYTES];
    int64_t policy_revision;
    int64_t moved_to_revision; /* -1: it was not */
    int64_t incarnation;
    int64_t run_revision;
    int64_t run_incarnation;
    int64_t created_at_us;
    int64_t deadline_us;
    bool has_key;
};

struct resume_job {
    struct job job;
    struct batches *batches;
    struct resumed *first; /* newest first */
    struct store_runs updating;
    size_t failed;
    bool listed;             /* the record said which batches are unfinished, and which updates are open */
    bool told;               /* the log has that it could not */
    struct loop_timer timer; /* of the next try */
    void (*done)(void *arg);
    void *arg;
};

/* Reads the stored request as if it had just come. */
static struct batch_spec *read_spec(struct store_reader *reader, const struct settings *settings,
                                    const struct store_request *request, const struct resumed *resumed,
                                    bool *ret_readable)
{
    struct call call;
    call_init(&call);
    call.resumed = true;
    call.settings = settings;
    call.reader = reader; /* tasks of sets */
    call.request_id = "resume";
    call.content_type = "application/json";
    call.body = malloc(request->body.length_bytes + 1);
    *ret_readable = true;
    if (!call.body)
        return NULL;
    memcpy(call.body, request->body.data, request->body.length_bytes);
    call.body[request->body.length_bytes] = '\0';
    call.body_bytes = request->body.length_bytes;
    memcpy(call.body_sha256, request->sha256, SHA256_BYTES);
    struct batch_spec *spec = score_brings_completions(request->body) ? score_spec_read(&call) : batch_spec_read(&call);
    if (!spec)
        log_event(LOG_LEVEL_ERROR, "an unfinished batch cannot be read", "batch", resumed->id, "request_id",
                  resumed->request_id[0] ? resumed->request_id : NULL, "why", call.reply.body.data, NULL);
    *ret_readable = call.reply.status != error_rows[ERR_STORE_UNAVAILABLE].status;
    call_finish(&call);
    return spec;
}

static enum store_status read_groups(struct store_reader *reader, struct resumed *resumed)
{
    struct store_groups groups = {0};
    resumed->groups = xcalloc(resumed->spec->group_count, sizeof(*resumed->groups));
    enum store_status status =
        store_read_groups(reader, text_of(resumed->id), 0, resumed->spec->group_count, 0, &groups);
    for (size_t g = 0; status == STORE_OK && g < groups.count && g < resumed->spec->group_count; g++)
        resumed->groups[resumed->group_count++] =
            (struct resumed_group){groups.groups[g].state == STORE_GROUP_COMPLETE, groups.groups[g].dropped};
    store_groups_finish(&groups);
    return status;
}

/* Members of the record are in the order of their groups, and so is `at`. */
static enum store_status read_scores(struct store_reader *reader, struct resumed *resumed, size_t group, size_t *at)
{
    _cleanup_(store_group_finish) struct store_group read = {0};
    char id[ID_BYTES];
    id_of_group(resumed->id, (int64_t)group, id);
    enum store_status status = store_read_group(reader, text_of(id), STORE_WITH_VERDICTS, &read);
    for (size_t i = 0; status == STORE_OK && i < read.rollout_count && *at < resumed->members.count; i++) {
        const struct store_rollout *rollout = &read.rollouts[i];
        resumed->metrics[(*at)++] =
            rollout->state == STORE_ROLLOUT_SCORED
                ? refill_metric(&resumed->spec->refill, rollout->reward, rollout->rewards, rollout->heldout)
                : (double)NAN;
    }
    return status;
}

static enum store_status read_metrics(struct store_reader *reader, struct resumed *resumed)
{
    enum store_status status = STORE_OK;
    size_t at = 0;
    if (!resumed->spec->refill.wanted)
        return STORE_OK;
    resumed->metrics = xcalloc(resumed->members.count + 1, sizeof(double));
    for (size_t g = 0; status == STORE_OK && g < resumed->group_count; g++)
        status = read_scores(reader, resumed, g, &at);
    return status;
}

static enum store_status read_run(struct store_reader *reader, struct text run, struct resumed *resumed)
{
    struct store_run_detail detail = {0};
    enum store_status status = store_read_run(reader, run, &detail);
    bool known = status == STORE_OK;
    resumed->run_revision = known ? detail.run.policy_revision : -1;
    resumed->run_incarnation = known ? detail.run.incarnation : 0;
    store_run_detail_finish(&detail);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* Progress of the batch. Without it work on record would be done again. */
static bool read_progress(struct store_reader *reader, struct text run, struct resumed *resumed)
{
    return read_run(reader, run, resumed) == STORE_OK && read_groups(reader, resumed) == STORE_OK &&
           store_read_batch_members(reader, text_of(resumed->id), &resumed->members) == STORE_OK &&
           read_metrics(reader, resumed) == STORE_OK;
}

static void resumed_destroy(struct resumed *resumed)
{
    store_members_finish(&resumed->members);
    free(resumed->groups);
    free(resumed->metrics);
    free(resumed);
}

/* NULL: the record of it cannot be read; it is left to the next start. */
static struct resumed *read_one(struct store_reader *reader, const struct settings *settings, const char *id)
{
    bool readable = false;
    struct store_request request = {0};
    struct store_batch batch = {0};
    struct resumed *resumed = xcalloc(1, sizeof(*resumed));
    snprintf(resumed->id, sizeof(resumed->id), "%s", id);
    if (store_read_request(reader, text_of(id), &request) == STORE_OK &&
        store_read_batch(reader, text_of(id), &batch) == STORE_OK) {
        resumed->deadline_us = batch.deadline_us;
        snprintf(resumed->request_id, sizeof(resumed->request_id), "%s",
                 batch.request_id.data ? batch.request_id.data : "");
        resumed->spec = read_spec(reader, settings, &request, resumed, &readable);
    }
    if (resumed->spec) {
        resumed->spec->seed = batch.seed;
        if (resumed->spec->refill.wanted) /* of the groups that are still to be drawn */
            batch_spec_make_contents(resumed->spec);
        resumed->policy_revision = batch.policy_revision;
        resumed->moved_to_revision = batch.moved_to_revision;
        resumed->incarnation = batch.incarnation;
        resumed->created_at_us = batch.created_at_us;
        resumed->has_key = batch.idempotency_key.data != NULL;
        readable = read_progress(reader, batch.run, resumed);
    }
    store_request_finish(&request);
    store_batch_finish(&batch);
    if (readable)
        return resumed;
    batch_spec_destroy(resumed->spec);
    resumed_destroy(resumed);
    return NULL;
}

/* Both or nothing: without its open update a run would be sampled while its weights are being changed. */
static bool read_lists(struct store_reader *reader, struct store_batches *ret_batches, struct store_runs *ret_updating)
{
    if (store_unfinished_batches(reader, ret_batches) == STORE_OK &&
        store_read_open_updates(reader, ret_updating) == STORE_OK)
        return true;
    store_runs_finish(ret_updating);
    return false;
}

static void read_unfinished(struct job *job, struct store_reader *reader)
{
    struct resume_job *resume = (struct resume_job *)job;
    _cleanup_(store_batches_finish) struct store_batches batches = {0};
    resume->listed = reader && read_lists(reader, &batches, &resume->updating);
    for (size_t i = 0; resume->listed && i < batches.count; i++) {
        struct resumed *resumed = read_one(reader, resume->batches->uses.settings, batches.batches[i].id);
        if (!resumed) {
            resume->failed++;
            continue;
        }
        resumed->next = resume->first;
        resume->first = resumed;
    }
}

/* A batch whose rollouts were cut short before the service died was cut short, also if nothing is left to be cut. */
static void restore_cut(struct live_batch *live, const struct store_member *member)
{
    if (member->state == STORE_ROLLOUT_CANCELLED)
        batch_restore_cut(&live->batch, BATCH_CANCELLED);
    else if (text_equals(member->failure_code, "deadline") && live->deadline_utc_us <= clock_utc_us())
        batch_restore_cut(&live->batch, BATCH_EXPIRED);
}

static void restore_member(struct live_batch *live, const struct store_member *member, double metric)
{
    if (member->group_index < 0 || (size_t)member->group_index >= live->batch.group_count)
        return;
    const struct batch_group *group = &live->batch.groups[member->group_index];
    int64_t place = member->sample_index - live->spec->groups[member->group_index].first_sample_index;
    if (place < 0 || place >= group->count)
        return;
    live->rewards[group->first + place] = member->reward;
    if (live->metrics)
        live->metrics[group->first + place] = metric;
    if (!live->moved || member->policy_revision == live->sampled_revision)
        live->group_revisions[member->group_index] = member->policy_revision;
    batch_restore_rollout(&live->batch, group->first + (uint32_t)place);
    restore_cut(live, member);
}

static void restore_groups(struct live_batch *live, const struct resumed *resumed)
{
    for (size_t g = live->spec->first_group_count; g < resumed->group_count; g++)
        batch_restore_drawn(&live->batch);
    for (size_t i = 0; i < resumed->members.count; i++)
        restore_member(live, &resumed->members.members[i], resumed->metrics ? resumed->metrics[i] : NAN);
    for (uint32_t g = 0; g < live->batch.group_count && g < resumed->group_count; g++) {
        if (!resumed->groups[g].closed)
            continue;
        batch_restore_group(&live->batch, g);
        if (resumed->groups[g].dropped)
            batch_restore_dropped(&live->batch, g);
        else
            live->groups_ready++;
    }
}

static void go_on(struct batches *batches, struct resumed *resumed)
{
    struct live_batch *live = live_create(batches, resumed->spec, resumed->id, resumed->deadline_us);
    live->policy_revision = resumed->policy_revision;
    live->moved = resumed->moved_to_revision >= 0;
    live->sampled_revision = live->moved ? resumed->moved_to_revision : resumed->policy_revision;
    live->incarnation = resumed->incarnation;
    live->admitted_utc_us = resumed->created_at_us;
    live->has_key = resumed->has_key;
    snprintf(live->request_id, sizeof(live->request_id), "%s", resumed->request_id);
    live->answered_async = true;   /* its waiters died with the last process; it must not be cancelled by new ones */
    if (live->run->revision < 0) { /* nothing newer was declared while the record was read */
        live->run->incarnation = resumed->run_incarnation;
        live->run->revision = resumed->run_revision;
    }
    live->was_current = live->sampled_revision == live->run->revision;
    restore_groups(live, resumed);
    log_event(LOG_LEVEL_INFO, "batch resumed", "batch", live->id, "request_id",
              live->request_id[0] ? live->request_id : NULL, "run", live->run->name, NULL);
    live_start(live);
}

static void submit(void *arg)
{
    struct resume_job *resume = arg;
    workers_submit_reserved(resume->batches->uses.workers, &resume->job);
}

/* A service without this list would forget its batches until the next start. */
static void try_later(struct resume_job *resume)
{
    if (!resume->told)
        log_event(LOG_LEVEL_ERROR, "unfinished batches cannot be listed yet", "why", "the record cannot be read", NULL);
    resume->told = true;
    struct loop *loop = resume->batches->uses.loop;
    loop_timer_set(loop, &resume->timer, loop_now_us(loop) + TRY_AGAIN_US, submit, resume);
}

static struct resumed *take_first(struct resume_job *resume)
{
    struct resumed *first = resume->first;
    if (first)
        resume->first = first->next;
    return first;
}

static void resumed_all(struct job *job)
{
    struct resume_job *resume = (struct resume_job *)job;
    if (!resume->listed) {
        try_later(resume);
        return;
    }
    for (size_t i = 0; i < resume->updating.count; i++)
        update_restore(resume->batches, resume->updating.runs[i].name, &resume->updating.runs[i].update);
    store_runs_finish(&resume->updating);
    for (struct resumed *resumed; (resumed = take_first(resume));) {
        if (resumed->spec)
            go_on(resume->batches, resumed);
        else
            unread_add(resume->batches, resumed->id, resumed->deadline_us);
        resumed_destroy(resumed);
    }
    if (resume->failed > 0)
        log_event(LOG_LEVEL_ERROR, "unfinished batches could not be read back", NULL);
    runs_resumed(resume->batches);
    resume->batches->resuming = NULL;
    resume->done(resume->arg);
    free(resume);
}

void resume_unfinished(struct batches *batches, void (*done)(void *arg), void *arg)
{
    struct resume_job *resume = xcalloc(1, sizeof(*resume));
    resume->batches = batches;
    resume->done = done;
    resume->arg = arg;
    resume->job.lane = LANE_BATCH;
    resume->job.run = read_unfinished;
    resume->job.done = resumed_all;
    batches->resuming = resume;
    submit(resume);
}

void resume_finish(struct batches *batches)
{
    struct resume_job *resume = TAKE_PTR(batches->resuming);
    if (!resume)
        return;
    loop_timer_clear(batches->uses.loop, &resume->timer);
    store_runs_finish(&resume->updating);
    for (struct resumed *resumed; (resumed = take_first(resume));) {
        batch_spec_destroy(resumed->spec);
        resumed_destroy(resumed);
    }
    free(resume);
}
