/* The end of a batch, computed on a worker from the record: totals, loss at ratio 1, summary, notes. */
#include "server/batches/closing_private.h"

#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/base/log.h"
#include "server/batches/live.h"
#include "server/batches/observer.h"
#include "server/batches/refill_private.h"
#include "server/batches/unstored.h"
#include "server/runtime/metrics.h"
#include "server/spec/pass_at.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

#define JSON_MAX_BYTES ((size_t)16 << 20)
#define NAMES_MAX 64

/* Failures by code, held-out means by verifier: few names, counted in order of appearance. */
struct tally {
    char name[64];
    double sum;
    size_t count;
};

struct tallies {
    struct tally rows[NAMES_MAX];
    size_t count;
};

static void tally_add(struct tallies *tallies, struct text name, double value, size_t weight)
{
    size_t i = 0;
    while (i < tallies->count && !text_equals(name, tallies->rows[i].name))
        i++;
    if (i == NAMES_MAX)
        return;
    if (i == tallies->count)
        snprintf(tallies->rows[tallies->count++].name, sizeof(tallies->rows[0].name), "%.*s",
                 (int)(name.length_bytes < 63 ? name.length_bytes : 63), name.data);
    tallies->rows[i].sum += value;
    tallies->rows[i].count += weight;
}

struct closing {
    const struct batch *batch;
    struct store_members members;
    struct objective_sequence *sequences;
    struct objective_group *groups;
    struct objective_result result;
    struct tallies failures;
    struct tallies heldout;
    double reward_sum;
    size_t rewarded;
    size_t scored;
    size_t failed;
    size_t cancelled;
    int64_t completion_tokens;
    unsigned left_out;
    size_t untrainable;
    size_t without_advantage;
    bool evaluated;
    struct objective_error error;
    struct pass_tally *pass; /* NULL: not asked for */
    struct verdict_tally *verdicts;
    bool has_verdicts;
    struct close_revisions revisions;
};

static void closing_finish(struct closing *closing)
{
    pass_tally_destroy(closing->pass);
    verdict_tally_destroy(closing->verdicts);
    store_members_finish(&closing->members);
    free(closing->sequences);
    free(closing->groups);
}

static void count_heldout(struct closing *closing, const struct store_member *member)
{
    if (!member->heldout.data || member->heldout.length_bytes <= 2)
        return;
    json_auto_t *scores = json_loadb(member->heldout.data, member->heldout.length_bytes, JSON_ALLOW_NUL, NULL);
    const char *id;
    json_t *entry;
    json_object_foreach (scores, id, entry) {
        const json_t *score = json_object_get(entry, "score");
        tally_add(&closing->heldout, text_of(id), json_is_number(score) ? json_number_value(score) : 0,
                  json_is_number(score));
    }
}

static void count_member(struct closing *closing, const struct store_member *member)
{
    closing->completion_tokens += member->completion_tokens;
    closing->scored += member->state == STORE_ROLLOUT_SCORED;
    closing->failed += member->state == STORE_ROLLOUT_FAILED;
    closing->cancelled += member->state == STORE_ROLLOUT_CANCELLED;
    if (!isnan(member->reward)) {
        closing->reward_sum += member->reward;
        closing->rewarded++;
    }
    if (member->failure_code.data)
        tally_add(&closing->failures, member->failure_code, 0, 1);
    closing->has_verdicts = closing->has_verdicts || member->heldout.data;
    count_heldout(closing, member);
}

static void fill_sequence(struct closing *closing, size_t index)
{
    const struct store_member *member = &closing->members.members[index];
    bool dropped = closing->batch->groups[member->group_index].dropped;
    closing->untrainable += !isnan(member->advantage) && !member->trainable;
    closing->without_advantage += !isnan(member->reward) && isnan(member->advantage) && !dropped;
    closing->sequences[index] = (struct objective_sequence){
        .group = (size_t)member->group_index,
        .reward = member->reward,
        .shaped_reward = member->shaped_reward,
        .rewarded = !isnan(member->advantage),
        .untrainable = !member->trainable,
        .tokens = (size_t)member->trainable_tokens,
        .finish_reason =
            text_equals(member->finish_reason, "length") ? OBJECTIVE_FINISH_LENGTH : OBJECTIVE_FINISH_OTHER,
        .length = member->completion_tokens,
        .advantage = member->advantage,
    };
}

static void evaluate_members(struct closing *closing, const struct objective_knobs *knobs)
{
    struct objective_request request = {.knobs = knobs,
                                        .sequences = closing->sequences,
                                        .sequence_count = closing->members.count,
                                        .groups = closing->groups,
                                        .group_count = closing->batch->group_count,
                                        .advantages_given = true,
                                        .shaped_given = true};
    closing->evaluated = objective_evaluate(&request, &closing->result, &closing->error) == 0;
}

/* A loss that reads log-probabilities, or advantages of tokens: group by group, so that the arrays of one group are in memory at a time. The
 * counts are known from the members. */
static enum store_status evaluate_groups(struct closing *closing, const struct close_job *close,
                                         const struct objective_knobs *knobs, struct store_reader *reader)
{
    double loss = 0;

    for (uint32_t g = 0; g < closing->batch->group_count; g++) {
        _cleanup_(group_record_finish) struct group_record record = {0};
        struct objective_result result;
        if (closing->batch->groups[g].dropped)
            continue;
        enum store_status status = live_read_group(close->live, reader, g, knobs, true, NULL, &record);
        if (status != STORE_OK)
            return status;
        group_record_reward_by_advantage(&record);
        if (objective_sampled_terms(knobs, &closing->result.totals, record.count, record.sequences, &result) < 0) {
            closing->evaluated = false;
            closing->error.message = "the loss of a group is beyond double";
            return STORE_OK;
        }
        loss += isnan(result.loss) ? 0 : result.loss;
    }
    if (!isnan(closing->result.loss))
        closing->result.loss = loss;
    return STORE_OK;
}

static enum store_status evaluate(struct closing *closing, const struct close_job *close, struct store_reader *reader)
{
    const struct batch_spec *spec = close->spec;
    struct objective_knobs knobs;
    struct objective_knobs counting;

    closing->left_out = objective_at_sampling(&spec->objective, &knobs);
    closing->sequences = xcalloc(closing->members.count + 1, sizeof(struct objective_sequence));
    closing->groups = xcalloc(closing->batch->group_count + 1, sizeof(struct objective_group));
    for (size_t i = 0; i < closing->members.count; i++) {
        count_member(closing, &closing->members.members[i]);
        fill_sequence(closing, i);
    }
    counting = knobs;
    bool by_token = objective_loss_reads_logprobs(&knobs) || knobs.advantage.estimator == OBJECTIVE_ESTIMATOR_PROCESS;
    if (by_token)
        counting.loss.kind = OBJECTIVE_LOSS_IMPORTANCE_SAMPLING;
    evaluate_members(closing, &counting);
    if (!closing->evaluated || !by_token)
        return STORE_OK;
    return evaluate_groups(closing, close, &knobs, reader);
}

static void count_group(struct closing *closing, struct text task, const struct store_rollout *rollouts, size_t count)
{
    if (closing->pass)
        pass_tally_add(closing->pass, task, rollouts, count);
    verdict_tally_add(closing->verdicts, rollouts, count);
}

/* pass@k and what each verifier said: group by group, so that the verdicts of one group are in memory at a time. */
static enum store_status count_verdicts(struct closing *closing, const struct close_job *close,
                                        struct store_reader *reader)
{
    const struct batch_spec *spec = close->spec;
    char id[ID_BYTES];

    closing->verdicts = verdict_tally_create();
    if (spec->pass.count > 0)
        closing->pass = pass_tally_create(&spec->pass, closing->batch->group_count);
    for (uint32_t g = 0; (closing->pass || closing->has_verdicts) && g < closing->batch->group_count; g++) {
        const struct batch_group *members = &close->live->batch.groups[g];
        struct store_group group;
        if (close->live->unstored) {
            count_group(closing, spec->groups[g].task, unstored_rollouts(close->live) + members->first, members->count);
            continue;
        }
        id_of_group(close->batch_id, g, id);
        enum store_status status = store_read_group(reader, text_of(id), STORE_WITH_VERDICTS, &group);
        if (status == STORE_OK)
            count_group(closing, spec->groups[g].task, group.rollouts, group.rollout_count);
        store_group_finish(&group);
        if (status != STORE_OK)
            return status;
    }
    return STORE_OK;
}

/* A dropped group is in no totals; here it counts by its own statistics. */
static size_t zero_variance_groups(const struct closing *closing, const struct live_batch *live)
{
    size_t zero = 0;
    for (uint32_t g = 0; g < closing->batch->group_count; g++) {
        struct objective_group dropped;
        if (closing->batch->groups[g].dropped)
            refill_describe_group(live, g, &dropped);
        zero += closing->batch->groups[g].dropped ? dropped.zero_variance : closing->groups[g].zero_variance;
    }
    return zero;
}

static void write_ids(struct json_write *json, const char *name, const struct live_batch *live, uint32_t from,
                      bool dropped)
{
    char id[ID_BYTES];
    json_key(json, name);
    json_array_begin(json);
    for (uint32_t g = from; g < live->batch.group_count; g++) {
        if (dropped && !live->batch.groups[g].dropped)
            continue;
        id_of_group(live->id, g, id);
        json_write_string(json, id);
    }
    json_array_end(json);
}

static void write_refill(struct json_write *json, const struct live_batch *live)
{
    json_key(json, "refill");
    json_object_begin(json);
    refill_write(json, &live->spec->refill);
    write_ids(json, "drawn", live, (uint32_t)live->spec->first_group_count, false);
    write_ids(json, "dropped", live, 0, true);
    json_put_int(json, "left", (int64_t)(live->batch.group_room - live->batch.group_count));
    json_object_end(json);
}

static void write_summary(const struct closing *closing, const struct live_batch *live, struct buffer *out)
{
    struct json_write json;
    json_write_init(&json, out);
    json_object_begin(&json);
    json_put_int(&json, "groups", (int64_t)closing->batch->group_count);
    json_put_int(&json, "rollouts", (int64_t)closing->batch->rollout_count);
    json_put_int(&json, "scored", (int64_t)closing->scored);
    json_put_int(&json, "failed", (int64_t)closing->failed);
    json_put_int(&json, "cancelled", (int64_t)closing->cancelled);
    json_put_int(&json, "zero_variance_groups", (int64_t)zero_variance_groups(closing, live));
    json_put_double(&json, "reward_mean", closing->rewarded ? closing->reward_sum / (double)closing->rewarded : NAN);
    json_put_int(&json, "completion_tokens", closing->completion_tokens);
    json_key(&json, "failures");
    json_object_begin(&json);
    for (size_t i = 0; i < closing->failures.count; i++)
        json_put_int(&json, closing->failures.rows[i].name, (int64_t)closing->failures.rows[i].count);
    json_object_end(&json);
    json_key(&json, "heldout");
    json_object_begin(&json);
    for (size_t i = 0; i < closing->heldout.count; i++) {
        const struct tally *row = &closing->heldout.rows[i];
        json_key(&json, row->name);
        json_object_begin(&json);
        json_put_double(&json, "mean", row->count ? row->sum / (double)row->count : NAN);
        json_put_int(&json, "scored", (int64_t)row->count);
        json_object_end(&json);
    }
    json_object_end(&json);
    verdict_tally_write(closing->verdicts, &json);
    if (closing->pass)
        pass_tally_write(closing->pass, &json);
    if (live->spec->refill.wanted)
        write_refill(&json, live);
    json_object_end(&json);
}

static void note(struct json_write *json, bool applies, const char *text)
{
    if (applies)
        json_write_string(json, text);
}

static void note_count(struct json_write *json, size_t count, const char *text)
{
    char line[256];
    snprintf(line, sizeof(line), "%zu rollouts %s", count, text);
    note(json, count > 0, line);
}

static void note_groups(struct json_write *json, size_t count, const char *text)
{
    char line[256];
    snprintf(line, sizeof(line), "%zu groups %s", count, text);
    note(json, count > 0, line);
}

static void write_left_out(struct json_write *json, unsigned left_out)
{
    note(json, left_out & OBJECTIVE_LEFT_OUT_KL,
         "beta is left out of this loss: there are no reference log-probabilities yet");
    note(json, left_out & OBJECTIVE_LEFT_OUT_IMPORTANCE,
         "importance is left out of this loss: the engine's log-probabilities are the only ones yet");
    note(json, left_out & OBJECTIVE_LEFT_OUT_SELECTION,
         "selection is left out of this loss: its inputs do not exist before the trainer's own pass");
    note(json, left_out & OBJECTIVE_LEFT_OUT_TEACHER,
         "advantage.teacher_coef is left out: there are no teacher log-probabilities yet");
    note(json, left_out & OBJECTIVE_LEFT_OUT_POSITIVE_NLL, "loss.positive_nll is left out of this loss");
}

static bool has_singleton(const struct closing *closing)
{
    for (size_t g = 0; g < closing->batch->group_count; g++)
        if (closing->groups[g].rewarded == 1)
            return true;
    return false;
}

/* Rollouts of groups without messages, for which the batch's template options have no effect. */
static size_t count_untemplated(const struct batch_spec *spec, size_t group_count)
{
    size_t count = 0;
    for (size_t g = 0; sampling_has_template_options(&spec->sampling) && g < group_count; g++)
        count += spec->groups[g].messages.data ? 0 : (size_t)spec->groups[g].n;
    return count;
}

static void write_notes(const struct closing *closing, const struct batch_spec *spec, struct buffer *out)
{
    const struct objective_knobs *knobs = &spec->objective;
    unsigned notes = closing->evaluated ? closing->result.notes : 0;
    struct json_write json;
    json_write_init(&json, out);
    json_array_begin(&json);
    note(&json, knobs->advantage.estimator == OBJECTIVE_ESTIMATOR_GRPO && knobs->advantage.ddof == 0,
         "advantages use the population deviation (ddof 0); TRL and verl use the sample one (ddof 1)");
    note_count(
        &json, closing->failed + closing->cancelled,
        "have no reward and no advantage, because they failed; their groups are normalised over the scored members");
    note_count(&json, closing->untrainable, "have no token ids and are part of no loss");
    note_count(&json, count_untemplated(spec, closing->batch->group_count),
               "have no messages: the batch's sampling.chat_template_kwargs changed nothing for them");
    close_note_logprobs(&json, spec, &closing->members);
    note_count(&json, closing->without_advantage,
               "have a reward and no advantage: shaping or the advantage rule lacks an input, or is beyond double");
    close_note_revisions(&json, &closing->revisions);
    write_left_out(&json, closing->left_out);
    note(&json, has_singleton(closing),
         "a group has one member with a reward: its advantage follows advantage.singleton");
    note(&json, notes & OBJECTIVE_NOTE_FILTERED, "the filter dropped groups: they are in no denominator");
    note(&json, notes & OBJECTIVE_NOTE_ALL_MASKED, "no token is trainable: the loss is 0");
    note(&json, notes & OBJECTIVE_NOTE_NOTHING_SCORED, "no rollout has a reward: there is no loss");
    note(&json, closing->pass && pass_tally_short(closing->pass) > 0,
         "groups with fewer judged members than a k are left out of its pass@k and maj@k");
    note_groups(&json, closing->batch->dropped_groups, "taught nothing by the rule of the refill and were dropped");
    note(&json, !closing->evaluated, closing->error.message);
    json_array_end(&json);
}

static void close_compute(struct job *job, struct store_reader *reader)
{
    struct close_job *close = (struct close_job *)job;
    _cleanup_(closing_finish) struct closing closing = {.batch = &close->live->batch};

    buffer_init(&close->notes, JSON_MAX_BYTES);
    buffer_init(&close->summary, JSON_MAX_BYTES);
    close->status = STORE_UNAVAILABLE;
    if (close->live->unstored) {
        unstored_members(close->live, &closing.members);
        close->status = STORE_OK;
    } else if (reader)
        close->status = store_read_batch_members(reader, text_of(close->batch_id), &closing.members);
    if (close->status != STORE_OK)
        return;
    close->status = evaluate(&closing, close, reader);
    if (close->status == STORE_OK)
        close->status = count_verdicts(&closing, close, reader);
    if (close->status == STORE_OK)
        close->status = close_read_revisions(close->live, reader, &closing.members, &closing.revisions);
    if (close->status != STORE_OK)
        return;
    close->loss = closing.evaluated ? closing.result.loss : NAN;
    close->totals = closing.evaluated ? closing.result.totals : (struct objective_totals){0};
    close->scored = closing.scored;
    write_summary(&closing, close->live, &close->summary);
    write_notes(&closing, close->spec, &close->notes);
}

/* --- on the loop ------------------------------------------------------------------------------------------ */

static void batch_closed(struct store_op *op)
{
    struct close_job *close = op->context;
    struct live_batch *live = close->live;
    struct batches *batches = live->batches;
    if (store_desk_send_again(&close->errand)) {
        live_tell_not_stored(live, op->status);
        return;
    }
    if (op->status != STORE_OK && op->status != STORE_EXISTS)
        log_event(LOG_LEVEL_ERROR, "a batch was refused by the store", "batch", live->id, "why", op->message, NULL);
    batches->without_scored = close->scored > 0 ? 0 : batches->without_scored + 1;
    metric_set(METRIC_BATCHES_WITHOUT_SCORED, 0, (int64_t)batches->without_scored);
    live->scored = close->scored;
    live_post(live, &(struct batch_event){.kind = EVENT_BATCH_CLOSED});
    buffer_finish(&close->notes);
    buffer_finish(&close->summary);
    free(close);
    live_leave(live);
}

/* EVENT_BATCH_CLOSED once it is on disk. Takes the job. */
static void store_batch(struct close_job *close)
{
    struct batches *batches = close->live->batches;
    close->errand = (struct store_errand){.loop = batches->uses.loop, .store = batches->uses.store};
    close->errand.op = (struct store_op){.kind = STORE_CLOSE_BATCH, .done = batch_closed, .context = close};
    close->errand.op.close_batch = (struct store_close_batch){
        .batch_id = close->batch_id,
        .state = close->state,
        .loss = close->loss,
        .total_tokens = (int64_t)close->totals.tokens,
        .total_sequences = (int64_t)close->totals.sequences,
        .total_groups = (int64_t)close->totals.groups,
        .notes = buffer_text(&close->notes),
        .summary = buffer_text(&close->summary),
        .completed_at_us = clock_utc_us(),
    };
    if (close->live->unstored)
        batch_closed(&close->errand.op);
    else
        store_desk_send(&close->errand);
}

static void close_computed(struct job *job)
{
    struct close_job *close = (struct close_job *)job;
    if (close->status == STORE_UNAVAILABLE) {
        read_again_later(&close->again, &close->job);
        return;
    }
    store_batch(close);
}

/* Worker. */
static void close_unstored(struct job *job, struct store_reader *reader)
{
    struct close_job *close = (struct close_job *)job;
    close_compute(job, reader);
    unstored_render(close->live, close);
}

void live_close_batch(struct live_batch *live)
{
    static const enum store_batch_state states[] = {[BATCH_COMPLETE] = STORE_BATCH_COMPLETE,
                                                    [BATCH_CANCELLED] = STORE_BATCH_CANCELLED,
                                                    [BATCH_EXPIRED] = STORE_BATCH_EXPIRED};
    struct close_job *close = xcalloc(1, sizeof(*close));
    close->live = live;
    close->again = live_read_again(live);
    close->spec = live->spec;
    close->state = states[live->batch.outcome];
    snprintf(close->batch_id, sizeof(close->batch_id), "%s", live->id);
    close->job.lane = LANE_BATCH;
    close->job.run = live->unstored ? close_unstored : close_compute;
    close->job.done = close_computed;
    live->jobs++;
    workers_submit_reserved(live->batches->uses.workers, &close->job);
}
