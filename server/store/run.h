/* run: a training run: its weights over time, its objectives, what it counts. */
#ifndef STORE_RUN_H
#define STORE_RUN_H

#include "server/base/ids.h"
#include "server/store/policy_update.h"
#include "server/store/read.h"

struct store_run {
    struct text name;
    int64_t incarnation;
    int64_t policy_revision; /* -1: none declared */
    int64_t created_at_us;
    int64_t batches;
    int64_t scored;
    int64_t failed;
    int64_t cancelled;
    int64_t spent_tokens; /* completion tokens of training rollouts; -1: of a run from before they are counted */
    int64_t deletion;     /* by which it is being deleted; -1: it is not */
    bool has_update;
    struct store_policy_update update; /* the newest, if there is one */
};
struct store_runs {
    struct store_run *runs; /* in order of creation */
    size_t count;
    char next[64];
    struct store_memory *memory;
};
bool store_runs_cursor_fits(struct text cursor);
enum store_status store_list_runs(struct store_reader *reader, struct text cursor, size_t limit,
                                  struct store_runs *ret_runs);
void store_runs_finish(struct store_runs *runs);

struct store_incarnation {
    int64_t incarnation;
    int64_t opened_at_us;
    int64_t rewind_to_step; /* -1: the first */
};
struct store_revision {
    int64_t incarnation;
    int64_t revision;
    int64_t declared_at_us;
};
struct store_run_objective {
    struct text objective; /* JSON */
    char first_batch_id[ID_BYTES];
    enum store_purpose purpose; /* of that batch */
    int64_t first_used_at_us;
};
struct store_run_detail {
    struct store_run run;
    struct store_incarnation *incarnations;
    size_t incarnation_count;
    struct store_revision *revisions; /* newest first, at most STORE_RUN_REVISIONS of them */
    size_t revision_count;
    int64_t revisions_declared;
    struct store_run_objective *objectives; /* distinct ones, in order of first use */
    size_t objective_count;
    struct store_memory *memory;
};
#define STORE_RUN_REVISIONS 1000
/* Runs whose newest update is open, in order of creation. Finish with store_runs_finish(). */
enum store_status store_read_open_updates(struct store_reader *reader, struct store_runs *ret_runs);
enum store_status store_read_run(struct store_reader *reader, struct text run, struct store_run_detail *ret_run);
void store_run_detail_finish(struct store_run_detail *run);

/* Where a run stands, as seen from a batch of an incarnation. */
struct store_standing {
    int64_t incarnation;     /* the run's of now */
    int64_t newest_revision; /* the newest that was declared in the incarnation asked for; -1: none */
};
enum store_status store_read_standing(struct store_reader *reader, struct text run, int64_t incarnation,
                                      struct store_standing *ret_standing);

/* Where the latest incarnation that has rollouts of a revision and purpose is not the first: by revision, then purpose.
 * Those of an earlier incarnation are no part of the surviving line. */
struct store_line {
    int64_t revision;
    enum store_purpose purpose;
    int64_t incarnation;
};
struct store_lines {
    struct store_line *lines;
    size_t count;
    struct store_memory *memory;
};
enum store_status store_read_lines(struct store_reader *reader, struct text run, struct store_lines *ret_lines);
void store_lines_finish(struct store_lines *lines);

/* OK: an update in mode abort led the batch's run to this revision since the batch was made. NOT_FOUND: none did. */
enum store_status store_find_abort(struct store_reader *reader, struct text batch_id, int64_t revision);

#endif
