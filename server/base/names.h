/* names: keys of bytes to numbers, dense, in order of appearance: 0, 1, 2 …
 *
 * No locking: one thread at a time. The hash has a random seed, so that no client can write keys that all collide. */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include "server/base/text.h"

#include <stddef.h>
#include <stdint.h>

#define NAMES_NONE UINT32_MAX

struct name_row {
    size_t offset, length_bytes; /* in bytes */
    uint64_t hash;
};

/* Zero-initialised. */
struct names {
    char *bytes;
    size_t length_bytes, capacity_bytes;
    struct name_row *rows; /* [count] */
    size_t count, room;
    uint32_t *slots; /* [slot_count], a power of two: a number + 1, 0 for none */
    size_t slot_count;
    uint64_t seed;
};

void names_finish(struct names *names);
/* The number of a key, which is new at first: then it is names->count - 1. NAMES_NONE: there is no memory. */
uint32_t names_number(struct names *names, struct text key);
/* The key of a number below names->count. Valid until the next new key. */
struct text names_key(const struct names *names, uint32_t number);

#endif
