#include "server/commands/safe_print_private.h"

#include <stdint.h>

#include "server/base/cleanup.h"
#include "server/base/utf8.h"

/* Controls, zero widths, directions, line and paragraph separators, tags. */
static const struct {
    uint32_t first, last;
} unseen[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
              {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
              {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};

static size_t sequence_bytes(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

static uint32_t code_point(const unsigned char *bytes, size_t count)
{
    uint32_t value = count == 1 ? bytes[0] : bytes[0] & (0x7fu >> count);

    for (size_t i = 1; i < count; i++)
        value = value << 6 | (bytes[i] & 0x3f);
    return value;
}

static bool is_unseen(uint32_t code)
{
    for (size_t i = 0; i < ARRAY_LENGTH(unseen); i++)
        if (code >= unseen[i].first && code <= unseen[i].last)
            return true;
    return false;
}

void safe_print(FILE *out, struct text text)
{
    for (size_t i = 0, count; i < text.length_bytes; i += count) {
        const unsigned char *bytes = (const unsigned char *)text.data + i;
        count = sequence_bytes(bytes[0]);
        if (count > text.length_bytes - i || !utf8_is_valid((struct text){text.data + i, count}, NULL)) {
            count = 1;
            fprintf(out, "\\x%02x", bytes[0]);
            continue;
        }
        uint32_t code = code_point(bytes, count);
        if (!is_unseen(code))
            fwrite(bytes, 1, count, out);
        else if (code == '\n')
            fputs("\\n", out);
        else if (code < 0x80)
            fprintf(out, "\\x%02x", code);
        else
            fprintf(out, "\\u{%x}", code);
    }
}
