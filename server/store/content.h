/* content: a text that the record keeps once, by its digest, for all groups that refer to it. */
#ifndef STORE_CONTENT_H
#define STORE_CONTENT_H

#include "server/base/hash.h"
#include "server/store/packed.h"

#include <stddef.h>
#include <stdint.h>

struct store_content {
    uint8_t sha256[SHA256_BYTES]; /* of the plain text */
    enum store_codec codec;
    struct text stored; /* plain or packed; the caller's */
    size_t plain_bytes;
};

/* Any thread; a few nanoseconds a byte. plain: JSON. packed: empty; it holds the stored form if that is packed (`stored`
 * points into it), otherwise nothing. */
void store_content_make(struct text plain, struct buffer *packed, struct store_content *ret_content);

#endif
