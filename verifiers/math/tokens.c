/* Text to tokens, in one pass. What is in no list makes the whole unparsed. */
#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/words.h"

struct scanner {
    struct math_reader *reader;
    size_t at;
    uint8_t flags; /* of the next token */
};

static size_t left(const struct scanner *scanner)
{
    return scanner->reader->text.length_bytes - scanner->at;
}

static char byte_at(const struct scanner *scanner, size_t ahead)
{
    return ahead < left(scanner) ? scanner->reader->text.data[scanner->at + ahead] : 0;
}

static struct text rest(const struct scanner *scanner)
{
    return (struct text){scanner->reader->text.data + scanner->at, left(scanner)};
}

static bool begins(struct text text, const char *what)
{
    size_t length_bytes = strlen(what);
    return text.length_bytes >= length_bytes && memcmp(text.data, what, length_bytes) == 0;
}

/* --- writing --- */

static struct math_token *add_token(struct scanner *scanner, enum token_kind kind, unsigned value, size_t length)
{
    struct math_reader *reader = scanner->reader;
    struct math_token *token;

    if (reader->count == reader->capacity) {
        reader->capacity = reader->capacity ? 2 * reader->capacity : 64;
        reader->tokens = xrealloc(reader->tokens, reader->capacity * sizeof *reader->tokens);
    }
    token = &reader->tokens[reader->count++];
    *token = (struct math_token){.at = (uint32_t)scanner->at,
                                 .length = (uint16_t)length,
                                 .kind = (uint8_t)kind,
                                 .value = (uint8_t)value,
                                 .flags = scanner->flags};
    scanner->flags = 0;
    scanner->at += length;
    return token;
}

/* --- words of letters --- */

static void scan_letters(struct scanner *scanner)
{
    size_t run = 1;
    const struct word *word;

    while (isalpha((unsigned char)byte_at(scanner, run)))
        run++;
    word = math_find_word((struct text){rest(scanner).data, run});
    if (word) {
        scanner->flags |= TOKEN_ASCII;
        add_token(scanner, word->kind, word->value, run);
        return;
    }
    for (; run; run--)
        add_token(scanner, TOKEN_LETTER, (unsigned char)byte_at(scanner, 0), 1)->run = (uint16_t)run;
}

/* --- commands with an argument of letters --- */

static const struct {
    const char *name;
    bool mathematics; /* its argument is one, set in another font */
} text_commands[] = {
    {"text", false}, {"mathrm", true}, {"textbf", false},      {"textit", false},     {"textrm", false},
    {"mbox", false}, {"hbox", false},  {"mathsf", true},       {"texttt", false},     {"textsf", false},
    {"emph", false}, {"mathtt", true}, {"operatorname", true}, {"textnormal", false},
};

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r' || byte == '~';
}

static struct text trimmed(struct text text, const char *what)
{
    while (text.length_bytes && (is_space(text.data[0]) || strchr(what, text.data[0]))) {
        text.data++;
        text.length_bytes--;
    }
    while (text.length_bytes &&
           (is_space(text.data[text.length_bytes - 1]) || strchr(what, text.data[text.length_bytes - 1])))
        text.length_bytes--;
    return text;
}

/* The bytes up to the closing brace if all of them are those of words; TEXT_NONE if not. */
static struct text words_until_brace(const struct scanner *scanner)
{
    struct text text = rest(scanner);

    for (size_t i = 0; i < text.length_bytes; i++) {
        char byte = text.data[i];
        if (byte == '}')
            return (struct text){text.data, i};
        if (!isalnum((unsigned char)byte) && !(byte && strchr(" \n\t\r~.,;:!?'-/^$%", byte)))
            return TEXT_NONE;
    }
    return TEXT_NONE;
}

static bool add_words(struct scanner *scanner, struct text content, bool mathematics)
{
    struct text word = trimmed(content, ",;.");
    const struct word *known = math_find_word(word);
    size_t length = content.length_bytes + 1;

    scanner->flags |= TOKEN_UPRIGHT;
    if (word.length_bytes == 0) {
        bool comma = memchr(content.data, ',', content.length_bytes) != NULL;
        if (comma)
            add_token(scanner, TOKEN_COMMA, 0, length);
        else
            scanner->at += length;
        scanner->flags |= TOKEN_SPACED;
        return true;
    }
    if (known && known->kind != TOKEN_ROOT) {
        add_token(scanner, known->kind, known->value, length);
        return true;
    }
    if (word.length_bytes == 1 && (mathematics || word.data[0] == 'e' || word.data[0] == 'i') &&
        strchr("eid", word.data[0])) {
        scanner->at = (size_t)(word.data - scanner->reader->text.data);
        add_token(scanner, TOKEN_LETTER, (unsigned char)word.data[0], 1)->run = 1;
        scanner->at = (size_t)(content.data - scanner->reader->text.data) + length;
        return true;
    }
    add_token(scanner, TOKEN_TEXT, 0, content.length_bytes);
    scanner->at++;
    return true;
}

/* `scanner->at` is behind the command. Words become one token; anything else is an ordinary group. */
static bool scan_text(struct scanner *scanner, bool mathematics)
{
    struct text content;
    char first;

    while (is_space(byte_at(scanner, 0)) || byte_at(scanner, 0) == '*')
        scanner->at++;
    if (byte_at(scanner, 0) != '{')
        return mathematics && isalpha((unsigned char)byte_at(scanner, 0));
    scanner->at++;
    content = words_until_brace(scanner);
    first = content.data ? trimmed(content, "").data[0] : 0;
    if (content.data && !isdigit((unsigned char)first) && !(first && strchr("$-.", first) && content.length_bytes > 1))
        return add_words(scanner, content, mathematics);
    if (!mathematics && !content.data && !isdigit((unsigned char)byte_at(scanner, 0)) && byte_at(scanner, 0) != '\\')
        return false;
    scanner->at--;
    add_token(scanner, TOKEN_OPEN_BRACE, 0, 1);
    return true;
}

static bool scan_number_set(struct scanner *scanner)
{
    char letter;
    bool braces;

    while (is_space(byte_at(scanner, 0)))
        scanner->at++;
    braces = byte_at(scanner, 0) == '{';
    letter = byte_at(scanner, braces);
    if (!letter || !strchr("RNZQC", letter) || (braces && byte_at(scanner, 2) != '}'))
        return false;
    add_token(scanner, TOKEN_NUMBER_SET, (unsigned char)letter, braces ? 3 : 1);
    return true;
}

static const struct {
    const char *name;
    enum math_environment environment;
} environments[] = {
    {"matrix", ENVIRONMENT_MATRIX},  {"pmatrix", ENVIRONMENT_MATRIX},     {"bmatrix", ENVIRONMENT_MATRIX},
    {"Bmatrix", ENVIRONMENT_MATRIX}, {"smallmatrix", ENVIRONMENT_MATRIX}, {"vmatrix", ENVIRONMENT_DETERMINANT},
    {"array", ENVIRONMENT_ARRAY},
};

static bool skip_columns(struct scanner *scanner)
{
    size_t at = 1;

    if (byte_at(scanner, 0) != '{')
        return false;
    while (byte_at(scanner, at) && strchr("lcr| ", byte_at(scanner, at)))
        at++;
    if (byte_at(scanner, at) != '}')
        return false;
    scanner->at += at + 1;
    return true;
}

static bool scan_environment(struct scanner *scanner, enum token_kind kind)
{
    size_t length = 1;

    while (isalpha((unsigned char)byte_at(scanner, length)))
        length++;
    if (byte_at(scanner, 0) != '{' || byte_at(scanner, length) != '}')
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(environments); i++) {
        if (!text_equals((struct text){rest(scanner).data + 1, length - 1}, environments[i].name))
            continue;
        add_token(scanner, kind, environments[i].environment, length + 1);
        return environments[i].environment != ENVIRONMENT_ARRAY || kind != TOKEN_BEGIN || skip_columns(scanner);
    }
    return false;
}

/* --- commands --- */

static bool scan_known(struct scanner *scanner, const struct word *word, size_t length)
{
    if (!word || word->kind == TOKEN_FORBIDDEN)
        return false;
    if (word->kind == TOKEN_NOTHING || word->kind == TOKEN_SPACE) {
        scanner->at += length;
        scanner->flags |= word->kind == TOKEN_SPACE ? TOKEN_SPACED : 0;
        return true;
    }
    add_token(scanner, word->kind, word->value, length);
    return true;
}

static bool scan_name(struct scanner *scanner)
{
    size_t length = 1;
    struct text name;

    while (isalpha((unsigned char)byte_at(scanner, length)))
        length++;
    name = (struct text){rest(scanner).data + 1, length - 1};
    for (size_t i = 0; i < ARRAY_LENGTH(text_commands); i++) {
        if (!text_equals(name, text_commands[i].name))
            continue;
        scanner->at += length;
        return scan_text(scanner, text_commands[i].mathematics);
    }
    if (text_equals(name, "mathbb")) {
        scanner->at += length;
        return scan_number_set(scanner);
    }
    if (text_equals(name, "begin") || text_equals(name, "end")) {
        scanner->at += length;
        return scan_environment(scanner, name.length_bytes == 5 ? TOKEN_BEGIN : TOKEN_FINISH);
    }
    return scan_known(scanner, math_find_command(name), length);
}

static bool scan_backslash(struct scanner *scanner)
{
    static const struct {
        char byte;
        uint8_t kind, value;
    } escapes[] = {{'\\', TOKEN_ROW, 0},  {'{', TOKEN_OPEN_SET, 0}, {'}', TOKEN_CLOSE_SET, 0}, {'%', TOKEN_PERCENT, 0},
                   {'$', TOKEN_MONEY, 0}, {',', TOKEN_SPACE, 0},    {';', TOKEN_SPACE, 0},     {':', TOKEN_SPACE, 0},
                   {'>', TOKEN_SPACE, 0}, {' ', TOKEN_SPACE, 0},    {'\n', TOKEN_SPACE, 0}};
    char byte = byte_at(scanner, 1);

    if (isalpha((unsigned char)byte))
        return scan_name(scanner);
    if (byte == '!') {
        scanner->at += 2;
        scanner->flags |= TOKEN_TIGHT;
        return true;
    }
    for (size_t i = 0; byte && i < ARRAY_LENGTH(escapes); i++) {
        struct word word = {"", escapes[i].kind, escapes[i].value};
        if (escapes[i].byte == byte)
            return scan_known(scanner, &word, 2);
    }
    return false;
}

/* --- signs --- */

static const struct word notations[] = {
    {"{,}", TOKEN_GROUP_COMMA, 0},
    {",\\!", TOKEN_GROUP_COMMA, 0},
    {"**", TOKEN_CARET, 0},
    {"<=", TOKEN_RELATION, MATH_LESS_EQUAL},
    {">=", TOKEN_RELATION, MATH_GREATER_EQUAL},
    {"(", TOKEN_OPEN_PAREN, 0},
    {")", TOKEN_CLOSE_PAREN, 0},
    {"{", TOKEN_OPEN_BRACE, 0},
    {"}", TOKEN_CLOSE_BRACE, 0},
    {"^", TOKEN_CARET, 0},
    {"+", TOKEN_PLUS, 0},
    {"-", TOKEN_MINUS, 0},
    {"/", TOKEN_SLASH, 0},
    {"*", TOKEN_TIMES, 0},
    {",", TOKEN_COMMA, 0},
    {".", TOKEN_POINT, 0},
    {"=", TOKEN_RELATION, MATH_EQUALS},
    {"<", TOKEN_RELATION, MATH_LESS},
    {">", TOKEN_RELATION, MATH_GREATER},
    {"_", TOKEN_SUBSCRIPT, 0},
    {"[", TOKEN_OPEN_SQUARE, 0},
    {"]", TOKEN_CLOSE_SQUARE, 0},
    {"|", TOKEN_BAR, 0},
    {";", TOKEN_SEMICOLON, 0},
    {":", TOKEN_COLON, 0},
    {"!", TOKEN_BANG, 0},
    {"'", TOKEN_PRIME, 0},
    {"&", TOKEN_AMPERSAND, 0},
    {"%", TOKEN_PERCENT, 0},
    {"$", TOKEN_MONEY, 0},
};

/* x² and x⁻¹ as if they had been written with braces: a run of them is one exponent. */
static bool scan_scripts(struct scanner *scanner)
{
    size_t length;
    bool above, still = false;
    const struct word *word = math_find_script(rest(scanner), &length, &above);

    if (!word)
        return false;
    add_token(scanner, above ? TOKEN_CARET : TOKEN_SUBSCRIPT, 0, 0);
    add_token(scanner, TOKEN_OPEN_BRACE, 0, 0);
    for (still = above; word && still == above;) {
        struct math_token *token = add_token(scanner, word->kind, word->value, length);
        token->run = token->kind == TOKEN_LETTER;
        word = left(scanner) ? math_find_script(rest(scanner), &length, &still) : NULL;
    }
    add_token(scanner, TOKEN_CLOSE_BRACE, 0, 0);
    return true;
}

static bool scan_wide_digit(struct scanner *scanner)
{
    const unsigned char *bytes = (const unsigned char *)rest(scanner).data;

    if (!scanner->reader->reading->wide_digits || left(scanner) < 3 || bytes[0] != 0xef || bytes[1] != 0xbc ||
        bytes[2] < 0x90 || bytes[2] > 0x99)
        return false;
    add_token(scanner, TOKEN_DIGIT, bytes[2] - 0x90u, 3);
    return true;
}

static bool scan_beyond_ascii(struct scanner *scanner)
{
    size_t length;
    const struct word *sign = math_find_sign(rest(scanner), &length);

    if (begins(rest(scanner), "\u00a0")) {
        scanner->at += 2;
        scanner->flags |= TOKEN_STICKY;
        return true;
    }
    return scan_scripts(scanner) || scan_wide_digit(scanner) || scan_known(scanner, sign, length);
}

static bool scan_one(struct scanner *scanner)
{
    char byte = byte_at(scanner, 0);

    if (is_space(byte)) {
        scanner->at++;
        scanner->flags |= TOKEN_SPACED;
        return true;
    }
    if (isdigit((unsigned char)byte)) {
        add_token(scanner, TOKEN_DIGIT, (unsigned)(byte - '0'), 1);
        return true;
    }
    if (isalpha((unsigned char)byte)) {
        scan_letters(scanner);
        return true;
    }
    if (byte == '\\')
        return scan_backslash(scanner);
    if (byte & 0x80)
        return scan_beyond_ascii(scanner);
    for (size_t i = 0; i < ARRAY_LENGTH(notations); i++)
        if (begins(rest(scanner), notations[i].name))
            return scan_known(scanner, &notations[i], strlen(notations[i].name));
    return false;
}

bool math_tokenize(struct math_reader *reader)
{
    struct scanner scanner = {.reader = reader};

    while (scanner.at < reader->text.length_bytes) {
        if (scan_one(&scanner))
            continue;
        reader->error.at_bytes = scanner.at;
        return false;
    }
    add_token(&scanner, TOKEN_END, 0, 0);
    return true;
}
