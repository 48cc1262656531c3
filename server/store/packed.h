/* packed: large texts as the record keeps them. Pure; any thread, one at a time for each object. A thread that packs or
 * unpacks keeps some hundred kilobytes for it, until it ends. */
#ifndef STORE_PACKED_H
#define STORE_PACKED_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>

enum store_codec {
    STORE_CODEC_PLAIN,
    STORE_CODEC_ZSTD,
    STORE_CODEC_LEAN, /* of requests alone: a lean form (lean.h), as ZSTD */
};
extern const char *const store_codec_names[]; /* "plain" "zstd" "lean"; ended by NULL */

/* Appends the smaller form of `plain` to `packed`, or nothing if that is itself (STORE_CODEC_PLAIN: also if there is no
 * memory). Takes some nanoseconds for each byte. */
enum store_codec store_pack(struct text plain, struct buffer *packed);
/* A text of a rollout: its packed form, appended to `packed`. TEXT_NONE: it is kept plain; TEXT_NONE is, too. */
struct text store_pack_text(struct text plain, struct buffer *packed);
/* The whole of it: exactly plain_bytes. False: it is not of this codec, which is PLAIN or ZSTD, or of another length. */
bool store_unpack(enum store_codec codec, struct text packed, char *ret_plain, size_t plain_bytes);
/* How long a text of STORE_CODEC_ZSTD comes out, as it says itself: true, or damaged and never beyond what so few bytes can
 * hold. False: it does not say so, or that is not to be believed. */
bool store_unpacked_bytes(struct text packed, size_t *ret_plain_bytes);
enum { STORE_PACK_ROOM_BYTES = 1 << 20 }; /* a buffer that takes a packed text may need so much beyond the text */

/* Piece by piece. */
struct store_unpacking;
struct store_unpacking *store_unpacking_create(void);            /* of zstd. NULL: there is no memory */
void store_unpacking_destroy(struct store_unpacking *unpacking); /* NULL is fine */
/* Reads from *packed (moved behind the used bytes) and fills at most plain_bytes. Returns how many; fewer only if
 * *packed was used up or the text has ended. -1: it is not of this codec. */
ssize_t store_unpack_some(struct store_unpacking *unpacking, struct text *packed, char *ret_plain, size_t plain_bytes);

#endif
