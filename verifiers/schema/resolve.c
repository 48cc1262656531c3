/* References: to resources by their URI, in them by a pointer or an anchor. */
#include "verifiers/schema/schema_private.h"

#include <stdlib.h>

static int uri_order(const void *left, const void *right, void *schema)
{
    const struct resource *resources = ((const struct schema *)schema)->resources;
    return strcmp(resources[*(const uint32_t *)left].uri, resources[*(const uint32_t *)right].uri);
}

static int compare_anchors(const struct anchor *left, uint32_t resource, struct text name)
{
    if (left->resource != resource)
        return left->resource < resource ? -1 : 1;
    return text_order(left->name, name);
}

static int anchor_order(const void *left, const void *right)
{
    const struct anchor *other = right;
    return compare_anchors(left, other->resource, other->name);
}

int schema_sort_names(struct maker *maker)
{
    struct schema *schema = maker->schema;

    schema->by_uri = xcalloc(schema->resource_count, sizeof schema->by_uri[0]);
    for (uint32_t i = 0; i < schema->resource_count; i++)
        schema->by_uri[i] = i;
    qsort_r(schema->by_uri, schema->resource_count, sizeof schema->by_uri[0], uri_order, schema);
    for (uint32_t i = 1; i < schema->resource_count; i++)
        if (uri_order(&schema->by_uri[i - 1], &schema->by_uri[i], schema) == 0)
            return schema_refuse(maker, schema->nodes[schema->resources[schema->by_uri[i]].node].value,
                                 "another schema has the same $id");
    if (schema->anchor_count)
        qsort(schema->anchors, schema->anchor_count, sizeof schema->anchors[0], anchor_order);
    for (uint32_t i = 1; i < schema->anchor_count; i++) {
        const struct anchor *anchor = &schema->anchors[i];
        if (anchor_order(anchor - 1, anchor) == 0 && anchor[-1].node != anchor->node)
            return schema_refuse(maker, schema->nodes[anchor->node].value, "another schema has the same anchor");
    }
    return 0;
}

const struct anchor *schema_find_anchor(const struct schema *schema, uint32_t resource, struct text name)
{
    uint32_t low = 0;
    uint32_t high = schema->anchor_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare_anchors(&schema->anchors[middle], resource, name);
        if (order == 0)
            return &schema->anchors[middle];
        if (order > 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static uint32_t find_resource(const struct schema *schema, const char *uri)
{
    uint32_t low = 0;
    uint32_t high = schema->resource_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(uri, schema->resources[schema->by_uri[middle]].uri);
        if (order == 0)
            return schema->by_uri[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NO_NODE;
}

/* --- pointers --- */

/* A value on the way of a pointer. */
struct place {
    uint32_t value;
    enum keyword_shape shape; /* SHAPE_SCHEMA: it is a schema itself */
};

static uint32_t element_of(const struct document *document, uint32_t array, struct text token)
{
    uint64_t index = 0;

    if (token.length_bytes == 0 || token.length_bytes > 9 || (token.data[0] == '0' && token.length_bytes > 1))
        return NO_VALUE;
    for (size_t i = 0; i < token.length_bytes; i++) {
        if (token.data[i] < '0' || token.data[i] > '9')
            return NO_VALUE;
        index = index * 10 + (uint64_t)(token.data[i] - '0');
    }
    return value_element(document, array, index);
}

/* Into what has schemas alone: nothing else is a place that a reference may mean. */
static bool step(const struct schema *schema, struct text token, struct place *place)
{
    const struct document *document = &schema->document;
    enum value_kind kind = value_at(document, place->value)->kind;
    bool was_schema = place->shape == SHAPE_SCHEMA;

    if (place->shape == SHAPE_LIST)
        place->value = element_of(document, place->value, token);
    else
        place->value = kind == VALUE_OBJECT ? value_member(document, place->value, token) : NO_VALUE;
    if (place->value == NO_VALUE)
        return false;
    place->shape = was_schema ? keyword_rows[schema->keyword_of[place->value - 1]].shape : SHAPE_SCHEMA;
    return place->shape != SHAPE_VALUE;
}

/* ~1 and ~0 undone, in place: a token becomes shorter. */
static struct text unescape(char *token, size_t length_bytes)
{
    size_t written = 0;

    for (size_t i = 0; i < length_bytes; i++) {
        bool escaped = token[i] == '~' && i + 1 < length_bytes && (token[i + 1] == '0' || token[i + 1] == '1');
        token[written++] = !escaped ? token[i] : token[i + 1] == '0' ? '~' : '/';
        i += escaped;
    }
    return (struct text){token, written};
}

static uint32_t follow_pointer(const struct schema *schema, uint32_t resource, struct buffer *pointer)
{
    struct place place = {schema->nodes[schema->resources[resource].node].value, SHAPE_SCHEMA};

    for (size_t at = 0; at < pointer->length_bytes;) {
        char *token = pointer->data + at + 1;
        char *slash = memchr(token, '/', pointer->length_bytes - at - 1);
        size_t length_bytes = slash ? (size_t)(slash - token) : pointer->length_bytes - at - 1;
        if (!step(schema, unescape(token, length_bytes), &place))
            return NO_NODE;
        at += 1 + length_bytes;
    }
    return place.shape == SHAPE_SCHEMA ? schema->node_of[place.value] : NO_NODE;
}

/* --- references --- */

static uint32_t refuse(struct maker *maker, uint32_t reference, const char *problem)
{
    schema_refuse(maker, reference, "%s", problem);
    return NO_NODE;
}

static uint32_t resource_of(const struct schema *schema, uint32_t from, struct text whole)
{
    _cleanup_buffer_ struct buffer uri;

    buffer_init(&uri, SCHEMA_URI_BYTES);
    if (whole.length_bytes == 0)
        return from;
    uri_resolve(text_of(schema->resources[from].uri), whole, &uri);
    return uri.failed || memchr(whole.data, '\0', whole.length_bytes) ? NO_NODE
                                                                      : find_resource(schema, buffer_text(&uri).data);
}

static uint32_t follow_anchor(struct maker *maker, uint32_t resource, struct text name, struct text *ret_anchor)
{
    const struct anchor *anchor = schema_find_anchor(maker->schema, resource, name);

    if (anchor && anchor->dynamic)
        *ret_anchor = anchor->name;
    return anchor ? anchor->node : NO_NODE;
}

uint32_t schema_resolve(struct maker *maker, const struct node *from, uint32_t reference, struct text *ret_anchor)
{
    _cleanup_buffer_ struct buffer fragment;
    struct schema *schema = maker->schema;
    const struct value *value = value_at(&schema->document, reference);
    bool has_fragment;
    struct text whole;
    uint32_t resource;
    uint32_t node;

    *ret_anchor = TEXT_NONE;
    buffer_init(&fragment, SCHEMA_TEXT_BYTES);
    if (value->kind != VALUE_STRING ||
        !uri_split(value_text(&schema->document, reference), &whole, &fragment, &has_fragment))
        return refuse(maker, reference, "must be a URI reference");
    resource = resource_of(schema, from->resource, whole);
    if (resource == NO_NODE)
        return refuse(maker, reference, "points outside of this schema; nothing is fetched");
    if (fragment.length_bytes == 0)
        return schema->resources[resource].node;
    if (fragment.data[0] == '/')
        node = follow_pointer(schema, resource, &fragment);
    else
        node = follow_anchor(maker, resource, buffer_text(&fragment), ret_anchor);
    return node == NO_NODE ? refuse(maker, reference, "points to no schema") : node;
}
