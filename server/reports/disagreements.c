#include "server/reports/disagreements_private.h"

#include "server/base/cleanup.h"
#include "server/spec/batch.h"
#include "server/spec/objective.h"
#include "server/store/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct working {
    struct call *call;
    const struct disagreements_query *query;
    struct picks picks;
    struct opinion_pairs pairs;
    struct effect effect;
    size_t n, agree, only_a, only_b;
};

static int refuse_memory(struct call *call)
{
    return call_refuse(call, ERR_QUEUE_FULL, NULL, "there is no memory for this report now");
}

/* --- opinions --- */

static struct opinion opinion_of(const json_t *verdict)
{
    const json_t *score = json_object_get(verdict, "score");
    const char *reason = json_string_value(json_object_get(verdict, "reason"));
    struct opinion opinion = {.given = true, .score = json_is_number(score) ? json_number_value(score) : NAN};

    snprintf(opinion.reason, sizeof opinion.reason, "%s", reason ? reason : "");
    return opinion;
}

/* That of the verifier among these verdicts. */
static struct opinion find_opinion(struct text text, struct text id)
{
    struct opinion opinion = {false, NAN, ""};
    json_auto_t *verdicts = text.data ? json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
    size_t i;
    const json_t *verdict;

    json_array_foreach (verdicts, i, verdict)
        if (text_same(json_text_of(json_object_get(verdict, "id")), id))
            opinion = opinion_of(verdict);
    return opinion;
}

static struct opinion opinion_on(const struct store_rollout *rollout, struct text id, struct text from)
{
    struct opinion opinion = {false, NAN, ""};
    bool first = text_equals(from, "first");

    if (first || !from.data)
        opinion = find_opinion(rollout->verdicts, id);
    for (size_t i = rollout->later_count; i-- > 0 && !opinion.given && !first;)
        if (!from.data || text_equals(from, rollout->later[i].id))
            opinion = find_opinion(rollout->later[i].verdicts, id);
    return opinion;
}

static struct opinions opinions_on(const struct working *working, const struct store_rollout *rollout)
{
    const struct disagreements_query *query = working->query;

    return (struct opinions){opinion_on(rollout, query->a, query->a_from),
                             opinion_on(rollout, query->b, query->b_from)};
}

/* place: in the picks. */
static int count_opinions(struct working *working, const struct opinions *opinions, size_t place)
{
    working->only_a += opinions->a.given && !opinions->b.given;
    working->only_b += opinions->b.given && !opinions->a.given;
    if (!opinions->a.given || !opinions->b.given)
        return 0;
    working->n++;
    working->agree += opinions_agree(opinions);
    return opinion_pairs_add(&working->pairs, opinions, place) < 0 ? refuse_memory(working->call) : 0;
}

/* --- one group --- */

/* The picked rollouts of a group: from first on, below last; the counts are theirs. */
struct picked {
    size_t first, last;
};

static int take_members(struct working *working, const struct store_group *group, const struct picked *picked,
                        struct opinions *opinions, bool *counted)
{
    size_t at = picked->first;

    for (size_t i = 0; i < group->rollout_count; i++) {
        const struct store_rollout *rollout = &group->rollouts[i];
        opinions[i] = opinions_on(working, rollout);
        while (at < picked->last && working->picks.rows[at].sample_index < rollout->sample_index)
            at++;
        counted[i] = at < picked->last && working->picks.rows[at].sample_index == rollout->sample_index;
        if (counted[i] && count_opinions(working, &opinions[i], at) < 0)
            return -1;
    }
    return 0;
}

/* {id: true} of the gates of a batch or a group. */
static json_t *gates_of(struct text verifiers)
{
    json_t *gates = json_object();
    json_auto_t *list =
        verifiers.data ? json_loadb(verifiers.data, verifiers.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
    size_t i;
    const json_t *verifier;

    json_array_foreach (list, i, verifier) {
        const json_t *id = json_object_get(verifier, "id");
        struct text name = json_text_of(id ? id : json_object_get(verifier, "name"));
        if (name.data && json_is_true(json_object_get(verifier, "gate")))
            json_object_setn_new(gates, name.data, name.length_bytes, json_true());
    }
    return gates;
}

/* Counts a group's opinions, and adds it to the part if it is closed. 1: it is still running. */
static int take_group(struct working *working, struct effect_part *part, const struct picked *picked,
                      struct store_group *group, const json_t *batch_gates)
{
    _cleanup_free_ struct opinions *opinions = calloc(group->rollout_count + 1, sizeof *opinions);
    _cleanup_free_ bool *counted = calloc(group->rollout_count + 1, sizeof *counted);
    json_auto_t *own_gates = group->verifiers.data ? gates_of(group->verifiers) : NULL;

    if (!opinions || !counted)
        return refuse_memory(working->call);
    if (take_members(working, group, picked, opinions, counted) < 0)
        return -1;
    if (group->state == STORE_GROUP_RUNNING)
        return 1;
    return effect_part_add(part, group, own_gates ? own_gates : batch_gates, opinions, counted) < 0
               ? refuse_memory(working->call)
               : 0;
}

static int read_group(struct working *working, struct effect_part *part, const char *batch_id, int64_t index,
                      const struct picked *picked, const json_t *gates)
{
    unsigned with = group_record_with(&part->knobs, false) | STORE_WITH_VERDICTS | STORE_WITH_LATER;
    _cleanup_(store_group_finish) struct store_group group = {0};
    char id[ID_BYTES];

    if (working->call->abandoned)
        return -1;
    id_of_group(batch_id, index, id);
    if (store_read_group(working->call->reader, text_of(id), with, &group) != STORE_OK)
        return call_refuse_unreadable(working->call);
    return take_group(working, part, picked, &group, gates);
}

/* --- one batch --- */

/* A rule inside a group: only one group is in memory. */
static int compare_one_by_one(struct working *working, const struct store_batch *batch, const struct picked *picked,
                              const struct objective_knobs *knobs, const json_t *gates)
{
    int result = 0;

    for (size_t at = picked->first, next; result >= 0 && at < picked->last; at = next) {
        struct effect_part part = {.knobs = *knobs, .a = working->query->a};
        next = picks_next_group(&working->picks, at);
        struct picked group = {at, next};
        result = read_group(working, &part, batch->id, working->picks.rows[at].group_index, &group, gates);
        if (result == 0)
            result = effect_part_compare(working->call, &part, &working->effect);
        effect_part_finish(&part);
    }
    return result < 0 ? -1 : 0;
}

/* A rule over the whole batch has no advantages until its last group is closed. */
static int compare_together(struct working *working, const struct store_batch *batch, const struct picked *picked,
                            const struct objective_knobs *knobs, const json_t *gates)
{
    struct effect_part part = {.knobs = *knobs, .a = working->query->a};
    bool running = false;
    size_t at = picked->first;
    int result = 0;

    for (int64_t index = 0; result >= 0 && index < batch->group_count; index++) {
        bool has_picks = at < picked->last && working->picks.rows[at].group_index == index;
        struct picked group = {at, has_picks ? picks_next_group(&working->picks, at) : at};
        result = read_group(working, &part, batch->id, index, &group, gates);
        running = running || result > 0;
        at = group.last;
    }
    if (result >= 0 && !running)
        result = effect_part_compare(working->call, &part, &working->effect);
    effect_part_finish(&part);
    return result < 0 ? -1 : 0;
}

static int read_batch(struct working *working, const struct picked *picked)
{
    _cleanup_(store_batch_finish) struct store_batch batch = {0};
    const char *id = working->picks.rows[picked->first].batch_id;
    struct objective_knobs recorded;
    struct objective_knobs knobs;

    if (store_read_batch(working->call->reader, text_of(id), &batch) != STORE_OK)
        return call_refuse_unreadable(working->call);
    if (objective_json_parse(batch.objective, &recorded) < 0)
        return call_refuse(working->call, ERR_STATE_CONFLICT, "run",
                           "the recorded objective of the batch %s cannot be read by this version", id);
    objective_at_sampling(&recorded, &knobs);
    json_auto_t *gates = gates_of(batch.verifiers);
    return objective_needs_whole_batch(&knobs) ? compare_together(working, &batch, picked, &knobs, gates)
                                               : compare_one_by_one(working, &batch, picked, &knobs, gates);
}

/* --- the whole --- */

static int check_run(struct call *call, struct text name)
{
    _cleanup_(store_run_detail_finish) struct store_run_detail run = {0};
    enum store_status status = STORE_UNAVAILABLE;

    if (run_name_check(call, name) < 0)
        return -1;
    if (call->reader)
        status = store_read_run(call->reader, name, &run);
    if (status == STORE_NOT_FOUND)
        return call_refuse(call, ERR_NOT_FOUND, "run", "there is no run of this name");
    return status == STORE_OK ? 0 : call_refuse_unreadable(call);
}

static int find(struct working *working)
{
    if (picks_find(working->call, &working->query->filter, DISAGREEMENTS_ROLLOUTS_MAX, &working->picks) < 0)
        return -1;
    if (working->picks.too_many)
        return call_refuse(working->call, ERR_TOO_MANY_ROLLOUTS, "run",
                           "at most %d rollouts are compared; name a revision, a task or a batch",
                           DISAGREEMENTS_ROLLOUTS_MAX);
    return 0;
}

static int compare(struct working *working)
{
    for (size_t at = 0, next; at < working->picks.count; at = next) {
        next = picks_next_batch(&working->picks, at);
        struct picked batch = {at, next};
        if (read_batch(working, &batch) < 0)
            return -1;
    }
    return 0;
}

/* An unknown name is a typing error. */
static int check_names(const struct working *working)
{
    bool has_a = working->n + working->only_a > 0;
    bool has_b = working->n + working->only_b > 0;

    if (has_a && has_b)
        return 0;
    const struct text *from = has_a ? &working->query->b_from : &working->query->a_from;
    return call_refuse(working->call, ERR_INVALID_FIELD, has_a ? "b" : "a",
                       "none of these rollouts has a verdict of a verifier with this id%s",
                       !from->data ? ""
                       : has_a     ? " among those that b_from names"
                                   : " among those that a_from names");
}

static void answer(struct working *working)
{
    struct json_write json;

    json_write_init(&json, &working->call->reply.body);
    json_object_begin(&json);
    json_put_text(&json, "run", working->query->filter.run);
    json_put_text(&json, "a", working->query->a);
    json_put_text(&json, "b", working->query->b);
    json_put_int(&json, "rollouts", (int64_t)working->picks.count);
    json_put_int(&json, "n", (int64_t)working->n);
    json_put_int(&json, "agree", (int64_t)working->agree);
    json_put_int(&json, "only_a", (int64_t)working->only_a);
    json_put_int(&json, "only_b", (int64_t)working->only_b);
    opinion_pairs_write(&working->pairs, &working->picks, &json);
    json_put_int(&json, "advantages", (int64_t)working->effect.compared);
    json_put_int(&json, "advantage_changes", (int64_t)working->effect.changes);
    json_put_int(&json, "advantage_sign_changes", (int64_t)working->effect.sign_changes);
    json_object_end(&json);
    call_answer_json(working->call, 200);
}

void disagreements_answer(struct call *call, const struct disagreements_query *query)
{
    struct working working = {.call = call, .query = query, .pairs.places = json_object()};

    if (check_run(call, query->filter.run) == 0 && find(&working) == 0 && compare(&working) == 0 &&
        check_names(&working) == 0)
        answer(&working);
    opinion_pairs_finish(&working.pairs);
    picks_finish(&working.picks);
}
