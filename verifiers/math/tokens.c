/* Text to tokens, in one pass. A sign in no list makes the whole unparsed. */
#include "verifiers/math/scanner.h"

struct math_token *math_add_token(struct scanner *scanner, enum token_kind kind, unsigned value, size_t length)
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

    while (is_letter(byte_at(scanner, run)))
        run++;
    word = math_find_word((struct text){rest(scanner).data, run});
    if (!word && run > 2 && byte_at(scanner, run - 1) == 'x') {
        word = math_find_word((struct text){rest(scanner).data, run - 1}); /* sinx */
        word = word && word->kind == TOKEN_FUNCTION ? word : NULL;
        run -= word != NULL;
    }
    if (word) {
        scanner->flags |= TOKEN_ASCII;
        math_add_token(scanner, word->kind, word->value, run);
        return;
    }
    for (; run; run--)
        math_add_token(scanner, TOKEN_LETTER, (unsigned char)byte_at(scanner, 0), 1)->run = (uint16_t)run;
}

/* --- commands --- */

static bool scan_number_set(struct scanner *scanner)
{
    char letter;
    bool braces;

    while (math_is_space(byte_at(scanner, 0)))
        scanner->at++;
    braces = byte_at(scanner, 0) == '{';
    letter = byte_at(scanner, braces);
    if (!letter || !strchr("RNZQCEP", letter) || (braces && byte_at(scanner, 2) != '}'))
        return false;
    if (letter == 'E' || letter == 'P') { /* an expectation, a probability */
        math_add_token(scanner, TOKEN_LETTER, (unsigned char)letter, braces ? 3 : 1)->run = 1;
        return true;
    }
    math_add_token(scanner, TOKEN_NUMBER_SET, (unsigned char)letter, braces ? 3 : 1);
    return true;
}

static const char *const environments[] = {[ENVIRONMENT_ARRAY] = "array",
                                           [ENVIRONMENT_DETERMINANT] = "vmatrix",
                                           [ENVIRONMENT_CASES] = "cases",
                                           [ENVIRONMENT_ALIGNED] = "aligned",
                                           "matrix",
                                           "pmatrix",
                                           "bmatrix",
                                           "Bmatrix",
                                           "smallmatrix"};

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

    while (is_letter(byte_at(scanner, length)))
        length++;
    if (byte_at(scanner, 0) != '{' || byte_at(scanner, length) != '}')
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(environments); i++) {
        if (!text_equals((struct text){rest(scanner).data + 1, length - 1}, environments[i]))
            continue;
        math_add_token(scanner, kind, (unsigned)i, length + 1);
        return i != ENVIRONMENT_ARRAY || kind != TOKEN_BEGIN || skip_columns(scanner);
    }
    return false;
}

static bool scan_known(struct scanner *scanner, const struct word *word, size_t length)
{
    if (!word || word->kind == TOKEN_FORBIDDEN)
        return false;
    if (word->kind == TOKEN_GROUPED) {
        scanner->at += length;
        return math_scan_grouped(scanner, word->value);
    }
    if (word->kind == TOKEN_NOTHING || word->kind == TOKEN_SPACE || word->kind == TOKEN_SIZE) {
        scanner->at += length;
        while (word->kind == TOKEN_SIZE && math_is_space(byte_at(scanner, 0)))
            scanner->at++;
        /* \left. is a bracket that is not there; the point is none of a number. */
        if (word->kind == TOKEN_SIZE && byte_at(scanner, 0) == '.')
            return false;
        scanner->flags |= word->kind == TOKEN_SPACE ? TOKEN_SPACED : 0;
        return true;
    }
    math_add_token(scanner, word->kind, word->value, length);
    return true;
}

/* {1em}, not {-1em}, which writes one thing over another */
static bool skip_length(struct scanner *scanner)
{
    size_t length = 1;

    while (isalnum((unsigned char)byte_at(scanner, length)) || byte_at(scanner, length) == '.')
        length++;
    if (byte_at(scanner, 0) != '{' || byte_at(scanner, length) != '}')
        return false;
    scanner->at += length + 1;
    scanner->flags |= TOKEN_SPACED | TOKEN_STICKY;
    return true;
}

static bool scan_name(struct scanner *scanner)
{
    size_t length = 1;
    bool mathematics;
    struct text name;

    while (is_letter(byte_at(scanner, length)))
        length++;
    name = (struct text){rest(scanner).data + 1, length - 1};
    if (math_is_text_command(name, &mathematics)) {
        scanner->at += length;
        return math_scan_text(scanner, mathematics);
    }
    if (text_equals(name, "hspace")) {
        scanner->at += length;
        return skip_length(scanner);
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

/* [2pt] behind the sign of a row; 0: something else. */
static size_t row_space(const struct scanner *scanner)
{
    static const char *const units[] = {"pt]", "em]", "ex]", "mm]", "cm]", "in]"};
    size_t length = 1;

    if (byte_at(scanner, 0) != '[')
        return 0;
    while (byte_at(scanner, length) && strchr("-.0123456789", byte_at(scanner, length)))
        length++;
    for (size_t i = 0; i < ARRAY_LENGTH(units); i++)
        if (begins((struct text){rest(scanner).data + length, left(scanner) - length}, units[i]))
            return length + 3;
    return 0;
}

static bool scan_backslash(struct scanner *scanner)
{
    static const struct {
        char byte;
        uint8_t kind, value;
    } escapes[] = {{'{', TOKEN_OPEN_SET, 0}, {'}', TOKEN_CLOSE_SET, 0}, {'%', TOKEN_PERCENT, 0}, {'$', TOKEN_MONEY, 0},
                   {',', TOKEN_SPACE, 0},    {';', TOKEN_SPACE, 0},     {':', TOKEN_SPACE, 0},   {'>', TOKEN_SPACE, 0},
                   {' ', TOKEN_SPACE, 0},    {'\n', TOKEN_SPACE, 0},    {'|', TOKEN_BAR, 0}};
    char byte = byte_at(scanner, 1);

    if (is_letter(byte))
        return scan_name(scanner);
    if (byte == '!') {
        scanner->at += 2;
        scanner->flags |= TOKEN_TIGHT;
        return true;
    }
    if (byte == '\\') {
        math_add_token(scanner, TOKEN_ROW, 0, 2);
        scanner->at += row_space(scanner);
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
    {"{:}", TOKEN_COLON, 0},
    {"**", TOKEN_CARET, 0},
    {":=", TOKEN_RELATION, MATH_EQUALS},
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
    math_add_token(scanner, above ? TOKEN_CARET : TOKEN_SUBSCRIPT, 0, 0);
    math_add_token(scanner, TOKEN_OPEN_BRACE, 0, 0);
    for (still = above; word && still == above;) {
        struct math_token *token = math_add_token(scanner, word->kind, word->value, length);
        token->run = token->kind == TOKEN_LETTER;
        word = left(scanner) ? math_find_script(rest(scanner), &length, &still) : NULL;
    }
    math_add_token(scanner, TOKEN_CLOSE_BRACE, 0, 0);
    return true;
}

/* 千米/时 */
static bool scan_measure_words(struct scanner *scanner)
{
    const char *unit;
    size_t length = 0;
    size_t step = math_measure_word(rest(scanner), &unit);

    while (step) {
        struct text behind;
        size_t slash;
        length += step;
        slash = byte_at(scanner, length) == '/';
        behind = (struct text){rest(scanner).data + length + slash, left(scanner) - length - slash};
        step = math_measure_word(behind, &unit);
        length += step ? slash : 0;
    }
    if (length)
        math_add_token(scanner, TOKEN_TEXT, 0, length);
    return length > 0;
}

static bool scan_beyond_ascii(struct scanner *scanner)
{
    static const char *const spaces[] = {"\u00a0", "\u2009", "\u202f"};
    size_t length;
    const struct word *sign = math_find_sign(rest(scanner), &length);

    for (size_t i = 0; i < ARRAY_LENGTH(spaces); i++) {
        if (!begins(rest(scanner), spaces[i]))
            continue;
        scanner->at += strlen(spaces[i]);
        scanner->flags |= TOKEN_STICKY | TOKEN_SPACED;
        return true;
    }
    return scan_scripts(scanner) || math_scan_wide(scanner) || scan_measure_words(scanner) ||
           scan_known(scanner, sign, length);
}

/* 1,\!000, not (3,\!-2) */
static bool groups_digits(const struct scanner *scanner)
{
    size_t at = 3;
    size_t digits = 0;

    while (math_is_space(byte_at(scanner, at)))
        at++;
    while (isdigit((unsigned char)byte_at(scanner, at + digits)))
        digits++;
    return digits == 3;
}

/* 120{}^\circ: in front of an argument it would be one. */
static bool is_empty_group(const struct scanner *scanner)
{
    static const uint8_t before[TOKEN_KINDS] = {
        [TOKEN_DIGIT] = true, [TOKEN_LETTER] = true, [TOKEN_CLOSE_PAREN] = true, [TOKEN_PERCENT] = true};
    const struct math_reader *reader = scanner->reader;
    enum token_kind command = reader->count > 1 ? reader->tokens[reader->count - 2].kind : TOKEN_END;

    return begins(rest(scanner), "{}") && command != TOKEN_FRACTION && command != TOKEN_BINOMIAL &&
           (reader->count == 0 || before[reader->tokens[reader->count - 1].kind]);
}

static bool scan_notation(struct scanner *scanner)
{
    bool lone_comma = begins(rest(scanner), ",\\!") && !groups_digits(scanner);
    static const struct word comma = {",", TOKEN_COMMA, 0};
    static const struct word unequal = {"!=", TOKEN_RELATION, MATH_NOT_EQUAL};

    if (is_empty_group(scanner)) {
        scanner->at += 2;
        scanner->flags |= TOKEN_SPACED | TOKEN_STICKY;
        return true;
    }
    if (lone_comma)
        return scan_known(scanner, &comma, 1);
    if ((scanner->flags & TOKEN_SPACED) && begins(rest(scanner), "!=")) /* x != 3, not 5!=120 */
        return scan_known(scanner, &unequal, 2);
    for (size_t i = 0; i < ARRAY_LENGTH(notations); i++)
        if (begins(rest(scanner), notations[i].name))
            return scan_known(scanner, &notations[i], strlen(notations[i].name));
    return false;
}

/* 6.02 x 10^{23}, 4 x 12 */
static bool is_times(const struct scanner *scanner)
{
    const struct math_reader *reader = scanner->reader;

    return byte_at(scanner, 0) == 'x' && (scanner->flags & TOKEN_SPACED) && math_is_space(byte_at(scanner, 1)) &&
           isdigit((unsigned char)byte_at(scanner, 2)) && reader->count &&
           reader->tokens[reader->count - 1].kind == TOKEN_DIGIT;
}

bool math_scan_one(struct scanner *scanner)
{
    char byte = byte_at(scanner, 0);

    if (math_is_space(byte)) {
        scanner->at++;
        scanner->flags |= TOKEN_SPACED;
        return true;
    }
    if (isdigit((unsigned char)byte)) {
        math_add_token(scanner, TOKEN_DIGIT, (unsigned)(byte - '0'), 1);
        return true;
    }
    if (is_times(scanner)) {
        math_add_token(scanner, TOKEN_TIMES, 0, 1);
        return true;
    }
    if (is_letter(byte)) {
        scan_letters(scanner);
        return true;
    }
    if (byte == '$' && scanner->reader->dollars) {
        scanner->at++;
        scanner->flags |= TOKEN_SPACED;
        return true;
    }
    if (byte == '\\')
        return scan_backslash(scanner);
    if (byte & 0x80)
        return scan_beyond_ascii(scanner);
    return scan_notation(scanner);
}

bool math_tokenize(struct math_reader *reader)
{
    struct scanner scanner = {.reader = reader};

    while (scanner.at < reader->text.length_bytes) {
        if (math_scan_one(&scanner))
            continue;
        reader->error.at_bytes = scanner.at;
        return false;
    }
    math_add_token(&scanner, TOKEN_END, 0, 0);
    return true;
}
