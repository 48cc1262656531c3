#include "server/batches/gather_private.h"

#include "server/base/cleanup.h"
#include "server/base/ids.h"
#include "server/batches/flight_private.h"
#include "server/batches/live.h"
#include "server/batches/runs.h"
#include "server/batches/verification_private.h"
#include "server/runtime/metrics.h"
#include "server/settings/settings.h"
#include "server/verify/spec.h"

#include <stdio.h>
#include <string.h>

#define MEMBERS_MAX_BYTES ((size_t)256 << 20)

/* One verifier's question about the whole group. */
struct asked_group {
    struct job job; /* first: builds the frame, reads the verdicts */
    struct live_batch *live;
    struct gather *gather; /* NULL: dropped while a worker has it */
    uint32_t group;
    size_t verifier; /* its place in the group's list */
    struct verifier_list *list;
    struct verify_job verify;
    char id[ID_BYTES];
    struct buffer members;
    struct buffer frame;
    bool too_large;
    bool on_worker, asked, over;
    struct verdict_set verdicts; /* one for each member, when it is over */
};

struct gather {
    struct live_batch *live;
    uint32_t group;
    size_t waiting; /* members */
    size_t count, left;
    struct asked_group **questions; /* NULL: not asked yet */
};

static const struct batch_group *group_of(const struct gather *gather)
{
    return &gather->live->batch.groups[gather->group];
}

static struct verification *waiting_member(const struct gather *gather, uint32_t place)
{
    struct verification *verification = gather->live->flights[group_of(gather)->first + place].verification;

    return verification && verification->gathers ? verification : NULL;
}

/* --- life ------------------------------------------------------------------------------------------------------ */

static void question_destroy(struct asked_group *question)
{
    if (question->over)
        verdict_set_finish(&question->verdicts);
    verify_job_finish(&question->verify);
    buffer_finish(&question->members);
    buffer_finish(&question->frame);
    verifier_list_unref(question->list);
    live_leave(question->live);
    free(question);
}

static void question_drop(struct asked_group *question)
{
    question->gather = NULL;
    if (question->on_worker) /* is_back() ends it */
        return;
    if (question->asked)
        verify_cancel_job(question->live->batches->uses.verify_pool, &question->verify);
    question_destroy(question);
}

static void gather_destroy(struct gather *gather)
{
    gather->live->gathers[gather->group] = NULL;
    for (size_t i = 0; i < gather->count; i++)
        question_drop(gather->questions[i]);
    free(gather->questions);
    free(gather);
}

void gather_leave(struct live_batch *live, uint32_t rollout)
{
    struct gather *gather = live->gathers[live->batch.rollouts[rollout].group];

    live->flights[rollout].verification->gathers = false;
    if (--gather->waiting == 0)
        gather_destroy(gather);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* The verdicts on one member, by the place of their verifiers. */
static void tell_member(const struct gather *gather, uint32_t place, struct verification *verification)
{
    verification->told =
        xcalloc(live_group(gather->live, verification->rollout)->verifiers->count, sizeof verification->told[0]);
    for (size_t i = 0; i < gather->count; i++) {
        struct verdict_record *from = &gather->questions[i]->verdicts.verdicts[place];
        verification->told[gather->questions[i]->verifier] = *from;
        from->detail_json = NULL;
    }
}

static void tell_all(struct gather *gather)
{
    struct live_batch *live = gather->live;
    uint32_t first = group_of(gather)->first;
    uint32_t count = group_of(gather)->count;
    _cleanup_free_ struct verification **members = xcalloc(count, sizeof(struct verification *));

    for (uint32_t i = 0; i < count; i++) {
        members[i] = waiting_member(gather, i);
        if (members[i])
            tell_member(gather, i, members[i]);
    }
    gather_destroy(gather);
    for (uint32_t i = 0; i < count; i++) {
        if (!members[i])
            continue;
        members[i]->gathers = false;
        reservation_take_back(live->batches, &live->flights[first + i].reserved);
        verification_ask(members[i]);
    }
}

/* --- one question --------------------------------------------------------------------------------------------------- */

static void submit(struct asked_group *question, void (*run)(struct job *job, struct store_reader *reader),
                   void (*done)(struct job *job))
{
    question->on_worker = true;
    question->job.lane = LANE_BATCH;
    question->job.run = run;
    question->job.done = done;
    workers_submit_reserved(question->live->batches->uses.workers, &question->job);
}

/* False: it was dropped meanwhile, and is gone. */
static bool is_back(struct asked_group *question)
{
    question->on_worker = false;
    if (question->gather)
        return true;
    question_destroy(question);
    return false;
}

static void verdicts_are_read(struct job *job)
{
    struct asked_group *question = (struct asked_group *)job;

    if (!is_back(question))
        return;
    if (--question->gather->left == 0)
        tell_all(question->gather);
}

/* Worker. */
static void read_verdicts(struct job *job, struct store_reader *reader)
{
    struct asked_group *question = (struct asked_group *)job;

    (void)reader;
    verdict_set_read_members(&question->verify, question->live->batch.groups[question->group].count,
                             &question->verdicts);
    question->over = true;
}

static void verified(struct verify_job *verify)
{
    struct asked_group *question = (struct asked_group *)((char *)verify - offsetof(struct asked_group, verify));

    question->asked = false;
    buffer_finish(&question->frame);
    submit(question, read_verdicts, verdicts_are_read);
}

static void ask(struct asked_group *question)
{
    struct live_batch *live = question->live;
    const struct batches_options *uses = &live->batches->uses;
    struct verify_job *verify = &question->verify;

    verify->frame = question->frame.data;
    verify->frame_bytes = question->frame.length_bytes;
    verify->of_group = true;
    verify->run = live->run->name;
    verify->rollout = question->id;
    verify->request_id = live->request_id[0] ? live->request_id : NULL;
    verify->lane = VERIFY_BULK;
    verify->done = verified;
    verify_job_ask(verify, question->list, uses->settings->verify_timeout_us);
    if (question->too_large) {
        verify_job_fail(verify, "verifier_input_too_large",
                        "the completions of the group are larger than a worker reads");
    } else if (verify_submit(uses->verify_pool, verify)) {
        question->asked = true;
        return;
    } else {
        verify_job_fail(verify, "verifier_unavailable", "the queue of the workers is full");
        metric_add(METRIC_QUEUE_REFUSALS, METRIC_QUEUE_VERIFY, 1);
    }
    submit(question, read_verdicts, verdicts_are_read);
}

static void frame_is_built(struct job *job)
{
    struct asked_group *question = (struct asked_group *)job;

    if (is_back(question))
        ask(question);
}

/* Worker. */
static void build_frame(struct job *job, struct store_reader *reader)
{
    struct asked_group *question = (struct asked_group *)job;
    const struct group_spec *group = &question->live->spec->groups[question->group];
    struct verify_subject subject = {.completion = TEXT_LITERAL(""),
                                     .prompt = group->prompt,
                                     .reference_json = group->reference_json,
                                     .completion_tokens = -1,
                                     .id = text_of(question->id),
                                     .task = group->task,
                                     .messages_json = group->messages,
                                     .metadata_json = group->metadata_json,
                                     .members_json = buffer_text(&question->members)};

    (void)reader;
    question->too_large =
        question->members.failed || verify_request_build(question->list, &subject, &question->frame) < 0;
    buffer_finish(&question->members);
}

/* A list of this verifier alone, whose parts are those of the group's. */
static struct verifier_list *list_of_one(struct verifier_list *whole, size_t verifier)
{
    struct verifier_list *list = xcalloc(1, sizeof *list + sizeof list->specs[0]);

    list->references = 1;
    list->base = verifier_list_ref(whole);
    list->count = 1;
    list->specs[0] = whole->specs[verifier];
    list->specs[0].of = 0;
    return list;
}

static void write_absent(const struct gather *gather, uint32_t place, struct buffer *out)
{
    const struct live_batch *live = gather->live;
    uint32_t rollout = group_of(gather)->first + place;
    bool judged = live->batch.rollouts[rollout].end == END_SCORED;
    char group_id[ID_BYTES];
    char id[ID_BYTES];

    id_of_group(live->id, gather->group, group_id);
    id_of_rollout(group_id, live_sample_index(live, rollout), id);
    buffer_append_format(out, "{\"id\":\"%s\",\"failure\":{\"code\":\"%s\"}}", id,
                         judged ? "judged_before" : "not_sampled");
}

static void write_members(const struct gather *gather, struct buffer *out)
{
    for (uint32_t i = 0; i < group_of(gather)->count; i++) {
        const struct verification *verification = waiting_member(gather, i);
        buffer_append_byte(out, i ? ',' : '[');
        if (verification)
            buffer_append(out, verification->member.data, verification->member.length_bytes);
        else
            write_absent(gather, i, out);
    }
    buffer_append_byte(out, ']');
}

static struct asked_group *question_create(struct gather *gather, struct verifier_list *list, size_t verifier)
{
    struct asked_group *question = xcalloc(1, sizeof *question);

    question->live = gather->live;
    question->gather = gather;
    question->group = gather->group;
    question->verifier = verifier;
    question->list = list_of_one(list, verifier);
    id_of_group(gather->live->id, gather->group, question->id);
    buffer_init(&question->members, MEMBERS_MAX_BYTES);
    buffer_init(&question->frame, MEMBERS_MAX_BYTES);
    write_members(gather, &question->members);
    gather->live->jobs++;
    return question;
}

/* --- all members ---------------------------------------------------------------------------------------------------- */

static void begin(struct gather *gather)
{
    struct verifier_list *list = gather->live->spec->groups[gather->group].verifiers;

    gather->questions = xcalloc(list->count, sizeof(struct asked_group *));
    for (size_t i = 0; i < list->count; i++)
        if (list->specs[i].of_group)
            gather->questions[gather->count++] = question_create(gather, list, i);
    gather->left = gather->count;
    for (uint32_t i = 0; i < group_of(gather)->count; i++)
        if (waiting_member(gather, i))
            buffer_finish(&waiting_member(gather, i)->member);
    for (size_t i = 0; i < gather->count; i++)
        submit(gather->questions[i], build_frame, frame_is_built);
}

void gather_look(struct live_batch *live, uint32_t group)
{
    struct gather *gather = live->gathers ? live->gathers[group] : NULL;
    const struct batch_group *members = &live->batch.groups[group];

    if (!gather || gather->questions)
        return;
    for (uint32_t i = 0; i < members->count; i++)
        if (live->batch.rollouts[members->first + i].phase < PHASE_VERIFYING)
            return;
    begin(gather);
}

void gather_join(struct live_batch *live, uint32_t rollout)
{
    uint32_t group = live->batch.rollouts[rollout].group;

    if (!live->gathers)
        live->gathers = xcalloc(live->spec->group_count, sizeof(struct gather *));
    if (!live->gathers[group]) {
        live->gathers[group] = xcalloc(1, sizeof(struct gather));
        *live->gathers[group] = (struct gather){.live = live, .group = group};
    }
    live->gathers[group]->waiting++;
    live->flights[rollout].verification->gathers = true;
    reservation_lend(live->batches, &live->flights[rollout].reserved);
}
