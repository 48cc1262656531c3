/* Shared by the files of cells. */
#ifndef SERVER_REPORTS_CELLS_PRIVATE_H
#define SERVER_REPORTS_CELLS_PRIVATE_H

#include "server/base/names.h"
#include "server/reports/cells.h"

/* The sums of one task in a cell. */
struct cell_pair {
    uint32_t cell, task;
    int64_t n, judged_tokens, decided, solved;
    struct task_scratch reward, score;
};

struct cell_group_pair {
    uint32_t cell, group;
    enum cell_group state;
};

struct cell_failure_pair {
    uint32_t cell, code;
    int64_t count;
};

/* The loss of one optimizer step, as far as its samples are in the cell. */
struct cell_step {
    uint32_t cell;
    struct precise_sum loss;
};

struct cell_objective {
    bool kept;
    struct precise_sum sums[STORE_OBJECTIVE_MEANS];
    int64_t sum_tokens[STORE_OBJECTIVE_MEANS];
    int64_t clips, tokens;
    uint32_t estimator; /* of cells->estimators; NAMES_NONE: none yet, or several */
    bool several_estimators;
};

struct cell {
    int64_t n, scored, failed, cancelled;
    int64_t groups, judged_groups, zero_variance_groups;
    double reward_min, reward_max, score_min, score_max; /* NAN: none */
    int64_t tokens, tokens_max;
    int64_t truncated, straddles, duplicates, decided, solved, engine_us;
    struct precise_sum staleness;
    int64_t staleness_count;
    struct cell_objective objective;
    /* after cells_close() */
    size_t first_pair, pair_count;
    size_t first_failure, failure_count;
    size_t first_group, group_count; /* after cells_groups() */
    struct precise_sum loss;
    int64_t steps;
};

/* Rows of one size, numbered by a key. */
struct cell_table {
    struct names names;
    char *rows;
    size_t room;
};

struct cells {
    struct names tasks, groups, codes, estimators;
    struct cell_table cells;    /* struct cell, by the key as bytes */
    struct cell_table pairs;    /* struct cell_pair, by cell and task */
    struct cell_table members;  /* struct cell_group_pair, by cell and group */
    struct cell_table failures; /* struct cell_failure_pair, by cell and code */
    struct cell_table steps;    /* struct cell_step, by cell, incarnation and step */
    bool failed;                /* there was no memory */
    /* after cells_close() */
    bool groups_in_order;
    uint32_t *order;                    /* [cells] of the cells, by key */
    struct cell_failure *failure_texts; /* in the order of the failures */
    struct task_scratch *scratch;       /* as many as the largest cell has tasks */
};

static inline struct cell *cell_at(const struct cells *cells, size_t cell)
{
    return (struct cell *)(void *)cells->cells.rows + cell;
}

/* A key from the bytes under which its cell is found. */
void cell_key_read(struct text bytes, struct cell_key *ret_key);

#endif
