/* Stats from the roll-ups. */
#include "server/reports/stats_private.h"

#include "server/reports/cells_record_private.h"
#include "server/settings/settings.h"

#include <math.h>

#define ROWS_BETWEEN_QUESTIONS 4096

struct visiting {
    struct stats_scan *scan;
    const struct store_lines *lines;
    int64_t rows;
    bool beyond; /* the budget */
};

int stats_rollups_know(const struct stats_scan *scan, bool *ret_know)
{
    static const enum stats_key keys[] = {STATS_RUN, STATS_INCARNATION, STATS_REVISION, STATS_PURPOSE, STATS_TASK};
    static const char *const parameters[] = {"run",       "from",         "to",           "rate",  "by",
                                             "purpose",   "incarnation",  "revision",     "limit", "cursor",
                                             "threshold", "revision_min", "revision_max", NULL};
    const struct stats_query *query = scan->query;

    *ret_know = false;
    if (!query->filter.run.data || query->threshold != 1 || !stats_asks_only(scan->call, parameters) ||
        !stats_keys_are_among(query, keys, ARRAY_LENGTH(keys)))
        return 0;
    return store_rollups_are_whole(scan->call->reader, query->filter.run, ret_know) == STORE_OK
               ? 0
               : call_refuse_unreadable(scan->call);
}

/* The key of a roll-up's row, of both kinds. */
struct rollup_place {
    int64_t incarnation, revision;
    enum store_purpose purpose;
    struct text task;
};

static struct cell_part part_of(enum stats_key key, const struct stats_query *query, const struct rollup_place *place)
{
    if (key == STATS_RUN)
        return cell_text(query->filter.run);
    if (key == STATS_PURPOSE)
        return cell_text(text_of(store_purpose_names[place->purpose]));
    if (key == STATS_TASK)
        return cell_text(place->task);
    return cell_number(key == STATS_REVISION ? place->revision : place->incarnation);
}

static size_t cell_of(const struct stats_scan *scan, const struct rollup_place *place)
{
    struct cell_key key = {.count = scan->query->key_count};

    for (size_t i = 0; i < key.count; i++)
        key.parts[i] = part_of(scan->query->keys[i], scan->query, place);
    return cells_find(scan->cells, &key);
}

static bool survives(const struct visiting *visiting, int64_t incarnation, int64_t revision, enum store_purpose purpose)
{
    return visiting->scan->query->every_incarnation || lines_have(visiting->lines, incarnation, revision, purpose);
}

/* False: the budget is used up, or the client has hung up. */
static bool count_row(struct visiting *visiting)
{
    visiting->beyond = visiting->scan->rows_left == 0;
    if (visiting->beyond)
        return false;
    visiting->scan->rows_left--;
    return visiting->rows++ % ROWS_BETWEEN_QUESTIONS || !visiting->scan->call->abandoned;
}

static bool take_rollup(void *arg, const struct store_rollup *rollup)
{
    struct visiting *visiting = arg;
    const struct rollup_place place = {rollup->incarnation, rollup->revision, rollup->purpose, rollup->task};

    if (!count_row(visiting))
        return false;
    if (survives(visiting, rollup->incarnation, rollup->revision, rollup->purpose)) {
        const struct cell_sums sums = cell_sums_of_rollup(rollup);
        cells_add_sums(visiting->scan->cells, cell_of(visiting->scan, &place), rollup->task, &sums);
    }
    return true;
}

static enum cell_group state_of(const struct store_rollup_group *group)
{
    if (group->rewarded < 0)
        return CELL_GROUP_RUNNING;
    if (group->rewarded == 0)
        return CELL_GROUP_UNJUDGED;
    return group->zero_variance ? CELL_GROUP_ZERO_VARIANCE : CELL_GROUP_VARIED;
}

/* No id of a group is as short as its number. */
static bool take_group(void *arg, const struct store_rollup_group *group)
{
    struct visiting *visiting = arg;
    const struct rollup_place place = {group->incarnation, group->revision, group->purpose, group->task};
    struct text name = {(const char *)&group->group_seq, sizeof group->group_seq};

    if (!count_row(visiting))
        return false;
    if (survives(visiting, group->incarnation, group->revision, group->purpose))
        cells_add_group(visiting->scan->cells, cell_of(visiting->scan, &place), name, state_of(group));
    return true;
}

static bool take_rollout(void *arg, const struct store_rollout *rollout)
{
    struct visiting *visiting = arg;

    if (!count_row(visiting))
        return false;
    if (survives(visiting, rollout->incarnation, rollout->policy_revision, rollout->purpose))
        stats_scan_add(visiting->scan, rollout);
    return true;
}

int stats_visit_rollups(struct stats_scan *scan)
{
    const struct store_rollout_filter *filter = &scan->query->filter;
    const struct store_rollup_filter wanted = {.incarnation = filter->incarnation,
                                               .revision_min = filter->revision_min,
                                               .revision_max = filter->revision_max,
                                               .purpose = filter->purpose};
    struct visiting visiting = {.scan = scan};
    const struct store_rollup_visitor visitor = {
        .arg = &visiting, .rollup = take_rollup, .group = take_group, .rollout = take_rollout};

    if (lines_read(scan, filter->run, &visiting.lines) < 0)
        return -1;
    if (store_visit_rollups(scan->call->reader, filter->run, &wanted, &visitor) != STORE_OK)
        return call_refuse_unreadable(scan->call);
    if (visiting.beyond)
        return stats_refuse_budget(scan);
    return scan->call->abandoned ? -1 : 0;
}
