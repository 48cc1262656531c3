/* Shared by the files of a report. */
#ifndef SERVER_REPORTS_REPORT_PRIVATE_H
#define SERVER_REPORTS_REPORT_PRIVATE_H

#include "server/base/hash.h"
#include "server/base/names.h"
#include "server/reports/alarms.h"
#include "server/reports/cells.h"
#include "server/reports/report.h"
#include "server/store/store.h"

#include <jansson.h>

#define REPORT_FEW_TASKS 30
#define REPORT_EVALUATED_MAX 200000 /* rollouts of evaluations */

/* --- report_batches.c: batches and settings --- */

/* Different texts of one kind, and how many batches have each. */
struct report_settings {
    struct names texts;
    struct report_setting {
        int64_t batches;
        char first_batch[ID_BYTES];
    } * rows; /* [texts.count] */
    size_t room;
};

/* A batch, as far as the report needs it later. */
struct report_batch {
    char id[ID_BYTES];
    int64_t incarnation, revision;
    int64_t group_count, rollout_count;
    char *decider; /* evaluations: its pass_verifier, else the first held-out one; NULL: the reward */
    double threshold;
    json_t *ks; /* evaluations: the k of its pass@k, in its summary; NULL: none */
};

/* --- report_rows.c: numbers by revision --- */

struct report_heldout {
    struct text verifier;
    int64_t scored;
    double mean, se;
};

#define REPORT_WHOLE (-1) /* no slice: every group of the report */

struct report_row {
    int64_t slice;                 /* REPORT_WHOLE: none */
    int64_t incarnation, revision; /* -1: the totals */
    int64_t batches;               /* -1: of a slice, where they are not counted */
    int64_t tasks;
    struct cell_numbers numbers; /* its texts are of the cells */
    struct report_heldout *heldout;
    size_t heldout_count;
    json_t *trainer; /* {name: mean of the trainer's own numbers}; NULL: none */
};

/* The engines of training rollouts. */
struct report_engines {
    struct names keys;  /* of the texts of a row */
    struct names makes; /* of its model, version and tokenizer */
    struct report_engine {
        char *engine, *model, *version, *tokenizer; /* NULL: not said */
        int64_t rollouts;
    } * rows; /* [keys.count] */
    size_t room;
};

/* Counts of training rollouts beside their numbers. */
struct report_counts {
    int64_t seeds_not_honoured, processed_logprobs;
    int64_t old_kl;                       /* sums of KL over samples of another revision than the step's */
    int64_t spent_rollouts, spent_tokens; /* of every incarnation and purpose */
};

/* --- report_engines.c --- */

/* texts[4]: engine, model, version, tokenizer; without an engine nothing is added. -1: no memory. */
int report_engines_add(struct report_engines *engines, const struct text *texts, int64_t rollouts);
void report_engines_finish(struct report_engines *engines);

/* --- report_slices.c: groups with one value of a tag --- */

struct report_slice {
    int64_t number;
    struct text value;       /* TEXT_NONE: of groups without the tag */
    struct report_row *rows; /* its totals first, then by revision and incarnation */
    size_t row_count;
};

/* --- report_parts.c: groups of one evaluation batch, one task set, and one slice or the whole --- */

struct report_part {
    const struct report_batch *batch;
    uint32_t set;  /* of the report's sets; NAMES_NONE: none */
    int64_t slice; /* REPORT_WHOLE: every group of the set */
    int64_t *groups;
    size_t group_count, group_room;
};

/* --- report_evaluation.c --- */

struct report_estimate {
    int64_t k;
    struct clustered_mean pass, majority, best;
};

struct report_evaluation {
    int64_t slice; /* REPORT_WHOLE: none */
    int64_t incarnation, revision;
    struct text decider; /* TEXT_NONE: the reward */
    double threshold;    /* its score is correct from here on */
    struct text set;     /* TEXT_NONE: none */
    int64_t batches, groups, n;
    struct report_estimate *estimates;
    size_t estimate_count;
};

/* --- report_limits.c --- */

struct report_limit {
    const char *code;
    int64_t count;
    char message[200];
};
enum { REPORT_LIMITS_MAX = 16 };

struct report {
    struct call *call;
    struct text run;
    int64_t from, to;                      /* revisions; -1: open */
    struct store_tag tags[STORE_TAGS_MAX]; /* of its groups: all of them */
    size_t tag_count;
    struct text split; /* name of the tag that it is split by; TEXT_NONE: none */
    int64_t generated_at_us;

    struct report_settings objectives, samplings, verifiers, together; /* of training batches; together: all three */
    struct report_batch *training, *evaluations;
    size_t training_count, training_room, evaluation_batch_count, evaluation_batch_room;
    char (*requests)[SHA256_HEX_BYTES]; /* of all batches */
    size_t request_count, request_room;
    char inputs_sha256[SHA256_HEX_BYTES];

    struct store_lines lines;
    struct cells *cells; /* slice, revision, incarnation, verifier; null: the whole, all of them, the reward */
    struct names training_tasks;
    struct names heldout_tasks; /* evaluated, or with the prompt of a task of a split other than train */
    struct report_engines engines;
    struct report_counts counts;
    struct report_row *rows; /* the totals first, then by revision and incarnation */
    size_t row_count;
    struct report_heldout *heldout; /* of all rows */
    struct names values;            /* of the tag, by slice */
    struct report_slice *slices;    /* by value */
    size_t slice_count;

    struct report_part *parts; /* in order: parts of one evaluation side by side */
    size_t part_count, part_room;
    struct names sets;                   /* of evaluated groups */
    struct report_evaluation *evaluated; /* the whole first, then by slice; by revision and incarnation */
    size_t evaluated_count;
    bool evaluated_too_many;

    struct report_limit limits[REPORT_LIMITS_MAX];
    size_t limit_count;
    struct alarm_finding alarms[ALARM_KINDS];
    size_t alarm_count;       /* raised */
    struct store_notes notes; /* the first page */
    int64_t notes_left_out;   /* behind it */
    struct store_manifest manifest;
};

/* Each: 0, or -1 with the call refused, or given up by its client. */
int report_read_batches(struct report *report);
int report_read_lines(struct report *report);
int report_read_rows(struct report *report);
int report_read_rollouts(struct report *report);
int report_read_evaluations(struct report *report);
/* Fills `parts`, and says in `evaluated_too_many` why it did not. */
int report_split_evaluations(struct report *report);
int report_find_heldout_tasks(struct report *report);
/* The slice of a group with these tags, a new one at its first; REPORT_WHOLE if the report is not split. */
int report_find_slice(struct report *report, struct text tags, int64_t *ret_slice);
/* Makes `slices`, of rows whose slice is set. */
int report_take_slices(struct report *report, struct report_row *rows, size_t count);
int report_find_alarms(struct report *report);
int report_refuse_memory(struct report *report);
/* Room for one more of `count` things. False: no memory. */
bool report_make_room(void *array, size_t count, size_t *room, size_t size_bytes);
/* Whether a revision of an incarnation counts: no later incarnation has rollouts of it and of the purpose. */
bool report_survives(const struct report *report, int64_t incarnation, int64_t revision, enum store_purpose purpose);

/* 0: they are evaluated together. */
int report_compare_parts(const void *left, const void *right);
void report_parts_finish(struct report *report);

/* The evaluations of a slice, or of the whole: the first one, and how many. */
const struct report_evaluation *report_evaluations_of(const struct report *report, int64_t slice, size_t *ret_count);

#define REPORT_ANY (-1)
/* The cell of a slice, or of the whole; of a revision, or of all; of the reward, or of a held-out verifier. */
size_t report_cell(const struct report *report, int64_t slice, int64_t revision, int64_t incarnation,
                   struct text verifier);

void report_find_limits(struct report *report);

/* --- report_alarms.c: raised alarms, an item each --- */

struct report_alarm_form {
    const char *before, *behind, *end; /* of the value; of the item */
    void (*text)(struct buffer *out, struct text text);
    void (*code)(struct buffer *out, struct text text);
};
void report_write_alarms(const struct report *report, const struct report_alarm_form *form, struct buffer *out);

/* The reply's body, in each of its forms. */
void report_write_json(const struct report *report);
void report_write_markdown(const struct report *report);
void report_write_html(const struct report *report);

/* --- report_columns.c: the columns that HTML and Markdown share --- */

#define REPORT_CELL_BYTES 96

struct report_column {
    const char *title;
    void (*write)(const struct report_row *row, char ret_text[REPORT_CELL_BYTES]);
    bool heldout_next; /* the held-out verifiers' columns stand behind it */
};
extern const struct report_column report_columns[]; /* ended by a title of NULL */

/* "0.25 ± 0.04", or "–". */
void report_mean(double mean, double se, char ret_text[REPORT_CELL_BYTES]);
/* ", from 0.5"; "" of a threshold of 1. */
void report_threshold(double threshold, char ret_text[REPORT_CELL_BYTES]);
const struct report_heldout *report_find_heldout(const struct report_row *row, struct text verifier);

/* report_figures.c: figures in HTML. */
void report_write_figures(const struct report *report, struct buffer *out);

#endif
