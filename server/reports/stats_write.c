/* The reply of GET /v1/stats. */
#include "server/reports/stats_private.h"

#include "server/base/cleanup.h"
#include "server/base/json_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    stats_put_next_cell(&json, call, cells, end);
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
    if (stats_find_start(call, cells, cursor, &start) == 0)
        write_page(call, &query, cells, start, (size_t)limit);
}
