#include "server/base/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/random.h>

/* EVP_sha256() is looked up by name for each digest, which costs as much as a short digest. Never freed. */
static EVP_MD *algorithm;

static void fetch_sha256(void)
{
    algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
}

/* Only without memory, or with a libcrypto that lacks SHA-256. */
static void need(bool good)
{
    if (!good)
        abort();
}

/* It is libcrypto's context under a name of ours. */
static EVP_MD_CTX *context_of(struct sha256 *sha256)
{
    return (EVP_MD_CTX *)sha256;
}

struct sha256 *sha256_create(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fetch_sha256);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    need(context && algorithm && EVP_DigestInit_ex(context, algorithm, NULL) == 1);
    return (struct sha256 *)context;
}

void sha256_add(struct sha256 *sha256, const void *bytes, size_t length_bytes)
{
    need(EVP_DigestUpdate(context_of(sha256), bytes, length_bytes) == 1);
}

void sha256_finish(struct sha256 *sha256, uint8_t ret_digest[SHA256_BYTES])
{
    need(EVP_DigestFinal_ex(context_of(sha256), ret_digest, NULL) == 1);
    sha256_destroy(sha256);
}

void sha256_destroy(struct sha256 *sha256)
{
    EVP_MD_CTX_free(context_of(sha256));
}

/* Pieces, one after the other. */
static void digest_of(const struct text *pieces, size_t count, uint8_t ret_digest[SHA256_BYTES])
{
    struct sha256 *sha256 = sha256_create();
    for (size_t i = 0; i < count; i++)
        sha256_add(sha256, pieces[i].data, pieces[i].length_bytes);
    sha256_finish(sha256, ret_digest);
}

void sha256_of(const void *bytes, size_t length_bytes, uint8_t ret_digest[SHA256_BYTES])
{
    struct text whole = {bytes, length_bytes};
    digest_of(&whole, 1, ret_digest);
}

void sha256_hex(const uint8_t digest[SHA256_BYTES], char ret_hex[SHA256_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        ret_hex[2 * i] = digits[digest[i] >> 4];
        ret_hex[2 * i + 1] = digits[digest[i] & 15];
    }
    ret_hex[2 * SHA256_BYTES] = '\0';
}

uint64_t sample_seed(uint64_t batch_seed, int64_t policy_revision, struct text task, int64_t draw, int64_t sample_index,
                     int64_t resample)
{
    char before[64];
    char after[80];
    uint8_t digest[SHA256_BYTES];
    int before_bytes = snprintf(before, sizeof(before), "%" PRIu64 "/%" PRId64 "/", batch_seed, policy_revision);
    int after_bytes = snprintf(after, sizeof(after), "/%" PRId64 "/%" PRId64 "/%" PRId64, draw, sample_index, resample);
    const struct text pieces[] = {{before, (size_t)before_bytes}, task, {after, (size_t)after_bytes}};
    digest_of(pieces, ARRAY_LENGTH(pieces), digest);
    uint64_t seed = 0;
    for (int i = 0; i < 8; i++)
        seed = seed << 8 | digest[i];
    return seed >> 1;
}

/* --- base64 --- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *bytes, size_t length_bytes, struct buffer *out)
{
    const uint8_t *from = bytes;
    size_t whole = length_bytes / 3;
    size_t rest = length_bytes % 3;
    size_t encoded_bytes = 4 * (whole + (rest > 0));
    char *to = buffer_reserve(out, encoded_bytes);
    if (!to)
        return;
    out->length_bytes += encoded_bytes;
    for (size_t i = 0; i < whole; i++, from += 3, to += 4) {
        to[0] = alphabet[from[0] >> 2];
        to[1] = alphabet[(from[0] & 3) << 4 | from[1] >> 4];
        to[2] = alphabet[(from[1] & 15) << 2 | from[2] >> 6];
        to[3] = alphabet[from[2] & 63];
    }
    if (rest) {
        uint8_t second = rest == 2 ? from[1] : 0;
        to[0] = alphabet[from[0] >> 2];
        to[1] = alphabet[(from[0] & 3) << 4 | second >> 4];
        to[2] = rest == 2 ? alphabet[(second & 15) << 2] : '=';
        to[3] = '=';
        to += 4;
    }
    *to = '\0';
}

enum { NO_DIGIT = 0x40 };

static uint8_t digit_of(unsigned char byte)
{
    if (byte >= 'A' && byte <= 'Z')
        return (uint8_t)(byte - 'A');
    if (byte >= 'a' && byte <= 'z')
        return (uint8_t)(byte - 'a' + 26);
    if (byte >= '0' && byte <= '9')
        return (uint8_t)(byte - '0' + 52);
    return byte == '+' ? 62 : byte == '/' ? 63 : NO_DIGIT;
}

static void fill_digits(uint8_t table[256])
{
    for (int i = 0; i < 256; i++)
        table[i] = digit_of((unsigned char)i);
}

/* Four digits to three bytes; false for anything outside the alphabet. */
static bool decode_whole(const uint8_t *table, const unsigned char *from, size_t quads, char *to)
{
    for (size_t i = 0; i < quads; i++, from += 4, to += 3) {
        uint8_t a = table[from[0]];
        uint8_t b = table[from[1]];
        uint8_t c = table[from[2]];
        uint8_t d = table[from[3]];
        if ((a | b | c | d) & NO_DIGIT)
            return false;
        to[0] = (char)(a << 2 | b >> 4);
        to[1] = (char)(b << 4 | c >> 2);
        to[2] = (char)(c << 6 | d);
    }
    return true;
}

bool base64_decode(struct text text, struct buffer *out)
{
    uint8_t table[256];
    const unsigned char *from = (const unsigned char *)text.data;
    if (text.length_bytes % 4)
        return false;
    if (text.length_bytes == 0)
        return true;
    fill_digits(table);
    const unsigned char *last = from + text.length_bytes - 4;
    size_t padding = last[3] != '=' ? 0 : last[2] != '=' ? 1 : 2;
    size_t quads = text.length_bytes / 4 - (padding > 0);
    char *to = buffer_reserve(out, 3 * quads + (3 - padding) % 3);
    if (!to || !decode_whole(table, from, quads, to))
        return false;
    if (padding) {
        unsigned char filled[4] = {last[0], last[1], padding == 2 ? 'A' : last[2], 'A'};
        char bytes[3];
        /* the bits that padding cuts off must be 0: one text per value */
        if (!decode_whole(table, filled, 1, bytes) || bytes[3 - padding] != 0)
            return false;
        memcpy(to + 3 * quads, bytes, 3 - padding);
    }
    out->length_bytes += 3 * quads + (3 - padding) % 3;
    out->data[out->length_bytes] = '\0';
    return true;
}

bool equal_in_constant_time(struct text left, struct text right)
{
    return left.length_bytes == right.length_bytes && CRYPTO_memcmp(left.data, right.data, left.length_bytes) == 0;
}

void random_bytes(void *bytes, size_t length_bytes)
{
    uint8_t *at = bytes;
    while (length_bytes) {
        ssize_t got = getrandom(at, length_bytes, 0);
        if (got < 0 && errno != EINTR)
            abort();
        if (got > 0) {
            at += got;
            length_bytes -= (size_t)got;
        }
    }
}
