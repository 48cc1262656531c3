/* journal: the trainer's own numbers of a run, and notes on it. */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include "server/store/read.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- the trainer's own numbers ----------------------------------------------------------------------------- */

/* Numbers of one optimizer step; the same step again in the run's incarnation replaces them. NOT_FOUND: no such run. */
struct store_record_metrics {
    struct text run;
    int64_t optimizer_step;
    int64_t revision;
    struct text numbers; /* JSON object: names to finite numbers */
    /* out */
    int64_t incarnation;
    int64_t recorded_at_us;
    bool replaced;
};

struct store_trainer_metric {
    int64_t incarnation; /* of the run, when it was recorded */
    int64_t optimizer_step;
    int64_t revision;
    int64_t recorded_at_us;
    struct text numbers; /* as above */
};
struct store_trainer_metrics {
    struct store_trainer_metric *metrics; /* by the first recording of their step */
    size_t count;
    char next[64];
    struct store_memory *memory;
};
/* optimizer_step: -1: any. Fewer than `limit` if they are large. NOT_FOUND: no such run. INVALID_CURSOR: it is of another list. */
enum store_status store_list_metrics(struct store_reader *reader, struct text run, int64_t optimizer_step,
                                     struct text cursor, size_t limit, struct store_trainer_metrics *ret_metrics);
void store_trainer_metrics_finish(struct store_trainer_metrics *metrics);

/* ---- notes ------------------------------------------------------------------------------------------------- */

/* Each text may be TEXT_NONE: not said. */
struct store_note {
    int64_t at_us;
    struct text prediction;
    struct text result;
    struct text explanation;
    struct text limitation;
};

/* A note behind the earlier ones. EXISTS: the run's newest note says the same; at_us out is that one's. NOT_FOUND: no
 * such run. */
struct store_add_note {
    struct text run;
    struct store_note note; /* at_us: out */
};

struct store_notes {
    struct store_note *notes; /* oldest first */
    size_t count;
    char next[64];
    struct store_memory *memory;
};
/* Fewer than `limit` if they are large. NOT_FOUND: no such run. INVALID_CURSOR: it is of another list. */
enum store_status store_list_notes(struct store_reader *reader, struct text run, struct text cursor, size_t limit,
                                   struct store_notes *ret_notes);
void store_notes_finish(struct store_notes *notes);

#endif
