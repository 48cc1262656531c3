/* A value held against a schema: the rules for any kind of value, and what all rules share. */
#include "verifiers/schema/schema_private.h"

#include <stdlib.h>

#include "server/base/cleanup.h"

#define NODE_UNITS 10
#define RULE_UNITS 4
#define MATCH_UNITS 60
#define TYPE_WHOLE (1u << 7)

static const char *const false_keyword = "false";

/* --- what all rules share --- */

static bool give_up(struct judgement *judgement, enum schema_result result)
{
    if (judgement->result == SCHEMA_VALID)
        judgement->result = result;
    return false;
}

bool judge_spend(struct judgement *judgement, uint64_t units)
{
    judgement->schema->units += units;
    return judgement->schema->units <= JUDGE_WORK_UNITS || give_up(judgement, SCHEMA_WORK_LIMIT);
}

bool judge_violated(struct judgement *judgement, enum keyword keyword, uint32_t value)
{
    if (!judgement->silent && !judgement->violation.keyword) {
        judgement->violation.keyword = keyword == KEYWORDS ? false_keyword : keyword_rows[keyword].name;
        judgement->violation.value = value;
    }
    return false;
}

int judge_matches(struct judgement *judgement, uint32_t pattern, struct text text)
{
    if (!judge_spend(judgement, MATCH_UNITS))
        return -1;
    switch (pattern_match(judgement->schema->patterns[pattern], text, 0, false)) {
    case PATTERN_MATCH:
        return 1;
    case PATTERN_NO_MATCH:
        return 0;
    case PATTERN_WORK_LIMIT:
    case PATTERN_GAVE_UP:
        give_up(judgement, SCHEMA_WORK_LIMIT);
        break;
    }
    return -1;
}

/* --- seen --- */

bool seen_init(struct judgement *judgement, uint32_t value, struct seen *ret_seen)
{
    uint32_t count = value_at(judgement->instance, value)->count;

    *ret_seen = (struct seen){.count = count / 64 + 1};
    if (!judge_spend(judgement, 50 + count / 64))
        return false;
    ret_seen->bits = calloc(ret_seen->count, sizeof ret_seen->bits[0]);
    return ret_seen->bits || give_up(judgement, SCHEMA_WORK_LIMIT);
}

void seen_finish(struct seen *seen)
{
    free(seen->bits);
}

void seen_add(struct judgement *judgement, struct seen *seen, const struct seen *other)
{
    if (!seen || !other->bits)
        return;
    judge_spend(judgement, seen->count / 8);
    for (uint32_t i = 0; i < seen->count; i++)
        seen->bits[i] |= other->bits[i];
}

/* --- rules for values of one kind --- */

static bool judge_type(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t kind = value_at(judgement->instance, value)->kind;
    struct decimal number;

    (void)seen;
    if (rule->low >> kind & 1)
        return true;
    if (kind == VALUE_NUMBER && rule->low & TYPE_WHOLE) {
        decimal_read(value_written(judgement->instance, value), &number);
        judge_spend(judgement, number.length_bytes / 2);
        if (decimal_is_whole(&number))
            return true;
    }
    return judge_violated(judgement, KEYWORD_TYPE, value);
}

static int compare_to(struct judgement *judgement, uint32_t value, uint32_t other)
{
    return value_compare(judgement->instance, value, &judgement->schema->document, other, &judgement->schema->units,
                         JUDGE_WORK_UNITS);
}

static bool judge_const(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    (void)seen;
    if (compare_to(judgement, value, rule->first) == 0)
        return judge_spend(judgement, 0);
    return judge_violated(judgement, KEYWORD_CONST, value);
}

static bool judge_enum(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t low = 0;
    uint32_t high = rule->count;

    (void)seen;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare_to(judgement, value, judgement->schema->lists[rule->first + middle]);
        if (order == 0)
            return judge_spend(judgement, 0);
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return judge_violated(judgement, KEYWORD_ENUM, value);
}

static bool number_fits(uint8_t keyword, const struct decimal *number, const struct decimal *limit)
{
    int order;

    if (keyword == KEYWORD_MULTIPLE_OF)
        return decimal_is_multiple(number, limit);
    order = decimal_compare(number, limit);
    if (keyword == KEYWORD_MINIMUM || keyword == KEYWORD_EXCLUSIVE_MINIMUM)
        return order > 0 || (order == 0 && keyword == KEYWORD_MINIMUM);
    return order < 0 || (order == 0 && keyword == KEYWORD_MAXIMUM);
}

static bool judge_number(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    struct decimal number;

    (void)seen;
    decimal_read(value_written(judgement->instance, value), &number);
    if (!judge_spend(judgement, rule->keyword == KEYWORD_MULTIPLE_OF ? 1000 + 8 * (uint64_t)number.length_bytes
                                                                     : number.length_bytes / 2))
        return false;
    return number_fits(rule->keyword, &number, &judgement->schema->decimals[rule->first]) ||
           judge_violated(judgement, rule->keyword, value);
}

static uint64_t code_points(struct text text)
{
    uint64_t count = 0;

    for (size_t i = 0; i < text.length_bytes; i++)
        count += ((unsigned char)text.data[i] & 0xC0) != 0x80;
    return count;
}

static bool judge_length(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    struct text text = value_text(judgement->instance, value);
    uint64_t length;

    (void)seen;
    if (!judge_spend(judgement, text.length_bytes / 4))
        return false;
    length = code_points(text);
    return (rule->keyword == KEYWORD_MIN_LENGTH ? length >= rule->low : length <= rule->low) ||
           judge_violated(judgement, rule->keyword, value);
}

static bool judge_pattern(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    (void)seen;
    return judge_matches(judgement, rule->first, value_text(judgement->instance, value)) == 1 ||
           judge_violated(judgement, KEYWORD_PATTERN, value);
}

static bool judge_least(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    (void)seen;
    return value_at(judgement->instance, value)->count >= rule->low || judge_violated(judgement, rule->keyword, value);
}

static bool judge_most(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    (void)seen;
    return value_at(judgement->instance, value)->count <= rule->low || judge_violated(judgement, rule->keyword, value);
}

/* --- one schema --- */

#define ANY_VALUE 0xFFu
#define NUMBERS (1u << VALUE_NUMBER)
#define STRINGS (1u << VALUE_STRING)
#define ARRAYS (1u << VALUE_ARRAY)
#define OBJECTS (1u << VALUE_OBJECT)

/* Which kinds of values a rule is for. */
static const struct {
    uint32_t kinds;
    judge_rule *judge;
} rules[KEYWORDS] = {
    [KEYWORD_TYPE] = {ANY_VALUE, judge_type},
    [KEYWORD_CONST] = {ANY_VALUE, judge_const},
    [KEYWORD_ENUM] = {ANY_VALUE, judge_enum},
    [KEYWORD_MINIMUM] = {NUMBERS, judge_number},
    [KEYWORD_MAXIMUM] = {NUMBERS, judge_number},
    [KEYWORD_EXCLUSIVE_MINIMUM] = {NUMBERS, judge_number},
    [KEYWORD_EXCLUSIVE_MAXIMUM] = {NUMBERS, judge_number},
    [KEYWORD_MULTIPLE_OF] = {NUMBERS, judge_number},
    [KEYWORD_MIN_LENGTH] = {STRINGS, judge_length},
    [KEYWORD_MAX_LENGTH] = {STRINGS, judge_length},
    [KEYWORD_PATTERN] = {STRINGS, judge_pattern},
    [KEYWORD_MIN_ITEMS] = {ARRAYS, judge_least},
    [KEYWORD_MAX_ITEMS] = {ARRAYS, judge_most},
    [KEYWORD_ITEMS] = {ARRAYS, judge_items},
    [KEYWORD_CONTAINS] = {ARRAYS, judge_contains},
    [KEYWORD_UNIQUE_ITEMS] = {ARRAYS, judge_unique_items},
    [KEYWORD_UNEVALUATED_ITEMS] = {ARRAYS, judge_unevaluated_items},
    [KEYWORD_MIN_PROPERTIES] = {OBJECTS, judge_least},
    [KEYWORD_MAX_PROPERTIES] = {OBJECTS, judge_most},
    [KEYWORD_REQUIRED] = {OBJECTS, judge_required},
    [KEYWORD_DEPENDENT_REQUIRED] = {OBJECTS, judge_dependent_required},
    [KEYWORD_PROPERTY_NAMES] = {OBJECTS, judge_property_names},
    [KEYWORD_PROPERTIES] = {OBJECTS, judge_members},
    [KEYWORD_DEPENDENT_SCHEMAS] = {OBJECTS, judge_dependent_schemas},
    [KEYWORD_UNEVALUATED_PROPERTIES] = {OBJECTS, judge_unevaluated_properties},
    [KEYWORD_REF] = {ANY_VALUE, judge_ref},
    [KEYWORD_DYNAMIC_REF] = {ANY_VALUE, judge_dynamic_ref},
    [KEYWORD_ALL_OF] = {ANY_VALUE, judge_all_of},
    [KEYWORD_ANY_OF] = {ANY_VALUE, judge_any_of},
    [KEYWORD_ONE_OF] = {ANY_VALUE, judge_one_of},
    [KEYWORD_NOT] = {ANY_VALUE, judge_not},
    [KEYWORD_IF] = {ANY_VALUE, judge_if},
};

static bool judge_rules(struct judgement *judgement, const struct node *node, uint32_t value, struct seen *seen)
{
    uint32_t kind = value_at(judgement->instance, value)->kind;

    if (!judge_spend(judgement, NODE_UNITS + RULE_UNITS * node->rule_count))
        return false;
    for (uint32_t i = 0; i < node->rule_count; i++) {
        const struct rule *rule = &judgement->schema->rules[node->first_rule + i];
        if (rules[rule->keyword].kinds >> kind & 1 && !rules[rule->keyword].judge(judgement, rule, value, seen))
            return false;
    }
    return judgement->result == SCHEMA_VALID;
}

/* What is seen in a schema with unevaluated… is seen by its own rules alone, and then by those around it. */
static bool judge_collecting(struct judgement *judgement, const struct node *node, uint32_t value, struct seen *seen)
{
    _cleanup_(seen_finish) struct seen own;
    bool valid = seen_init(judgement, value, &own) && judge_rules(judgement, node, value, &own);

    if (valid)
        seen_add(judgement, seen, &own);
    return valid;
}

static bool judge_node(struct judgement *judgement, uint32_t index, uint32_t value, struct seen *seen)
{
    const struct node *node = &judgement->schema->nodes[index];
    struct scope scope = {judgement->scope, node->resource};
    bool enters = !judgement->scope || judgement->scope->resource != node->resource;
    bool valid;

    if (judgement->depth == JUDGE_DEPTH_MAX)
        return give_up(judgement, SCHEMA_TOO_DEEP);
    if (judgement->in_place > 2 * SCHEMA_HEIGHT_MAX)
        return give_up(judgement, SCHEMA_LOOPS);
    judgement->depth++;
    if (enters)
        judgement->scope = &scope;
    if (node->collects && value_at(judgement->instance, value)->kind >= VALUE_ARRAY)
        valid = judge_collecting(judgement, node, value, seen);
    else
        valid = judge_rules(judgement, node, value, seen);
    if (enters)
        judgement->scope = scope.outer;
    judgement->depth--;
    return valid;
}

bool judge_in_place(struct judgement *judgement, uint32_t node, uint32_t value, struct seen *seen, enum keyword keyword)
{
    uint8_t kind = judgement->schema->nodes[node].kind;
    bool valid;

    if (kind == NODE_TRUE)
        return true;
    if (kind == NODE_FALSE)
        return judge_violated(judgement, keyword, value);
    judgement->in_place++;
    valid = judge_node(judgement, node, value, seen);
    judgement->in_place--;
    return valid;
}

bool judge_within(struct judgement *judgement, uint32_t node, uint32_t value, enum keyword keyword)
{
    uint32_t in_place = judgement->in_place;
    bool valid;

    judgement->in_place = 0;
    valid = judge_in_place(judgement, node, value, NULL, keyword);
    judgement->in_place = in_place;
    return valid;
}

enum schema_result schema_judge(struct schema *schema, const struct document *instance,
                                struct schema_violation *ret_violation)
{
    struct judgement judgement = {.schema = schema, .instance = instance};
    bool valid;

    schema->units = 0;
    valid = judge_in_place(&judgement, 0, 0, NULL, KEYWORDS);
    *ret_violation = judgement.violation;
    if (judgement.result != SCHEMA_VALID)
        return judgement.result;
    return valid ? SCHEMA_VALID : SCHEMA_INVALID;
}
