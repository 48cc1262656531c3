#include "server/store/sqlite/cursor.h"

#include "server/base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 16, NUMBERS_MAX = 2, KEY_BYTES = 256 * 1024 };

/* Numbers, then a digest of the list and of them, 16 hexadecimal digits each. A cursor of another list, a cut or an
 * altered one is recognised. It is no secret: a forged cursor gives a page that other parameters give, too. */
static void write_numbers(const struct list_key *key, const uint64_t *numbers, size_t count,
                          char ret_cursor[CURSOR_BYTES])
{
    uint8_t bytes[sizeof(key->digest) + NUMBERS_MAX * sizeof(*numbers)];
    uint8_t sha256[SHA256_BYTES];
    uint64_t digest;
    memcpy(bytes, key->digest, sizeof(key->digest));
    memcpy(bytes + sizeof(key->digest), numbers, count * sizeof(*numbers));
    sha256_of(bytes, sizeof(key->digest) + count * sizeof(*numbers), sha256);
    memcpy(&digest, sha256, sizeof(digest));
    for (size_t i = 0; i < count; i++)
        snprintf(ret_cursor + i * DIGITS, DIGITS + 1, "%016" PRIx64, numbers[i]);
    snprintf(ret_cursor + count * DIGITS, DIGITS + 1, "%016" PRIx64, digest);
}

static uint64_t digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return (uint64_t)(digit - '0');
    return digit >= 'a' && digit <= 'f' ? (uint64_t)(digit - 'a' + 10) : 0; /* the comparison of digests refuses it */
}

static bool read_numbers(const struct list_key *key, struct text cursor, uint64_t *ret_numbers, size_t count)
{
    if (cursor.length_bytes != (count + 1) * DIGITS)
        return false;
    for (size_t i = 0; i < count; i++) {
        ret_numbers[i] = 0;
        for (size_t d = 0; d < DIGITS; d++)
            ret_numbers[i] = ret_numbers[i] << 4 | digit_value(cursor.data[i * DIGITS + d]);
    }
    char expected[CURSOR_BYTES];
    write_numbers(key, ret_numbers, count, expected);
    return memcmp(expected, cursor.data, cursor.length_bytes) == 0;
}

void cursor_write(const struct list_key *key, int64_t seq, char ret_cursor[CURSOR_BYTES])
{
    write_numbers(key, &(uint64_t){(uint64_t)seq}, 1, ret_cursor);
}

bool cursor_read(const struct list_key *key, struct text cursor, int64_t *ret_seq)
{
    uint64_t seq = 0;
    bool fits = read_numbers(key, cursor, &seq, 1);
    *ret_seq = (int64_t)seq;
    return fits;
}

void cursor_write_place(const struct list_key *key, const struct list_place *place, char ret_cursor[CURSOR_BYTES])
{
    uint64_t numbers[2] = {0, (uint64_t)place->seq};
    memcpy(&numbers[0], &place->value, sizeof(numbers[0]));
    write_numbers(key, numbers, 2, ret_cursor);
}

bool cursor_read_place(const struct list_key *key, struct text cursor, struct list_place *ret_place)
{
    uint64_t numbers[2] = {0, 0};
    bool fits = read_numbers(key, cursor, numbers, 2);
    memcpy(&ret_place->value, &numbers[0], sizeof(numbers[0]));
    ret_place->seq = (int64_t)numbers[1];
    return fits;
}

void key_init(struct buffer *key, const char *list)
{
    buffer_init(key, KEY_BYTES);
    buffer_append_string(key, list);
}

void key_text(struct buffer *key, struct text text)
{
    buffer_append_format(key, "%d:%zu:", text.data != NULL, text.length_bytes);
    if (text.length_bytes)
        buffer_append(key, text.data, text.length_bytes);
}

void key_numbers(struct buffer *key, const int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buffer_append_format(key, "%" PRId64 ",", numbers[i]);
}

struct list_key key_finish(const struct buffer *key)
{
    uint8_t sha256[SHA256_BYTES];
    struct list_key list_key;
    sha256_of(key->data, key->length_bytes, sha256);
    memcpy(list_key.digest, sha256, sizeof(list_key.digest));
    return list_key;
}
