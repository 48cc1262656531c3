/* One task over a run's revisions, and the tasks whose solve rate crossed a line between two revisions. */
#include "server/reports/stats_private.h"

#include "server/base/cleanup.h"
#include "server/spec/rollout_query.h"

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
    struct text by;      /* "tag.source"; TEXT_NONE: not split */
    struct cells *cells; /* the tag, if they are split; the revision */
};

/* The cells of one value of the tag, or of all groups. */
struct flips_pair {
    struct cell_part value; /* CELL_NULL: there is none */
    size_t from, to;
    size_t place_from, place_to; /* the next tasks */
};

static int read_between(struct call *call, struct flips *flips)
{
    struct text tag;

    flips->from = flips->to = -1;
    flips->rate = RATE_DEFAULT;
    if (require(call, "run") < 0 || require(call, "from") < 0 || require(call, "to") < 0 ||
        call_query_int(call, "from", 0, INT64_MAX, &flips->from) < 0 ||
        call_query_int(call, "to", 0, INT64_MAX, &flips->to) < 0 || call_query_double(call, "rate", &flips->rate) < 0 ||
        query_read_split(call, &tag) < 0)
        return -1;
    if (flips->from == flips->to)
        return call_refuse(call, ERR_INVALID_FIELD, "to", "expected another revision than `from`");
    flips->by = tag.data ? call_query(call, "by") : TEXT_NONE;
    return 0;
}

static int collect(struct call *call, struct flips *flips, int64_t revision, struct stats_query *query)
{
    query->filter.revision_min = query->filter.revision_max = revision;
    return stats_collect(call, query, flips->cells);
}

static int read_flips(struct call *call, struct flips *flips)
{
    struct stats_query query = {.key_count = 1, .keys = {STATS_REVISION}};

    if (read_between(call, flips) < 0)
        return -1;
    if (flips->by.data)
        query = (struct stats_query){.key_count = 2, .keys = {STATS_TAG, STATS_REVISION}, .key_names = {flips->by}};
    if (stats_query_read(call, &query) < 0 || collect(call, flips, flips->from, &query) < 0 ||
        collect(call, flips, flips->to, &query) < 0)
        return -1;
    return cells_close(flips->cells) < 0 ? stats_refuse_memory(call) : 0;
}

static void key_of(const struct flips *flips, size_t cell, struct cell_part *ret_value, int64_t *ret_revision)
{
    struct cell_key key;

    cells_key(flips->cells, cell, &key);
    *ret_value = flips->by.data ? key.parts[0] : cell_text(TEXT_NONE);
    *ret_revision = key.parts[key.count - 1].number;
}

static bool same_value(const struct cell_part *left, const struct cell_part *right)
{
    return left->kind == right->kind && (left->kind == CELL_NULL || text_same(left->text, right->text));
}

/* The pair that begins with this cell or a later one; at most two cells have one value. CELLS_NONE: there is none. */
static size_t find_pair(const struct flips *flips, size_t cell, struct flips_pair *ret_pair)
{
    struct cell_part values[2];
    int64_t revisions[2];

    for (; cell + 1 < cells_count(flips->cells); cell++) {
        key_of(flips, cell, &values[0], &revisions[0]);
        key_of(flips, cell + 1, &values[1], &revisions[1]);
        if (!same_value(&values[0], &values[1]))
            continue;
        bool forward = revisions[0] == flips->from;
        *ret_pair =
            (struct flips_pair){.value = values[0], .from = forward ? cell : cell + 1, .to = forward ? cell + 1 : cell};
        return cell;
    }
    return CELLS_NONE;
}

/* The next task in both. False: there are no more. */
static bool next_task(const struct flips *flips, struct flips_pair *pair, struct cell_task *ret_from,
                      struct cell_task *ret_to)
{
    while (pair->place_from < cells_tasks(flips->cells, pair->from) &&
           pair->place_to < cells_tasks(flips->cells, pair->to)) {
        cells_task(flips->cells, pair->from, pair->place_from, ret_from);
        cells_task(flips->cells, pair->to, pair->place_to, ret_to);
        int order = cell_text_order(ret_from->task, ret_to->task);
        pair->place_from += order <= 0;
        pair->place_to += order >= 0;
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

static void put_flip(struct json_write *json, const struct flips *flips, const struct cell_part *value,
                     const struct cell_task *from, const struct cell_task *to, bool gained)
{
    json_object_begin(json);
    if (flips->by.data) {
        json_key(json, "key");
        json_object_begin(json);
        json_key_text(json, flips->by);
        json_text(json, value->text);
        json_object_end(json);
    }
    json_put_text(json, "task", from->task);
    put_side(json, "from", from);
    put_side(json, "to", to);
    json_put_string(json, "direction", gained ? "gained" : "lost");
    json_object_end(json);
}

/* A page: up to `left` flips behind the cursor's task. */
struct flips_page {
    struct json_write *json;
    struct text cursor;
    bool begun; /* the cursor's task was met */
    size_t left;
    bool more;            /* it ended before the list did */
    struct cell_key last; /* of the last flip */
};

static void put_pair(struct flips_page *page, const struct flips *flips, struct flips_pair *pair)
{
    struct cell_task from;
    struct cell_task to;
    bool gained;

    while (!page->more && next_task(flips, pair, &from, &to)) {
        const struct cell_key key = {.count = 2, .parts = {pair->value, cell_text(from.task)}};
        if (!page->begun) {
            page->begun = stats_cursor_is_of(page->cursor, &key);
            continue;
        }
        if (!crosses(flips, &from, &to, &gained))
            continue;
        page->more = page->left == 0;
        if (page->more)
            return;
        page->left--;
        put_flip(page->json, flips, &pair->value, &from, &to, gained);
        page->last = key;
    }
}

/* False: there is no such cursor. */
static bool put_flips(struct flips_page *page, const struct flips *flips)
{
    struct flips_pair pair;

    for (size_t cell = 0; !page->more && (cell = find_pair(flips, cell, &pair)) != CELLS_NONE; cell += 2)
        put_pair(page, flips, &pair);
    return page->begun;
}

static void write_flips(struct call *call, const struct flips *flips, size_t limit, struct text cursor)
{
    struct json_write json;
    struct flips_page page = {.json = &json, .cursor = cursor, .begun = !cursor.data, .left = limit};

    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    if (!put_flips(&page, flips)) {
        buffer_clear(&call->reply.body);
        stats_refuse_cursor(call);
        return;
    }
    json_array_end(&json);
    if (page.more)
        stats_put_next(&json, call, &page.last);
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
