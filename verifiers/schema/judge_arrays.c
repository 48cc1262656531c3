/* Rules for arrays. */
#include "verifiers/schema/schema_private.h"

#include <stdlib.h>

#include "server/base/cleanup.h"

#define ITEM_UNITS 3

bool judge_items(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t end = value_at(judgement->instance, value)->next;
    uint32_t index = 0;

    for (uint32_t at = value + 1; at < end; at = value_at(judgement->instance, at)->next, index++) {
        bool prefix = index < rule->count;
        uint32_t node = prefix ? judgement->schema->lists[rule->first + index] : rule->node;
        if (node == NO_NODE)
            return true;
        seen_mark(seen, index);
        if (!judge_spend(judgement, ITEM_UNITS) ||
            !judge_within(judgement, node, at, prefix ? KEYWORD_PREFIX_ITEMS : KEYWORD_ITEMS))
            return false;
    }
    return true;
}

/* Counts on after it is decided only where somebody wants to know which ones. */
bool judge_contains(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t end = value_at(judgement->instance, value)->next;
    uint64_t count = 0;
    uint32_t index = 0;

    judgement->silent++;
    for (uint32_t at = value + 1; at < end; at = value_at(judgement->instance, at)->next, index++) {
        if (!seen && count >= rule->low && rule->high == UINT64_MAX)
            break;
        if (!judge_spend(judgement, ITEM_UNITS))
            break;
        if (!judge_within(judgement, rule->node, at, KEYWORD_CONTAINS))
            continue;
        seen_mark(seen, index);
        if (++count > rule->high)
            break;
    }
    judgement->silent--;
    if (count > rule->high)
        return judge_violated(judgement, KEYWORD_MAX_CONTAINS, value);
    if (count < rule->low)
        return judge_violated(judgement, rule->low == 1 ? KEYWORD_CONTAINS : KEYWORD_MIN_CONTAINS, value);
    return true;
}

static int item_order(const void *left, const void *right, void *arg)
{
    struct judgement *judgement = arg;
    return value_compare(judgement->instance, *(const uint32_t *)left, judgement->instance, *(const uint32_t *)right,
                         &judgement->schema->units, JUDGE_WORK_UNITS);
}

/* The one that stands behind its equal; the first such. NO_VALUE: all differ. */
static uint32_t repeated(struct judgement *judgement, const uint32_t *items, uint32_t count)
{
    uint32_t found = NO_VALUE;

    for (uint32_t i = 1; i < count; i++) {
        uint32_t later = items[i - 1] > items[i] ? items[i - 1] : items[i];
        if (later < found && item_order(&items[i - 1], &items[i], judgement) == 0)
            found = later;
    }
    return found;
}

bool judge_unique_items(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t count = value_at(judgement->instance, value)->count;
    _cleanup_free_ uint32_t *items = malloc((count + 1) * sizeof *items);
    uint32_t found;

    (void)rule;
    (void)seen;
    if (!items)
        return judge_spend(judgement, JUDGE_WORK_UNITS + 1);
    for (uint32_t at = value + 1, i = 0; i < count; at = value_at(judgement->instance, at)->next)
        items[i++] = at;
    qsort_r(items, count, sizeof items[0], item_order, judgement);
    found = repeated(judgement, items, count);
    if (!judge_spend(judgement, count))
        return false;
    return found == NO_VALUE || judge_violated(judgement, KEYWORD_UNIQUE_ITEMS, found);
}

bool judge_unevaluated_items(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t end = value_at(judgement->instance, value)->next;
    uint32_t index = 0;

    for (uint32_t at = value + 1; at < end; at = value_at(judgement->instance, at)->next, index++) {
        if (seen->bits[index / 64] >> index % 64 & 1)
            continue;
        seen_mark(seen, index);
        if (!judge_spend(judgement, ITEM_UNITS) || !judge_within(judgement, rule->node, at, KEYWORD_UNEVALUATED_ITEMS))
            return false;
    }
    return true;
}
