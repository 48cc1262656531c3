/* store: the record. Requests, batches, groups, rollouts, runs, committed before the reply.
 *
 * One process per database file. Writes are enumerated operations, each one transaction: they are queued from any
 * thread, a writer thread commits what has gathered (one fsync for many), and only then are they handed back. Reads go
 * through a reader, one for each thread. No SQL and no SQL type is visible here, so that another database can stand
 * behind the same headers: this one opens, writes and closes; each kind of thing has a header of its own with its
 * structs, its operations and its reads.
 *
 * Conventions: times are UTC microseconds, -1 for none; a double that is NAN is null on record; an absent text is
 * TEXT_NONE; JSON columns hold the text as given and are never read by the store. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "server/base/buffer.h"
#include "server/base/text.h"
#include "server/store/batch.h"
#include "server/store/deletion.h"
#include "server/store/delivery.h"
#include "server/store/engine.h"
#include "server/store/group.h"
#include "server/store/journal.h"
#include "server/store/label.h"
#include "server/store/manifest.h"
#include "server/store/objective_sums.h"
#include "server/store/policy_update.h"
#include "server/store/provenance.h"
#include "server/store/read.h"
#include "server/store/reverification.h"
#include "server/store/rollout.h"
#include "server/store/rollout_filter.h"
#include "server/store/rollup.h"
#include "server/store/run.h"
#include "server/store/taskset.h"
#include "server/store/words.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- open and close -------------------------------------------------------------------------------------- */

#define STORE_READER_SHARE 4

struct store_op;

struct store_options {
    const char *path;
    const char *owner;       /* this service's name: a start resumes only its own batches. NULL: "rolloutd" */
    bool durability_normal;  /* false: every commit is synced (full); true: power loss may take the last commits */
    size_t commit_rows;      /* operations in one commit at most; 0: 64 */
    int64_t commit_delay_us; /* how long the first of a group waits for others; 0: not at all */
    /* The same, if longer, for rows and closed groups alone while places are reserved: more rows will come, and a batch
     * cannot end without them. */
    int64_t commit_patience_us;
    struct store_retention retention; /* zeroed: nothing is deleted without a request */
    size_t queue_ops;                 /* operations queued or reserved at most; 0: 8192 */
    size_t queue_bytes; /* bytes they carry at most, 0: 256 MiB; reserved ones are not refused for bytes */
    size_t cache_bytes; /* of pages that the writer keeps; a reader has a STORE_READER_SHARE-th. 0: 8 MiB */
    /* Called on the writer thread after the commit with the operations of one group, in the order of submission, each
     * with its status: they are the caller's again. */
    void (*finished)(void *arg, struct store_op *list);
    void *finished_arg;
    /* Called on the writer thread after each successful commit, before finished(); may be NULL. */
    void (*committed)(size_t operations, int64_t duration_us);
};

/* Opens or creates the database, brings it to the current schema, starts the writer thread. Reads a bounded part of the
 * file, whatever its size; indexes that it lacks are built by the writer before its first operation
 * (store_is_migrating()). The file is refused, and
 * left untouched, if it is open elsewhere, damaged, of a newer version or of another program, not writable, or on a
 * network file system: NULL with a readable sentence in `message` and an errno value (EWOULDBLOCK, EUCLEAN,
 * EPROTONOSUPPORT, EMEDIUMTYPE, EACCES, EREMOTE…). */
struct store *store_open(const struct store_options *options, char message[STORE_MESSAGE_BYTES], int *ret_error);
/* Carries out what is queued (finished() is called), joins the writer, closes. Readers must be gone. NULL is fine. */
void store_close(struct store *store);
/* Everything store_open() would refuse, except a lock, without writing anything. 0, or a negative errno value. */
int store_check(const struct store_options *options, char message[STORE_MESSAGE_BYTES]);

/* Any thread. Operations are queued, and carried out when this has ended. */
bool store_is_migrating(const struct store *store);
void store_say_migration(const struct store *store, char ret_text[STORE_MESSAGE_BYTES]); /* "": it is not */
/* Any thread. Why the files under the store are not those that were opened (deleted, replaced, truncated); NULL: they
 * are. Looked at before and after each commit, and once a second: until they are back, operations end with
 * STORE_UNAVAILABLE. */
const char *store_lost(const struct store *store);

struct store_verify_report {
    int64_t schema_version;
    int64_t batches;
    int64_t rollouts;
    size_t problems;
};
/* Reads every page of the file and compares what is on record with itself: SQLite's integrity and foreign keys, the
 * schema, counters. Writes nothing, also beside a running service. Each thing that is wrong is a line of `problems`. 0,
 * or a negative errno value with a message: it is no database of ours, or cannot be read. */
int store_verify(const char *path, struct buffer *problems, struct store_verify_report *ret_report,
                 char message[STORE_MESSAGE_BYTES]);

#define STORE_COMMIT_BUCKETS 8
extern const int64_t store_commit_bucket_us[STORE_COMMIT_BUCKETS]; /* upper bounds; the last is INT64_MAX */

/* Any thread may read them at any time. */
struct store_metrics {
    _Atomic uint64_t commits;
    _Atomic uint64_t commit_failures;
    _Atomic uint64_t operations; /* carried out, whatever their status */
    _Atomic uint64_t rollouts;   /* rows inserted */
    _Atomic uint64_t commit_us_total;
    _Atomic uint64_t commit_us_bucket[STORE_COMMIT_BUCKETS]; /* not cumulative */
    _Atomic uint64_t wal_bytes;
    _Atomic uint64_t file_bytes; /* of all pages, as the last commit left them */
    _Atomic uint64_t free_bytes; /* of those that hold nothing */
    _Atomic uint64_t deletions;  /* 1 while a run is being deleted */
    _Atomic uint64_t queued_ops;
    _Atomic uint64_t reserved_ops;
    _Atomic uint64_t queued_bytes;
    _Atomic bool disk_full; /* the last commit failed for want of room */
};
const struct store_metrics *store_metrics(const struct store *store);

/* ---- write ----------------------------------------------------------------------------------------------- */

/* THE list of operations. A row is the kind STORE_…, what it takes and gives as that member of struct store_op, and the
 * function operation_… of store/sqlite/ that runs it on the writer thread. */
#define STORE_OPERATIONS(ROW)                                                                                          \
    ROW(CREATE_BATCH, struct store_create_batch, create_batch)                                                         \
    ROW(INSERT_ROLLOUT, struct store_insert_rollout, insert_rollout)                                                   \
    ROW(CLOSE_GROUP, struct store_close_group, close_group)                                                            \
    ROW(CLOSE_BATCH, struct store_close_batch, close_batch)                                                            \
    ROW(DECLARE_POLICY, struct store_declare_policy, declare_policy)                                                   \
    ROW(UPDATE_POLICY, struct store_update_policy, update_policy)                                                      \
    ROW(RECORD_OBJECTIVE, struct store_record_objective, record_objective)                                             \
    ROW(PUT_MANIFEST, struct store_put_manifest, put_manifest)                                                         \
    ROW(COUNT_SPENT, struct store_count_spent, count_spent)                                                            \
    ROW(RECORD_METRICS, struct store_record_metrics, record_metrics)                                                   \
    ROW(ADD_NOTE, struct store_add_note, add_note)                                                                     \
    ROW(PUT_LABELS, struct store_put_labels, put_labels)                                                               \
    ROW(CREATE_REVERIFICATION, struct store_create_reverification, create_reverification)                              \
    ROW(RECORD_JUDGED, struct store_record_judged, record_judged)                                                      \
    ROW(END_REVERIFICATION, struct store_end_reverification, end_reverification)                                       \
    ROW(DELETE_RUN, struct store_delete_run, delete_run)                                                               \
    ROW(PUT_ENGINE, struct store_engine, put_engine)                                                                   \
    ROW(DELETE_ENGINE, struct text, delete_engine) /* OK, too, if there is none */                                     \
    ROW(ADD_TASKS, struct store_add_tasks, add_tasks)                                                                  \
    ROW(FREEZE_TASKSET, struct store_freeze_taskset, freeze_taskset)                                                   \
    ROW(DROP_DRAFTS, struct store_drop_drafts, drop_drafts)                                                            \
    ROW(TAKE_LEASE, struct store_take_lease, take_lease)                                                               \
    ROW(EXTEND_LEASE, struct store_extend_lease, extend_lease)                                                         \
    ROW(RELEASE_LEASE, struct store_release_lease, release_lease)                                                      \
    ROW(ACK_LEASE, struct store_ack_lease, ack_lease)                                                                  \
    ROW(EXPIRE_LEASES, struct store_expire_leases, expire_leases)                                                      \
    ROW(PUT_PACING, struct store_put_pacing, put_pacing)                                                               \
    ROW(TRY_WRITE, struct store_try_write, try_write)

enum store_op_kind {
#define STORE_OPERATION_KIND(kind, type, member) STORE_##kind,
    STORE_OPERATIONS(STORE_OPERATION_KIND)
#undef STORE_OPERATION_KIND
};

/* Changes nothing: whether the disk takes a write. */
struct store_try_write {
    char unused;
};

/* The memory that an operation points to must stay until it is handed back. */
struct store_op {
    struct store_op *next;
    enum store_op_kind kind;
    bool reserved;                     /* uses a place taken by store_reserve() */
    void (*done)(struct store_op *op); /* on the loop thread, when it is handed back; the caller's, never NULL */
    void *context;                     /* the caller's */
    enum store_status status;          /* out */
    char message[192];                 /* out, for the log: why it was not OK */
    size_t bytes;                      /* the store's own */
    union {
#define STORE_OPERATION_MEMBER(kind, type, member) type member;
        STORE_OPERATIONS(STORE_OPERATION_MEMBER)
#undef STORE_OPERATION_MEMBER
    };
};

/* Any thread. False: the queue is full, or the store is closing; the operation is untouched. Never for a reserved one.
 */
bool store_submit(struct store *store, struct store_op *op);
/* Places in the queue for operations to come, so that what has been sampled can always be stored. All or nothing. Any
 * thread. */
bool store_reserve(struct store *store, size_t ops);
void store_release(struct store *store, size_t ops); /* gives back what was reserved and not used */

#endif
