/* One task over a run's revisions, and the tasks whose solve rate crossed a line between two revisions. */
#include "server/reports/stats_private.h"

#include "server/base/cleanup.h"

#include <math.h>

#define RATE_DEFAULT 0.5

static int require(struct call *call, const char *name)
{
    if (call_query(call, name).data)
        return 0;
    return call_refuse(call, ERR_MISSING_FIELD, name, "%s is required", name);
}

static double rate_of(int64_t solved, int64_t decided)
{
    return decided > 0 ? (double)solved / (double)decided : NAN;
}

static void put_rate(struct json_write *json, int64_t n, int64_t decided, int64_t solved)
{
    json_put_int(json, "n", n);
    json_put_int(json, "scored", decided);
    json_put_int(json, "solved", solved);
    json_put_double(json, "rate", rate_of(solved, decided));
}

/* --- one task --- */

static int read_history(struct call *call, struct cells *cells)
{
    struct stats_query query = {.key_count = 2, .keys = {STATS_INCARNATION, STATS_REVISION}};

    if (require(call, "run") < 0 || require(call, "task") < 0 || stats_query_read(call, &query) < 0)
        return -1;
    query.every_incarnation = query.filter.incarnation >= 0;
    if (stats_collect(call, &query, cells) < 0)
        return -1;
    return cells_close(cells) < 0 ? stats_refuse_memory(call) : 0;
}

static void put_history(struct json_write *json, struct cells *cells, size_t cell)
{
    struct cell_numbers numbers;
    struct cell_key key;

    cells_key(cells, cell, &key);
    cells_numbers(cells, cell, &numbers);
    json_object_begin(json);
    json_put_int(json, "incarnation", key.parts[0].number);
    json_put_int(json, "revision", key.parts[1].number);
    put_rate(json, numbers.n, numbers.decided, numbers.solved);
    json_put_double(json, "reward_mean", numbers.reward.mean);
    json_key(json, "groups");
    json_array_begin(json);
    for (size_t i = 0, count = cells_groups(cells, cell); i < count; i++)
        json_text(json, cells_group(cells, cell, i));
    json_array_end(json);
    json_object_end(json);
}

static void write_history(struct call *call, struct cells *cells, size_t start, size_t limit)
{
    size_t end = cells_count(cells) - start > limit ? start + limit : cells_count(cells);
    struct json_write json;

    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    for (size_t cell = start; cell < end; cell++)
        put_history(&json, cells, cell);
    json_array_end(&json);
    stats_put_next_cell(&json, call, cells, end);
    json_object_end(&json);
    call_answer_json(call, 200);
}

void task_history_answer(struct call *call, int64_t limit, struct text cursor)
{
    _cleanup_(cells_destroyp) struct cells *cells = cells_create();
    size_t start;

    if (!cells)
        stats_refuse_memory(call);
    else if (read_history(call, cells) == 0 && stats_find_start(call, cells, cursor, &start) == 0)
        write_history(call, cells, start, (size_t)limit);
}

/* --- all tasks at two revisions --- */

struct flips {
    int64_t from, to;
    double rate;
    struct cells *cells; /* by revision */
    size_t from_cell, to_cell;
};

static int read_between(struct call *call, struct flips *flips)
{
    flips->from = flips->to = -1;
    flips->rate = RATE_DEFAULT;
    if (require(call, "run") < 0 || require(call, "from") < 0 || require(call, "to") < 0 ||
        call_query_int(call, "from", 0, INT64_MAX, &flips->from) < 0 ||
        call_query_int(call, "to", 0, INT64_MAX, &flips->to) < 0 || call_query_double(call, "rate", &flips->rate) < 0)
        return -1;
    if (flips->from == flips->to)
        return call_refuse(call, ERR_INVALID_FIELD, "to", "expected another revision than `from`");
    return 0;
}

static int collect(struct call *call, struct flips *flips, int64_t revision, struct stats_query *query)
{
    query->filter.revision_min = query->filter.revision_max = revision;
    return stats_collect(call, query, flips->cells);
}

static size_t find_cell(const struct flips *flips, int64_t revision)
{
    struct cell_key key;

    for (size_t cell = 0; cell < cells_count(flips->cells); cell++) {
        cells_key(flips->cells, cell, &key);
        if (key.parts[0].number == revision)
            return cell;
    }
    return CELLS_NONE;
}

static int read_flips(struct call *call, struct flips *flips)
{
    struct stats_query query = {.key_count = 1, .keys = {STATS_REVISION}};

    if (read_between(call, flips) < 0 || stats_query_read(call, &query) < 0 ||
        collect(call, flips, flips->from, &query) < 0 || collect(call, flips, flips->to, &query) < 0)
        return -1;
    if (cells_close(flips->cells) < 0)
        return stats_refuse_memory(call);
    flips->from_cell = find_cell(flips, flips->from);
    flips->to_cell = find_cell(flips, flips->to);
    return 0;
}

/* The next task in both: *place_from and *place_to are its places. False: there are no more. */
static bool next_task(const struct flips *flips, size_t *place_from, size_t *place_to, struct cell_task *ret_from,
                      struct cell_task *ret_to)
{
    if (flips->from_cell == CELLS_NONE || flips->to_cell == CELLS_NONE)
        return false;
    while (*place_from < cells_tasks(flips->cells, flips->from_cell) &&
           *place_to < cells_tasks(flips->cells, flips->to_cell)) {
        cells_task(flips->cells, flips->from_cell, *place_from, ret_from);
        cells_task(flips->cells, flips->to_cell, *place_to, ret_to);
        int order = cell_text_order(ret_from->task, ret_to->task);
        *place_from += order <= 0;
        *place_to += order >= 0;
        if (order == 0)
            return true;
    }
    return false;
}

/* A rate at the line or above it counts as solved. */
static bool crosses(const struct flips *flips, const struct cell_task *from, const struct cell_task *to,
                    bool *ret_gained)
{
    double before = rate_of(from->solved, from->decided);
    double after = rate_of(to->solved, to->decided);

    *ret_gained = after >= flips->rate;
    return !isnan(before) && !isnan(after) && (before >= flips->rate) != *ret_gained;
}

static void put_side(struct json_write *json, const char *name, const struct cell_task *side)
{
    json_key(json, name);
    json_object_begin(json);
    put_rate(json, side->n, side->decided, side->solved);
    json_object_end(json);
}

static void put_flip(struct json_write *json, const struct cell_task *from, const struct cell_task *to, bool gained)
{
    json_object_begin(json);
    json_put_text(json, "task", from->task);
    put_side(json, "from", from);
    put_side(json, "to", to);
    json_put_string(json, "direction", gained ? "gained" : "lost");
    json_object_end(json);
}

/* Writes up to `limit` flips behind the cursor's task. Sets the key of the last one if there are more. */
static int put_flips(struct json_write *json, const struct flips *flips, size_t limit, struct text cursor,
                     struct cell_key *last)
{
    bool begun = !cursor.data;
    size_t place_from = 0;
    size_t place_to = 0;
    struct cell_task from;
    struct cell_task to;
    bool gained;

    while (next_task(flips, &place_from, &place_to, &from, &to)) {
        const struct cell_key key = {.count = 1, .parts = {cell_text(from.task)}};
        if (!begun) {
            begun = stats_cursor_is_of(cursor, &key);
            continue;
        }
        if (!crosses(flips, &from, &to, &gained))
            continue;
        if (limit-- == 0)
            return 0;
        put_flip(json, &from, &to, gained);
        *last = key;
    }
    last->count = 0;
    return begun ? 0 : -1;
}

static void write_flips(struct call *call, const struct flips *flips, size_t limit, struct text cursor)
{
    struct cell_key last = {0};
    struct json_write json;

    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    if (put_flips(&json, flips, limit, cursor, &last) < 0) {
        buffer_clear(&call->reply.body);
        stats_refuse_cursor(call);
        return;
    }
    json_array_end(&json);
    if (last.count)
        stats_put_next(&json, call, &last);
    else
        json_put_null(&json, "next");
    json_object_end(&json);
    call_answer_json(call, 200);
}

void flips_answer(struct call *call, int64_t limit, struct text cursor)
{
    _cleanup_(cells_destroyp) struct cells *cells = cells_create();
    struct flips flips = {.cells = cells};

    if (!cells)
        stats_refuse_memory(call);
    else if (stats_check_cursor(call, cursor) == 0 && read_flips(call, &flips) == 0)
        write_flips(call, &flips, (size_t)limit, cursor);
}
