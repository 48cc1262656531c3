#include "verifiers/schema/schema_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PATH_SHOWN_BYTES 160

int schema_refuse(struct maker *maker, uint32_t value, const char *format, ...)
{
    _cleanup_buffer_ struct buffer path;
    va_list arguments;
    size_t used;

    buffer_init(&path, PATH_SHOWN_BYTES * 8);
    value_path(&maker->schema->document, value, PATH_SHOWN_BYTES, &path);
    used = path.length_bytes
               ? (size_t)snprintf(maker->problem, SCHEMA_PROBLEM_BYTES, "at %s: ", buffer_text(&path).data)
               : 0;
    if (used >= SCHEMA_PROBLEM_BYTES)
        return -1;
    va_start(arguments, format);
    vsnprintf(maker->problem + used, SCHEMA_PROBLEM_BYTES - used, format, arguments);
    va_end(arguments);
    return -1;
}

void *schema_grow(struct maker *maker, void **array, uint32_t *count, uint32_t *room, uint32_t more, size_t bytes)
{
    uint32_t larger = *room ? *room : 16;
    char *grown;

    if (*count + more > *room || !*array) {
        while (larger < *count + more)
            larger *= 2;
        grown = realloc(*array, larger * bytes);
        if (!grown) {
            schema_refuse(maker, 0, "the schema does not fit into memory");
            return NULL;
        }
        *array = grown;
        *room = larger;
    }
    grown = (char *)*array + *count * bytes;
    memset(grown, 0, more * bytes);
    *count += more;
    return grown;
}

static int make(struct maker *maker)
{
    if (schema_collect(maker) < 0 || schema_sort_names(maker) < 0 || schema_build(maker) < 0)
        return -1;
    return schema_check_loops(maker);
}

static int read_text(struct maker *maker)
{
    struct schema *schema = maker->schema;

    if (schema->text.failed) {
        snprintf(maker->problem, SCHEMA_PROBLEM_BYTES, "the schema has more than %u bytes", SCHEMA_TEXT_BYTES);
        return -1;
    }
    if (document_read(buffer_text(&schema->text), &schema->document) == DOCUMENT_READ)
        return 0;
    snprintf(maker->problem, SCHEMA_PROBLEM_BYTES, "the schema cannot be read: %s", schema->document.problem);
    return -1;
}

/* Takes the text. */
static struct schema *make_schema(struct buffer *text, char ret_problem[SCHEMA_PROBLEM_BYTES])
{
    struct schema *schema = xcalloc(1, sizeof *schema);
    struct maker maker = {.schema = schema, .problem = ret_problem};

    schema->text = *text;
    *text = (struct buffer){.data = NULL};
    ret_problem[0] = '\0';
    if (read_text(&maker) == 0 && make(&maker) == 0)
        return schema;
    schema_destroy(schema);
    return NULL;
}

struct schema *schema_create(const json_t *json, char ret_problem[SCHEMA_PROBLEM_BYTES])
{
    struct buffer text;

    buffer_init(&text, SCHEMA_TEXT_BYTES);
    schema_text(json, &text);
    return make_schema(&text, ret_problem);
}

/* --- those of the latest validations --- */

static _Thread_local struct schema *kept[SCHEMAS_KEPT]; /* the latest first */

static bool is_made_from(const struct schema *schema, const json_t *json)
{
    struct text rest = buffer_text(&schema->text);
    return schema_text_is(json, &rest) && rest.length_bytes == 0;
}

static struct schema *take_kept(const json_t *json)
{
    for (size_t i = 0; i < SCHEMAS_KEPT; i++) {
        struct schema *schema = kept[i];
        if (!schema || !is_made_from(schema, json))
            continue;
        memmove(&kept[i], &kept[i + 1], (SCHEMAS_KEPT - 1 - i) * sizeof(struct schema *));
        kept[SCHEMAS_KEPT - 1] = NULL;
        return schema;
    }
    return NULL;
}

struct schema *schema_borrow(const json_t *json, char ret_problem[SCHEMA_PROBLEM_BYTES])
{
    struct schema *schema = take_kept(json);
    return schema ? schema : schema_create(json, ret_problem);
}

void schema_return(struct schema *schema)
{
    if (!schema)
        return;
    if (schema->text.length_bytes > SCHEMA_KEPT_BYTES || schema->pattern_count > SCHEMA_KEPT_PATTERNS) {
        schema_destroy(schema);
        return;
    }
    schema_destroy(kept[SCHEMAS_KEPT - 1]);
    memmove(&kept[1], &kept[0], (SCHEMAS_KEPT - 1) * sizeof(struct schema *));
    kept[0] = schema;
}

void schema_destroy(struct schema *schema)
{
    if (!schema)
        return;
    for (uint32_t i = 0; i < schema->pattern_count; i++) {
        pattern_destroy(schema->patterns[i]);
        buffer_finish(&schema->pattern_texts[i]);
    }
    for (uint32_t i = 0; i < schema->resource_count; i++)
        free(schema->resources[i].uri);
    free(schema->node_of);
    free(schema->keyword_of);
    free(schema->nodes);
    free(schema->rules);
    free(schema->lists);
    free(schema->properties);
    free(schema->patterned);
    free(schema->decimals);
    free(schema->patterns);
    free(schema->pattern_texts);
    free(schema->resources);
    free(schema->by_uri);
    free(schema->anchors);
    document_finish(&schema->document);
    buffer_finish(&schema->text);
    free(schema);
}
