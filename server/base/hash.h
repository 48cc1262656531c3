/* SHA-256, sample seeds and base64. Any thread, no allocation except in the streaming digest. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_HEX_BYTES 65 /* with the NUL */

void sha256_of(const void *bytes, size_t length_bytes, uint8_t ret_digest[SHA256_BYTES]);
/* The same over pieces that come one after the other: create, add, then finish, which frees it; or destroy. */
struct sha256;
struct sha256 *sha256_create(void);
void sha256_add(struct sha256 *sha256, const void *bytes, size_t length_bytes);
void sha256_finish(struct sha256 *sha256, uint8_t ret_digest[SHA256_BYTES]);
void sha256_destroy(struct sha256 *sha256); /* NULL is fine */
void sha256_hex(const uint8_t digest[SHA256_BYTES], char ret_hex[SHA256_HEX_BYTES]);

/* The seed of one sample: the first 8 bytes, big endian, of SHA-256 over
 * "{batch_seed}/{policy_revision}/{task}/{draw}/{sample_index}/{resample}", shifted right by one: 63 bits. (Design,
 * section 4.) */
uint64_t sample_seed(uint64_t batch_seed, int64_t policy_revision, struct text task, int64_t draw, int64_t sample_index,
                     int64_t resample);

/* Standard alphabet with padding. Decoding refuses anything else, white space included. */
void base64_encode(const void *bytes, size_t length_bytes, struct buffer *out);
bool base64_decode(struct text text, struct buffer *out);

/* Compares without revealing where the difference is: for tokens. */
bool equal_in_constant_time(struct text left, struct text right);

/* Cryptographically random bytes from the kernel. */
void random_bytes(void *bytes, size_t length_bytes);

#endif
