/* stats: the numbers of a record's rollouts by keys: GET /v1/stats, task histories and flips.
 *
 * Worker threads, with a reader in the call. */
#ifndef SERVER_REPORTS_STATS_H
#define SERVER_REPORTS_STATS_H

#include "server/http/call.h"
#include "server/reports/cells.h"
#include "server/store/rollout_filter.h"

/* THE list of keys, beside tag.NAME. KEY(name, "name") */
#define STATS_KEYS(KEY)                                                                                                \
    KEY(RUN, "run")                                                                                                    \
    KEY(INCARNATION, "incarnation")                                                                                    \
    KEY(REVISION, "revision")                                                                                          \
    KEY(PURPOSE, "purpose")                                                                                            \
    KEY(TASK, "task")                                                                                                  \
    KEY(BATCH, "batch")                                                                                                \
    KEY(ENGINE, "engine")                                                                                              \
    KEY(ENGINE_MODEL, "engine_model")                                                                                  \
    KEY(FINISH_REASON, "finish_reason")                                                                                \
    KEY(FAILURE, "failure")                                                                                            \
    KEY(VERIFIER, "verifier")                                                                                          \
    KEY(REASON, "reason")

enum stats_key {
#define STATS_KEY_NAME(name, word) STATS_##name,
    STATS_KEYS(STATS_KEY_NAME)
#undef STATS_KEY_NAME
        STATS_TAG
};
extern const char *const stats_key_names[]; /* ended by NULL */

/* The rollouts of a query, and the keys of its cells. */
struct stats_query {
    struct store_rollout_filter filter;
    enum stats_key keys[CELL_PARTS_MAX];
    struct text key_names[CELL_PARTS_MAX]; /* as asked for: "tag.source" */
    size_t key_count;
    struct text verifier;   /* whose score counts; TEXT_NONE: the first held-out one's, else the reward */
    double threshold;       /* solved is a score of at least this */
    bool every_incarnation; /* `incarnation` is a filter or a key; else the surviving line counts */
};

/* The parameters of a call: the filters, verifier, threshold. `purpose` is train unless it is given or a key. 0, or -1
 * with the call refused. */
int stats_query_read(struct call *call, struct stats_query *ret_query);
/* `by` of GET /v1/stats, before stats_query_read(). */
int stats_query_read_by(struct call *call, struct stats_query *query);
bool stats_query_has(const struct stats_query *query, enum stats_key key);

/* Adds the query's rollouts to the cells. 0, or -1 with the call refused: more than `stats_budget` rows would have to
 * be read, the record cannot be read, or the client has gone. */
int stats_collect(struct call *call, const struct stats_query *query, struct cells *cells);
int stats_refuse_memory(struct call *call);

/* GET /v1/stats, /v1/tasks/history and /v1/flips, a page of each. */
void stats_answer(struct call *call, int64_t limit, struct text cursor);
void task_history_answer(struct call *call, int64_t limit, struct text cursor);
void flips_answer(struct call *call, int64_t limit, struct text cursor);

#endif
