/* Rules for arrays. */
#include "verifiers/schema/schema_private.h"

#include <stdlib.h>

#include "server/base/cleanup.h"

#define ITEM_UNITS 3

bool validate_items(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t end = value_at(validation->instance, value)->next;
    uint32_t index = 0;

    for (uint32_t at = value + 1; at < end; at = value_at(validation->instance, at)->next, index++) {
        bool prefix = index < rule->count;
        uint32_t node = prefix ? validation->schema->lists[rule->first + index] : rule->node;
        if (node == NO_NODE)
            return true;
        seen_mark(seen, index);
        if (!validation_spend(validation, ITEM_UNITS) ||
            !validate_within(validation, node, at, prefix ? KEYWORD_PREFIX_ITEMS : KEYWORD_ITEMS))
            return false;
    }
    return true;
}

/* Counts on after it is decided only where somebody wants to know which ones. */
bool validate_contains(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t end = value_at(validation->instance, value)->next;
    uint64_t count = 0;
    uint32_t index = 0;

    validation->silent++;
    for (uint32_t at = value + 1; at < end; at = value_at(validation->instance, at)->next, index++) {
        if (!seen && count >= rule->low && rule->high == UINT64_MAX)
            break;
        if (!validation_spend(validation, ITEM_UNITS))
            break;
        if (!validate_within(validation, rule->node, at, KEYWORD_CONTAINS))
            continue;
        seen_mark(seen, index);
        if (++count > rule->high)
            break;
    }
    validation->silent--;
    if (count > rule->high)
        return validation_violated(validation, KEYWORD_MAX_CONTAINS, value);
    if (count < rule->low)
        return validation_violated(validation, rule->low == 1 ? KEYWORD_CONTAINS : KEYWORD_MIN_CONTAINS, value);
    return true;
}

static int item_order(const void *left, const void *right, void *arg)
{
    struct validation *validation = arg;
    return value_compare(validation->instance, *(const uint32_t *)left, validation->instance, *(const uint32_t *)right,
                         &validation->schema->units, VALIDATION_WORK_UNITS);
}

/* The one that stands behind its equal; the first such. NO_VALUE: all differ. */
static uint32_t repeated(struct validation *validation, const uint32_t *items, uint32_t count)
{
    uint32_t found = NO_VALUE;

    for (uint32_t i = 1; i < count; i++) {
        uint32_t later = items[i - 1] > items[i] ? items[i - 1] : items[i];
        if (later < found && item_order(&items[i - 1], &items[i], validation) == 0)
            found = later;
    }
    return found;
}

bool validate_unique_items(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t count = value_at(validation->instance, value)->count;
    _cleanup_free_ uint32_t *items = malloc((count + 1) * sizeof *items);
    uint32_t found;

    (void)rule;
    (void)seen;
    if (!items)
        return validation_spend(validation, VALIDATION_WORK_UNITS + 1);
    for (uint32_t at = value + 1, i = 0; i < count; at = value_at(validation->instance, at)->next)
        items[i++] = at;
    qsort_r(items, count, sizeof items[0], item_order, validation);
    found = repeated(validation, items, count);
    if (!validation_spend(validation, count))
        return false;
    return found == NO_VALUE || validation_violated(validation, KEYWORD_UNIQUE_ITEMS, found);
}

bool validate_unevaluated_items(struct validation *validation, const struct rule *rule, uint32_t value,
                                struct seen *seen)
{
    uint32_t end = value_at(validation->instance, value)->next;
    uint32_t index = 0;

    for (uint32_t at = value + 1; at < end; at = value_at(validation->instance, at)->next, index++) {
        if (seen->bits[index / 64] >> index % 64 & 1)
            continue;
        seen_mark(seen, index);
        if (!validation_spend(validation, ITEM_UNITS) ||
            !validate_within(validation, rule->node, at, KEYWORD_UNEVALUATED_ITEMS))
            return false;
    }
    return true;
}
