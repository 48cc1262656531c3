/* store: the record. Requests, batches, groups, rollouts, runs, on disk before anybody is told of them.
 *
 * One process per database file. Writes are enumerated operations, each one transaction: they are queued from any
 * thread, a writer thread commits what has gathered (one fsync for many), and only then are they handed back. Reads go
 * through a reader, one for each thread. No SQL and no SQL type is visible here, so that another database can stand
 * behind the same header.
 *
 * Conventions: times are UTC microseconds, -1 for none; a double that is NAN is null on record; an absent text is
 * TEXT_NONE; JSON columns hold the text as given and are never read by the store. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "server/base/buffer.h"
#include "server/base/cleanup.h"
#include "server/base/hash.h"
#include "server/base/ids.h"
#include "server/base/text.h"
#include "server/store/policy_update.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum store_status {
    STORE_OK,
    STORE_EXISTS,               /* it is on record already, nothing was changed; the results name it */
    STORE_NOT_FOUND,            /* what the operation refers to is not on record */
    STORE_IDEMPOTENCY_CONFLICT, /* the key was used with another body */
    STORE_REVISION_CONFLICT,    /* policy revision too old, or smaller without a rewind */
    STORE_STATE_CONFLICT,       /* the batch is no longer running, a group still has members without a row, or a
                                   weight update is open */
    STORE_REFUSED,              /* a constraint of the record forbids it: a bug of the caller */
    STORE_INVALID_CURSOR,       /* reads only: not a cursor of this list, filter and order */
    STORE_DISK_FULL,
    STORE_UNAVAILABLE, /* I/O error, damage */
};

enum store_purpose { STORE_TRAIN, STORE_EVAL };
enum store_deliver { STORE_REPLY, STORE_LEASE };
enum store_batch_state { STORE_BATCH_RUNNING, STORE_BATCH_COMPLETE, STORE_BATCH_CANCELLED, STORE_BATCH_EXPIRED };
enum store_group_state { STORE_GROUP_RUNNING, STORE_GROUP_COMPLETE };
enum store_rollout_state { STORE_ROLLOUT_SCORED, STORE_ROLLOUT_FAILED, STORE_ROLLOUT_CANCELLED };
enum store_logprobs_mode { STORE_LOGPROBS_UNKNOWN, STORE_LOGPROBS_RAW, STORE_LOGPROBS_PROCESSED };
enum store_known { STORE_KNOWN_UNKNOWN = -1, STORE_KNOWN_NO, STORE_KNOWN_YES };

/* The words on record and on the wire, by enum value, each list ended by NULL. */
extern const char *const store_purpose_names[];
extern const char *const store_deliver_names[];
extern const char *const store_batch_state_names[];
extern const char *const store_group_state_names[];
extern const char *const store_rollout_state_names[];
extern const char *const store_logprobs_mode_names[];
/* The index of a word in such a list, or -1. */
int store_name_index(const char *const *names, struct text word);

/* ---- open and close -------------------------------------------------------------------------------------- */

struct store_op;

#define STORE_READER_SHARE 4

struct store_options {
    const char *path;
    const char *owner;       /* this service's name: a start resumes only its own batches. NULL: "rolloutd" */
    bool durability_normal;  /* false: every commit is synced (full); true: power loss may take the last commits */
    size_t commit_rows;      /* operations in one commit at most; 0: 64 */
    int64_t commit_delay_us; /* how long the first of a group waits for others; 0: not at all */
    /* The same, if longer, for rows and closed groups alone while places are reserved: more rows will come, and a batch
     * cannot end without them. */
    int64_t commit_patience_us;
    size_t queue_ops;   /* operations queued or reserved at most; 0: 8192 */
    size_t queue_bytes; /* bytes they carry at most, 0: 256 MiB; reserved ones are not refused for bytes */
    size_t cache_bytes; /* of pages that the writer keeps; a reader has a STORE_READER_SHARE-th. 0: 8 MiB */
    /* Called on the writer thread after the commit with the operations of one group, in the order of submission, each
     * with its status: they are the caller's again. */
    void (*finished)(void *arg, struct store_op *list);
    void *finished_arg;
    /* Called on the writer thread after each successful commit, before finished(); may be NULL. */
    void (*committed)(size_t operations, int64_t duration_us);
};

#define STORE_MESSAGE_BYTES 512

struct store;

/* Opens or creates the database, brings it to the current schema, starts the writer thread. Reads a bounded part of the
 * file, whatever its size; indexes that it lacks are built by the writer before its first operation
 * (store_is_migrating()). The file is refused, and
 * left untouched, if it is open elsewhere, damaged, of a newer version or of another program, not writable, or on a
 * network file system: NULL with a sentence for people in `message` and an errno value (EWOULDBLOCK, EUCLEAN,
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

int64_t store_owner_epoch(const struct store *store); /* counts the starts of this owner, from 1 */

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
    _Atomic uint64_t queued_ops;
    _Atomic uint64_t reserved_ops;
    _Atomic uint64_t queued_bytes;
    _Atomic bool disk_full; /* the last commit failed for want of room */
};
const struct store_metrics *store_metrics(const struct store *store);

/* ---- the things on record -------------------------------------------------------------------------------- */

struct store_failure { /* code TEXT_NONE: no failure */
    struct text stage; /* sample, verify, store */
    struct text code;
    struct text message; /* cut at 512 bytes when stored */
    bool retryable;
    int64_t attempts;
};

/* A rollout as it is written and as it is read. */
struct store_rollout {
    /* set when read */
    int64_t seq; /* order of insertion */
    char id[ID_BYTES];
    char group_id[ID_BYTES];
    char batch_id[ID_BYTES];
    struct text run;
    struct text task;
    int64_t draw;
    enum store_purpose purpose;
    int64_t created_at_us;
    double advantage; /* NAN until the group is closed */
    double shaped_reward;

    /* written and read */
    int64_t incarnation; /* of the run, at dispatch. Written: what is below the batch's stands for the batch's */
    int64_t sample_index;
    enum store_rollout_state state;
    double reward; /* NAN: none. Only a scored one may have one */
    struct store_failure failure;
    struct text engine;
    struct text engine_revision;
    int64_t policy_revision;
    int64_t revision_at_end; /* -1: never came to an end */
    bool straddles;
    int64_t resample;
    int64_t attempts;
    uint64_t seed;     /* 63 bits */
    int64_t seed_sent; /* -1: none was sent */
    enum store_known seed_honoured;
    struct text finish_reason;
    bool trainable;
    enum store_known eos_in_ids;
    enum store_logprobs_mode logprobs_mode;
    int64_t
        completion_tokens; /* read: also without arrays. Written: token_count if completion_ids are given, else this */
    int64_t trainable_tokens; /* read only: mask 1, if trainable */
    int64_t queued_us;
    int64_t engine_us;
    int64_t verify_us;

    /* read only with STORE_WITH_TEXT */
    struct text text;
    int64_t text_replaced; /* broken bytes that became U+FFFD */
    struct text segments;  /* JSON: which weights made which tokens, if there is more than one */

    /* read only with STORE_WITH_VERDICTS; JSON */
    struct text verdicts;
    struct text rewards;
    struct text heldout;

    /* read only with STORE_WITH_ARRAYS */
    const uint32_t *completion_ids; /* NULL: the engine gave none */
    const float *logprobs;          /* NULL: none; 0 where the mask is 0 (the store sees to it) */
    const uint8_t *completion_mask; /* NULL: all ones */
    size_t token_count;
};

/* Everything unknown or none: NAN, -1, TEXT_NONE, trainable; state scored. Start from here before filling one in. */
void store_rollout_init(struct store_rollout *rollout);

enum store_with { STORE_WITH_TEXT = 1, STORE_WITH_ARRAYS = 2, STORE_WITH_VERDICTS = 4, STORE_WITH_ALL = 7 };

/* ---- write ----------------------------------------------------------------------------------------------- */

enum store_op_kind {
    STORE_CREATE_BATCH,
    STORE_INSERT_ROLLOUT,
    STORE_CLOSE_GROUP,
    STORE_CLOSE_BATCH,
    STORE_DECLARE_POLICY,
    STORE_UPDATE_POLICY,
    STORE_RECORD_OBJECTIVE,
    STORE_PUT_ENGINE,
    STORE_DELETE_ENGINE, /* OK, too, if there is none */
    STORE_TRY_WRITE,     /* changes nothing: whether the disk takes a write */
};

struct store_new_group {
    struct text task;
    int64_t draw;
    int64_t first_sample_index;
    int64_t n;
    struct text sampling; /* overrides, JSON; TEXT_NONE: the batch's */
    struct text verifiers;
    struct text metadata;
    const uint32_t *prompt_ids; /* NULL: not known yet */
    size_t prompt_id_count;
};

/* The request, the batch and its groups. With a key that is on record for this route in the run's incarnation: EXISTS
 * (same body; results are those of the first), or IDEMPOTENCY_CONFLICT. REVISION_CONFLICT: further behind the run's
 * revision than max_staleness. A training batch whose revision is above the run's declares it, or is a STATE_CONFLICT
 * while a weight update of the run is open; an evaluation never declares, and may be of any age. */
struct store_create_batch {
    char id[ID_BYTES]; /* in: a new one. out: the batch's, which is the first one's if it EXISTS */
    struct text run;
    enum store_purpose purpose;
    int64_t policy_revision; /* in: -1: the run's current, 0 if none is declared. out: the one stamped */
    int64_t max_staleness;   /* -1: none */
    uint64_t seed;
    struct text idempotency_key; /* TEXT_NONE: none */
    enum store_route route;
    bool must_exist; /* nothing is made: NOT_FOUND if the key is new in the run's incarnation */
    uint8_t request_sha256[SHA256_BYTES];
    struct text request; /* the body as posted */
    struct text content_type;
    struct text sampling; /* JSON, as all of these */
    struct text objective;
    struct text verifiers;
    struct text metadata;
    struct text returns; /* the request's `return`; TEXT_NONE: everything */
    int64_t deadline_us;
    enum store_deliver deliver;
    bool respond_async;
    const struct store_new_group *groups;
    size_t group_count;
    /* out */
    int64_t incarnation;
    int64_t created_at_us;
    int64_t current_revision; /* the run's; -1: none declared */
    enum store_batch_state state;
};

/* One row. The first writer wins: the same member again is EXISTS. STATE_CONFLICT: its batch is no longer running. */
struct store_insert_rollout {
    const char *group_id;
    const struct store_rollout *rollout;
    const uint32_t *prompt_ids; /* of the group, from the engine; kept if the group has none yet. May be NULL */
    size_t prompt_id_count;
    /* out */
    int64_t seq;
};

/* Sets the advantages, once. STATE_CONFLICT: a member has no row yet. EXISTS: closed before. */
struct store_close_group {
    const char *group_id;
    size_t n;                    /* the group's */
    const double *advantage;     /* [n], by sample_index - first_sample_index; NAN: null. NULL: all null */
    const double *shaped_reward; /* likewise */
    double reward_mean;          /* NAN if and only if no member has a reward */
    double reward_std;
    bool zero_variance;
};

/* EXISTS: ended before (`state` out says how). STATE_CONFLICT: `complete` with a group that is not closed. */
struct store_close_batch {
    const char *batch_id;
    enum store_batch_state state; /* in: not RUNNING. out: what is on record */
    double loss;                  /* NAN: null */
    int64_t total_tokens;
    int64_t total_sequences;
    int64_t total_groups;
    struct text notes;   /* JSON array */
    struct text summary; /* JSON object */
    int64_t completed_at_us;
};

/* Sums over the trainable tokens of those sequences of an objective call whose samples have one revision and engine,
 * and how many tokens they are over: of 0 tokens a sum is NAN. */
enum store_objective_mean {
    STORE_OBJECTIVE_KL,
    STORE_OBJECTIVE_KL_POLICY,
    STORE_OBJECTIVE_KL_ENGINE,
    STORE_OBJECTIVE_ENTROPY,
    STORE_OBJECTIVE_LOGPROB_GAP,
    STORE_OBJECTIVE_MEANS
};
extern const char *const store_objective_mean_names[]; /* "kl" … */
struct store_objective_slice {
    int64_t incarnation; /* of the samples; -1 with the revision: kept before they were told apart */
    int64_t revision;
    struct text engine; /* TEXT_NONE: they name none */
    int64_t sequences;  /* judged */
    int64_t tokens;     /* trainable */
    int64_t clip_low;
    int64_t clip_high;
    double loss; /* NAN: null */
    struct {
        double sum;
        int64_t tokens;
    } means[STORE_OBJECTIVE_MEANS];
};

/* Sums and denominators of one objective call; the same part again replaces. NOT_FOUND: no such run. */
struct store_record_objective {
    struct text run;
    int64_t optimizer_step;
    int64_t ppo_epoch;
    int64_t part;
    struct text objective; /* JSON, expanded */
    struct text sums;      /* JSON */
    struct text kl_estimator;
    const struct store_objective_slice *slices;
    size_t slice_count;
};

/* An engine that was named at run time. Written whole: what was on record under the name is replaced. */
struct store_engine {
    struct text name;
    struct text url; /* TEXT_NONE: one of the settings file, of which only `draining` is kept */
    struct text kind;
    struct text model;
    struct text pool;
    int64_t in_flight; /* -1: not said; 0: learned */
    bool shared;
    bool draining;
    struct text token_name; /* names a file or a variable; the key itself is never on record */
};

/* What an operation points to must stay until it is handed back. */
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
        struct store_create_batch create_batch;
        struct store_insert_rollout insert_rollout;
        struct store_close_group close_group;
        struct store_close_batch close_batch;
        struct store_declare_policy declare_policy;
        struct store_update_policy update_policy;
        struct store_record_objective record_objective;
        struct store_engine put_engine;
        struct text delete_engine;
    };
};

/* Any thread. False: the queue is full, or the store is closing; the operation is untouched. Never for a reserved one.
 */
bool store_submit(struct store *store, struct store_op *op);
/* Places in the queue for operations to come, so that what has been sampled can always be stored. All or nothing. Any
 * thread. */
bool store_reserve(struct store *store, size_t ops);
void store_release(struct store *store, size_t ops); /* gives back what was reserved and not used */

/* ---- read ------------------------------------------------------------------------------------------------ */

struct store_reader;
struct store_memory; /* what a result owns: its texts and arrays live until the result's finish function */

/* One for each thread, which may be another than the one that made it. NULL: cannot be opened (message says why). */
struct store_reader *store_reader_create(struct store *store, char message[STORE_MESSAGE_BYTES]);
void store_reader_destroy(struct store_reader *reader); /* NULL is fine */

/* All reads: OK, NOT_FOUND (a malformed id too) or UNAVAILABLE. Results need their finish function only after OK, and
 * accept it when zeroed or after any status. */

struct store_batch {
    char id[ID_BYTES];
    struct text run;
    int64_t incarnation;
    enum store_purpose purpose;
    enum store_batch_state state;
    int64_t policy_revision;
    int64_t moved_to_revision; /* of members without a row, by an update in mode abort; -1: policy_revision */
    int64_t max_staleness;     /* -1: none */
    uint64_t seed;
    uint8_t request_sha256[SHA256_BYTES];
    struct text idempotency_key; /* TEXT_NONE: none */
    struct text owner;
    int64_t owner_epoch;
    enum store_deliver deliver;
    bool respond_async;
    int64_t created_at_us;
    int64_t deadline_us;
    int64_t completed_at_us; /* -1: running */
    struct text sampling;
    struct text objective;
    struct text verifiers;
    struct text metadata;
    struct text returns;
    double loss;
    int64_t total_tokens; /* 0 while running */
    int64_t total_sequences;
    int64_t total_groups;
    struct text notes;   /* TEXT_NONE while running */
    struct text summary; /* TEXT_NONE while running */
    int64_t group_count;
    int64_t rollout_count; /* members, with or without a row */
    /* Rows on record now. */
    int64_t scored;
    int64_t failed;
    int64_t cancelled;
    struct store_memory *memory;
};
enum store_status store_read_batch(struct store_reader *reader, struct text batch_id, struct store_batch *ret_batch);
void store_batch_finish(struct store_batch *batch);

struct store_group {
    char id[ID_BYTES];
    char batch_id[ID_BYTES];
    int64_t index; /* in its batch */
    struct text task;
    int64_t draw;
    int64_t first_sample_index;
    int64_t n;
    enum store_group_state state;
    double reward_mean; /* NAN: null */
    double reward_std;
    bool zero_variance;
    int64_t closed_at_us; /* -1: running */
    struct text sampling; /* the overrides */
    struct text verifiers;
    struct text metadata;
    const uint32_t *prompt_ids; /* NULL: not known (yet), or read without arrays */
    size_t prompt_id_count;
    struct store_rollout *rollouts; /* by sample_index; members without a row are missing */
    size_t rollout_count;
    bool more; /* rollouts behind those that were read */
    struct store_memory *memory;
};
/* with: enum store_with flags, for the rollouts; STORE_WITH_ARRAYS also for prompt_ids. */
enum store_status store_read_group(struct store_reader *reader, struct text group_id, unsigned with,
                                   struct store_group *ret_group);
/* The same with the rollouts from a sample_index on, until bytes_max are read; one at least. `more`: there are others.
 */
enum store_status store_read_group_from(struct store_reader *reader, struct text group_id, unsigned with,
                                        int64_t sample_index, size_t bytes_max, struct store_group *ret_group);
void store_group_finish(struct store_group *group);

struct store_groups {
    struct store_group *groups; /* without rollouts, and each without memory of its own */
    size_t count;
    struct store_memory *memory;
};
/* A page of a batch's groups, from an index on. NOT_FOUND: no such batch; beyond its end: OK, count 0. */
enum store_status store_read_groups(struct store_reader *reader, struct text batch_id, int64_t from_index, size_t limit,
                                    unsigned with, struct store_groups *ret_groups);
void store_groups_finish(struct store_groups *groups);

struct store_rollouts {
    struct store_rollout *rollouts;
    size_t count;
    char next[64];  /* the cursor that goes on; empty: there is no more */
    size_t scanned; /* rows that were looked at */
    size_t bytes;   /* that the page takes */
    struct store_memory *memory;
};
/* count is 1 after OK. */
enum store_status store_read_rollout(struct store_reader *reader, struct text rollout_id, unsigned with,
                                     struct store_rollouts *ret_rollout);
void store_rollouts_finish(struct store_rollouts *rollouts);

/* The rows of a batch or of one group, with what resuming, closing and the objective need; in order of group and
 * sample_index. */
struct store_member {
    int64_t group_index;
    int64_t sample_index;
    enum store_rollout_state state;
    double reward;
    double shaped_reward;
    double advantage;
    bool trainable;
    int64_t trainable_tokens;
    int64_t completion_tokens;
    int64_t policy_revision;
    int64_t incarnation;
    enum store_logprobs_mode logprobs_mode;
    struct text finish_reason;
    struct text failure_code;
    struct text heldout; /* JSON */
};
struct store_members {
    struct store_member *members;
    size_t count;
    struct store_memory *memory;
};
enum store_status store_read_batch_members(struct store_reader *reader, struct text batch_id,
                                           struct store_members *ret_members);
enum store_status store_read_group_members(struct store_reader *reader, struct text group_id,
                                           struct store_members *ret_members);
void store_members_finish(struct store_members *members);

/* Only rows that fit every filter that is set. Zero-initialise by store_rollout_filter_init(). */
struct store_rollout_filter {
    struct text run, task, batch, group, failure, finish_reason, engine; /* TEXT_NONE: any */
    int state;                                                           /* enum store_rollout_state, -1: any */
    int purpose;                                                         /* enum store_purpose, -1: any */
    int64_t incarnation;                                                 /* -1: any */
    int64_t revision_min, revision_max;                                  /* -1: open */
    double reward_min, reward_max;                                       /* NAN: open */
    int64_t since_us, until_us;                                          /* of created_at, [since, until); -1: open */
    int straddles, trainable;                                            /* 0, 1; -1: any */
    int seed_honoured;                                                   /* 0, 1; -1: any */
    bool descending;
};
void store_rollout_filter_init(struct store_rollout_filter *filter);
/* A page ends at the first of them, with `next` set if there may be more. */
struct store_page_limits {
    size_t rows;
    size_t scanned; /* rows that are looked at */
    size_t bytes;   /* that the page takes, with one row more */
};
/* cursor: TEXT_NONE starts. */
enum store_status store_list_rollouts(struct store_reader *reader, const struct store_rollout_filter *filter,
                                      struct text cursor, const struct store_page_limits *limits, unsigned with,
                                      struct store_rollouts *ret_rollouts);
bool store_rollouts_cursor_fits(const struct store_rollout_filter *filter, struct text cursor);

struct store_batches {
    struct store_batch *batches; /* each without memory of its own, and without notes, summary, sampling, verifiers,
                                    metadata, objective */
    size_t count;
    char next[64];
    size_t scanned;
    struct store_memory *memory;
};
/* run TEXT_NONE: any; state -1: any. Newest first if descending. INVALID_CURSOR as above. */
enum store_status store_list_batches(struct store_reader *reader, struct text run, int state, bool descending,
                                     struct text cursor, const struct store_page_limits *limits,
                                     struct store_batches *ret_batches);
bool store_batches_cursor_fits(struct text run, int state, bool descending, struct text cursor);
/* Running batches of this store's owner, oldest first. */
enum store_status store_unfinished_batches(struct store_reader *reader, struct store_batches *ret_batches);
void store_batches_finish(struct store_batches *batches);

/* The batch that a key made in the run's incarnation of now. NOT_FOUND: the key is new there. */
enum store_status store_find_idempotency(struct store_reader *reader, struct text run, enum store_route route,
                                         struct text key, char ret_batch_id[ID_BYTES],
                                         uint8_t ret_request_sha256[SHA256_BYTES]);

struct store_run {
    struct text name;
    int64_t incarnation;
    int64_t policy_revision; /* -1: none declared */
    int64_t created_at_us;
    int64_t batches;
    int64_t scored;
    int64_t failed;
    int64_t cancelled;
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
/* OK: an update in mode abort led the batch's run to this revision since the batch was made. NOT_FOUND: none did. */
enum store_status store_find_abort(struct store_reader *reader, struct text batch_id, int64_t revision);

/* What is kept of a run's objective calls, in the order in which it was recorded: one for each part, revision and
 * engine. */
struct store_objective_sum {
    int64_t incarnation; /* of the run, at the call */
    int64_t optimizer_step;
    int64_t ppo_epoch;
    int64_t part;
    int64_t recorded_at_us;
    struct text kl_estimator;
    struct store_objective_slice slice;
};
struct store_objective_sums {
    struct store_objective_sum *sums;
    size_t count;
    char next[64];
    struct store_memory *memory;
};
/* optimizer_step, ppo_epoch: -1: any. NOT_FOUND: no such run. INVALID_CURSOR as above. */
enum store_status store_list_objective_sums(struct store_reader *reader, struct text run, int64_t optimizer_step,
                                            int64_t ppo_epoch, struct text cursor, size_t limit,
                                            struct store_objective_sums *ret_sums);
void store_objective_sums_finish(struct store_objective_sums *sums);

struct store_engines {
    struct store_engine *engines; /* by name */
    size_t count;
    struct store_memory *memory;
};
enum store_status store_list_engines(struct store_reader *reader, struct store_engines *ret_engines);
void store_engines_finish(struct store_engines *engines);

#endif
