/* batch: a request of a trainer on record: created with its groups, ended once, listed, found by its key. */
#ifndef STORE_BATCH_H
#define STORE_BATCH_H

#include "server/base/hash.h"
#include "server/base/ids.h"
#include "server/store/content.h"
#include "server/store/lean.h"
#include "server/store/manifest.h"
#include "server/store/packed.h"
#include "server/store/policy_update.h"
#include "server/store/provenance.h"
#include "server/store/read.h"

#include <stdbool.h>
#include <stdint.h>

struct store_new_group {
    struct text task;
    int64_t draw;
    int64_t first_sample_index;
    int64_t n;
    struct text sampling; /* overrides, JSON; TEXT_NONE: the batch's */
    struct text verifiers;
    struct text metadata;
    struct text tags;                      /* canonical JSON (tags.h); TEXT_NONE: none */
    const struct store_content *prompt;    /* NULL: not told, as for the reference */
    const struct store_content *reference; /* JSON, as the prompt; `null` where the group has none */
    const uint32_t *prompt_ids;            /* NULL: not known yet */
    int64_t set_task_seq;                  /* of the task of a set that it was made of (taskset.h); 0: none */
    size_t prompt_id_count;
    bool drawn; /* from the reserve, by store_close_group */
    const struct lean_member
        *given; /* [given_count]: arrays that came with the request and are not kept with rollouts */
    size_t given_count;
};

/* The request, the batch and its groups. With a key that is on record for this route in the run's incarnation: EXISTS
 * (same body; results are those of the first), or IDEMPOTENCY_CONFLICT. REVISION_CONFLICT: further behind the run's
 * revision than max_staleness. A training batch whose revision is above the run's declares it, or is a STATE_CONFLICT
 * while a weight update of the run is open; an evaluation never declares, and may be of any age. A training batch that the
 * run's manifest does not allow is a MANIFEST_CONFLICT, and OVER_BUDGET when that is spent. The groups of a training batch
 * for leases are waiting from now on; OVER_READY_LIMIT: with them the run would have more than ready_limit on their
 * way. */
struct store_create_batch {
    char id[ID_BYTES]; /* in: a new one. out: the batch's, which is the first one's if it EXISTS */
    struct text run;
    enum store_purpose purpose;
    int64_t policy_revision; /* in: -1: the run's current, 0 if none is declared. out: the one stamped */
    int64_t max_staleness;   /* -1: none */
    uint64_t seed;
    struct text idempotency_key; /* TEXT_NONE: none */
    struct text request_id;      /* of the HTTP request; TEXT_NONE: none */
    enum store_route route;
    bool must_exist; /* nothing is made: NOT_FOUND if the key is new in the run's incarnation */
    uint8_t request_sha256[SHA256_BYTES];
    int64_t arithmetic_version; /* OBJECTIVE_ARITHMETIC_VERSION */
    struct text pass_verifier;  /* decides what is solved; TEXT_NONE: the first held-out one, else the reward */
    double pass_threshold;      /* a deciding score of at least this is correct in pass@k */
    struct text request;        /* the body as posted, or packed; LEAN: with what its groups have in `given` */
    enum store_codec request_codec;
    size_t request_bytes; /* as posted; counts if it is packed */
    struct text content_type;
    struct text sampling; /* JSON, as all of these */
    struct text objective;
    struct text verifiers;
    struct text metadata;
    struct text returns; /* the request's `return`; TEXT_NONE: everything */
    int64_t deadline_us;
    enum store_deliver deliver;
    int64_t ready_limit; /* of groups waiting, ready or leased; 0: none */
    bool respond_async;
    const struct store_settings *settings; /* in force; NULL: not known */
    const struct store_new_group *groups;
    size_t group_count;
    struct store_manifest_guard manifest; /* of a training batch */
    /* out */
    int64_t incarnation;
    int64_t created_at_us;
    int64_t current_revision; /* the run's; -1: none declared */
    int64_t undelivered;      /* OVER_READY_LIMIT: groups of the run that are on their way */
    enum store_batch_state state;
};

/* EXISTS: ended before (`state` out says how). STATE_CONFLICT: `complete` with a group that is not closed. Groups for
 * leases that are not closed end as failed. */
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
    struct text pass_verifier;   /* TEXT_NONE: the first held-out one, else the reward */
    double pass_threshold;       /* NAN: from before it was on record */
    struct text request_id;      /* TEXT_NONE: not known */
    struct text owner;
    int64_t owner_epoch;
    int64_t arithmetic_version; /* -1: from before there were numbers */
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

struct store_batches {
    struct store_batch *batches; /* each without memory of its own, and without notes, sampling, verifiers, metadata,
                                    objective */
    size_t count;
    char next[64];
    size_t scanned;
    size_t bytes; /* that the page takes */
    struct store_memory *memory;
};
/* run TEXT_NONE: any; state -1: any. Newest first if descending. INVALID_CURSOR: it is of another list. */
enum store_status store_list_batches(struct store_reader *reader, struct text run, int state, bool descending,
                                     struct text cursor, const struct store_page_limits *limits,
                                     struct store_batches *ret_batches);
bool store_batches_cursor_fits(struct text run, int state, bool descending, struct text cursor);
/* Those that an idempotency key, or the request of an X-Request-Id, has made, newest first, at most `limit`; of all runs
 * and incarnations. */
enum store_batch_mark { STORE_BATCH_BY_KEY, STORE_BATCH_BY_REQUEST_ID };
enum store_status store_find_batches(struct store_reader *reader, enum store_batch_mark mark, struct text value,
                                     size_t limit, struct store_batches *ret_batches);
/* Running batches of this store's owner, oldest first. */
enum store_status store_unfinished_batches(struct store_reader *reader, struct store_batches *ret_batches);
void store_batches_finish(struct store_batches *batches);

/* The batch that a key made in the run's incarnation of now. NOT_FOUND: the key is new there. */
enum store_status store_find_idempotency(struct store_reader *reader, struct text run, enum store_route route,
                                         struct text key, char ret_batch_id[ID_BYTES],
                                         uint8_t ret_request_sha256[SHA256_BYTES]);

#endif
