#include "server/base/utf8.h"

static const char replacement[] = "\xef\xbf\xbd";

/* Bytes after a lead byte: the number of continuation bytes, and the range of the first (Unicode 15, table 3-7).
 */
struct lead {
    unsigned char following, lowest, highest;
};

static struct lead lead_of(unsigned char byte)
{
    if (byte >= 0xC2 && byte <= 0xDF)
        return (struct lead){1, 0x80, 0xBF};
    if (byte == 0xE0)
        return (struct lead){2, 0xA0, 0xBF};
    if (byte == 0xED)
        return (struct lead){2, 0x80, 0x9F};
    if (byte >= 0xE1 && byte <= 0xEF)
        return (struct lead){2, 0x80, 0xBF};
    if (byte == 0xF0)
        return (struct lead){3, 0x90, 0xBF};
    if (byte >= 0xF1 && byte <= 0xF3)
        return (struct lead){3, 0x80, 0xBF};
    if (byte == 0xF4)
        return (struct lead){3, 0x80, 0x8F};
    return (struct lead){0, 0, 0};
}

/* Length of the character at `at`, and whether it is whole; a broken one has the length of its maximal subpart. */
static size_t character(const unsigned char *at, const unsigned char *end, bool *ret_valid)
{
    *ret_valid = true;
    if (*at < 0x80)
        return 1;
    struct lead lead = lead_of(*at);
    size_t length = 1;
    unsigned char lowest = lead.lowest;
    unsigned char highest = lead.highest;
    while (length <= lead.following && at + length < end && at[length] >= lowest && at[length] <= highest) {
        length++;
        lowest = 0x80;
        highest = 0xBF;
    }
    *ret_valid = lead.following > 0 && length == (size_t)lead.following + 1;
    return length;
}

static const unsigned char *skip_ascii(const unsigned char *at, const unsigned char *end)
{
    uint64_t word;
    while ((size_t)(end - at) >= sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        if (word & UINT64_C(0x8080808080808080))
            break;
        at += sizeof(word);
    }
    while (at < end && *at < 0x80)
        at++;
    return at;
}

bool utf8_is_valid(struct text text, size_t *ret_bad_offset_bytes)
{
    const unsigned char *start = (const unsigned char *)text.data;
    const unsigned char *end = start + text.length_bytes;
    bool valid;
    for (const unsigned char *at = start; (at = skip_ascii(at, end)) < end;) {
        size_t length = character(at, end, &valid);
        if (!valid) {
            if (ret_bad_offset_bytes)
                *ret_bad_offset_bytes = (size_t)(at - start);
            return false;
        }
        at += length;
    }
    return true;
}

size_t utf8_append_mended(struct buffer *out, struct text text)
{
    const unsigned char *at = (const unsigned char *)text.data;
    const unsigned char *end = at + text.length_bytes;
    size_t replaced = 0;
    while (at < end) {
        const unsigned char *from = at;
        bool valid = true;
        size_t length = 0;
        while ((at = skip_ascii(at, end)) < end) {
            length = character(at, end, &valid);
            if (!valid)
                break;
            at += length;
        }
        buffer_append(out, from, (size_t)(at - from));
        if (!valid) {
            buffer_append(out, replacement, sizeof(replacement) - 1);
            at += length;
            replaced++;
        }
    }
    return replaced;
}

void utf8_append(struct buffer *out, uint32_t code_point)
{
    if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF))
        code_point = 0xFFFD;
    unsigned char bytes[4];
    size_t length;
    if (code_point < 0x80) {
        bytes[0] = (unsigned char)code_point;
        length = 1;
    } else if (code_point < 0x800) {
        bytes[0] = (unsigned char)(0xC0 | code_point >> 6);
        length = 2;
    } else if (code_point < 0x10000) {
        bytes[0] = (unsigned char)(0xE0 | code_point >> 12);
        length = 3;
    } else {
        bytes[0] = (unsigned char)(0xF0 | code_point >> 18);
        length = 4;
    }
    for (size_t i = 1; i < length; i++)
        bytes[i] = (unsigned char)(0x80 | (code_point >> 6 * (length - 1 - i) & 0x3F));
    buffer_append(out, bytes, length);
}
