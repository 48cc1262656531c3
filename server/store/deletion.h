/* deletion: the removal of a run and all its rows, in slices between the commits of other operations. */
#ifndef STORE_DELETION_H
#define STORE_DELETION_H

#include "server/store/read.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DELETION_REASON_WORDS(ROW)                                                                                     \
    ROW(REQUEST, "request")                                                                                            \
    ROW(RETENTION, "retention")
#define STORE_DELETION_REASON(name, word) STORE_DELETION_##name,
enum store_deletion_reason { DELETION_REASON_WORDS(STORE_DELETION_REASON) };
extern const char *const store_deletion_reason_names[];

/* The size of a run on record. */
struct store_run_size {
    int64_t batches;
    int64_t groups;
    int64_t rollouts;
    int64_t bytes; /* of the file, about; -1: not measured */
};
/* Reads page by page, each in a transaction of its own. UNAVAILABLE, too, if *abandoned was set. */
enum store_status store_measure_run(struct store_reader *reader, struct text run, bool with_bytes,
                                    const atomic_bool *abandoned, struct store_run_size *ret_size);

/* From now on no operation enters the run (RUN_IS_DELETED), and readers see nothing of it but its row. NOT_FOUND: there
 * is no such run. EXISTS: it is being deleted; the results are those of that deletion. STATE_CONFLICT: it has a running
 * batch or an open weight update. */
struct store_delete_run {
    struct text run;
    struct text said_by; /* `by` of the request; TEXT_NONE: not given */
    struct text client;  /* address */
    struct text request_id;
    /* in: as measured. out: of the deletion. Its bytes are not on record. */
    struct store_run_size size;
    /* out */
    int64_t deletion; /* its number */
    int64_t requested_at_us;
};

struct store_deletion {
    int64_t number;
    struct text run;
    enum store_deletion_reason reason;
    struct text said_by; /* TEXT_NONE: not given, as for the next two */
    struct text client;
    struct text request_id;
    int64_t requested_at_us;
    int64_t ended_at_us; /* -1: still running */
    int64_t batches;
    int64_t groups;
    int64_t rollouts;
};
struct store_deletions {
    struct store_deletion *deletions; /* newest first */
    size_t count;
    char next[64];
    struct store_memory *memory;
};
bool store_deletions_cursor_fits(struct text cursor);
enum store_status store_list_deletions(struct store_reader *reader, struct text cursor, size_t limit,
                                       struct store_deletions *ret_deletions);
void store_deletions_finish(struct store_deletions *deletions);

/* Runs that are deleted without a request: whole ones, that have no running batch and no open update, the one that has
 * been idle for longest first. */
struct store_retention {
    int64_t keep_us;    /* since a run's last activity; 0: for ever */
    int64_t most_bytes; /* of the file in use; 0: any number */
    int64_t spare_us;   /* runs active within it stay, however large the file is */
    const char *except; /* names with blanks between them, `*` for any end of one; NULL: none. Outlives the store */
};

#endif
