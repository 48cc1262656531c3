/* The rules of each schema, in the order in which they are evaluated; every value is checked against the draft. */
#include "verifiers/schema/ecma.h"
#include "verifiers/schema/schema_private.h"

#include <stdlib.h>

#include "server/base/cleanup.h"

/* One schema under way. */
struct build {
    struct maker *maker;
    uint32_t node;
    uint32_t at[KEYWORDS]; /* values of its keywords; NO_VALUE: absent */
};

typedef int build_rule(struct build *build, enum keyword keyword, uint32_t value);

static const struct document *document_of(const struct build *build)
{
    return &build->maker->schema->document;
}

static uint32_t node_of(const struct build *build, enum keyword keyword)
{
    uint32_t value = build->at[keyword];
    return value == NO_VALUE ? NO_NODE : build->maker->schema->node_of[value];
}

static struct rule *add_rule(struct build *build, enum keyword keyword)
{
    struct rule *rule = SCHEMA_GROW(build->maker, rule, rules, 1);

    if (!rule)
        return NULL;
    *rule = (struct rule){.keyword = (uint8_t)keyword, .node = NO_NODE, .other = NO_NODE, .third = NO_NODE};
    build->maker->schema->nodes[build->node].rule_count++;
    return rule;
}

static int refuse(struct build *build, uint32_t value, const char *problem)
{
    return schema_refuse(build->maker, value, "%s", problem);
}

/* --- values --- */

/* "integer" stands for a number that is whole. */
#define TYPE_WHOLE (1u << 7)

static const struct {
    const char *name;
    uint32_t mask;
} types[] = {
    {"null", 1u << VALUE_NULL},     {"boolean", 1u << VALUE_TRUE | 1u << VALUE_FALSE},
    {"number", 1u << VALUE_NUMBER}, {"integer", TYPE_WHOLE},
    {"string", 1u << VALUE_STRING}, {"array", 1u << VALUE_ARRAY},
    {"object", 1u << VALUE_OBJECT},
};

static int add_type(struct build *build, uint32_t value, uint64_t *mask)
{
    const struct document *document = document_of(build);

    for (size_t i = 0; i < ARRAY_LENGTH(types); i++) {
        if (value_at(document, value)->kind != VALUE_STRING || !text_equals(value_text(document, value), types[i].name))
            continue;
        if (*mask & types[i].mask)
            return refuse(build, value, "a type that occurs twice");
        *mask |= types[i].mask;
        return 0;
    }
    return refuse(build, value, "must be null, boolean, number, integer, string, array or object");
}

static int build_type(struct build *build, enum keyword keyword, uint32_t value)
{
    const struct document *document = document_of(build);
    const struct value *list = value_at(document, value);
    uint64_t mask = 0;
    struct rule *rule;

    if (list->kind != VALUE_ARRAY && add_type(build, value, &mask) < 0)
        return -1;
    if (list->kind == VALUE_ARRAY && list->count == 0)
        return refuse(build, value, "must have at least one type");
    for (uint32_t at = value + 1; list->kind == VALUE_ARRAY && at < list->next; at++)
        if (add_type(build, at, &mask) < 0)
            return -1;
    rule = add_rule(build, keyword);
    if (!rule)
        return -1;
    rule->low = mask;
    return 0;
}

static int build_const(struct build *build, enum keyword keyword, uint32_t value)
{
    struct rule *rule = add_rule(build, keyword);

    if (!rule)
        return -1;
    rule->first = value;
    return 0;
}

static int value_order(const void *left, const void *right, void *document)
{
    uint64_t units = 0;
    return value_compare(document, *(const uint32_t *)left, document, *(const uint32_t *)right, &units, UINT64_MAX);
}

/* By their order, for a binary search. */
static int build_enum(struct build *build, enum keyword keyword, uint32_t value)
{
    struct schema *schema = build->maker->schema;
    const struct value *list = value_at(&schema->document, value);
    uint32_t *values;
    struct rule *rule;

    if (list->kind != VALUE_ARRAY)
        return refuse(build, value, "must be a list of values");
    values = SCHEMA_GROW(build->maker, list, lists, list->count);
    rule = add_rule(build, keyword);
    if (!values || !rule)
        return -1;
    rule->count = list->count;
    rule->first = schema->list_count - list->count;
    for (uint32_t at = value + 1, i = 0; at < list->next; at = value_at(&schema->document, at)->next)
        values[i++] = at;
    qsort_r(values, list->count, sizeof values[0], value_order, &schema->document);
    return 0;
}

static int add_number(struct build *build, uint32_t value, struct decimal *ret_number)
{
    const struct document *document = document_of(build);

    if (value_at(document, value)->kind != VALUE_NUMBER)
        return refuse(build, value, "must be a number");
    decimal_read(value_written(document, value), ret_number);
    return 0;
}

static int build_number(struct build *build, enum keyword keyword, uint32_t value)
{
    struct decimal *number = SCHEMA_GROW(build->maker, decimal, decimals, 1);
    struct rule *rule = add_rule(build, keyword);

    if (!number || !rule)
        return -1;
    rule->first = build->maker->schema->decimal_count - 1;
    if (add_number(build, value, number) < 0)
        return -1;
    if (keyword != KEYWORD_MULTIPLE_OF)
        return 0;
    if (!number->first || number->negative)
        return refuse(build, value, "must be greater than 0");
    return number->digits > DIVISOR_DIGITS_MAX ? refuse(build, value, "must have at most 100 digits") : 0;
}

static int read_count(struct build *build, uint32_t value, uint64_t *ret_count)
{
    struct decimal number = {.first = NULL};

    if (add_number(build, value, &number) < 0 || (number.first && number.negative) || !decimal_is_whole(&number))
        return refuse(build, value, "must be a whole number from 0");
    *ret_count = decimal_count(&number);
    return 0;
}

static int build_count(struct build *build, enum keyword keyword, uint32_t value)
{
    struct rule *rule = add_rule(build, keyword);
    return rule ? read_count(build, value, &rule->low) : -1;
}

static int build_unique(struct build *build, enum keyword keyword, uint32_t value)
{
    enum value_kind kind = value_at(document_of(build), value)->kind;

    if (kind != VALUE_TRUE && kind != VALUE_FALSE)
        return refuse(build, value, "must be true or false");
    return kind == VALUE_FALSE || add_rule(build, keyword) ? 0 : -1;
}

/* --- patterns --- */

static int add_pattern(struct build *build, uint32_t value, uint32_t *ret_pattern)
{
    struct schema *schema = build->maker->schema;
    struct text source = value_text(&schema->document, value);
    char problem[PATTERN_PROBLEM_BYTES];
    const char *wrong;

    build->maker->pattern_bytes += source.length_bytes;
    if (schema->pattern_count == SCHEMA_PATTERNS_MAX || build->maker->pattern_bytes > SCHEMA_PATTERN_BYTES)
        return refuse(build, value, "more than 256 patterns, or more than 65536 bytes of them");
    if (!schema->patterns) {
        schema->patterns = xcalloc(SCHEMA_PATTERNS_MAX, sizeof(struct pattern *));
        schema->pattern_texts = xcalloc(SCHEMA_PATTERNS_MAX, sizeof schema->pattern_texts[0]);
    }
    *ret_pattern = schema->pattern_count++;
    buffer_init(&schema->pattern_texts[*ret_pattern], ECMA_PATTERN_BYTES);
    wrong = ecma_translate(source, &schema->pattern_texts[*ret_pattern]);
    if (wrong)
        return schema_refuse(build->maker, value, "a pattern that is none: %s", wrong);
    schema->patterns[*ret_pattern] = pattern_create(buffer_text(&schema->pattern_texts[*ret_pattern]), problem);
    if (!schema->patterns[*ret_pattern])
        return schema_refuse(build->maker, value, "a pattern that is none: %s", problem);
    pattern_share_work(schema->patterns[*ret_pattern], &schema->units, VALIDATION_WORK_UNITS);
    return 0;
}

static int build_pattern(struct build *build, enum keyword keyword, uint32_t value)
{
    struct rule *rule = add_rule(build, keyword);

    if (value_at(document_of(build), value)->kind != VALUE_STRING)
        return refuse(build, value, "must be a pattern");
    return rule ? add_pattern(build, value, &rule->first) : -1;
}

/* --- members --- */

static int name_order(const void *left, const void *right)
{
    return text_order(((const struct property *)left)->name, ((const struct property *)right)->name);
}

/* The members of an object of schemas as properties, by their order. */
static int add_properties(struct build *build, uint32_t map, uint32_t *ret_first, uint32_t *ret_count)
{
    struct schema *schema = build->maker->schema;
    const struct value *value = value_at(&schema->document, map);
    struct property *properties = SCHEMA_GROW(build->maker, property, properties, value->count);
    uint32_t i = 0;

    if (!properties)
        return -1;
    *ret_count = value->count;
    *ret_first = schema->property_count - value->count;
    for (uint32_t at = map + 1; at < value->next; at = value_at(&schema->document, at + 1)->next)
        properties[i++] = (struct property){.name = value_text(&schema->document, at), .node = schema->node_of[at + 1]};
    qsort(properties, value->count, sizeof properties[0], name_order);
    return 0;
}

static int add_patterned(struct build *build, uint32_t map, struct rule *rule)
{
    struct schema *schema = build->maker->schema;
    const struct value *value = value_at(&schema->document, map);
    struct patterned *patterned = SCHEMA_GROW(build->maker, patterned, patterned, value->count);

    if (!patterned)
        return -1;
    rule->third = value->count;
    rule->other = schema->patterned_count - value->count;
    for (uint32_t at = map + 1; at < value->next; at = value_at(&schema->document, at + 1)->next, patterned++) {
        patterned->node = schema->node_of[at + 1];
        if (add_pattern(build, at, &patterned->pattern) < 0)
            return -1;
    }
    return 0;
}

/* properties, patternProperties and additionalProperties are one rule. */
static int build_members(struct build *build, enum keyword keyword, uint32_t value)
{
    struct rule *rule = add_rule(build, keyword);
    uint32_t properties = build->at[KEYWORD_PROPERTIES];
    uint32_t patterned = build->at[KEYWORD_PATTERN_PROPERTIES];

    (void)value;
    if (!rule)
        return -1;
    rule->node = node_of(build, KEYWORD_ADDITIONAL_PROPERTIES);
    rule->other = rule->third = 0;
    if (properties != NO_VALUE && add_properties(build, properties, &rule->first, &rule->count) < 0)
        return -1;
    return patterned == NO_VALUE ? 0 : add_patterned(build, patterned, rule);
}

static int build_dependent_schemas(struct build *build, enum keyword keyword, uint32_t value)
{
    struct rule *rule = add_rule(build, keyword);
    return rule ? add_properties(build, value, &rule->first, &rule->count) : -1;
}

/* A list of names, each once. */
static int add_names(struct build *build, uint32_t list, uint32_t *ret_first, uint32_t *ret_count)
{
    struct schema *schema = build->maker->schema;
    const struct value *value = value_at(&schema->document, list);
    struct property *names;
    uint32_t count = 0;

    if (value->kind != VALUE_ARRAY)
        return refuse(build, list, "must be a list of names");
    names = SCHEMA_GROW(build->maker, property, properties, value->count);
    if (!names)
        return -1;
    *ret_count = value->count;
    *ret_first = schema->property_count - value->count;
    for (uint32_t at = list + 1; at < value->next; at = value_at(&schema->document, at)->next) {
        if (value_at(&schema->document, at)->kind != VALUE_STRING)
            return refuse(build, at, "must be a name");
        names[count++].name = value_text(&schema->document, at);
    }
    qsort(names, count, sizeof names[0], name_order);
    for (uint32_t i = 1; i < count; i++)
        if (name_order(&names[i - 1], &names[i]) == 0)
            return refuse(build, list, "a name that occurs twice");
    return 0;
}

static int build_required(struct build *build, enum keyword keyword, uint32_t value)
{
    struct rule *rule = add_rule(build, keyword);
    return rule ? add_names(build, value, &rule->first, &rule->count) : -1;
}

static int build_dependent_required(struct build *build, enum keyword keyword, uint32_t value)
{
    struct schema *schema = build->maker->schema;
    struct rule *rule = add_rule(build, keyword);
    const struct value *map = value_at(&schema->document, value);
    uint32_t index;

    if (map->kind != VALUE_OBJECT)
        return refuse(build, value, "must be an object of lists of names");
    if (!rule || add_properties(build, value, &rule->first, &rule->count) < 0)
        return -1;
    index = rule->first;
    for (uint32_t i = 0; i < rule->count; i++, index++) {
        uint32_t list = value_member(&schema->document, value, schema->properties[index].name);
        uint32_t first = 0;
        uint32_t count = 0;
        if (add_names(build, list, &first, &count) < 0)
            return -1;
        schema->properties[index].first = first; /* the array may have moved */
        schema->properties[index].count = count;
    }
    return 0;
}

/* --- schemas in the schema --- */

static int build_node(struct build *build, enum keyword keyword, uint32_t value)
{
    struct rule *rule = add_rule(build, keyword);

    if (!rule)
        return -1;
    rule->node = build->maker->schema->node_of[value];
    return 0;
}

static int build_unevaluated(struct build *build, enum keyword keyword, uint32_t value)
{
    build->maker->schema->nodes[build->node].collects = true;
    return build_node(build, keyword, value);
}

static int add_list(struct build *build, uint32_t value, struct rule *rule)
{
    struct schema *schema = build->maker->schema;
    const struct value *list = value_at(&schema->document, value);
    uint32_t *nodes = SCHEMA_GROW(build->maker, list, lists, list->count);
    uint32_t i = 0;

    if (!nodes)
        return -1;
    rule->count = list->count;
    rule->first = schema->list_count - list->count;
    for (uint32_t at = value + 1; at < list->next; at = value_at(&schema->document, at)->next)
        nodes[i++] = schema->node_of[at];
    return 0;
}

static int build_list(struct build *build, enum keyword keyword, uint32_t value)
{
    struct rule *rule = add_rule(build, keyword);
    return rule ? add_list(build, value, rule) : -1;
}

/* prefixItems and items are one rule. */
static int build_items(struct build *build, enum keyword keyword, uint32_t value)
{
    struct rule *rule = add_rule(build, keyword);
    uint32_t prefix = build->at[KEYWORD_PREFIX_ITEMS];

    (void)value;
    if (!rule)
        return -1;
    rule->node = node_of(build, KEYWORD_ITEMS);
    return prefix == NO_VALUE ? 0 : add_list(build, prefix, rule);
}

static int build_contains(struct build *build, enum keyword keyword, uint32_t value)
{
    struct rule *rule = add_rule(build, keyword);

    if (!rule)
        return -1;
    rule->node = build->maker->schema->node_of[value];
    rule->low = 1;
    rule->high = UINT64_MAX;
    if (build->at[KEYWORD_MIN_CONTAINS] != NO_VALUE &&
        read_count(build, build->at[KEYWORD_MIN_CONTAINS], &rule->low) < 0)
        return -1;
    return build->at[KEYWORD_MAX_CONTAINS] == NO_VALUE
               ? 0
               : read_count(build, build->at[KEYWORD_MAX_CONTAINS], &rule->high);
}

static int build_if(struct build *build, enum keyword keyword, uint32_t value)
{
    struct rule *rule = add_rule(build, keyword);

    if (!rule)
        return -1;
    rule->node = build->maker->schema->node_of[value];
    rule->other = node_of(build, KEYWORD_THEN);
    rule->third = node_of(build, KEYWORD_ELSE);
    return 0;
}

static int build_reference(struct build *build, enum keyword keyword, uint32_t value)
{
    struct schema *schema = build->maker->schema;
    struct text anchor;
    uint32_t node = schema_resolve(build->maker, &schema->nodes[build->node], value, &anchor);
    struct property *name;
    struct rule *rule;

    if (node == NO_NODE)
        return -1;
    rule = add_rule(build, keyword);
    if (!rule)
        return -1;
    rule->node = node;
    if (keyword == KEYWORD_REF || !anchor.data)
        return 0;
    name = SCHEMA_GROW(build->maker, property, properties, 1);
    if (!name)
        return -1;
    name->name = anchor;
    rule->first = schema->property_count - 1;
    rule->count = 1;
    return 0;
}

/* --- keywords that are checked here, and constrain no value --- */

static int check_text(struct build *build, enum keyword keyword, uint32_t value)
{
    (void)keyword;
    return value_at(document_of(build), value)->kind == VALUE_STRING ? 0 : refuse(build, value, "must be a text");
}

static int check_bool(struct build *build, enum keyword keyword, uint32_t value)
{
    enum value_kind kind = value_at(document_of(build), value)->kind;

    (void)keyword;
    return kind == VALUE_TRUE || kind == VALUE_FALSE ? 0 : refuse(build, value, "must be true or false");
}

static int check_list(struct build *build, enum keyword keyword, uint32_t value)
{
    (void)keyword;
    return value_at(document_of(build), value)->kind == VALUE_ARRAY ? 0 : refuse(build, value, "must be a list");
}

static int check_count(struct build *build, enum keyword keyword, uint32_t value)
{
    uint64_t count;

    (void)keyword;
    return read_count(build, value, &count);
}

/* In the order of evaluation: cheap keywords first, those that need the results of others last. */
static const struct {
    enum keyword keyword;
    build_rule *build;
} builders[] = {
    {KEYWORD_COMMENT, check_text},
    {KEYWORD_TITLE, check_text},
    {KEYWORD_DESCRIPTION, check_text},
    {KEYWORD_FORMAT, check_text},
    {KEYWORD_DEPRECATED, check_bool},
    {KEYWORD_READ_ONLY, check_bool},
    {KEYWORD_WRITE_ONLY, check_bool},
    {KEYWORD_EXAMPLES, check_list},
    {KEYWORD_MIN_CONTAINS, check_count},
    {KEYWORD_MAX_CONTAINS, check_count},
    {KEYWORD_TYPE, build_type},
    {KEYWORD_CONST, build_const},
    {KEYWORD_ENUM, build_enum},
    {KEYWORD_MINIMUM, build_number},
    {KEYWORD_MAXIMUM, build_number},
    {KEYWORD_EXCLUSIVE_MINIMUM, build_number},
    {KEYWORD_EXCLUSIVE_MAXIMUM, build_number},
    {KEYWORD_MULTIPLE_OF, build_number},
    {KEYWORD_MIN_LENGTH, build_count},
    {KEYWORD_MAX_LENGTH, build_count},
    {KEYWORD_PATTERN, build_pattern},
    {KEYWORD_MIN_ITEMS, build_count},
    {KEYWORD_MAX_ITEMS, build_count},
    {KEYWORD_MIN_PROPERTIES, build_count},
    {KEYWORD_MAX_PROPERTIES, build_count},
    {KEYWORD_REQUIRED, build_required},
    {KEYWORD_DEPENDENT_REQUIRED, build_dependent_required},
    {KEYWORD_PROPERTY_NAMES, build_node},
    {KEYWORD_PROPERTIES, build_members},
    {KEYWORD_ITEMS, build_items},
    {KEYWORD_CONTAINS, build_contains},
    {KEYWORD_UNIQUE_ITEMS, build_unique},
    {KEYWORD_REF, build_reference},
    {KEYWORD_DYNAMIC_REF, build_reference},
    {KEYWORD_ALL_OF, build_list},
    {KEYWORD_ANY_OF, build_list},
    {KEYWORD_ONE_OF, build_list},
    {KEYWORD_NOT, build_node},
    {KEYWORD_IF, build_if},
    {KEYWORD_DEPENDENT_SCHEMAS, build_dependent_schemas},
    {KEYWORD_UNEVALUATED_ITEMS, build_unevaluated},
    {KEYWORD_UNEVALUATED_PROPERTIES, build_unevaluated},
};

/* A rule that several keywords share stands at the first of them. */
static uint32_t value_for(const struct build *build, enum keyword keyword)
{
    uint32_t value = build->at[keyword];

    if (value == NO_VALUE && keyword == KEYWORD_PROPERTIES)
        value = build->at[KEYWORD_PATTERN_PROPERTIES];
    if (value == NO_VALUE && keyword == KEYWORD_PROPERTIES)
        value = build->at[KEYWORD_ADDITIONAL_PROPERTIES];
    if (value == NO_VALUE && keyword == KEYWORD_ITEMS)
        value = build->at[KEYWORD_PREFIX_ITEMS];
    return value;
}

static int build_schema(struct build *build)
{
    struct schema *schema = build->maker->schema;
    struct node *node = &schema->nodes[build->node];
    const struct value *object = value_at(&schema->document, node->value);

    node->first_rule = schema->rule_count;
    if (node->kind != NODE_RULES)
        return 0;
    memset(build->at, 0xFF, sizeof build->at);
    for (uint32_t at = node->value + 1; at < object->next; at = value_at(&schema->document, at + 1)->next)
        build->at[schema->keyword_of[at]] = at + 1;
    for (size_t i = 0; i < ARRAY_LENGTH(builders); i++) {
        uint32_t value = value_for(build, builders[i].keyword);
        if (value != NO_VALUE && builders[i].build(build, builders[i].keyword, value) < 0)
            return -1;
    }
    return 0;
}

int schema_build(struct maker *maker)
{
    struct build build = {.maker = maker};

    for (build.node = 0; build.node < maker->schema->node_count; build.node++)
        if (build_schema(&build) < 0)
            return -1;
    return 0;
}
