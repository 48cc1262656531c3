/* taskset: named, immutable sets of tasks.
 *
 * A set is written as a draft, in bounded operations, and readers see it once it is frozen. A draft that is not frozen
 * is dropped, in bounded operations, too. */
#ifndef STORE_TASKSET_H
#define STORE_TASKSET_H

#include "server/base/hash.h"
#include "server/store/content.h"
#include "server/store/read.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- written ----------------------------------------------------------------------------------------------- */

struct store_new_task {
    int64_t line; /* of the body, from 1 */
    struct text task;
    struct text split;
    bool chat;                   /* the prompt is an array of messages, otherwise a text */
    struct store_content prompt; /* JSON */
    bool has_reference;
    struct store_content reference; /* JSON */
    struct text metadata;           /* JSON; TEXT_NONE: none */
    struct text tags;               /* canonical JSON (tags.h); TEXT_NONE: none */
};

/* Tasks for a draft. EXISTS, with nothing added: the draft has a task of this name. */
struct store_add_tasks {
    int64_t set_seq; /* in: 0: a new draft. out: it */
    struct text set;
    const struct store_new_task *tasks;
    size_t count;
    /* out, of EXISTS */
    size_t wrong;       /* index of the second one */
    int64_t first_line; /* of the first one */
};

struct store_split {
    struct text split;
    int64_t tasks;
};

/* The draft becomes the set of its name. EXISTS: that is there with this digest, and STATE_CONFLICT: with another; the
 * draft stays one. */
struct store_freeze_taskset {
    int64_t set_seq;
    struct text set;
    uint8_t sha256[SHA256_BYTES];
    const struct store_split *splits;
    size_t split_count;
};

/* A part of the oldest draft from one seq to another. */
struct store_drop_drafts {
    int64_t from_seq;
    int64_t to_seq;
    bool more; /* out: something is left of these drafts */
};
/* Any thread. The last draft that was on record when the store was opened: no upload of this process. 0: none. */
int64_t store_last_old_draft(const struct store *store);

/* ---- read -------------------------------------------------------------------------------------------------- */

struct store_taskset {
    int64_t seq;
    struct text set;
    uint8_t sha256[SHA256_BYTES];
    int64_t tasks;
    int64_t created_at_us;
    struct store_split *splits; /* in order of their names */
    size_t split_count;
};
struct store_tasksets {
    struct store_taskset *sets; /* in order of creation */
    size_t count;
    char next[64];
    struct store_memory *memory;
};
/* count is 1 after OK. */
enum store_status store_read_taskset(struct store_reader *reader, struct text set, struct store_tasksets *ret_set);
enum store_status store_list_tasksets(struct store_reader *reader, struct text cursor, size_t limit,
                                      struct store_tasksets *ret_sets);
bool store_tasksets_cursor_fits(struct text cursor);
void store_tasksets_finish(struct store_tasksets *sets);

struct store_task {
    int64_t seq;
    int64_t line;
    struct text task;
    struct text split;
    struct text set_sha256; /* hex */
    bool chat;
    struct text prompt;    /* JSON: a text, or messages */
    struct text reference; /* JSON. These three: TEXT_NONE: none */
    struct text metadata;
    struct text tags;
};
struct store_tasks {
    struct store_task *tasks; /* in order of their lines */
    size_t count;
    char next[64];
    size_t scanned;
    size_t bytes;
    struct store_memory *memory;
};
/* count is 1 after OK. */
enum store_status store_find_task(struct store_reader *reader, struct text set, struct text task,
                                  struct store_tasks *ret_task);
/* split TEXT_NONE: any. NOT_FOUND: no such set. INVALID_CURSOR: it is of another list. */
enum store_status store_list_tasks(struct store_reader *reader, struct text set, struct text split, struct text cursor,
                                   const struct store_page_limits *limits, struct store_tasks *ret_tasks);
bool store_tasks_cursor_fits(struct text set, struct text split, struct text cursor);
void store_tasks_finish(struct store_tasks *tasks);

/* A task of training batches of a run, with the prompt of a task of a split other than `train` of some set. */
struct store_heldout_task {
    struct text task; /* until the next one is visited */
    int64_t incarnation;
    int64_t revision;
};
/* Each once for its incarnation and revision; false ends the visit. NOT_FOUND: no such run. */
enum store_status store_visit_heldout_trained(struct store_reader *reader, struct text run,
                                              bool (*take)(void *arg, const struct store_heldout_task *task),
                                              void *arg);

#endif
