/* Cursors of stats: the key of the last cell, because a cell's number changes while cells are added. */
#include "server/reports/stats_private.h"

#include "server/base/cleanup.h"
#include "server/base/hash.h"

#include <string.h>

#define DIGEST_DIGITS 16
#define CURSOR_BYTES_MAX ((size_t)64 << 10)

static void append_part(struct buffer *out, const struct cell_part *part)
{
    static const char kinds[] = {[CELL_NULL] = 'n', [CELL_NUMBER] = 'i', [CELL_TEXT] = 't'};

    buffer_append_byte(out, kinds[part->kind]);
    if (part->kind == CELL_NUMBER)
        buffer_append_format(out, "%lld", (long long)part->number);
    for (size_t i = 0; part->kind == CELL_TEXT && i < part->text.length_bytes; i++)
        buffer_append_format(out, "%02x", (unsigned char)part->text.data[i]);
    buffer_append_byte(out, '.');
}

static void append_parts(struct buffer *out, const struct cell_key *key)
{
    for (size_t i = 0; i < key->count; i++)
        append_part(out, &key->parts[i]);
}

/* The list and the key of a cursor: every parameter except the page's. */
static void append_digest(struct buffer *out, const struct call *call, struct text parts)
{
    _cleanup_buffer_ struct buffer list = {0};
    uint8_t sha256[SHA256_BYTES];
    char hex[SHA256_HEX_BYTES];

    buffer_init(&list, CURSOR_BYTES_MAX * 4);
    for (size_t i = 0; i < call->query_count; i++) {
        const struct query_parameter *parameter = &call->query[i];
        if (text_equals(parameter->name, "cursor") || text_equals(parameter->name, "limit"))
            continue;
        buffer_append_format(&list, "%zu,%zu:", parameter->name.length_bytes, parameter->value.length_bytes);
        buffer_append(&list, parameter->name.data, parameter->name.length_bytes);
        if (parameter->value.length_bytes)
            buffer_append(&list, parameter->value.data, parameter->value.length_bytes);
    }
    buffer_append(&list, parts.data, parts.length_bytes);
    sha256_of(list.data, list.length_bytes, sha256);
    sha256_hex(sha256, hex);
    buffer_append(out, hex, DIGEST_DIGITS);
}

void stats_put_next(struct json_write *json, const struct call *call, const struct cell_key *last)
{
    _cleanup_buffer_ struct buffer next = {0};

    buffer_init(&next, CURSOR_BYTES_MAX);
    append_parts(&next, last);
    append_digest(&next, call, buffer_text(&next));
    json_put_text(json, "next", buffer_text(&next));
}

void stats_put_next_cell(struct json_write *json, const struct call *call, const struct cells *cells, size_t end)
{
    struct cell_key key;

    if (end == 0 || end >= cells_count(cells)) {
        json_put_null(json, "next");
        return;
    }
    cells_key(cells, end - 1, &key);
    stats_put_next(json, call, &key);
}

int stats_check_cursor(struct call *call, struct text cursor)
{
    _cleanup_buffer_ struct buffer digest = {0};
    struct text parts = {cursor.data, cursor.length_bytes - DIGEST_DIGITS};

    if (!cursor.data)
        return 0;
    buffer_init(&digest, DIGEST_DIGITS);
    if (cursor.length_bytes >= DIGEST_DIGITS)
        append_digest(&digest, call, parts);
    if (digest.length_bytes && memcmp(digest.data, cursor.data + parts.length_bytes, DIGEST_DIGITS) == 0)
        return 0;
    return stats_refuse_cursor(call);
}

int stats_refuse_cursor(struct call *call)
{
    return call_refuse(call, ERR_INVALID_FIELD, "cursor", "not a cursor of this list with these parameters");
}

bool stats_cursor_is_of(struct text cursor, const struct cell_key *key)
{
    _cleanup_buffer_ struct buffer own = {0};

    buffer_init(&own, CURSOR_BYTES_MAX);
    append_parts(&own, key);
    return text_same(buffer_text(&own), (struct text){cursor.data, cursor.length_bytes - DIGEST_DIGITS});
}

int stats_find_start(struct call *call, const struct cells *cells, struct text cursor, size_t *ret_start)
{
    struct cell_key key;

    *ret_start = 0;
    if (!cursor.data)
        return 0;
    if (stats_check_cursor(call, cursor) < 0)
        return -1;
    for (size_t cell = 0; cell < cells_count(cells); cell++) {
        cells_key(cells, cell, &key);
        *ret_start = cell + 1;
        if (stats_cursor_is_of(cursor, &key))
            return 0;
    }
    return stats_refuse_cursor(call);
}
