/* Commands whose groups are no mathematics as they stand: a colour, a quantity of siunitx, digits set apart in a font.
 */
#include "verifiers/math/scanner.h"

static void skip_spaces(struct scanner *scanner)
{
    while (math_is_space(byte_at(scanner, 0)))
        scanner->at++;
}

/* {red}, but not {white}, on which nobody sees it. The coloured part is mathematics again. */
static bool skip_colour(struct scanner *scanner)
{
    char lower[MATH_WORD_BYTES];
    struct text colour;
    size_t length = 1;

    while (isalnum((unsigned char)byte_at(scanner, length)))
        length++;
    if (byte_at(scanner, 0) != '{' || byte_at(scanner, length) != '}' || length == 1)
        return false;
    colour = math_lowered((struct text){rest(scanner).data + 1, length - 1}, lower);
    if (colour.length_bytes == 0 || begins(colour, "white") || begins(colour, "transparent"))
        return false;
    scanner->at += length + 1;
    return true;
}

/* The digits of a group as they are printed: {1 2} is 12. An ordinary group otherwise. */
static bool scan_font(struct scanner *scanner)
{
    size_t length = 1;
    size_t digits = 0;

    skip_spaces(scanner);
    for (; isdigit((unsigned char)byte_at(scanner, length)) || byte_at(scanner, length) == ' '; length++)
        digits += byte_at(scanner, length) != ' ';
    if (byte_at(scanner, 0) != '{' || byte_at(scanner, length) != '}' || digits < 2)
        return true;
    math_add_token(scanner, TOKEN_OPEN_BRACE, 0, 1);
    while (byte_at(scanner, 0) != '}')
        if (byte_at(scanner, 0) == ' ')
            scanner->at++;
        else
            math_add_token(scanner, TOKEN_DIGIT, (unsigned)(byte_at(scanner, 0) - '0'), 1);
    math_add_token(scanner, TOKEN_CLOSE_BRACE, 0, 1);
    return true;
}

/* {12} of a quantity: a number, without its braces. */
static bool scan_number(struct scanner *scanner)
{
    skip_spaces(scanner);
    if (byte_at(scanner, 0) != '{')
        return false;
    for (scanner->at++; byte_at(scanner, 0) != '}';)
        if (!byte_at(scanner, 0) || !strchr("0123456789.,-+eE", byte_at(scanner, 0)) || !math_scan_one(scanner))
            return false;
    scanner->at++;
    return true;
}

/* {cm}, {\meter\per\second}: the text of a unit. */
static bool scan_unit(struct scanner *scanner)
{
    size_t length = 0;

    skip_spaces(scanner);
    if (byte_at(scanner, 0) != '{')
        return false;
    scanner->at++;
    while (isalnum((unsigned char)byte_at(scanner, length)) ||
           (byte_at(scanner, length) && strchr("\\/^ .", byte_at(scanner, length))))
        length++;
    if (length == 0 || byte_at(scanner, length) != '}')
        return false;
    math_add_token(scanner, TOKEN_TEXT, 0, length);
    scanner->at++;
    return true;
}

bool math_scan_grouped(struct scanner *scanner, unsigned command)
{
    if (command == GROUPED_COLOUR) {
        skip_spaces(scanner);
        return skip_colour(scanner);
    }
    if (command == GROUPED_FONT)
        return scan_font(scanner);
    return scan_number(scanner) && (command == GROUPED_NUMBER || scan_unit(scanner));
}
