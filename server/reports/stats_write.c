/* The reply of GET /v1/stats. */
#include "server/reports/stats_private.h"

#include "server/base/cleanup.h"
#include "server/base/hash.h"
#include "server/base/json_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- cursors: the number of the next cell is no place to go on from while cells are added, its key is --- */

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

static void append_parts(struct buffer *out, const struct cells *cells, size_t cell)
{
    struct cell_key key;

    cells_key(cells, cell, &key);
    for (size_t i = 0; i < key.count; i++)
        append_part(out, &key.parts[i]);
}

/* Which list and which key it is of: every parameter but the page's. */
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

static bool digest_fits(const struct call *call, struct text cursor)
{
    _cleanup_buffer_ struct buffer digest = {0};
    struct text parts = {cursor.data, cursor.length_bytes - DIGEST_DIGITS};

    if (cursor.length_bytes < DIGEST_DIGITS)
        return false;
    buffer_init(&digest, DIGEST_DIGITS);
    append_digest(&digest, call, parts);
    return memcmp(digest.data, cursor.data + parts.length_bytes, DIGEST_DIGITS) == 0;
}

static bool has_parts(const struct cells *cells, size_t cell, struct text parts)
{
    _cleanup_buffer_ struct buffer own = {0};

    buffer_init(&own, CURSOR_BYTES_MAX);
    append_parts(&own, cells, cell);
    return text_same(buffer_text(&own), parts);
}

/* The cell behind the cursor's, which is still there: cells do not vanish while rollouts are added. -1: refused. */
static int find_start(struct call *call, const struct cells *cells, struct text cursor, size_t *ret_start)
{
    *ret_start = 0;
    if (!cursor.data)
        return 0;
    if (digest_fits(call, cursor))
        for (size_t cell = 0; cell < cells_count(cells); cell++) {
            *ret_start = cell + 1;
            if (has_parts(cells, cell, (struct text){cursor.data, cursor.length_bytes - DIGEST_DIGITS}))
                return 0;
        }
    return call_refuse(call, ERR_INVALID_FIELD, "cursor", "not a cursor of this list with these parameters");
}

/* --- numbers --- */

static void put_part(struct json_write *json, struct text name, const struct cell_part *part)
{
    json_key_text(json, name);
    if (part->kind == CELL_NUMBER)
        json_int(json, part->number);
    else
        json_text(json, part->kind == CELL_TEXT ? part->text : TEXT_NONE);
}

static void put_key(struct json_write *json, const struct stats_query *query, const struct cell_key *key)
{
    json_key(json, "key");
    json_object_begin(json);
    for (size_t i = 0; i < key->count; i++)
        put_part(json, query->key_names[i], &key->parts[i]);
    json_object_end(json);
}

static void begin_mean(struct json_write *json, const char *name, struct clustered_mean mean)
{
    json_key(json, name);
    json_object_begin(json);
    json_put_double(json, "mean", mean.mean);
    json_put_double(json, "se", mean.se);
}

static void put_means(struct json_write *json, const struct stats_query *query, const struct cell_numbers *numbers)
{
    begin_mean(json, "reward", numbers->reward);
    json_put_double(json, "min", numbers->reward_min);
    json_put_double(json, "max", numbers->reward_max);
    json_object_end(json);
    if (query->verifier.data || stats_query_has(query, STATS_VERIFIER)) {
        begin_mean(json, "score", numbers->score);
        json_object_end(json);
    }
    begin_mean(json, "tokens", numbers->tokens);
    json_put_int(json, "sum", numbers->tokens_sum);
    json_put_int_or_null(json, "max", numbers->tokens_max);
    json_object_end(json);
}

static void put_objective(struct json_write *json, const struct cell_numbers *numbers)
{
    for (size_t k = 0; k < STORE_OBJECTIVE_MEANS; k++)
        json_put_double(json, store_objective_mean_names[k], numbers->objective[k]);
    json_put_text(json, "kl_estimator", numbers->kl_estimator);
    json_put_double(json, "clip_fraction", numbers->clip_fraction);
}

static void put_cell(struct json_write *json, const struct stats_query *query, const struct cells *cells, size_t cell)
{
    struct cell_numbers numbers;
    struct cell_key key;

    cells_key(cells, cell, &key);
    cells_numbers(cells, cell, &numbers);
    json_object_begin(json);
    put_key(json, query, &key);
    json_put_int(json, "n", numbers.n);
    json_put_int(json, "scored", numbers.scored);
    json_put_int(json, "failed", numbers.failed);
    json_put_int(json, "cancelled", numbers.cancelled);
    json_put_int(json, "groups", numbers.groups);
    json_put_int(json, "zero_variance_groups", numbers.zero_variance_groups);
    put_means(json, query, &numbers);
    json_put_int(json, "truncated", numbers.truncated);
    json_put_int(json, "straddles", numbers.straddles);
    json_put_int(json, "duplicates", numbers.duplicates);
    json_put_int(json, "decided", numbers.decided);
    json_put_int(json, "solved", numbers.solved);
    put_objective(json, &numbers);
    json_object_end(json);
}

/* --- the reply --- */

static void put_next(struct json_write *json, const struct call *call, const struct cells *cells, size_t end)
{
    _cleanup_buffer_ struct buffer next = {0};

    buffer_init(&next, CURSOR_BYTES_MAX);
    if (end < cells_count(cells) && end > 0) {
        append_parts(&next, cells, end - 1);
        append_digest(&next, call, buffer_text(&next));
    }
    json_put_text(json, "next", next.length_bytes ? buffer_text(&next) : TEXT_NONE);
}

static void write_page(struct call *call, const struct stats_query *query, const struct cells *cells, size_t start,
                       size_t limit)
{
    size_t end = cells_count(cells) - start > limit ? start + limit : cells_count(cells);
    struct json_write json;

    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "by");
    json_array_begin(&json);
    for (size_t i = 0; i < query->key_count; i++)
        json_text(&json, query->key_names[i]);
    json_array_end(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    for (size_t cell = start; cell < end; cell++)
        put_cell(&json, query, cells, cell);
    json_array_end(&json);
    put_next(&json, call, cells, end);
    json_object_end(&json);
    call_answer_json(call, 200);
}

void stats_answer(struct call *call, int64_t limit, struct text cursor)
{
    _cleanup_(cells_destroyp) struct cells *cells = cells_create();
    struct stats_query query = {0};
    size_t start;

    if (!cells) {
        stats_refuse_memory(call);
        return;
    }
    if (stats_query_read_by(call, &query) < 0 || stats_query_read(call, &query) < 0 ||
        stats_collect(call, &query, cells) < 0)
        return;
    if (cells_close(cells) < 0) {
        stats_refuse_memory(call);
        return;
    }
    if (find_start(call, cells, cursor, &start) == 0)
        write_page(call, &query, cells, start, (size_t)limit);
}
