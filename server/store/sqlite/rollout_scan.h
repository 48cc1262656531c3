/* rollout_scan: the lookup of rollouts that fit a filter: the index to walk, and the conditions checked row by row.
 * Private to the room. */
#ifndef SERVER_STORE_SQLITE_ROLLOUT_SCAN_H
#define SERVER_STORE_SQLITE_ROLLOUT_SCAN_H

#include "server/store/sqlite/cursor.h"
#include "server/store/sqlite/reader.h"

/* A filter with its names resolved; -1: any. */
struct rollout_scan {
    struct store_reader *reader;
    const struct store_rollout_filter *filter;
    int64_t run_seq;
    int64_t task_seq;
    int64_t batch_seq;
    int64_t group_seq;
    /* The rows of a group stand mostly together: its tags are read once. */
    int64_t tagged_seq; /* of the group last asked for; -1: none yet */
    bool tags_fit;
};

/* SQLITE_ROW: all names are known; SQLITE_DONE: one is not, so nothing can fit. */
int rollout_scan_resolve(struct store_reader *reader, const struct store_rollout_filter *filter,
                         struct rollout_scan *ret_scan);

/* A walk along one index. The rows of a list are those of its legs, one behind the other: in an order by value first the
 * rest of those that are equal to the last one, then those beyond it, then those without a value. */
struct rollout_leg {
    enum statement which;
    double value; /* the statement's, in an order by value */
    int64_t after;
};
#define ROLLOUT_LEGS_MAX 3
/* place: where the page begins. Returns how many legs there are. */
size_t rollout_scan_plan(const struct rollout_scan *scan, const struct list_place *place,
                         struct rollout_leg ret_legs[ROLLOUT_LEGS_MAX]);
/* The leg's statement, ready for its first step. */
sqlite3_stmt *rollout_scan_begin(const struct rollout_scan *scan, const struct rollout_leg *leg);

void rollout_scan_start(const struct store_rollout_filter *filter, struct list_place *ret_place);
struct list_place rollout_scan_place(const struct rollout_scan *scan, sqlite3_stmt *row);

/* Whether a row fits. *scanned is raised by one, and by more for a text that is searched. An SQLite result code. */
int rollout_scan_fits(struct rollout_scan *scan, sqlite3_stmt *row, size_t *scanned, bool *ret_fits);

#endif
