/* Shared by the files of an audit. */
#ifndef SERVER_REPORTS_AUDIT_PRIVATE_H
#define SERVER_REPORTS_AUDIT_PRIVATE_H

#include "server/base/ids.h"
#include "server/objective/objective.h"
#include "server/record/group_record.h"
#include "server/reports/audit.h"
#include "server/statistics/statistics.h"

#include <stdbool.h>

/* The body, as it was written. */
struct audit_fields {
    int kind;
    struct text run;
    int64_t incarnation; /* -1: the latest that has the revision */
    int64_t revision;    /* -1: not given */
    struct text batch;
    json_t *objective, *groups, *weights; /* without a record; NULL: not given */
    json_t *sweep;
    struct text truth;
    double threshold;
};

/* One of the scores of a member. */
struct audit_score {
    uint32_t name;  /* of audit->names */
    bool is_reward; /* not held out */
    bool gate;
    double score;  /* NAN: none */
    double weight; /* as recorded; 0 if held out */
};

struct audit_member {
    struct text id;       /* of a request; TEXT_NONE: none */
    int64_t sample_index; /* of the record */
    size_t group;
    size_t first_score, score_count;
    bool counted; /* false: it is here because its group's advantages need it */
    bool failed;  /* before or after judging: it has no reward, whatever scores it has */
};

struct audit_group {
    char id[ID_BYTES]; /* of the record, else "" */
    struct text task;  /* of the request, or the audit's own copy */
    uint32_t task_number;
    size_t first, count; /* members */
};

/* The input of one objective: a request, a batch on record, or a group of one whose rule looks at no other group. The
 * members of a group stand together. */
struct audit_part {
    struct objective_knobs knobs;
    struct audit_group *groups;
    size_t group_count, group_room;
    struct audit_member *members;
    struct objective_sequence *sequences; /* [member_count] */
    size_t member_count, member_room, sequence_room;
    struct audit_score *scores;
    size_t score_count, score_room;
    struct store_group *kept; /* whose arrays the sequences point to */
    size_t kept_count, kept_room;
};

/* One weight of the sweep, or the recorded ones. */
struct audit_row {
    double weight;   /* NAN: as recorded */
    double *rewards; /* [audit->member_count] */
    size_t promoted_wrong, demoted_right, rank_changes;
    struct buffer promoted; /* items of the list, without its brackets */
    size_t listed;
};

struct audit {
    struct call *call;
    struct json_input *input;
    struct audit_fields fields;
    struct text verifier;
    json_t *numbers; /* {name of a score: its number} */
    char **names;    /* [name_count] */
    size_t name_count;
    bool seen[AUDIT_NAMES_MAX]; /* a completion, or a verifier on record, has the name */
    uint32_t swept, truth;
    json_t *tasks;                                /* {task: its number} */
    struct audit_row rows[1 + AUDIT_WEIGHTS_MAX]; /* the first: as recorded */
    size_t row_count;
    /* of counted members, over all parts */
    double *truths;
    uint32_t *task_of;
    size_t member_count, member_room;
    size_t group_count;
    double recorded_weight;   /* NAN: none; INFINITY: several */
    size_t running_groups;    /* left out */
    size_t contradicted;      /* whose recorded reward is not what their scores give */
    struct buffer divergence; /* JSON; empty: null */
    bool history_too_long;
};

/* audit_request.c: 0, or -1 with the call refused. */
int audit_read(struct audit *audit);
/* The request's own groups, as one part. */
int audit_read_groups(struct audit *audit, struct audit_part *part);
void audit_part_finish(struct audit_part *part);
/* Members to come. -1: refused, there are too many of them or no memory for them. */
int audit_add_group(struct audit *audit, struct audit_part *part, struct text task, struct audit_group **ret_group);
int audit_add_member(struct audit *audit, struct audit_part *part, struct audit_member **ret_member);
int audit_add_score(struct audit *audit, struct audit_part *part, const struct audit_score *score);
/* The number of a name, which is new at first. */
int audit_name(struct audit *audit, struct text name, uint32_t *ret_number);
/* A name that nobody has is a typing error. */
int audit_check_names(struct audit *audit);
int audit_refuse_memory(struct audit *audit);
int audit_refuse_many(struct audit *audit);
int audit_refuse_scores(struct audit *audit);
/* 0; -1: nobody waits for this audit any more, and it ends without an answer. Asked at each weight, page and group. */
int audit_go_on(struct audit *audit);

/* audit_record.c: reads the rollouts that are asked for and computes them batch by batch, or group by group. */
int audit_record(struct audit *audit);

/* audit_sweep.c: what every weight makes of a part. */
int audit_compute(struct audit *audit, struct audit_part *part);

/* divergence.c: looks for it in the run's history. */
int audit_find_divergence(struct audit *audit);

/* audit_write.c: the reply. */
void audit_write(struct audit *audit);

#endif
