#include "server/batches/closing_private.h"

#include "server/base/ids.h"
#include "server/base/log.h"
#include "server/batches/live.h"
#include "server/batches/observer.h"
#include "server/batches/refill_private.h"
#include "server/batches/unstored.h"

#include <math.h>
#include <string.h>

struct group_job {
    struct job job;
    struct read_again again;
    struct live_batch *live;
    uint32_t first;
    uint32_t count;
    enum store_status status;
    struct objective_group *groups; /* [count] */
    double **advantages;            /* [count][members of the group] */
    double **shaped;
    struct token_runs **tokens; /* [count]; each NULL: its members have one number each */
};

/* Advantages of tokens, of the members of one group. */
struct token_runs {
    size_t count;
    struct store_advantages members[];
};

static void token_runs_destroy(struct token_runs *runs)
{
    for (size_t i = 0; runs && i < runs->count; i++)
        free((struct store_advantage *)(uintptr_t)runs->members[i].runs);
    free(runs);
}

enum store_status live_read_group(const struct live_batch *live, struct store_reader *reader, uint32_t group,
                                  const struct objective_knobs *knobs, bool with_logprobs, json_t *names,
                                  struct group_record *ret_record)
{
    char id[ID_BYTES];
    json_t *wanted = knobs->advantage.estimator == OBJECTIVE_ESTIMATOR_GDPO ? names : NULL;

    *ret_record = (struct group_record){0};
    if (live->unstored) {
        const struct group_spec *spec = &live->spec->groups[group];
        group_record_of_rollouts(unstored_rollouts(live) + live->batch.groups[group].first,
                                 live->batch.groups[group].count,
                                 spec->prompt_ids ? (int64_t)spec->prompt_id_count : -1, knobs, wanted, ret_record);
        return STORE_OK;
    }
    if (!reader)
        return STORE_UNAVAILABLE;
    id_of_group(live->id, group, id);
    return group_record_read(reader, text_of(id), knobs, with_logprobs, names, ret_record);
}

/* --- to the record --- */

struct group_op {
    struct store_errand errand;
    struct live_batch *live;
    uint32_t group;
    char id[ID_BYTES];
    double *advantages;
    double *shaped;
    struct token_runs *tokens;
    struct store_new_group draw;
};

static void group_closed(struct store_op *op)
{
    struct group_op *close = op->context;
    struct live_batch *live = close->live;
    if (store_desk_send_again(&close->errand)) {
        live_tell_not_stored(live, op->status);
        return;
    }
    if (op->status != STORE_OK && op->status != STORE_EXISTS)
        log_event(LOG_LEVEL_ERROR, "a group was refused by the store", "group", close->id, "why", op->message, NULL);
    live_post(live, &(struct batch_event){.kind = EVENT_GROUP_CLOSED, .index = close->group});
    free(close->advantages);
    free(close->shaped);
    token_runs_destroy(close->tokens);
    free(close);
    live_leave(live);
}

/* Takes both arrays, one value for each member, and the runs (NULL: none). */
static void store_group(struct live_batch *live, uint32_t group, const struct objective_group *statistics,
                        double *advantages, double *shaped, struct token_runs *tokens)
{
    struct group_op *close = xcalloc(1, sizeof(*close));
    const struct batch_group *members = &live->batch.groups[group];
    close->errand = (struct store_errand){.loop = live->batches->uses.loop, .store = live->batches->uses.store};
    close->live = live;
    close->group = group;
    close->advantages = advantages;
    close->shaped = shaped;
    close->tokens = tokens;
    id_of_group(live->id, group, close->id);
    if (members->draws) {
        batch_spec_new_group(&live->spec->groups[live->batch.group_count], &close->draw);
        close->draw.drawn = true;
    }
    close->errand.op = (struct store_op){.kind = STORE_CLOSE_GROUP, .done = group_closed, .context = close};
    close->errand.op.close_group = (struct store_close_group){
        .group_id = close->id,
        .n = members->count,
        .advantage = close->advantages,
        .shaped_reward = close->shaped,
        .tokens = tokens ? tokens->members : NULL,
        .reward_mean = statistics->rewarded ? statistics->mean : NAN,
        .reward_std = statistics->rewarded ? statistics->std : NAN,
        .zero_variance = statistics->zero_variance,
        .drop = members->dropped,
        .draw = members->draws ? &close->draw : NULL,
        .draw_index = (int64_t)live->batch.group_count,
    };
    live->jobs++;
    if (!live->unstored) {
        store_desk_send(&close->errand);
        return;
    }
    unstored_close_group(live, group, &close->errand.op.close_group);
    group_closed(&close->errand.op);
}

/* --- on a worker --- */

/* The members of all groups, one behind the other, as one request. */
static struct objective_sequence *gather(const struct group_job *self, const struct group_record *records,
                                         size_t *ret_count)
{
    size_t count = 0;
    for (uint32_t g = 0; g < self->count; g++)
        count += records[g].count;
    struct objective_sequence *sequences = xcalloc(count + 1, sizeof(*sequences));
    size_t at = 0;
    for (uint32_t g = 0; g < self->count; g++)
        for (size_t k = 0; k < records[g].count; k++) {
            sequences[at] = records[g].sequences[k];
            sequences[at].logprobs = (struct objective_values){0};
            sequences[at++].group = g;
        }
    *ret_count = count;
    return sequences;
}

static void hand_out_tokens(struct group_job *self, uint32_t group, int64_t place,
                            const struct objective_sequence *sequence)
{
    const struct batch_group *members = &self->live->batch.groups[self->first + group];
    struct token_runs **runs = &self->tokens[group];

    if (!sequence->advantages || sequence->untrainable || sequence->tokens == 0)
        return;
    if (!*runs) {
        *runs = xcalloc(1, sizeof(**runs) + members->count * sizeof((*runs)->members[0]));
        (*runs)->count = members->count;
    }
    (*runs)->members[place].runs =
        token_advantage_runs(sequence->advantages, sequence->tokens, &(*runs)->members[place].count);
}

/* A member's place is its sample's; what has no row keeps NAN. */
static void hand_out(struct group_job *self, const struct group_record *records,
                     const struct objective_sequence *sequences)
{
    size_t at = 0;
    for (uint32_t g = 0; g < self->count; g++) {
        const struct batch_group *members = &self->live->batch.groups[self->first + g];
        int64_t first_index = self->live->spec->groups[self->first + g].first_sample_index;
        for (size_t k = 0; k < records[g].count; k++, at++) {
            int64_t place = records[g].sample_index[k] - first_index;
            if (place < 0 || place >= members->count || isnan(records[g].sequences[k].reward))
                continue;
            self->advantages[g][place] = sequences[at].advantage;
            self->shaped[g][place] = sequences[at].shaped_reward;
            hand_out_tokens(self, g, place, &sequences[at]);
        }
    }
}

static void compute(struct group_job *self, const struct group_record *records)
{
    struct objective_knobs knobs;
    struct objective_error error;
    size_t count;
    _cleanup_free_ struct objective_sequence *sequences = gather(self, records, &count);
    struct objective_request request = {.knobs = &knobs,
                                        .sequences = sequences,
                                        .sequence_count = count,
                                        .groups = self->groups,
                                        .group_count = self->count,
                                        .score_count = GROUP_RECORD_SCORES};

    objective_at_sampling(&self->live->spec->objective, &knobs);
    _cleanup_free_ double *of_tokens = graded_steps_room(&knobs, sequences, count);
    (void)of_tokens; /* the sequences point into it */
    if (objective_advantages(&request, &error) == 0) {
        hand_out(self, records, sequences);
        return;
    }
    log_event(LOG_LEVEL_WARNING, "advantages cannot be computed", "batch", self->live->id, "why", error.message, NULL);
}

static void compute_groups(struct job *job, struct store_reader *reader)
{
    struct group_job *self = (struct group_job *)job;
    struct group_record *records = xcalloc(self->count, sizeof(*records));
    json_t *names = json_object();

    self->status = STORE_OK;
    for (uint32_t g = 0; g < self->count && self->status == STORE_OK; g++)
        if (!self->live->batch.groups[self->first + g].dropped)
            self->status = live_read_group(self->live, reader, self->first + g, &self->live->spec->objective, false,
                                           names, &records[g]);
    if (self->status == STORE_OK)
        compute(self, records);
    for (uint32_t g = 0; g < self->count; g++)
        group_record_finish(&records[g]);
    free(records);
    json_decref(names);
}

/* --- on the loop --- */

static double *no_numbers(uint32_t count)
{
    double *numbers = xcalloc(count + 1, sizeof(*numbers));
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = NAN;
    return numbers;
}

static void groups_computed(struct job *job)
{
    struct group_job *self = (struct group_job *)job;
    struct live_batch *live = self->live;

    if (self->status == STORE_UNAVAILABLE) {
        read_again_later(&self->again, &self->job);
        return;
    }
    if (self->status != STORE_OK)
        log_event(LOG_LEVEL_ERROR, "a group could not be read from the record", "batch", live->id, NULL);
    for (uint32_t g = 0; g < self->count; g++)
        if (live->batch.groups[self->first + g].dropped) {
            free(self->advantages[g]);
            free(self->shaped[g]);
        } else
            store_group(live, self->first + g, &self->groups[g], self->advantages[g], self->shaped[g], self->tokens[g]);
    free(self->tokens);
    free(self->groups);
    free(self->advantages);
    free(self->shaped);
    free(self);
    live_leave(live);
}

static void cannot_be_read(void *arg)
{
    live_tell_held_up(arg, LIVE_NOT_READ);
}

struct read_again live_read_again(struct live_batch *live)
{
    return (struct read_again){.loop = live->batches->uses.loop,
                               .workers = live->batches->uses.workers,
                               .batch = live->id,
                               .failed = cannot_be_read,
                               .arg = live};
}

static void close_by_record(struct live_batch *live, uint32_t first, uint32_t count)
{
    struct group_job *self = xcalloc(1, sizeof(*self));

    self->live = live;
    self->again = live_read_again(live);
    self->first = first;
    self->count = count;
    self->groups = xcalloc(count, sizeof(*self->groups));
    self->advantages = xcalloc(count, sizeof(*self->advantages));
    self->shaped = xcalloc(count, sizeof(*self->shaped));
    self->tokens = xcalloc(count, sizeof(struct token_runs *));
    for (uint32_t g = 0; g < count; g++) {
        self->groups[g] = (struct objective_group){.mean = NAN, .std = NAN};
        self->advantages[g] = no_numbers(live->batch.groups[first + g].count);
        self->shaped[g] = no_numbers(live->batch.groups[first + g].count);
    }
    self->job.lane = LANE_BATCH;
    self->job.run = compute_groups;
    self->job.done = groups_computed;
    live->jobs++;
    workers_submit_reserved(live->batches->uses.workers, &self->job);
}

/* --- by the rewards alone --- */

/* Groups [first, first + count) whose advantages follow from their rewards alone. */
static void close_by_rewards(struct live_batch *live, uint32_t first, uint32_t count)
{
    const struct batch_group *last = &live->batch.groups[first + count - 1];
    uint32_t begin = live->batch.groups[first].first;
    size_t members = last->first + last->count - begin;
    _cleanup_free_ struct objective_sequence *sequences = xcalloc(members + 1, sizeof(*sequences));
    _cleanup_free_ struct objective_group *groups = xcalloc(count, sizeof(*groups));
    struct objective_knobs knobs;
    struct objective_error error;

    for (size_t i = 0; i < members; i++) {
        uint32_t group = live->batch.rollouts[begin + i].group;
        sequences[i] = (struct objective_sequence){
            .group = group - first, .reward = live->rewards[begin + i], .rewarded = !isnan(live->rewards[begin + i])};
        if (live->batch.groups[group].dropped) {
            sequences[i].reward = NAN;
            sequences[i].rewarded = false;
        }
    }
    objective_at_sampling(&live->spec->objective, &knobs);
    struct objective_request request = {
        .knobs = &knobs, .sequences = sequences, .sequence_count = members, .groups = groups, .group_count = count};
    bool computed = objective_advantages(&request, &error) == 0;
    for (uint32_t g = 0; g < count; g++) {
        const struct batch_group *group = &live->batch.groups[first + g];
        if (group->dropped)
            continue;
        double *advantages = xcalloc(group->count + 1, sizeof(double));
        double *shaped = xcalloc(group->count + 1, sizeof(double));
        for (uint32_t i = 0; i < group->count; i++) {
            advantages[i] = computed ? sequences[group->first - begin + i].advantage : NAN;
            shaped[i] = live->rewards[group->first + i];
        }
        store_group(live, first + g, &groups[g], advantages, shaped, NULL);
    }
}

static void close_groups(struct live_batch *live, uint32_t first, uint32_t count)
{
    if (group_record_is_needed(&live->spec->objective))
        close_by_record(live, first, count);
    else
        close_by_rewards(live, first, count);
}

void live_close_whole(struct live_batch *live)
{
    size_t kept = live->batch.group_count - live->batch.dropped_groups;
    if (objective_needs_whole_batch(&live->spec->objective) && kept > 0 && live->groups_ready == kept)
        close_groups(live, 0, (uint32_t)live->batch.group_count);
}

void live_close_group(struct live_batch *live, uint32_t group)
{
    if (!objective_needs_whole_batch(&live->spec->objective)) {
        close_groups(live, group, 1);
        return;
    }
    live->groups_ready++;
    live_close_whole(live);
}

/* --- dropped --- */

void live_drop_group(struct live_batch *live, uint32_t group)
{
    uint32_t count = live->batch.groups[group].count;
    struct objective_group statistics;

    refill_describe_group(live, group, &statistics);
    store_group(live, group, &statistics, no_numbers(count), no_numbers(count), NULL);
}
