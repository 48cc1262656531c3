#include "verifiers/text/lookalikes.h"

#include <stdint.h>

static const struct range {
    uint32_t first, last;
    char sign;       /* that the first one shows */
    uint32_t period; /* after so many the signs begin again */
    bool bracketed;
} ranges[] = {
    {0x2460, 0x2468, '1', 9, false},    {0x249c, 0x24b5, 'a', 26, true},   {0x24b6, 0x24cf, 'A', 26, false},
    {0x24d0, 0x24e9, 'a', 26, false},   {0x24ea, 0x24ea, '0', 1, false},   {0xff01, 0xff5e, '!', 94, false},
    {0x1d7ce, 0x1d7ff, '0', 10, false}, {0x1f110, 0x1f129, 'A', 26, true}, {0x1f130, 0x1f149, 'A', 26, false},
};

/* Mathematical letters, thirteen alphabets of capitals and small ones. */
#define ALPHABETS_FIRST 0x1d400
#define ALPHABETS_LAST 0x1d6a3

/* Those that Unicode had before the alphabets. */
static const struct {
    uint32_t point;
    char sign;
} letterlike[] = {
    {0x2102, 'C'}, {0x210a, 'g'}, {0x210b, 'H'}, {0x210c, 'H'}, {0x210d, 'H'}, {0x210e, 'h'}, {0x2110, 'I'},
    {0x2111, 'I'}, {0x2112, 'L'}, {0x2113, 'l'}, {0x2115, 'N'}, {0x2119, 'P'}, {0x211a, 'Q'}, {0x211b, 'R'},
    {0x211c, 'R'}, {0x211d, 'R'}, {0x2124, 'Z'}, {0x2128, 'Z'}, {0x212a, 'K'}, {0x212c, 'B'}, {0x212d, 'C'},
    {0x212f, 'e'}, {0x2130, 'E'}, {0x2131, 'F'}, {0x2133, 'M'}, {0x2134, 'o'}, {0x2139, 'i'}, {0x2145, 'D'},
    {0x2146, 'd'}, {0x2147, 'e'}, {0x2148, 'i'}, {0x2149, 'j'},
};

/* The code point that a text of broken or whole UTF-8 begins with, and its bytes: 1 where it is broken. */
static uint32_t point_at(struct text text, size_t at, size_t *ret_bytes)
{
    unsigned char first = (unsigned char)text.data[at];
    size_t bytes = first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1;
    uint32_t point = bytes == 1 ? first : first & (0x7fu >> bytes);

    *ret_bytes = 1;
    if (bytes > text.length_bytes - at)
        return 0;
    for (size_t i = 1; i < bytes; i++) {
        unsigned char next = (unsigned char)text.data[at + i];
        if ((next & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (next & 0x3fu);
    }
    *ret_bytes = bytes;
    return point;
}

static bool is_without_width(uint32_t point)
{
    return point == 0x180e || (point >= 0x200b && point <= 0x200d) || point == 0x2060 || point == 0xfeff;
}

static size_t show(char sign, bool bracketed, char ret_shown[3])
{
    if (!bracketed) {
        ret_shown[0] = sign;
        return 1;
    }
    ret_shown[0] = '(';
    ret_shown[1] = sign;
    ret_shown[2] = ')';
    return 3;
}

/* The bytes that the point shows as, at most 3; 0: it is none of these. */
static size_t fold_point(uint32_t point, char ret_shown[3])
{
    for (size_t i = 0; i < ARRAY_LENGTH(ranges); i++)
        if (point >= ranges[i].first && point <= ranges[i].last)
            return show((char)(ranges[i].sign + (char)((point - ranges[i].first) % ranges[i].period)),
                        ranges[i].bracketed, ret_shown);
    if (point >= ALPHABETS_FIRST && point <= ALPHABETS_LAST) {
        uint32_t letter = (point - ALPHABETS_FIRST) % 52;
        return show((char)(letter < 26 ? 'A' + (char)letter : 'a' + (char)(letter - 26)), false, ret_shown);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(letterlike); i++)
        if (point == letterlike[i].point)
            return show(letterlike[i].sign, false, ret_shown);
    return 0;
}

struct text lookalikes_plain(struct text text, bool fold, bool strip, struct buffer *room)
{
    size_t copied = 0; /* of the text */
    size_t bytes;

    buffer_clear(room);
    for (size_t at = 0; (fold || strip) && at < text.length_bytes; at += bytes) {
        bytes = 1;
        if ((unsigned char)text.data[at] < 0x80)
            continue;
        uint32_t point = point_at(text, at, &bytes);
        char shown[3];
        size_t shown_bytes = fold ? fold_point(point, shown) : 0;
        if (!shown_bytes && !(strip && is_without_width(point)))
            continue;
        buffer_append(room, text.data + copied, at - copied);
        buffer_append(room, shown, shown_bytes);
        copied = at + bytes;
    }
    if (!copied)
        return text;
    buffer_append(room, text.data + copied, text.length_bytes - copied);
    return buffer_text(room);
}
