/* Advantages of the same groups twice: by the recorded rewards, and by those that b's scores would have given in place
 * of a's. */
#include "server/reports/disagreements_private.h"

#include "server/base/cleanup.h"
#include "server/base/sum.h"

#include <math.h>
#include <stdlib.h>

/* --- rewards --- */

/* The recorded scores with b's in a's entry, which keeps its weight and its gate. NAN: none. */
static double reward_with(const struct effect_part *part, json_t *rewards, const json_t *gates, double score)
{
    struct reward_sum sum = {0};
    bool skip = part->knobs.advantage.missing == OBJECTIVE_MISSING_SKIP;
    const char *name;
    json_t *entry;

    json_object_foreach (rewards, name, entry) {
        const json_t *own = json_object_get(entry, "score");
        double value = json_is_number(own) ? json_number_value(own) : NAN;
        if (text_equals(part->a, name))
            value = score;
        reward_sum_add(&sum, value, json_number_value(json_object_get(entry, "weight")),
                       json_object_get(gates, name) != NULL);
    }
    return reward_sum_value(&sum, skip ? REWARD_MISSING_SKIP : REWARD_MISSING_NULL);
}

/* A member keeps its reward if one of the two did not judge it, or if a has no part in its reward. */
static struct effect_member member_of(const struct effect_part *part, const struct store_rollout *rollout,
                                      const json_t *gates, const struct opinions *opinions)
{
    struct effect_member member = {.reward = rollout->reward};
    struct text text = rollout->rewards;
    json_auto_t *rewards = text.data ? json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;

    if (!opinions->a.given || !opinions->b.given || !json_object_getn(rewards, part->a.data, part->a.length_bytes))
        return member;
    member.stands_in = true;
    member.score = opinions->b.score;
    if (!opinions_agree(opinions))
        member.reward = reward_with(part, rewards, gates, opinions->b.score);
    return member;
}

/* --- room --- */

static bool make_room(struct effect_part *part, size_t members)
{
    if (part->group_count == part->group_room) {
        size_t room = part->group_room ? part->group_room * 2 : 16;
        struct effect_group *larger = reallocarray(part->groups, room, sizeof *larger);
        if (!larger)
            return false;
        part->groups = larger;
        part->group_room = room;
    }
    if (part->member_count + members > part->member_room) {
        size_t room = 2 * (part->member_count + members);
        struct effect_member *larger = reallocarray(part->members, room, sizeof *larger);
        if (!larger)
            return false;
        part->members = larger;
        part->member_room = room;
    }
    return true;
}

int effect_part_add(struct effect_part *part, struct store_group *group, const json_t *gates,
                    const struct opinions *opinions, const bool *counted)
{
    bool gdpo = part->knobs.advantage.estimator == OBJECTIVE_ESTIMATOR_GDPO;
    size_t count = group->rollout_count;

    if (!make_room(part, count)) {
        store_group_finish(group);
        return -1;
    }
    if (gdpo && !part->names)
        part->names = json_object();
    struct effect_group *kept = &part->groups[part->group_count];
    *kept = (struct effect_group){.group = *group};
    *group = (struct store_group){0};
    group_record_of_rollouts(kept->group.rollouts, count,
                             kept->group.prompt_ids ? (int64_t)kept->group.prompt_id_count : -1, NULL, part->names,
                             &kept->record);
    for (size_t i = 0; i < count; i++) {
        struct effect_member member = member_of(part, &kept->group.rollouts[i], gates, &opinions[i]);
        member.counted = counted[i];
        member.group = part->group_count;
        member.index = i;
        part->members[part->member_count++] = member;
    }
    part->group_count++;
    return 0;
}

/* --- advantages --- */

/* gdpo normalises each score by itself. */
static void lay_out_score(const struct effect_part *part, const struct effect_member *member)
{
    const json_t *number = json_object_getn(part->names, part->a.data, part->a.length_bytes);
    double *scores = part->groups[member->group].record.scores + member->index * 2 * GROUP_RECORD_SCORES;

    if (number && member->stands_in)
        scores[json_integer_value(number)] = member->score;
}

static void lay_out(const struct effect_part *part, bool changed, struct objective_sequence *sequences)
{
    for (size_t i = 0; i < part->member_count; i++) {
        const struct effect_member *member = &part->members[i];
        sequences[i] = part->groups[member->group].record.sequences[member->index];
        sequences[i].group = member->group;
        if (!changed)
            continue;
        sequences[i].reward = member->reward;
        sequences[i].rewarded = !isnan(member->reward);
        if (part->names)
            lay_out_score(part, member);
    }
}

static int refuse(struct call *call, const struct objective_error *error)
{
    if (error->code == OBJECTIVE_ERROR_MEMORY)
        return call_refuse(call, ERR_QUEUE_FULL, NULL, "there is no memory for this report now");
    return call_refuse(call, error->code == OBJECTIVE_ERROR_NON_FINITE ? ERR_NON_FINITE : ERR_OBJECTIVE_OPTIONS, "b",
                       "%s", error->message);
}

static int compute(struct call *call, const struct effect_part *part, struct objective_sequence *sequences)
{
    _cleanup_free_ struct objective_group *groups = calloc(part->group_count + 1, sizeof *groups);
    struct objective_error error = {.code = OBJECTIVE_ERROR_MEMORY};
    struct objective_request request = {.knobs = &part->knobs,
                                        .sequences = sequences,
                                        .sequence_count = part->member_count,
                                        .groups = groups,
                                        .group_count = part->group_count,
                                        .score_count = json_object_size(part->names)};

    return groups && objective_advantages(&request, &error) == 0 ? 0 : refuse(call, &error);
}

static int sign_of(double value)
{
    return (value > 0) - (value < 0);
}

static void compare(const struct effect_member *member, double after, struct effect *effect)
{
    double before = member->before;
    bool both = !isnan(before) && !isnan(after);

    effect->compared++;
    if (both && values_are_equal(fmin(before, after), fmax(before, after)))
        return;
    effect->changes += both || isnan(before) != isnan(after);
    effect->sign_changes += both && sign_of(before) != sign_of(after);
}

int effect_part_compare(struct call *call, struct effect_part *part, struct effect *effect)
{
    _cleanup_free_ struct objective_sequence *sequences = calloc(part->member_count + 1, sizeof *sequences);

    if (!sequences)
        return refuse(call, &(struct objective_error){.code = OBJECTIVE_ERROR_MEMORY});
    lay_out(part, false, sequences);
    if (compute(call, part, sequences) < 0)
        return -1;
    for (size_t i = 0; i < part->member_count; i++)
        part->members[i].before = sequences[i].advantage;
    lay_out(part, true, sequences);
    if (compute(call, part, sequences) < 0)
        return -1;
    for (size_t i = 0; i < part->member_count; i++)
        if (part->members[i].counted)
            compare(&part->members[i], sequences[i].advantage, effect);
    return 0;
}

void effect_part_finish(struct effect_part *part)
{
    for (size_t g = 0; g < part->group_count; g++) {
        group_record_finish(&part->groups[g].record); /* has no group of its own */
        store_group_finish(&part->groups[g].group);
    }
    json_decref(part->names);
    free(part->groups);
    free(part->members);
    *part = (struct effect_part){0};
}
