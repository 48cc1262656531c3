/* The schemas of a document: which values are one, in which resource, and under which names. */
#include "verifiers/schema/schema_private.h"

#include <stdlib.h>

#include "server/base/nearest.h"

#define DIALECT "https://json-schema.org/draft/2020-12/schema"

static int collect(struct maker *maker, uint32_t value, uint32_t resource);

static uint32_t member(const struct maker *maker, uint32_t object, const char *key)
{
    return value_member(&maker->schema->document, object, text_of(key));
}

static struct text text_at(const struct maker *maker, uint32_t value)
{
    const struct document *document = &maker->schema->document;
    return value != NO_VALUE && value_at(document, value)->kind == VALUE_STRING ? value_text(document, value)
                                                                                : TEXT_NONE;
}

static int check_dialect(struct maker *maker, uint32_t object)
{
    uint32_t value = member(maker, object, "$schema");
    struct text dialect = text_at(maker, value);

    if (value == NO_VALUE || text_equals(dialect, DIALECT) || text_equals(dialect, DIALECT "#"))
        return 0;
    return schema_refuse(maker, value, "only the draft " DIALECT " is offered");
}

/* --- resources: a schema with an $id, and the whole --- */

static int add_resource(struct maker *maker, uint32_t node, struct text base, struct text id)
{
    struct resource *resource = SCHEMA_GROW(maker, resource, resources, 1);
    struct buffer uri;

    if (!resource)
        return -1;
    buffer_init(&uri, SCHEMA_URI_BYTES);
    uri_resolve(base, id, &uri);
    maker->uri_bytes += uri.length_bytes;
    resource->node = node;
    resource->uri = xstrndup(buffer_text(&uri).data, uri.length_bytes);
    buffer_finish(&uri);
    if (maker->uri_bytes <= SCHEMA_URI_BYTES)
        return 0;
    return schema_refuse(maker, 0, "the values of $id have more than %u bytes together", SCHEMA_URI_BYTES);
}

/* *resource: of what is around the schema; then its own. */
static int enter_resource(struct maker *maker, uint32_t object, uint32_t node, uint32_t *resource)
{
    _cleanup_buffer_ struct buffer fragment;
    struct schema *schema = maker->schema;
    uint32_t value = member(maker, object, "$id");
    struct text id = text_at(maker, value);
    struct text base = *resource == NO_NODE ? TEXT_LITERAL("") : text_of(schema->resources[*resource].uri);
    bool has_fragment = false;

    buffer_init(&fragment, SCHEMA_URI_BYTES);
    if (value == NO_VALUE && *resource != NO_NODE)
        return 0;
    if (value != NO_VALUE && (!id.data || !uri_split(id, &id, &fragment, &has_fragment) || fragment.length_bytes ||
                              memchr(id.data, '\0', id.length_bytes)))
        return schema_refuse(maker, value, "must be a URI without a fragment");
    if (add_resource(maker, node, base, value == NO_VALUE ? TEXT_LITERAL("") : id) < 0)
        return -1;
    *resource = schema->resource_count - 1;
    return 0;
}

static bool is_anchor(struct text name)
{
    for (size_t i = 0; i < name.length_bytes; i++) {
        char byte = name.data[i];
        bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
        if (!letter && (i == 0 || !((byte >= '0' && byte <= '9') || byte == '-' || byte == '.')))
            return false;
    }
    return name.length_bytes > 0;
}

static int add_anchor(struct maker *maker, uint32_t object, uint32_t node, uint32_t resource, enum keyword keyword)
{
    uint32_t value = member(maker, object, keyword_rows[keyword].name);
    struct text name = text_at(maker, value);
    struct anchor *anchor;

    if (value == NO_VALUE)
        return 0;
    if (!is_anchor(name))
        return schema_refuse(maker, value, "must be a name of letters, digits, - _ and .");
    anchor = SCHEMA_GROW(maker, anchor, anchors, 1);
    if (!anchor)
        return -1;
    *anchor = (struct anchor){resource, node, name, keyword == KEYWORD_DYNAMIC_ANCHOR};
    return 0;
}

/* --- what is in a schema --- */

static int collect_list(struct maker *maker, uint32_t list, uint32_t resource)
{
    const struct document *document = &maker->schema->document;
    const struct value *value = value_at(document, list);

    if (value->kind != VALUE_ARRAY || value->count == 0)
        return schema_refuse(maker, list, "must be a list of at least one schema");
    for (uint32_t at = list + 1; at < value->next; at = value_at(document, at)->next)
        if (collect(maker, at, resource) < 0)
            return -1;
    return 0;
}

static int collect_map(struct maker *maker, uint32_t map, uint32_t resource)
{
    const struct document *document = &maker->schema->document;
    const struct value *value = value_at(document, map);

    if (value->kind != VALUE_OBJECT)
        return schema_refuse(maker, map, "must be an object of schemas");
    for (uint32_t at = map + 1; at < value->next; at = value_at(document, at + 1)->next)
        if (collect(maker, at + 1, resource) < 0)
            return -1;
    return 0;
}

static int refuse_keyword(struct maker *maker, uint32_t object, struct text name)
{
    char advice[ADVICE_BYTES];

    names_advise(name, keyword_rows, sizeof keyword_rows[0], KEYWORDS, advice);
    return schema_refuse(maker, object, "\"%.*s\" is no keyword that is offered; %s",
                         (int)(name.length_bytes < 64 ? name.length_bytes : 64), name.data, advice);
}

static int collect_member(struct maker *maker, uint32_t object, uint32_t key, uint32_t resource)
{
    struct text name = value_text(&maker->schema->document, key);
    enum keyword keyword = keyword_find(name);

    if (keyword == KEYWORDS)
        return refuse_keyword(maker, object, name);
    maker->schema->keyword_of[key] = (uint8_t)keyword;
    switch (keyword_rows[keyword].shape) {
    case SHAPE_SCHEMA:
        return collect(maker, key + 1, resource);
    case SHAPE_LIST:
        return collect_list(maker, key + 1, resource);
    case SHAPE_MAP:
        return collect_map(maker, key + 1, resource);
    case SHAPE_VALUE:
        return 0;
    }
    return 0;
}

static int collect_object(struct maker *maker, uint32_t object, uint32_t node, uint32_t resource)
{
    const struct document *document = &maker->schema->document;
    uint32_t end = value_at(document, object)->next;

    if (check_dialect(maker, object) < 0 || enter_resource(maker, object, node, &resource) < 0)
        return -1;
    maker->schema->nodes[node].resource = resource;
    if (add_anchor(maker, object, node, resource, KEYWORD_ANCHOR) < 0 ||
        add_anchor(maker, object, node, resource, KEYWORD_DYNAMIC_ANCHOR) < 0)
        return -1;
    for (uint32_t at = object + 1; at < end; at = value_at(document, at + 1)->next)
        if (collect_member(maker, object, at, resource) < 0)
            return -1;
    return 0;
}

static int collect(struct maker *maker, uint32_t value, uint32_t resource)
{
    static const uint8_t kinds[] = {[VALUE_TRUE] = NODE_TRUE, [VALUE_FALSE] = NODE_FALSE, [VALUE_OBJECT] = NODE_RULES};
    struct schema *schema = maker->schema;
    enum value_kind kind = value_at(&schema->document, value)->kind;
    struct node *node;

    if (kind != VALUE_OBJECT && kind != VALUE_TRUE && kind != VALUE_FALSE)
        return schema_refuse(maker, value, "a schema is an object, true or false");
    node = SCHEMA_GROW(maker, node, nodes, 1);
    if (!node)
        return -1;
    *node = (struct node){.value = value, .resource = resource == NO_NODE ? 0 : resource, .kind = kinds[kind]};
    schema->node_of[value] = schema->node_count - 1;
    if (kind == VALUE_OBJECT)
        return collect_object(maker, value, schema->node_count - 1, resource);
    return resource == NO_NODE ? add_resource(maker, 0, TEXT_LITERAL(""), TEXT_LITERAL("")) : 0;
}

int schema_collect(struct maker *maker)
{
    struct schema *schema = maker->schema;
    uint32_t count = schema->document.count;

    schema->node_of = malloc(count * sizeof schema->node_of[0]);
    schema->keyword_of = calloc(count, sizeof schema->keyword_of[0]);
    if (!schema->node_of || !schema->keyword_of)
        return schema_refuse(maker, 0, "the schema does not fit into memory");
    memset(schema->node_of, 0xFF, count * sizeof schema->node_of[0]);
    return collect(maker, 0, NO_NODE);
}
