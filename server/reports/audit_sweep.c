/* Rewards and advantages of one part by each weight, and what they pay for. */
#include "server/reports/audit_private.h"

#include "server/base/cleanup.h"
#include "server/base/json_write.h"
#include "server/verify/spec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Result of one weight over a part. */
struct working {
    struct audit *audit;
    struct audit_part *part;
    struct audit_row *row;
    double *recorded; /* [member_count] rewards by the recorded weights */
    double *changed;  /* [member_count] by the row's */
    double *rewards;  /* one of the two */
    double *scores;   /* gdpo: [member_count][2 * name_count], scores and weights; else NULL */
    struct objective_group *groups;
    struct order_scratch *order; /* [2 * members of the largest group] */
    double *pairs;               /* [2 * members of the largest group] */
};

/* --- rewards --- */

static bool is_swept(const struct working *working, const struct audit_score *score)
{
    return score->name == working->audit->swept && !isnan(working->row->weight);
}

static bool is_rewarded(const struct working *working, const struct audit_score *score)
{
    return score->is_reward || is_swept(working, score);
}

static double weight_of(const struct working *working, const struct audit_score *score)
{
    return is_swept(working, score) ? working->row->weight : score->weight;
}

/* NAN: a score that counts is missing, or all are. */
static double reward_of(const struct working *working, const struct audit_member *member)
{
    const struct audit_score *scores = working->part->scores + member->first_score;
    struct reward_sum sum = {0};
    size_t known = 0;

    for (size_t k = 0; k < member->score_count && !member->failed; k++) {
        if (!is_rewarded(working, &scores[k]))
            continue;
        known += !isnan(scores[k].score);
        reward_sum_add(&sum, scores[k].score, weight_of(working, &scores[k]), scores[k].gate);
    }
    if (isnan(sum.value) && !sum.shut) /* infinities of both signs: no score is missing */
        return INFINITY;
    bool skip = working->part->knobs.advantage.missing == OBJECTIVE_MISSING_SKIP;
    return known ? reward_sum_value(&sum, skip ? REWARD_MISSING_SKIP : REWARD_MISSING_NULL) : NAN;
}

/* gdpo normalises each score by itself. */
static void lay_out_scores(const struct working *working, size_t index)
{
    const struct audit_member *member = &working->part->members[index];
    const struct audit_score *scores = working->part->scores + member->first_score;
    size_t names = working->audit->name_count;
    double *values = working->scores + index * 2 * names;

    for (size_t k = 0; k < names; k++) {
        values[k] = NAN;
        values[names + k] = 0;
    }
    for (size_t k = 0; k < member->score_count; k++) {
        if (!is_rewarded(working, &scores[k]))
            continue;
        values[scores[k].name] = scores[k].score;
        values[names + scores[k].name] = weight_of(working, &scores[k]);
    }
    working->part->sequences[index].scores = values;
    working->part->sequences[index].weights_of_scores = values + names;
}

/* --- refusals --- */

static void path_of_member(const struct working *working, size_t index, const char *field, char ret_path[PATH_BYTES])
{
    const struct audit_member *member = &working->part->members[index];
    char group[PATH_BYTES];

    if (working->part->groups[member->group].id[0]) {
        snprintf(ret_path, PATH_BYTES, "%s", isnan(working->row->weight) ? "run" : "sweep.weights");
        return;
    }
    path_index(group, "", "groups", member->group);
    path_index(ret_path, group, "completions", index - working->part->groups[member->group].first);
    path_join(ret_path, ret_path, field);
}

static int refuse_overflow(const struct working *working, size_t index)
{
    char path[PATH_BYTES];

    path_of_member(working, index, "scores", path);
    if (isnan(working->row->weight))
        return call_refuse(working->audit->call, ERR_NON_FINITE, path,
                           "the reward by the recorded weights is beyond double");
    return call_refuse(working->audit->call, ERR_NON_FINITE, path, "the reward by the weight %g is beyond double",
                       working->row->weight);
}

static int refuse_objective(const struct working *working, const struct objective_error *error)
{
    char path[PATH_BYTES] = "objective";
    bool is_input = error->code == OBJECTIVE_ERROR_NON_FINITE;

    if (error->code == OBJECTIVE_ERROR_MEMORY)
        return audit_refuse_memory(working->audit);
    if (error->sequence != SIZE_MAX)
        path_of_member(working, error->sequence, strcmp(error->field, "reward") == 0 ? "scores" : error->field, path);
    return call_refuse(working->audit->call, is_input ? ERR_NON_FINITE : ERR_OBJECTIVE_OPTIONS, path, "%s",
                       error->message);
}

/* --- advantages --- */

/* At the recorded weights: a reward that the record does not have is none. */
static void compare_with_record(struct working *working, size_t index)
{
    double recorded = working->part->sequences[index].reward;

    if (!working->part->groups[working->part->members[index].group].id[0] || recorded == working->rewards[index] ||
        (isnan(recorded) && isnan(working->rewards[index])))
        return;
    working->audit->contradicted += working->part->members[index].counted;
    if (isnan(recorded))
        working->rewards[index] = NAN;
}

static int find_rewards(struct working *working)
{
    for (size_t i = 0; i < working->part->member_count; i++) {
        working->rewards[i] = reward_of(working, &working->part->members[i]);
        if (isnan(working->row->weight))
            compare_with_record(working, i);
        if (isinf(working->rewards[i]))
            return refuse_overflow(working, i);
        working->part->sequences[i].reward = working->rewards[i];
        working->part->sequences[i].rewarded = !isnan(working->rewards[i]);
        if (working->scores)
            lay_out_scores(working, i);
    }
    return 0;
}

static int find_advantages(struct working *working)
{
    struct audit_part *part = working->part;
    struct objective_error error;
    struct objective_request request = {.knobs = &part->knobs,
                                        .sequences = part->sequences,
                                        .sequence_count = part->member_count,
                                        .groups = working->groups,
                                        .group_count = part->group_count,
                                        .score_count = working->scores ? working->audit->name_count : 0};

    memset(working->groups, 0, part->group_count * sizeof *working->groups);
    return objective_advantages(&request, &error) < 0 ? refuse_objective(working, &error) : 0;
}

/* --- what is paid --- */

static double score_named(const struct working *working, const struct audit_member *member, uint32_t name)
{
    const struct audit_score *scores = working->part->scores + member->first_score;

    for (size_t k = 0; k < member->score_count; k++)
        if (scores[k].name == name)
            return scores[k].score;
    return NAN;
}

static void list_promoted(struct working *working, size_t index)
{
    const struct audit_member *member = &working->part->members[index];
    const struct audit_group *group = &working->part->groups[member->group];
    const struct audit_score *scores = working->part->scores + member->first_score;
    struct json_write json;
    char id[ID_BYTES];

    if (working->row->listed++ > 0)
        buffer_append_byte(&working->row->promoted, ',');
    json_write_init(&json, &working->row->promoted);
    json_object_begin(&json);
    if (group->id[0]) {
        id_of_rollout(group->id, member->sample_index, id);
        json_put_string(&json, "rollout", id);
    } else {
        json_put_text(&json, "id", member->id);
    }
    json_put_text(&json, "task", group->task);
    json_put_double(&json, "advantage", working->part->sequences[index].advantage);
    json_put_double(&json, "reward", working->rewards[index]);
    json_key(&json, "scores");
    json_object_begin(&json);
    for (size_t k = 0; k < member->score_count; k++)
        json_put_double(&json, working->audit->names[scores[k].name], scores[k].score);
    json_object_end(&json);
    json_object_end(&json);
}

/* A group that the objective's filter drops is not trained on. */
static void weigh_member(struct working *working, size_t index)
{
    const struct objective_sequence *sequence = &working->part->sequences[index];
    double truth = score_named(working, &working->part->members[index], working->audit->truth);

    if (isnan(truth) || isnan(working->rewards[index]) || !sequence->kept)
        return;
    bool right = truth >= working->audit->fields.threshold;
    working->row->demoted_right += right && sequence->advantage < 0;
    if (right || !(sequence->advantage > 0))
        return;
    working->row->promoted_wrong++;
    if (working->row->listed < AUDIT_LISTED_MAX && working->row->promoted.length_bytes < AUDIT_LISTED_BYTES)
        list_promoted(working, index);
}

static void count_changes(struct working *working, const struct audit_group *group)
{
    double *before = working->pairs;
    double *after = working->pairs + group->count;

    for (size_t k = 0; k < group->count; k++) {
        bool counted = working->part->members[group->first + k].counted;
        before[k] = counted ? working->recorded[group->first + k] : NAN;
        after[k] = counted ? working->rewards[group->first + k] : NAN;
    }
    working->row->rank_changes += order_changes(group->count, before, after, working->order);
}

static void note_members(struct working *working)
{
    struct audit *audit = working->audit;
    size_t at = audit->member_count;

    for (size_t i = 0; i < working->part->member_count; i++) {
        if (!working->part->members[i].counted)
            continue;
        working->row->rewards[at++] = working->rewards[i];
        weigh_member(working, i);
    }
    for (size_t g = 0; working->rewards != working->recorded && g < working->part->group_count; g++)
        count_changes(working, &working->part->groups[g]);
}

static int compute_row(struct working *working)
{
    if (audit_go_on(working->audit) < 0 || find_rewards(working) < 0 || find_advantages(working) < 0)
        return -1;
    note_members(working);
    return 0;
}

/* --- the recorded weights --- */

static void take_weight(struct audit *audit, double weight)
{
    if (isnan(audit->recorded_weight))
        audit->recorded_weight = weight;
    else if (audit->recorded_weight != weight)
        audit->recorded_weight = INFINITY;
}

/* Once a part: the truth, the task and the weight of every member that counts. */
static void take_members(struct working *working)
{
    struct audit *audit = working->audit;
    const struct audit_part *part = working->part;
    size_t at = audit->member_count;

    for (size_t i = 0; i < part->member_count; i++) {
        const struct audit_member *member = &part->members[i];
        if (!member->counted)
            continue;
        audit->truths[at] = score_named(working, member, audit->truth);
        audit->task_of[at++] = part->groups[member->group].task_number;
        for (size_t k = 0; k < member->score_count; k++)
            if (part->scores[member->first_score + k].name == audit->swept)
                take_weight(audit, part->scores[member->first_score + k].weight);
    }
    audit->member_count = at;
    for (size_t g = 0; g < part->group_count; g++) {
        bool counted = false;
        for (size_t k = 0; k < part->groups[g].count && !counted; k++)
            counted = part->members[part->groups[g].first + k].counted;
        audit->group_count += counted;
    }
}

/* --- room --- */

static bool widen(void *array, size_t count, size_t size_bytes)
{
    void *larger = reallocarray(*(void **)array, count, size_bytes);
    if (larger)
        *(void **)array = larger;
    return larger != NULL;
}

static bool make_room(struct audit *audit, size_t more)
{
    size_t wanted = audit->member_count + more;

    if (wanted <= audit->member_room)
        return true;
    wanted = wanted > 2 * audit->member_room ? wanted : 2 * audit->member_room;
    bool made =
        widen(&audit->truths, wanted, sizeof *audit->truths) && widen(&audit->task_of, wanted, sizeof *audit->task_of);
    for (size_t r = 0; made && r < audit->row_count; r++)
        made = widen(&audit->rows[r].rewards, wanted, sizeof(double));
    audit->member_room = made ? wanted : audit->member_room;
    return made;
}

static void finish(struct working *working)
{
    free(working->recorded);
    free(working->changed);
    free(working->scores);
    free(working->groups);
    free(working->order);
    free(working->pairs);
}

/* Then every member has a place for every name. */
static bool normalises_names(const struct audit_part *part)
{
    return part->knobs.advantage.estimator == OBJECTIVE_ESTIMATOR_GDPO;
}

static bool prepare(struct working *working)
{
    const struct audit_part *part = working->part;
    bool gdpo = normalises_names(part);
    size_t largest = 1;

    for (size_t g = 0; g < part->group_count; g++)
        largest = part->groups[g].count > largest ? part->groups[g].count : largest;
    working->recorded = calloc(part->member_count + 1, sizeof(double));
    working->changed = calloc(part->member_count + 1, sizeof(double));
    working->groups = calloc(part->group_count + 1, sizeof *working->groups);
    working->order = calloc(2 * largest, sizeof *working->order);
    working->pairs = calloc(2 * largest, sizeof *working->pairs);
    if (gdpo)
        working->scores = calloc(part->member_count + 1, 2 * (working->audit->name_count + 1) * sizeof(double));
    return working->recorded && working->changed && working->groups && working->order && working->pairs &&
           (!gdpo || working->scores) && make_room(working->audit, part->member_count);
}

int audit_compute(struct audit *audit, struct audit_part *part)
{
    struct working working = {.audit = audit, .part = part};

    if (normalises_names(part) && part->member_count * audit->name_count > AUDIT_SCORES_MAX)
        return audit_refuse_scores(audit);
    int result = prepare(&working) ? 0 : audit_refuse_memory(audit);

    for (size_t r = 0; result == 0 && r < audit->row_count; r++) {
        working.row = &audit->rows[r];
        working.rewards = r == 0 ? working.recorded : working.changed;
        result = compute_row(&working);
    }
    if (result == 0)
        take_members(&working);
    finish(&working);
    return result;
}
