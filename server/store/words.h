/* words: statuses, and the words on record and on the wire. */
#ifndef STORE_WORDS_H
#define STORE_WORDS_H

#include "server/base/text.h"

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

#endif
