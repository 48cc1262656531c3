/* The full-width forms of ASCII signs and digits (U+FF01 …), as Chinese text has them. Letters are not read. */
#include "verifiers/math/scanner.h"

#define WIDE_BYTES 3

/* A full-width comma separates; it groups no digits. The exclamation mark is one, not a factorial. */
static const struct {
    char sign;
    uint8_t kind, value;
} signs[] = {
    {'(', TOKEN_OPEN_PAREN, 0},
    {')', TOKEN_CLOSE_PAREN, 0},
    {'[', TOKEN_OPEN_SQUARE, 0},
    {']', TOKEN_CLOSE_SQUARE, 0},
    {'{', TOKEN_OPEN_SET, 0},
    {'}', TOKEN_CLOSE_SET, 0},
    {',', TOKEN_SEMICOLON, 0},
    {';', TOKEN_SEMICOLON, 0},
    {':', TOKEN_COLON, 0},
    {'.', TOKEN_POINT, 0},
    {'+', TOKEN_PLUS, 0},
    {'-', TOKEN_MINUS, 0},
    {'*', TOKEN_TIMES, 0},
    {'/', TOKEN_SLASH, 0},
    {'%', TOKEN_PERCENT, 0},
    {'|', TOKEN_BAR, 0},
    {'=', TOKEN_RELATION, MATH_EQUALS},
    {'<', TOKEN_RELATION, MATH_LESS},
    {'>', TOKEN_RELATION, MATH_GREATER},
};

/* The ASCII byte of which the text begins with the full-width form; 0: it begins with another sign. */
static char narrow(struct text text)
{
    const unsigned char *bytes = (const unsigned char *)text.data;

    if (text.length_bytes < WIDE_BYTES || bytes[0] != 0xef)
        return 0;
    if (bytes[1] == 0xbc && bytes[2] >= 0x81 && bytes[2] <= 0xbf)
        return (char)(bytes[2] - 0x60);
    return bytes[1] == 0xbd && bytes[2] >= 0x80 && bytes[2] <= 0x9e ? (char)(bytes[2] - 0x20) : 0;
}

bool math_scan_wide(struct scanner *scanner)
{
    char byte = narrow(rest(scanner));

    if (isdigit((unsigned char)byte) && scanner->reader->reading->wide_digits) {
        math_add_token(scanner, TOKEN_DIGIT, (unsigned)(byte - '0'), WIDE_BYTES);
        return true;
    }
    for (size_t i = 0; byte && i < ARRAY_LENGTH(signs); i++) {
        if (signs[i].sign != byte)
            continue;
        math_add_token(scanner, signs[i].kind, signs[i].value, WIDE_BYTES);
        return true;
    }
    return false;
}
