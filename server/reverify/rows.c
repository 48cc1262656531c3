/* The verdicts of one rollout beside its first ones: its new reward, and what flipped. */
#include "server/reverify/page_private.h"

#include "server/base/cleanup.h"
#include "server/base/sum.h"

#include <math.h>

static json_t *load(struct text json)
{
    return json.data ? json_loadb(json.data, json.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
}

static double number_or_none(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* -1: the list has none of this id. */
static int place_of(const struct verifier_list *list, struct text id)
{
    for (size_t i = 0; i < list->count; i++)
        if (text_equals(id, list->specs[i].id))
            return (int)i;
    return -1;
}

/* --- the reward --- */

static void add_verdict(struct reward_sum *sum, const struct verifier_spec *spec, const struct verdict_record *record)
{
    reward_sum_add(sum, record->kind == VERDICT_UNSCORED ? NAN : record->score, spec->weight, spec->gate);
}

/* In the order of the record, so that unchanged scores have an unchanged sum. Returns how many verifiers reward. */
static size_t add_recorded(struct reward_sum *sum, json_t *rewards, const struct verifier_list *list,
                           const struct verdict_set *set)
{
    size_t rewarding = 0;
    const char *id;
    json_t *entry;

    json_object_foreach (rewards, id, entry) {
        int place = place_of(list, text_of(id));
        if (place >= 0 && list->specs[place].heldout)
            continue;
        rewarding++;
        if (place >= 0)
            add_verdict(sum, &list->specs[place], &set->verdicts[place]);
        else
            reward_sum_add(sum, number_or_none(json_object_get(entry, "score")),
                           json_number_value(json_object_get(entry, "weight")),
                           json_is_true(json_object_get(entry, "gate")));
    }
    return rewarding;
}

double row_reward(const struct store_rollout *rollout, const struct verifier_list *list, const struct verdict_set *set,
                  enum reward_missing missing)
{
    json_auto_t *rewards = load(rollout->rewards);
    struct reward_sum sum = {0};
    size_t rewarding = add_recorded(&sum, rewards, list, set);

    for (size_t i = 0; i < list->count; i++) {
        if (list->specs[i].heldout || json_object_get(rewards, list->specs[i].id))
            continue;
        rewarding++;
        add_verdict(&sum, &list->specs[i], &set->verdicts[i]);
    }
    return rewarding ? reward_sum_value(&sum, missing) : NAN;
}

/* --- flips --- */

static const json_t *first_verdict(const json_t *verdicts, const char *id)
{
    size_t i;
    const json_t *verdict;

    json_array_foreach (verdicts, i, verdict)
        if (text_equals(json_text_of(json_object_get(verdict, "id")), id))
            return verdict;
    return NULL;
}

static struct text copy(struct text text)
{
    return text.data ? (struct text){xstrndup(text.data, text.length_bytes), text.length_bytes} : TEXT_NONE;
}

static bool is_flip(double from, const struct verdict_record *record)
{
    if (isnan(from) || record->kind == VERDICT_UNSCORED)
        return false;
    return from != record->score && !values_are_equal(fmin(from, record->score), fmax(from, record->score));
}

struct store_verdict_flip *row_flips(const struct store_rollout *rollout, const struct verifier_list *list,
                                     const struct verdict_set *set, size_t *ret_count)
{
    json_auto_t *verdicts = load(rollout->verdicts);
    struct store_verdict_flip *flips = xcalloc(list->count + 1, sizeof *flips);

    *ret_count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct verdict_record *record = &set->verdicts[i];
        const struct verifier_spec *spec = &list->specs[i];
        const json_t *first = first_verdict(verdicts, spec->id);
        double from = number_or_none(json_object_get(first, "score"));
        if (!is_flip(from, record))
            continue;
        flips[(*ret_count)++] = (struct store_verdict_flip){
            .verifier = copy(text_of(spec->id)),
            .from_version = copy(json_text_of(json_object_get(first, "version"))),
            .from_score = from,
            .to_version = copy(text_of(record->version[0] ? record->version : spec->version)),
            .to_score = record->score,
        };
    }
    return flips;
}

static void free_text(struct text text)
{
    free((char *)(uintptr_t)text.data);
}

void row_flips_free(struct store_verdict_flip *flips, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free_text(flips[i].verifier);
        free_text(flips[i].from_version);
        free_text(flips[i].to_version);
    }
    free(flips);
}
