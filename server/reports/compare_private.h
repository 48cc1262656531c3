/* Shared by the files of a comparison. */
#ifndef SERVER_REPORTS_COMPARE_PRIVATE_H
#define SERVER_REPORTS_COMPARE_PRIVATE_H

#include "server/reports/cells.h"
#include "server/reports/compare.h"
#include "server/spec/settings_tree.h"

/* The costs of a run, or its budget. */
struct compare_spent {
    int64_t counts[3]; /* by enum compare_budget */
    struct compare_weights {
        int64_t incarnation, revision;
    } * weights; /* [counts[COMPARE_REVISIONS]], distinct ones of all members, in order of creation */
    size_t weights_room;
};

/* The parts of a cell's key. Null: every group; the reward. The value of a tag is '=' and its text, or "" of groups without it. */
enum { COMPARE_VALUE, COMPARE_VERIFIER, COMPARE_KEY };

struct compare_side {
    struct text run;
    json_t *settings;            /* key: {a value as text: the value} of every batch */
    struct compare_spent total;  /* of its whole groups */
    struct compare_spent within; /* the budget */
    struct cells *cells; /* of survivors within: COMPARE_KEY parts; without a verifier the reward, with one its score */
    int64_t batches, groups;
};

struct comparison {
    struct call *call;
    const struct compare_query *query;
    struct compare_side sides[2];
    int64_t value; /* of the budget */
    json_t *ignored;
};

/* compare_read.c: the run's costs and settings; then its groups within the budget. 0, or -1 with the call
 * refused. */
int compare_measure(struct comparison *comparison, struct compare_side *side, const char *parameter);
int compare_take(struct comparison *comparison, struct compare_side *side);

/* compare_settings.c: adds a tree to the settings of a run. */
void compare_add_settings(struct compare_side *side, json_t *tree);
/* The differences that are not ignored, [{"key","a","b"}]; those that are, in comparison->ignored. */
json_t *compare_differences(struct comparison *comparison);

#endif
