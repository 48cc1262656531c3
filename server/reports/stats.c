/* Stats: the choice between roll-ups and a scan, and the objective calls. */
#include "server/reports/stats_private.h"

#include "server/base/cleanup.h"
#include "server/settings/settings.h"

#include <math.h>
#include <string.h>

#define PAGE_SUMS 1000

int stats_refuse_memory(struct call *call)
{
    return call_refuse(call, ERR_TOO_MANY_ROLLOUTS, "by", "there is no memory for so many cells");
}

/* The first of these that the query has not: each makes the record that is read smaller. */
int stats_refuse_budget(struct stats_scan *scan)
{
    const struct store_rollout_filter *filter = &scan->query->filter;
    const struct {
        const char *name;
        bool given;
    } narrower[] = {
        {"run", filter->run.data},
        {"revision", filter->revision_min >= 0 && filter->revision_min == filter->revision_max},
        {"task", filter->task.data},
        {"batch", filter->batch.data},
        {"group", filter->group.data},
    };
    size_t i = 0;

    while (i + 1 < ARRAY_LENGTH(narrower) && narrower[i].given)
        i++;
    return call_refuse(
        scan->call, ERR_TOO_MANY_ROLLOUTS, narrower[i].name,
        "more than %lld rows of the record would have to be read (setting stats_budget): add %s=… and ask "
        "for one after the other",
        (long long)scan->call->settings->stats_budget, narrower[i].name);
}

/* --- objective calls --- */

/* The record keeps sums of objective calls by revision, incarnation and engine only. */
static bool objective_fits(const struct stats_scan *scan)
{
    static const enum stats_key keys[] = {STATS_RUN, STATS_REVISION, STATS_INCARNATION, STATS_ENGINE};
    static const char *const parameters[] = {"run",          "by",           "purpose", "incarnation", "revision",
                                             "revision_min", "revision_max", "engine",  "verifier",    "threshold",
                                             "limit",        "cursor",       NULL};
    const struct stats_query *query = scan->query;

    return stats_keys_are_among(query, keys, ARRAY_LENGTH(keys)) && query->filter.run.data &&
           query->filter.purpose == STORE_TRAIN && stats_asks_only(scan->call, parameters);
}

static struct cell_part part_of_sum(enum stats_key key, const struct stats_query *query,
                                    const struct store_objective_slice *slice)
{
    if (key == STATS_RUN)
        return cell_text(query->filter.run);
    if (key == STATS_ENGINE)
        return cell_text(slice->engine);
    return cell_number(key == STATS_REVISION ? slice->revision : slice->incarnation);
}

static bool sum_fits(const struct stats_scan *scan, const struct store_lines *lines,
                     const struct store_objective_slice *slice)
{
    const struct store_rollout_filter *filter = &scan->query->filter;

    if (filter->engine.data && !(slice->engine.data && text_same(filter->engine, slice->engine)))
        return false;
    if (slice->revision < 0) /* kept before samples were told apart */
        return filter->revision_min < 0 && filter->revision_max < 0 && filter->incarnation < 0;
    if (filter->incarnation >= 0 && slice->incarnation != filter->incarnation)
        return false;
    if (slice->revision < filter->revision_min || (filter->revision_max >= 0 && slice->revision > filter->revision_max))
        return false;
    return scan->query->every_incarnation || lines_have(lines, slice->incarnation, slice->revision, STORE_TRAIN);
}

static void add_sum(struct stats_scan *scan, const struct store_objective_sum *sum)
{
    struct cell_key key = {.count = scan->query->key_count};

    for (size_t i = 0; i < key.count; i++)
        key.parts[i] = part_of_sum(scan->query->keys[i], scan->query, &sum->slice);
    cells_add_objective(scan->cells, cells_find(scan->cells, &key), sum);
}

static int add_objective(struct stats_scan *scan)
{
    const struct store_lines *lines;
    char cursor[64] = "";

    if (lines_read(scan, scan->query->filter.run, &lines) < 0)
        return -1;
    do {
        _cleanup_(store_objective_sums_finish) struct store_objective_sums page = {0};
        if (scan->call->abandoned)
            return -1;
        if (scan->rows_left <= 0)
            return stats_refuse_budget(scan);
        if (store_list_objective_sums(scan->call->reader, scan->query->filter.run, -1, -1,
                                      cursor[0] ? text_of(cursor) : TEXT_NONE, PAGE_SUMS, &page) != STORE_OK)
            return call_refuse_unreadable(scan->call);
        scan->rows_left -= (int64_t)page.count;
        for (size_t i = 0; i < page.count; i++)
            if (sum_fits(scan, lines, &page.sums[i].slice))
                add_sum(scan, &page.sums[i]);
        memcpy(cursor, page.next, sizeof cursor);
    } while (cursor[0]);
    return 0;
}

/* --- the whole --- */

/* An unknown name is a mistake, not an empty answer. */
static int check_run(struct call *call, struct text run)
{
    struct store_standing standing;
    enum store_status status = run.data ? store_read_standing(call->reader, run, 0, &standing) : STORE_OK;

    if (status == STORE_NOT_FOUND)
        return call_refuse(call, ERR_NOT_FOUND, "run", "there is no run of this name");
    return status == STORE_OK ? 0 : call_refuse_unreadable(call);
}

int stats_collect(struct call *call, const struct stats_query *query, struct cells *cells)
{
    struct stats_scan scan = {.call = call, .query = query, .cells = cells, .rows_left = call->settings->stats_budget};
    int result = check_run(call, query->filter.run);

    bool rollups = false;

    if (result == 0)
        result = stats_rollups_know(&scan, &rollups);
    if (result == 0)
        result = rollups ? stats_visit_rollups(&scan) : stats_scan_rollouts(&scan);
    if (result == 0 && objective_fits(&scan))
        result = add_objective(&scan);
    lines_finish(&scan);
    return result;
}
