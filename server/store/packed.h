/* packed: large texts as the record keeps them. Pure; any thread, one at a time for each object. */
#ifndef STORE_PACKED_H
#define STORE_PACKED_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>

enum store_codec { STORE_CODEC_PLAIN, STORE_CODEC_ZSTD };
extern const char *const store_codec_names[]; /* "plain" "zstd"; ended by NULL */

/* Appends the smaller form of `plain` to `packed`, or nothing if that is itself (STORE_CODEC_PLAIN: also if there is no
 * memory). Takes some nanoseconds for each byte. */
enum store_codec store_pack(struct text plain, struct buffer *packed);
/* The whole of it: exactly plain_bytes. False: it is not of this codec, or of another length. */
bool store_unpack(enum store_codec codec, struct text packed, char *ret_plain, size_t plain_bytes);

/* Piece by piece. */
struct store_unpacking;
struct store_unpacking *store_unpacking_create(void);            /* of zstd. NULL: there is no memory */
void store_unpacking_destroy(struct store_unpacking *unpacking); /* NULL is fine */
/* Reads from *packed (moved behind the used bytes) and fills at most plain_bytes. Returns how many; fewer only if
 * *packed was used up or the text has ended. -1: it is not of this codec. */
ssize_t store_unpack_some(struct store_unpacking *unpacking, struct text *packed, char *ret_plain, size_t plain_bytes);

#endif
