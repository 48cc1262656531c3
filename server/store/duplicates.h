/* duplicates: members of a group that repeat an earlier member: the same ids, or the same text where there are no ids.
 *
 * Pure, one thread at a time. Members are added in the order of their sample_index; a digest of each is kept. */
#ifndef STORE_DUPLICATES_H
#define STORE_DUPLICATES_H

#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>

struct completion_digest;
struct duplicates {
    struct completion_digest *digests; /* each at, or behind, the place that its first bytes name */
    size_t mask;                       /* of a place */
};

/* For groups of n members at most; duplicates_finish() is needed. */
void duplicates_init(struct duplicates *duplicates, size_t n);
void duplicates_finish(struct duplicates *duplicates);

/* Whether the next member repeats one before it. ids: their bytes; TEXT_NONE: there are none, and text counts. A member
 * with neither, as one that was never sampled, repeats nothing. */
bool duplicates_add(struct duplicates *duplicates, struct text ids, struct text text);

#endif
