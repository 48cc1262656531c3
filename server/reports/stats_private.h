/* Shared by the files of stats. */
#ifndef SERVER_REPORTS_STATS_PRIVATE_H
#define SERVER_REPORTS_STATS_PRIVATE_H

#include "server/base/json_write.h"
#include "server/base/names.h"
#include "server/reports/stats.h"
#include "server/store/store.h"

#define STATS_TAG_PREFIX "tag."
static inline struct text stats_tag_name(struct text key_name)
{
    size_t prefix_bytes = sizeof STATS_TAG_PREFIX - 1;
    return (struct text){key_name.data + prefix_bytes, key_name.length_bytes - prefix_bytes};
}

/* One reading of the record for a query. */
struct stats_scan {
    struct call *call;
    const struct stats_query *query;
    struct cells *cells;
    int64_t rows_left;         /* of stats_budget */
    struct names runs;         /* whose lines were read */
    struct store_lines *lines; /* [runs.count] */
    size_t line_room;
};

/* stats_lines.c: whether a rollout is of the surviving line: no later incarnation has rollouts of its revision and
 * purpose; true if every incarnation counts. 0, or -1 with the call refused. */
int lines_survives(struct stats_scan *scan, const struct store_rollout *rollout, bool *ret_survives);
int lines_read(struct stats_scan *scan, struct text run, const struct store_lines **ret_lines);
bool lines_have(const struct store_lines *lines, int64_t incarnation, int64_t revision, enum store_purpose purpose);
void lines_finish(struct stats_scan *scan);

/* stats_query.c: whether the call has only these parameters, so that nothing else narrows the query. */
bool stats_asks_only(const struct call *call, const char *const *names);

bool stats_keys_are_among(const struct stats_query *query, const enum stats_key *keys, size_t count);

/* stats_rollups.c: whether the roll-ups can answer the query: 0, or -1 with the call refused. Then the reading. */
int stats_rollups_know(const struct stats_scan *scan, bool *ret_know);
int stats_visit_rollups(struct stats_scan *scan);

/* stats_scan.c: rollout by rollout. */
int stats_scan_rollouts(struct stats_scan *scan);
void stats_scan_add(const struct stats_scan *scan, const struct store_rollout *rollout);

/* stats_cursor.c. The cell behind the cursor's, which is still there: cells do not vanish while rollouts are added. 0, or -1
 * with the call refused. */
int stats_find_start(struct call *call, const struct cells *cells, struct text cursor, size_t *ret_start);
/* The member `next`: the cursor of the list behind this key. */
void stats_put_next(struct json_write *json, const struct call *call, const struct cell_key *last);
/* The same behind the cells before `end`; null: there are no more. */
void stats_put_next_cell(struct json_write *json, const struct call *call, const struct cells *cells, size_t end);
/* Whether it is a cursor of this list, and of which key. */
int stats_check_cursor(struct call *call, struct text cursor);
bool stats_cursor_is_of(struct text cursor, const struct cell_key *key);
int stats_refuse_cursor(struct call *call);

/* stats.c: 422, with the filter to add. -1. */
int stats_refuse_budget(struct stats_scan *scan);

#endif
