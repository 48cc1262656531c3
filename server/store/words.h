/* words: statuses, and the words on record and on the wire. */
#ifndef STORE_WORDS_H
#define STORE_WORDS_H

#include "server/base/text.h"
#include "server/base/words.h"

enum store_status {
    STORE_OK,
    STORE_EXISTS,               /* it is on record already, nothing was changed; the results name it */
    STORE_NOT_FOUND,            /* what the operation refers to is not on record */
    STORE_IDEMPOTENCY_CONFLICT, /* the key was used with another body */
    STORE_REVISION_CONFLICT,    /* policy revision too old, or smaller without a rewind */
    STORE_STATE_CONFLICT,       /* the batch is no longer running, a group still has members without a row, or a
                                   weight update is open */
    STORE_RUN_IS_DELETED,       /* the run is being deleted: nothing enters it */
    STORE_MANIFEST_CONFLICT,    /* the run's manifest says otherwise */
    STORE_OVER_BUDGET,          /* the budget of the run's manifest is spent */
    STORE_OVER_READY_LIMIT,     /* the run has as many groups for leases as it may */
    STORE_CHANGED,              /* the manifest or the batches have changed since: decide again */
    STORE_REFUSED,              /* a constraint of the record forbids it: a bug of the caller */
    STORE_INVALID_CURSOR,       /* reads only: not a cursor of this list, filter and order */
    STORE_DISK_FULL,
    STORE_UNAVAILABLE, /* I/O error, damage */
};

#define STORE_PURPOSE(name, word) STORE_##name,
#define STORE_BATCH_STATE(name, word) STORE_BATCH_##name,
#define STORE_ROLLOUT_STATE(name, word) STORE_ROLLOUT_##name,
#define STORE_LOGPROBS_MODE(name, word) STORE_LOGPROBS_##name,

enum store_purpose { PURPOSE_WORDS(STORE_PURPOSE) };
enum store_deliver { STORE_REPLY, STORE_LEASE };
enum store_batch_state { BATCH_STATE_WORDS(STORE_BATCH_STATE) };
enum store_group_state { STORE_GROUP_RUNNING, STORE_GROUP_COMPLETE };
enum store_rollout_state { ROLLOUT_STATE_WORDS(STORE_ROLLOUT_STATE) };
enum store_logprobs_mode { LOGPROBS_MODE_WORDS(STORE_LOGPROBS_MODE) };
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

#endif
