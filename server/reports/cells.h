/* cells: numbers over many rollouts, one cell for each key, for stats, reports and comparisons.
 *
 * Pure: rollouts or their sums in, cells out. No store, no clock, no text of JSON. One thread at a time. The order of
 * adding changes only the last digit of a mean.
 *
 * How numbers are counted. A failure is in `n`, never in a mean: means and errors are over the judged, those with a
 * reward. Errors are clustered by task (server/statistics). `truncated` is of the judged; `straddles`, `duplicates` and
 * the costs (tokens_sum, tokens_max, engine_us) are of all. A cell's groups are whole groups: each that has a
 * member in it counts once.
 *
 * A rollout may be added to several cells, e.g. one for each of its verdicts. Means of several scores side by side are
 * cells whose key names the verifier. */
#ifndef SERVER_REPORTS_CELLS_H
#define SERVER_REPORTS_CELLS_H

#include "server/statistics/statistics.h"
#include "server/store/objective_sums.h"

#include <stdbool.h>

#define CELL_PARTS_MAX 12 /* of a key */
#define CELLS_NONE SIZE_MAX

struct cells;

struct cell_part {
    enum cell_part_kind { CELL_NULL, CELL_NUMBER, CELL_TEXT } kind; /* in this order, numbers and texts by value */
    int64_t number;
    struct text text;
};
struct cell_key {
    size_t count; /* of all keys the same; 0: one cell for everything */
    struct cell_part parts[CELL_PARTS_MAX];
};
/* Parts: null stands for -1, and for TEXT_NONE. */
struct cell_part cell_number(int64_t number);
struct cell_part cell_text(struct text text);

/* Byte by byte, a shorter one first: the order of tasks and of keys. */
int cell_text_order(struct text left, struct text right);

enum cell_state { CELL_SCORED, CELL_FAILED, CELL_CANCELLED };
enum cell_group {
    CELL_GROUP_RUNNING,  /* not closed: not known yet */
    CELL_GROUP_UNJUDGED, /* no member has a reward */
    CELL_GROUP_VARIED,
    CELL_GROUP_ZERO_VARIANCE
};
/* Start from cell_rollout_init(). */
struct cell_rollout {
    struct text task;
    struct text group; /* its id, or any other name that no other group has */
    enum cell_group group_state;
    enum cell_state state;
    double reward;  /* NAN: not judged */
    double score;   /* of the verifier that is looked at; NAN: none */
    int solved;     /* the deciding score is at the threshold or above: 1, below: 0; there is none: -1 */
    int64_t tokens; /* of the completion */
    bool truncated; /* its finish reason is `length` */
    bool straddles;
    bool duplicate;      /* of an earlier member of its group */
    struct text failure; /* code; TEXT_NONE: none */
    int64_t engine_us;
    double staleness; /* the run's revision at the end of sampling - its own; NAN: not known */
};
void cell_rollout_init(struct cell_rollout *rollout);

/* The sums of many rollouts of one task: a row of the roll-ups. Zero-initialised. `groups` are none that have a
 * member in another row: those are named by cells_add_group(). */
struct cell_sums {
    int64_t n, scored, failed, cancelled;
    int64_t groups, judged_groups, zero_variance_groups;
    struct task_scratch reward; /* count: the judged */
    double reward_min, reward_max;
    struct task_scratch score; /* count: those with one */
    double score_min, score_max;
    int64_t judged_tokens, tokens, tokens_max;
    int64_t truncated, straddles, duplicates;
    int64_t decided, solved; /* those with a deciding score; of them, at the threshold or above */
    int64_t engine_us;
    int64_t ended, staleness; /* those whose staleness is known, and its sum */
};

struct cells *cells_create(void); /* NULL: no memory */
void cells_destroy(struct cells *cells);
void cells_destroyp(struct cells **cells);

/* The cell of a key, empty at first. CELLS_NONE: no memory; adding to it has no effect, and cells_close() fails. */
size_t cells_find(struct cells *cells, const struct cell_key *key);
void cells_add(struct cells *cells, size_t cell, const struct cell_rollout *rollout);
void cells_add_sums(struct cells *cells, size_t cell, struct text task, const struct cell_sums *sums);
/* A group with a member in the cell, however often it is named. */
void cells_add_group(struct cells *cells, size_t cell, struct text group, enum cell_group state);
void cells_add_failures(struct cells *cells, size_t cell, struct text code, int64_t count);
/* The sums of objective calls on record: by the sample's revision and engine (slice). */
void cells_add_objective(struct cells *cells, size_t cell, const struct store_objective_sum *sum);

/* Sorts the cells by key, and the rows of each cell side by side. Nothing can be added afterwards. 0;
 * -1: there was no memory, now or before, and there is no result. */
int cells_close(struct cells *cells);

/* ---- after cells_close(); texts belong to the cells ---- */

struct cell_failure {
    struct text code;
    int64_t count;
};
struct cell_numbers {
    int64_t n, scored, failed, cancelled, judged;
    int64_t groups, judged_groups, zero_variance_groups; /* share: zero_variance_groups / judged_groups */
    struct clustered_mean reward, score, tokens;         /* NAN: null */
    double reward_min, reward_max;                       /* NAN: none is judged */
    int64_t tokens_sum, tokens_max;                      /* tokens_max -1: n is 0 */
    int64_t truncated, straddles, duplicates;
    int64_t decided, solved; /* rate: solved / decided */
    int64_t engine_us;
    double staleness;                    /* mean over those whose staleness is known; NAN: none */
    const struct cell_failure *failures; /* by code */
    size_t failure_count;
    double objective[STORE_OBJECTIVE_MEANS]; /* NAN: nothing was kept */
    double clip_fraction;
    struct text kl_estimator; /* TEXT_NONE: none, or several */
    double loss; /* mean over optimizer steps of their losses at epoch 0, of all slices and parts together */
};
size_t cells_count(const struct cells *cells);
void cells_key(const struct cells *cells, size_t cell, struct cell_key *ret_key);
void cells_numbers(const struct cells *cells, size_t cell, struct cell_numbers *ret_numbers);

/* The groups of a cell, by name. The first call puts all of them in order. */
size_t cells_groups(struct cells *cells, size_t cell);
struct text cells_group(const struct cells *cells, size_t cell, size_t place);

/* One task of a cell. A mean without values is NAN. */
struct cell_task {
    struct text task;
    int64_t n, judged;
    double reward_mean;
    int64_t scores;
    double score_mean;
    double tokens_mean;
    int64_t decided, solved;
};
/* How many tasks a cell has, and one of them, in order of their names. */
size_t cells_tasks(const struct cells *cells, size_t cell);
void cells_task(const struct cells *cells, size_t cell, size_t place, struct cell_task *ret_task);

#endif
