/* \text{…}, \mathrm{…} and their like. */
#include "verifiers/math/scanner.h"

static const struct {
    const char *name;
    bool mathematics; /* its argument is one, set in another font */
} text_commands[] = {
    {"text", false}, {"mathrm", true}, {"textbf", false},      {"textit", false},     {"textrm", false},
    {"mbox", false}, {"hbox", false},  {"mathsf", true},       {"texttt", false},     {"textsf", false},
    {"emph", false}, {"mathtt", true}, {"operatorname", true}, {"textnormal", false},
};

bool math_is_text_command(struct text name, bool *ret_mathematics)
{
    for (size_t i = 0; i < ARRAY_LENGTH(text_commands); i++) {
        *ret_mathematics = text_commands[i].mathematics;
        if (text_equals(name, text_commands[i].name))
            return true;
    }
    return false;
}

/* --- finding the end --- */

/* The bytes of a unit's exponent in braces behind its ^: {2}, {-1}; 0: something else. */
static size_t exponent_length(struct text text, size_t at)
{
    size_t end = at + 1;

    if (at == 0 || text.data[at - 1] != '^')
        return 0;
    end += end < text.length_bytes && text.data[end] == '-';
    if (end + 1 >= text.length_bytes || !isdigit((unsigned char)text.data[end]) || text.data[end + 1] != '}')
        return 0;
    return end + 2 - at;
}

/* A space, or the dot between two units. */
static size_t escape_length(struct text text, size_t at)
{
    struct text from = {text.data + at, text.length_bytes - at};

    if (from.length_bytes > 1 && strchr(",; :", from.data[1]) && from.data[1])
        return 2;
    return begins(from, "\\cdot") && !(from.length_bytes > 5 && is_letter(from.data[5])) ? 5 : 0;
}

/* ², 千米 */
static size_t beyond_ascii_length(struct text text)
{
    const char *unit;
    size_t length = math_measure_word(text, &unit);

    return length ? length : math_raised_digit(text);
}

/* The bytes up to the closing brace, if all of them are those of words and units. */
static bool sees_words(const struct scanner *scanner, bool mathematics, struct text *ret_words)
{
    struct text text = rest(scanner);
    size_t step;

    *ret_words = TEXT_LITERAL("");
    for (size_t i = 0; i < text.length_bytes; i += step) {
        char byte = text.data[i];
        if (byte == '}') {
            ret_words->data = text.data;
            ret_words->length_bytes = i;
            return true;
        }
        step = isalnum((unsigned char)byte) || (byte && strchr(" \n\t\r~.,;:?'-/^*$%", byte)) ||
               (byte == '!' && !mathematics); /* \mathrm{n!} is a factorial */
        if (byte == '{')
            step = exponent_length(text, i);
        if (byte & 0x80)
            step = beyond_ascii_length((struct text){text.data + i, text.length_bytes - i});
        if (byte == '\\')
            step = escape_length(text, i);
        if (step == 0)
            return false;
    }
    return false;
}

/* --- what the words are --- */

static const struct word *find_known(struct text word, bool mathematics)
{
    char lower[16];
    const struct word *known = math_find_word(word);

    if (!known && mathematics)
        known = math_find_command(word);
    for (size_t i = 0; !known && word.length_bytes < sizeof lower && i < word.length_bytes; i++) {
        lower[i] = (char)tolower((unsigned char)word.data[i]);
        if (i + 1 == word.length_bytes)
            known = math_find_word((struct text){lower, word.length_bytes});
    }
    if (text_equals(word, "$")) {
        static const struct word dollar = {"$", TOKEN_MONEY, 0};
        return &dollar;
    }
    if (!known || (known->kind != TOKEN_FUNCTION && known->kind != TOKEN_LOG_TEN && known->kind != TOKEN_AND &&
                   known->kind != TOKEN_OR && known->kind != TOKEN_CONSTANT && known->kind != TOKEN_OPERATOR &&
                   known->kind != TOKEN_DETERMINANT && known->kind != TOKEN_MODULO))
        return NULL;
    return known;
}

static struct math_token *add_inside(struct scanner *scanner, enum token_kind kind, unsigned value, struct text word,
                                     struct text content)
{
    const char *start = scanner->reader->text.data;
    struct math_token *token;

    scanner->flags |= TOKEN_UPRIGHT;
    scanner->at = (size_t)(word.data - start);
    token = math_add_token(scanner, kind, value, word.length_bytes);
    scanner->at = (size_t)(content.data - start) + content.length_bytes + 1;
    return token;
}

/* Only spaces and punctuation. */
static void add_blank(struct scanner *scanner, struct text content)
{
    if (memchr(content.data, ',', content.length_bytes))
        add_inside(scanner, TOKEN_COMMA, 0, content, content);
    else
        scanner->at += content.length_bytes + 1;
    scanner->flags |= TOKEN_SPACED;
}

/* min and sec are units too, unless arguments follow. */
static bool is_unit_after_all(const struct scanner *scanner, const struct word *known, struct text content)
{
    size_t after = content.length_bytes + 1;
    struct text behind;

    while (math_is_space(byte_at(scanner, after)))
        after++;
    behind = (struct text){rest(scanner).data + after, after < left(scanner) ? left(scanner) - after : 0};
    return known && known->kind == TOKEN_FUNCTION && (known->value == MATH_MIN || known->value == MATH_SEC) &&
           !begins(behind, "(") && !begins(behind, "\\{") && !begins(behind, "\\left");
}

static void add_words(struct scanner *scanner, struct text content, bool mathematics)
{
    struct text word = math_trimmed(content, ",;.");
    const struct word *known = find_known(word, mathematics);
    bool constant = word.length_bytes == 1 && strchr(mathematics ? "eidkxyz" : "eixyz", word.data[0]);

    if (word.length_bytes == 0)
        add_blank(scanner, content);
    else if (known && !is_unit_after_all(scanner, known, content))
        add_inside(scanner, known->kind, known->value, word, content);
    else if (constant)
        add_inside(scanner, TOKEN_LETTER, (unsigned char)word.data[0], word, content)->run = 1;
    else
        add_inside(scanner, TOKEN_TEXT, 0, content, content);
}

/* (A): the letter of a choice. */
static bool is_choice(const struct scanner *scanner)
{
    return byte_at(scanner, 0) == '(' && is_letter(byte_at(scanner, 1)) && byte_at(scanner, 2) == ')' &&
           byte_at(scanner, 3) == '}';
}

/* \text{(3, -2)}: brackets and digits, and no two letters side by side, which could be a word. */
static bool is_bracketed_mathematics(const struct scanner *scanner)
{
    size_t digits = 0;
    size_t at = 0;

    if (byte_at(scanner, 0) != '(' && byte_at(scanner, 0) != '[')
        return false;
    for (; byte_at(scanner, at) && byte_at(scanner, at) != '}'; at++) {
        char byte = byte_at(scanner, at);
        if (!isalnum((unsigned char)byte) && !strchr(" ,;.()[]+-*/=<>", byte))
            return false;
        if (is_letter(byte) && is_letter(byte_at(scanner, at + 1)))
            return false;
        digits += isdigit((unsigned char)byte) != 0;
    }
    return digits > 0 && byte_at(scanner, at) == '}';
}

/* \text{\$}, \text{ \%} */
static bool scan_lone_sign(struct scanner *scanner)
{
    static const struct word signs[] = {{"\\$}", TOKEN_MONEY, 0}, {"\\%}", TOKEN_PERCENT, 0}, {"%}", TOKEN_PERCENT, 0}};
    size_t spaces = 0;

    while (math_is_space(byte_at(scanner, spaces)))
        spaces++;
    for (size_t i = 0; i < ARRAY_LENGTH(signs); i++) {
        if (!begins((struct text){rest(scanner).data + spaces, left(scanner) - spaces}, signs[i].name))
            continue;
        scanner->at += spaces;
        math_add_token(scanner, signs[i].kind, signs[i].value, strlen(signs[i].name));
        return true;
    }
    return false;
}

/* \text{ 或 } */
static bool scan_lone_conjunction(struct scanner *scanner)
{
    size_t spaces = 0;
    size_t length = 0;
    size_t after;
    const struct word *sign;
    struct text from;

    while (math_is_space(byte_at(scanner, spaces)))
        spaces++;
    from = (struct text){rest(scanner).data + spaces, left(scanner) - spaces};
    sign = byte_at(scanner, spaces) & 0x80 ? math_find_sign(from, &length) : NULL;
    if (!sign || (sign->kind != TOKEN_AND && sign->kind != TOKEN_OR))
        return false;
    for (after = spaces + length; math_is_space(byte_at(scanner, after));)
        after++;
    if (byte_at(scanner, after) != '}')
        return false;
    math_add_token(scanner, sign->kind, 0, after + 1);
    return true;
}

/* \text{(base 2)} is the subscript 2. */
static bool scan_base(struct scanner *scanner)
{
    static const char *const openings[] = {"base", "in base", "(base", "(in base"};
    size_t at = 0;
    size_t start;

    while (math_is_space(byte_at(scanner, at)))
        at++;
    for (size_t i = 0; i < ARRAY_LENGTH(openings); i++) {
        struct text from = {rest(scanner).data + at, left(scanner) - at};
        bool bracket = openings[i][0] == '(';
        if (!begins(from, openings[i]) || !math_is_space(byte_at(scanner, at + strlen(openings[i]))))
            continue;
        for (start = at + strlen(openings[i]) + 1, at = start; isdigit((unsigned char)byte_at(scanner, at));)
            at++;
        if (at == start || (bracket && byte_at(scanner, at) != ')') || byte_at(scanner, at + bracket) != '}')
            return false;
        math_add_token(scanner, TOKEN_SUBSCRIPT, 0, start);
        math_add_token(scanner, TOKEN_OPEN_BRACE, 0, 0);
        for (size_t digits = at - start; digits; digits--)
            math_add_token(scanner, TOKEN_DIGIT, (unsigned)(byte_at(scanner, 0) - '0'), 1);
        math_add_token(scanner, TOKEN_CLOSE_BRACE, 0, 1 + bracket);
        return true;
    }
    return false;
}

bool math_scan_text(struct scanner *scanner, bool mathematics)
{
    struct text content;
    bool words;
    char first;

    while (math_is_space(byte_at(scanner, 0)) || byte_at(scanner, 0) == '*')
        scanner->at++;
    if (byte_at(scanner, 0) != '{')
        return mathematics && is_letter(byte_at(scanner, 0));
    scanner->at++;
    if (scan_lone_sign(scanner) || scan_lone_conjunction(scanner) || scan_base(scanner))
        return true;
    words = sees_words(scanner, mathematics, &content);
    first = content.length_bytes > 1 ? math_trimmed(content, "").data[0] : byte_at(scanner, 0);
    if (words && !isdigit((unsigned char)first) && (content.length_bytes == 1 || !strchr("$-.", first))) {
        add_words(scanner, content, mathematics);
        return true;
    }
    if (!mathematics && !words && !isdigit((unsigned char)first) && !begins(rest(scanner), "\\$") &&
        !is_choice(scanner) && !is_bracketed_mathematics(scanner))
        return false;
    scanner->at--;
    math_add_token(scanner, TOKEN_OPEN_BRACE, 0, 1);
    return true;
}
