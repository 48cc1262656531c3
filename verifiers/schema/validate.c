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

static bool give_up(struct validation *validation, enum schema_result result)
{
    if (validation->result == SCHEMA_VALID)
        validation->result = result;
    return false;
}

bool validation_spend(struct validation *validation, uint64_t units)
{
    validation->schema->units += units;
    return validation->schema->units <= VALIDATION_WORK_UNITS || give_up(validation, SCHEMA_WORK_LIMIT);
}

bool validation_violated(struct validation *validation, enum keyword keyword, uint32_t value)
{
    if (!validation->silent && !validation->violation.keyword) {
        validation->violation.keyword = keyword == KEYWORDS ? false_keyword : keyword_rows[keyword].name;
        validation->violation.value = value;
    }
    return false;
}

int validate_matches(struct validation *validation, uint32_t pattern, struct text text)
{
    if (!validation_spend(validation, MATCH_UNITS))
        return -1;
    switch (pattern_match(validation->schema->patterns[pattern], text, 0, false)) {
    case PATTERN_MATCH:
        return 1;
    case PATTERN_NO_MATCH:
        return 0;
    case PATTERN_WORK_LIMIT:
    case PATTERN_GAVE_UP:
        give_up(validation, SCHEMA_WORK_LIMIT);
        break;
    }
    return -1;
}

/* --- seen --- */

bool seen_init(struct validation *validation, uint32_t value, struct seen *ret_seen)
{
    uint32_t count = value_at(validation->instance, value)->count;

    *ret_seen = (struct seen){.count = count / 64 + 1};
    if (!validation_spend(validation, 50 + count / 64))
        return false;
    ret_seen->bits = calloc(ret_seen->count, sizeof ret_seen->bits[0]);
    return ret_seen->bits || give_up(validation, SCHEMA_WORK_LIMIT);
}

void seen_finish(struct seen *seen)
{
    free(seen->bits);
}

void seen_add(struct validation *validation, struct seen *seen, const struct seen *other)
{
    if (!seen || !other->bits)
        return;
    validation_spend(validation, seen->count / 8);
    for (uint32_t i = 0; i < seen->count; i++)
        seen->bits[i] |= other->bits[i];
}

/* --- rules for values of one kind --- */

static bool validate_type(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t kind = value_at(validation->instance, value)->kind;
    struct decimal number;

    (void)seen;
    if (rule->low >> kind & 1)
        return true;
    if (kind == VALUE_NUMBER && rule->low & TYPE_WHOLE) {
        decimal_read(value_written(validation->instance, value), &number);
        validation_spend(validation, number.length_bytes / 2);
        if (decimal_is_whole(&number))
            return true;
    }
    return validation_violated(validation, KEYWORD_TYPE, value);
}

static int compare_to(struct validation *validation, uint32_t value, uint32_t other)
{
    return value_compare(validation->instance, value, &validation->schema->document, other, &validation->schema->units,
                         VALIDATION_WORK_UNITS);
}

static bool validate_const(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    (void)seen;
    if (compare_to(validation, value, rule->first) == 0)
        return validation_spend(validation, 0);
    return validation_violated(validation, KEYWORD_CONST, value);
}

static bool validate_enum(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t low = 0;
    uint32_t high = rule->count;

    (void)seen;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare_to(validation, value, validation->schema->lists[rule->first + middle]);
        if (order == 0)
            return validation_spend(validation, 0);
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return validation_violated(validation, KEYWORD_ENUM, value);
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

static bool validate_number(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    struct decimal number;

    (void)seen;
    decimal_read(value_written(validation->instance, value), &number);
    if (!validation_spend(validation, rule->keyword == KEYWORD_MULTIPLE_OF ? 1000 + 8 * (uint64_t)number.length_bytes
                                                                           : number.length_bytes / 2))
        return false;
    return number_fits(rule->keyword, &number, &validation->schema->decimals[rule->first]) ||
           validation_violated(validation, rule->keyword, value);
}

static uint64_t code_points(struct text text)
{
    uint64_t count = 0;

    for (size_t i = 0; i < text.length_bytes; i++)
        count += ((unsigned char)text.data[i] & 0xC0) != 0x80;
    return count;
}

static bool validate_length(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    struct text text = value_text(validation->instance, value);
    uint64_t length;

    (void)seen;
    if (!validation_spend(validation, text.length_bytes / 4))
        return false;
    length = code_points(text);
    return (rule->keyword == KEYWORD_MIN_LENGTH ? length >= rule->low : length <= rule->low) ||
           validation_violated(validation, rule->keyword, value);
}

static bool validate_pattern(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    (void)seen;
    return validate_matches(validation, rule->first, value_text(validation->instance, value)) == 1 ||
           validation_violated(validation, KEYWORD_PATTERN, value);
}

static bool validate_least(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    (void)seen;
    return value_at(validation->instance, value)->count >= rule->low ||
           validation_violated(validation, rule->keyword, value);
}

static bool validate_most(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    (void)seen;
    return value_at(validation->instance, value)->count <= rule->low ||
           validation_violated(validation, rule->keyword, value);
}

/* --- one schema --- */

#define ANY_VALUE 0xFFu
#define NUMBERS (1u << VALUE_NUMBER)
#define STRINGS (1u << VALUE_STRING)
#define ARRAYS (1u << VALUE_ARRAY)
#define OBJECTS (1u << VALUE_OBJECT)

/* The kinds of values that a rule is for. */
static const struct {
    uint32_t kinds;
    validate_rule *validate;
} rules[KEYWORDS] = {
    [KEYWORD_TYPE] = {ANY_VALUE, validate_type},
    [KEYWORD_CONST] = {ANY_VALUE, validate_const},
    [KEYWORD_ENUM] = {ANY_VALUE, validate_enum},
    [KEYWORD_MINIMUM] = {NUMBERS, validate_number},
    [KEYWORD_MAXIMUM] = {NUMBERS, validate_number},
    [KEYWORD_EXCLUSIVE_MINIMUM] = {NUMBERS, validate_number},
    [KEYWORD_EXCLUSIVE_MAXIMUM] = {NUMBERS, validate_number},
    [KEYWORD_MULTIPLE_OF] = {NUMBERS, validate_number},
    [KEYWORD_MIN_LENGTH] = {STRINGS, validate_length},
    [KEYWORD_MAX_LENGTH] = {STRINGS, validate_length},
    [KEYWORD_PATTERN] = {STRINGS, validate_pattern},
    [KEYWORD_MIN_ITEMS] = {ARRAYS, validate_least},
    [KEYWORD_MAX_ITEMS] = {ARRAYS, validate_most},
    [KEYWORD_ITEMS] = {ARRAYS, validate_items},
    [KEYWORD_CONTAINS] = {ARRAYS, validate_contains},
    [KEYWORD_UNIQUE_ITEMS] = {ARRAYS, validate_unique_items},
    [KEYWORD_UNEVALUATED_ITEMS] = {ARRAYS, validate_unevaluated_items},
    [KEYWORD_MIN_PROPERTIES] = {OBJECTS, validate_least},
    [KEYWORD_MAX_PROPERTIES] = {OBJECTS, validate_most},
    [KEYWORD_REQUIRED] = {OBJECTS, validate_required},
    [KEYWORD_DEPENDENT_REQUIRED] = {OBJECTS, validate_dependent_required},
    [KEYWORD_PROPERTY_NAMES] = {OBJECTS, validate_property_names},
    [KEYWORD_PROPERTIES] = {OBJECTS, validate_members},
    [KEYWORD_DEPENDENT_SCHEMAS] = {OBJECTS, validate_dependent_schemas},
    [KEYWORD_UNEVALUATED_PROPERTIES] = {OBJECTS, validate_unevaluated_properties},
    [KEYWORD_REF] = {ANY_VALUE, validate_ref},
    [KEYWORD_DYNAMIC_REF] = {ANY_VALUE, validate_dynamic_ref},
    [KEYWORD_ALL_OF] = {ANY_VALUE, validate_all_of},
    [KEYWORD_ANY_OF] = {ANY_VALUE, validate_any_of},
    [KEYWORD_ONE_OF] = {ANY_VALUE, validate_one_of},
    [KEYWORD_NOT] = {ANY_VALUE, validate_not},
    [KEYWORD_IF] = {ANY_VALUE, validate_if},
};

static bool validate_rules(struct validation *validation, const struct node *node, uint32_t value, struct seen *seen)
{
    uint32_t kind = value_at(validation->instance, value)->kind;

    if (!validation_spend(validation, NODE_UNITS + RULE_UNITS * node->rule_count))
        return false;
    for (uint32_t i = 0; i < node->rule_count; i++) {
        const struct rule *rule = &validation->schema->rules[node->first_rule + i];
        if (rules[rule->keyword].kinds >> kind & 1 && !rules[rule->keyword].validate(validation, rule, value, seen))
            return false;
    }
    return validation->result == SCHEMA_VALID;
}

/* The rules of a schema with unevaluated… see only what its own rules have evaluated; the rules around it see that later. */
static bool validate_collecting(struct validation *validation, const struct node *node, uint32_t value,
                                struct seen *seen)
{
    _cleanup_(seen_finish) struct seen own;
    bool valid = seen_init(validation, value, &own) && validate_rules(validation, node, value, &own);

    if (valid)
        seen_add(validation, seen, &own);
    return valid;
}

static bool validate_node(struct validation *validation, uint32_t index, uint32_t value, struct seen *seen)
{
    const struct node *node = &validation->schema->nodes[index];
    struct scope scope = {validation->scope, node->resource};
    bool enters = !validation->scope || validation->scope->resource != node->resource;
    bool valid;

    if (validation->depth == VALIDATION_DEPTH_MAX)
        return give_up(validation, SCHEMA_TOO_DEEP);
    if (validation->in_place > 2 * SCHEMA_HEIGHT_MAX)
        return give_up(validation, SCHEMA_LOOPS);
    validation->depth++;
    if (enters)
        validation->scope = &scope;
    if (node->collects && value_at(validation->instance, value)->kind >= VALUE_ARRAY)
        valid = validate_collecting(validation, node, value, seen);
    else
        valid = validate_rules(validation, node, value, seen);
    if (enters)
        validation->scope = scope.outer;
    validation->depth--;
    return valid;
}

bool validate_in_place(struct validation *validation, uint32_t node, uint32_t value, struct seen *seen,
                       enum keyword keyword)
{
    uint8_t kind = validation->schema->nodes[node].kind;
    bool valid;

    if (kind == NODE_TRUE)
        return true;
    if (kind == NODE_FALSE)
        return validation_violated(validation, keyword, value);
    validation->in_place++;
    valid = validate_node(validation, node, value, seen);
    validation->in_place--;
    return valid;
}

bool validate_within(struct validation *validation, uint32_t node, uint32_t value, enum keyword keyword)
{
    uint32_t in_place = validation->in_place;
    bool valid;

    validation->in_place = 0;
    valid = validate_in_place(validation, node, value, NULL, keyword);
    validation->in_place = in_place;
    return valid;
}

enum schema_result schema_validate(struct schema *schema, const struct document *instance,
                                   struct schema_violation *ret_violation)
{
    struct validation validation = {.schema = schema, .instance = instance};
    bool valid;

    schema->units = 0;
    valid = validate_in_place(&validation, 0, 0, NULL, KEYWORDS);
    *ret_violation = validation.violation;
    if (validation.result != SCHEMA_VALID)
        return validation.result;
    return valid ? SCHEMA_VALID : SCHEMA_INVALID;
}
