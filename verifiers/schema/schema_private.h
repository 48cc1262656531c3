/* A schema made ready: nodes (one for each schema in the document) with their rules. */
#ifndef VERIFIERS_SCHEMA_SCHEMA_PRIVATE_H
#define VERIFIERS_SCHEMA_SCHEMA_PRIVATE_H

#include "verifiers/schema/decimal.h"
#include "verifiers/schema/document.h"
#include "verifiers/schema/schema.h"
#include "verifiers/text/pattern.h"

/* Limits of a schema. */
#define SCHEMA_TEXT_BYTES (1u << 20)
#define SCHEMA_PATTERNS_MAX 256
#define SCHEMA_PATTERN_BYTES 65536  /* of all patterns */
#define SCHEMA_URI_BYTES (1u << 20) /* of all $id, made absolute */
#define SCHEMA_HEIGHT_MAX 200       /* schemas for the same value, one in the other or by reference */
#define SCHEMA_COST_MAX 100000      /* schemas that one value would be held against, without what is in it */
/* Schemas that are kept by a thread, and how large each may be. */
#define SCHEMAS_KEPT 4
#define SCHEMA_KEPT_BYTES 65536
#define SCHEMA_KEPT_PATTERNS 32
/* Limits of a validation. */
#define VALIDATION_WORK_UNITS 40000000 /* about a nanosecond each */
#define VALIDATION_DEPTH_MAX 8000      /* schemas in evaluation at once */

#define NO_NODE UINT32_MAX

enum keyword {
#define KEYWORD(ENUMERATOR, NAME, SHAPE) KEYWORD_##ENUMERATOR,
#include "verifiers/schema/keywords.def"
#undef KEYWORD
    KEYWORDS
};

enum keyword_shape { SHAPE_VALUE, SHAPE_SCHEMA, SHAPE_LIST, SHAPE_MAP };

struct keyword_row {
    const char *name;
    enum keyword_shape shape;
};
extern const struct keyword_row keyword_rows[KEYWORDS];
enum keyword keyword_find(struct text name); /* KEYWORDS: there is none of this name */

enum node_kind { NODE_RULES, NODE_TRUE, NODE_FALSE };

struct node {
    uint32_t value; /* in the schema's document */
    uint32_t resource;
    uint32_t first_rule;
    uint32_t rule_count;
    uint8_t kind;
    bool collects; /* has a rule for what no other has looked at */
};

/* first, count: a range of an array of the schema, by the kind of rule. */
struct rule {
    uint8_t keyword;
    uint32_t first;
    uint32_t count;
    uint32_t node;  /* NO_NODE: none */
    uint32_t other; /* of if: then; of the members: the first of their patterns */
    uint32_t third; /* of if: else; of the members: how many patterns */
    uint64_t low;   /* counts */
    uint64_t high;
};

struct property {
    struct text name;
    uint32_t node;  /* or, for required, none */
    uint32_t first; /* of dependentRequired: its names */
    uint32_t count;
};

struct patterned {
    uint32_t pattern;
    uint32_t node;
};

struct resource {
    char *uri; /* absolute if it can be; without a fragment */
    uint32_t node;
};

struct anchor {
    uint32_t resource;
    uint32_t node;
    struct text name;
    bool dynamic;
};

/* Growing arrays: name##s, name##_count, name##_room. */
struct schema {
    struct buffer text;
    struct document document;
    uint32_t *node_of;   /* by value: NO_NODE if it is no schema */
    uint8_t *keyword_of; /* by value, for keys in schemas */
    struct node *nodes;
    uint32_t node_count, node_room;
    struct rule *rules;
    uint32_t rule_count, rule_room;
    uint32_t *lists; /* of nodes, or of values */
    uint32_t list_count, list_room;
    struct property *properties;
    uint32_t property_count, property_room;
    struct patterned *patterned;
    uint32_t patterned_count, patterned_room;
    struct decimal *decimals;
    uint32_t decimal_count, decimal_room;
    struct pattern **patterns;
    struct buffer *pattern_texts; /* what they are made from */
    uint32_t pattern_count;
    struct resource *resources;
    uint32_t resource_count, resource_room;
    uint32_t *by_uri; /* resources, by their order */
    struct anchor *anchors;
    uint32_t anchor_count, anchor_room;
    uint64_t units; /* of the validation under way; its patterns count here, too */
};

/* While a schema is made. */
struct maker {
    struct schema *schema;
    char *problem;    /* [SCHEMA_PROBLEM_BYTES] */
    size_t uri_bytes; /* of all $id */
    size_t pattern_bytes;
};

/* Each step: 0, or -1 with the problem. In this order. */
int schema_collect(struct maker *maker); /* nodes, resources, anchors */
int schema_build(struct maker *maker);   /* rules, references resolved */
int schema_check_loops(struct maker *maker);

/* "at /properties/a: …". value: of the schema's document. Returns -1. */
int schema_refuse(struct maker *maker, uint32_t value, const char *format, ...) _printf_(3, 4);

/* Room for more elements in one of the arrays above: the first of them, or NULL with the problem. */
void *schema_grow(struct maker *maker, void **array, uint32_t *count, uint32_t *room, uint32_t more, size_t bytes);
#define SCHEMA_GROW(maker, name, plural, more)                                                                         \
    schema_grow(maker, (void **)&(maker)->schema->plural, &(maker)->schema->name##_count,                              \
                &(maker)->schema->name##_room, more, sizeof(maker)->schema->plural[0])

/* --- references --- */

/* reference, of a $ref or $dynamicRef in this node: the node that it means. *ret_anchor: the name in its fragment, if it
 * is that of a dynamic anchor; else TEXT_NONE. NO_NODE with the problem. */
uint32_t schema_resolve(struct maker *maker, const struct node *from, uint32_t reference, struct text *ret_anchor);
/* NULL: the resource has no such anchor. */
const struct anchor *schema_find_anchor(const struct schema *schema, uint32_t resource, struct text name);
int schema_sort_names(struct maker *maker); /* of resources and anchors, once all are known */

/* RFC 3986: appends the reference made absolute against the base, both without fragments. */
void uri_resolve(struct text base, struct text reference, struct buffer *out);
/* The part in front of #, and the fragment with its %XX undone; TEXT_NONE: there is no #. false: a broken %XX. */
bool uri_split(struct text reference, struct text *ret_whole, struct buffer *fragment, bool *ret_has_fragment);

/* --- validation --- */

struct seen; /* which elements or members have been looked at */

struct validation {
    struct schema *schema;
    const struct document *instance;
    struct schema_violation violation; /* keyword NULL: none yet */
    enum schema_result result;         /* other than SCHEMA_VALID: it is given up */
    uint32_t silent;                   /* > 0: within something that may fail */
    uint32_t depth;
    uint32_t in_place; /* schemas that are evaluated for the same value, one in the other */
    const struct scope *scope;
};

/* Resources that were entered, the latest first. */
struct scope {
    const struct scope *outer;
    uint32_t resource;
};

struct seen {
    uint64_t *bits;
    uint32_t count;
};

typedef bool validate_rule(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen);

/* Same value. keyword: what asks. */
bool validate_in_place(struct validation *validation, uint32_t node, uint32_t value, struct seen *seen,
                       enum keyword keyword);
/* A value in the present one. */
bool validate_within(struct validation *validation, uint32_t node, uint32_t value, enum keyword keyword);
bool validation_violated(struct validation *validation, enum keyword keyword, uint32_t value); /* false */
bool validation_spend(struct validation *validation, uint64_t units); /* false: nothing is left */
/* -1: given up. */
int validate_matches(struct validation *validation, uint32_t pattern, struct text text);

bool seen_init(struct validation *validation, uint32_t value, struct seen *ret_seen);
void seen_finish(struct seen *seen);
void seen_add(struct validation *validation, struct seen *seen, const struct seen *other); /* seen: NULL is fine */

static inline void seen_mark(struct seen *seen, uint32_t index)
{
    if (seen)
        seen->bits[index / 64] |= UINT64_C(1) << index % 64;
}

validate_rule validate_members, validate_property_names, validate_required, validate_dependent_required,
    validate_dependent_schemas, validate_unevaluated_properties;
validate_rule validate_items, validate_contains, validate_unique_items, validate_unevaluated_items;
validate_rule validate_ref, validate_dynamic_ref, validate_all_of, validate_any_of, validate_one_of, validate_not,
    validate_if;

#endif
