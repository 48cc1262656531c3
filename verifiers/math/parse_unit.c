/* Units behind values. */
#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/unit_spellings.h"
#include "verifiers/math/words.h"

#define UNIT_BYTES 96
#define UNIT_WORDS_MAX 4

bool math_starts_forbidden_word(const struct math_reader *reader)
{
    return math_is_no_unit(math_word_at(reader, reader->at));
}

struct unit {
    const struct math_reading *reading;
    char bytes[UNIT_BYTES];
    size_t length, words;
    bool counted; /* a measure word stood there, which is no unit */
};

static struct text unit_text(const struct unit *unit)
{
    return (struct text){unit->bytes, unit->length};
}

static bool add_bytes(struct unit *unit, const char *bytes, size_t length)
{
    if (unit->length + length > UNIT_BYTES)
        return false;
    memcpy(unit->bytes + unit->length, bytes, length);
    unit->length += length;
    return true;
}

/* A unit, a thing that is counted, or a word of the task itself. Parts of a-b are known each. */
static bool is_known_word(const struct math_reading *reading, struct text word)
{
    const char *hyphen = word.length_bytes ? memchr(word.data, '-', word.length_bytes) : NULL;
    size_t before = hyphen ? (size_t)(hyphen - word.data) : 0;

    if (reading->any_unit || math_is_bare_unit(word) || math_is_unit_word(word) || math_is_counted(word) ||
        math_is_in_references(reading, word) || math_is_in_prompt(reading, word))
        return true;
    return hyphen && is_known_word(reading, (struct text){word.data, before}) &&
           is_known_word(reading, (struct text){hyphen + 1, word.length_bytes - before - 1});
}

static bool add_word(struct unit *unit, struct text word)
{
    bool joined = unit->length == 0 || strchr("/* ", unit->bytes[unit->length - 1]);

    if (++unit->words > UNIT_WORDS_MAX || math_is_no_unit(word) || !is_known_word(unit->reading, word))
        return false;
    return (joined || add_bytes(unit, " ", 1)) && add_bytes(unit, word.data, word.length_bytes);
}

static bool ends_in_letter(const struct unit *unit)
{
    return unit->length && isalpha((unsigned char)unit->bytes[unit->length - 1]);
}

/* 千米: kept as km. 0: of none. */
static size_t add_measure_word(struct unit *unit, struct text rest)
{
    const char *name;
    size_t length = math_measure_word(rest, &name);
    struct text word;
    const char *exponent;

    if (length == 0)
        return 0;
    word = text_of(name);
    exponent = word.length_bytes ? memchr(word.data, '^', word.length_bytes) : NULL;
    unit->counted = true;
    if (word.length_bytes == 0)
        return length;
    word.length_bytes = exponent ? (size_t)(exponent - word.data) : word.length_bytes;
    return add_word(unit, word) && (!exponent || add_bytes(unit, exponent, strlen(exponent))) ? length : 0;
}

/* ² */
static size_t add_raised_digit(struct unit *unit, struct text rest)
{
    size_t length = math_raised_digit(rest);
    bool above;
    const struct word *digit = length ? math_find_script(rest, &length, &above) : NULL;
    char exponent[] = {'^', (char)('0' + (digit ? digit->value : 0))};

    return digit && ends_in_letter(unit) && add_bytes(unit, exponent, sizeof exponent) ? length : 0;
}

/* One sign between the words of a unit; how many bytes it takes, 0: of none. */
static size_t add_unit_sign(struct unit *unit, struct text rest)
{
    bool exponent = unit->length && unit->bytes[unit->length - 1] == '^';
    bool braces = exponent && rest.data[0] == '{';
    size_t minus = exponent && rest.length_bytes > braces && rest.data[braces] == '-';

    if (exponent && rest.length_bytes > braces + minus && isdigit((unsigned char)rest.data[braces + minus]))
        return add_bytes(unit, rest.data + braces, minus + 1) ? 1 + minus + 2 * braces : 0;
    if (math_is_space(rest.data[0]) || rest.data[0] == '.')
        return 1;
    if (rest.data[0] & 0x80) {
        size_t length = add_measure_word(unit, rest);
        return length ? length : add_raised_digit(unit, rest);
    }
    if (rest.data[0] == '\\' && isalpha((unsigned char)rest.data[1]) && rest.data[1] != 'c')
        return 1; /* \meter\per\second */
    if (rest.data[0] == '\\')
        return rest.data[1] != 'c' ? 2 : add_bytes(unit, "*", 1) ? 5 : 0;
    if (rest.data[0] == '^' && !ends_in_letter(unit))
        return 0;
    return strchr("/^%*", rest.data[0]) && add_bytes(unit, rest.data, 1);
}

/* Between two letters. */
static bool is_hyphen(struct text text, size_t at)
{
    return at > 0 && text.data[at] == '-' && at + 1 < text.length_bytes && isalpha((unsigned char)text.data[at + 1]);
}

/* The words, slashes and exponents between the braces of a text. */
static bool add_text(struct unit *unit, struct text text)
{
    for (size_t i = 0; i < text.length_bytes;) {
        struct text rest = {text.data + i, text.length_bytes - i};
        struct text word = {rest.data, 0};
        size_t step;
        while (word.length_bytes < rest.length_bytes &&
               (isalpha((unsigned char)rest.data[word.length_bytes]) || is_hyphen(rest, word.length_bytes)))
            word.length_bytes++;
        step = word.length_bytes;
        if (step ? !add_word(unit, word) : (step = add_unit_sign(unit, rest)) == 0)
            return false;
        i += step;
    }
    return unit->length > 0 ? !strchr("/^*", unit->bytes[unit->length - 1]) : unit->counted;
}

static bool has_vowel(struct text word)
{
    for (size_t i = 0; i < word.length_bytes; i++)
        if (strchr("aeiouy", word.data[i]))
            return true;
    return false;
}

/* 12:30 pm */
static bool follows_time(const struct math_reader *reader, size_t at)
{
    return at > 3 && reader->tokens[at - 1].kind == TOKEN_DIGIT && reader->tokens[at - 2].kind == TOKEN_DIGIT &&
           reader->tokens[at - 3].kind == TOKEN_COLON;
}

static bool is_half_of_day(struct text word)
{
    return text_equals(word, "am") || text_equals(word, "pm") || text_equals(word, "AM") || text_equals(word, "PM");
}

/* 2 in is a length; x in [0, 1] is not. */
static bool is_inches(const struct math_reader *reader, size_t at)
{
    enum token_kind next = reader->tokens[at + 2].kind;

    return next == TOKEN_END || next == TOKEN_CARET || next == TOKEN_COMMA || next == TOKEN_CLOSE_PAREN;
}

/* May this bare word be a unit? 2ab is a product, 2 apples are not, 2 xyz is a product too. */
static bool is_bare_unit(const struct math_reader *reader, size_t at)
{
    struct text word = math_word_at(reader, at);
    bool spaced = reader->tokens[at].flags & TOKEN_SPACED;

    if (word.length_bytes < 2 || math_is_no_unit(word) || math_find_word(word))
        return false;
    if (is_half_of_day(word))
        return follows_time(reader, at);
    if (text_equals(word, "in"))
        return spaced && is_inches(reader, at);
    if (reader->reading->prose && spaced && word.length_bytes > 2)
        return true;
    if (math_is_bare_unit(word))
        return spaced || !text_equals(word, "ml");
    for (size_t i = 0; i < word.length_bytes; i++)
        if (!islower((unsigned char)word.data[i]))
            return false;
    return word.length_bytes > 3 && spaced && has_vowel(word);
}

/* 20 min, 30 sec: with nothing behind them they are no functions. */
static bool is_time_unit(const struct math_reader *reader)
{
    const struct math_token *token = peek(reader);
    enum token_kind next = peek_at(reader, 1)->kind;

    return token->kind == TOKEN_FUNCTION && token->flags & TOKEN_ASCII && token->flags & TOKEN_SPACED &&
           (token->value == MATH_MIN || token->value == MATH_SEC) &&
           (next == TOKEN_END || next == TOKEN_COMMA || next == TOKEN_CLOSE_PAREN || next == TOKEN_CLOSE_BRACE);
}

/* \frac{\text{m}}{\text{s}} */
static bool is_unit_fraction(const struct math_reader *reader)
{
    static const uint8_t shape[] = {TOKEN_FRACTION,   TOKEN_OPEN_BRACE, TOKEN_TEXT,       TOKEN_CLOSE_BRACE,
                                    TOKEN_OPEN_BRACE, TOKEN_TEXT,       TOKEN_CLOSE_BRACE};

    for (size_t i = 0; i < sizeof shape; i++)
        if (peek_at(reader, i)->kind != shape[i])
            return false;
    return true;
}

/* {\rm cm}, {\text{cm}} */
static bool is_braced_unit(const struct math_reader *reader)
{
    const struct math_token *inner = peek_at(reader, 1);

    if (!sees(reader, TOKEN_OPEN_BRACE))
        return false;
    if (inner->kind == TOKEN_TEXT)
        return peek_at(reader, 2)->kind == TOKEN_CLOSE_BRACE;
    /* A font stands between them: {cc} is a product. */
    return inner->kind == TOKEN_LETTER && reader->text.data[peek(reader)->at + 1] == '\\' &&
           peek_at(reader, 1 + inner->run)->kind == TOKEN_CLOSE_BRACE &&
           math_is_bare_unit(math_word_at(reader, reader->at + 1));
}

/* 12:30 p.m. */
static bool is_dotted_half(const struct math_reader *reader, size_t at)
{
    const struct math_token *token = reader->tokens + at;

    return follows_time(reader, at) && token->kind == TOKEN_LETTER && token->run == 1 && token->value &&
           strchr("apAP", token->value) && token[1].kind == TOKEN_POINT && token[2].kind == TOKEN_LETTER &&
           token[2].run == 1 && tolower(token[2].value) == 'm';
}

bool math_starts_unit(const struct math_reader *reader)
{
    enum token_kind before = reader->at ? reader->tokens[reader->at - 1].kind : TOKEN_END;

    if (before != TOKEN_DIGIT && before != TOKEN_CLOSE_BRACE && before != TOKEN_CLOSE_PAREN && before != TOKEN_VULGAR &&
        before != TOKEN_CONSTANT && before != TOKEN_POINT)
        return false;
    return is_unit_fraction(reader) || is_braced_unit(reader) || is_dotted_half(reader, reader->at) ||
           (before == TOKEN_DIGIT && is_time_unit(reader)) || is_bare_unit(reader, reader->at);
}

/* ^2, ^{-1} behind a unit's word. */
static bool take_exponent(struct math_reader *reader, struct unit *unit)
{
    bool braces, minus;
    char byte;

    if (!sees(reader, TOKEN_CARET) || math_sees_degree_mark(reader))
        return true;
    if (!ends_in_letter(unit)) /* of a measure word, which only counts */
        return false;
    reader->at++;
    braces = take(reader, TOKEN_OPEN_BRACE);
    minus = take(reader, TOKEN_MINUS);
    byte = (char)('0' + peek(reader)->value);
    if (!take(reader, TOKEN_DIGIT) || (braces && !take(reader, TOKEN_CLOSE_BRACE)))
        return false;
    return add_bytes(unit, minus ? "^-" : "^", 1 + minus) && add_bytes(unit, &byte, 1);
}

/* a.m. and p.m., which are no two words */
static bool add_half_of_day(struct unit *unit, struct text text)
{
    char half[] = "am";

    text = math_trimmed(text, "");
    half[0] = text.length_bytes ? (char)tolower((unsigned char)text.data[0]) : 0;
    return text.length_bytes >= 3 && text.length_bytes <= 4 && (half[0] == 'a' || half[0] == 'p') &&
           text.data[1] == '.' && tolower((unsigned char)text.data[2]) == 'm' &&
           (text.length_bytes == 3 || text.data[3] == '.') && add_bytes(unit, half, 2);
}

static bool take_unit_fraction(struct math_reader *reader, struct unit *unit)
{
    bool taken = add_text(unit, token_text(reader, peek_at(reader, 2))) && add_bytes(unit, "/", 1) &&
                 add_text(unit, token_text(reader, peek_at(reader, 5)));

    reader->at += 7;
    return taken;
}

static bool take_braced_unit(struct math_reader *reader, struct unit *unit)
{
    struct text word;

    reader->at++;
    word = sees(reader, TOKEN_TEXT) ? token_text(reader, peek(reader)) : math_word_at(reader, reader->at);
    reader->at += sees(reader, TOKEN_TEXT) ? 2 : 1 + peek(reader)->run;
    return add_text(unit, word) && take_exponent(reader, unit);
}

static bool take_dotted_half(struct math_reader *reader, struct unit *unit)
{
    const char half[] = {(char)tolower(peek(reader)->value), 'm'};

    reader->at += 3;
    take(reader, TOKEN_POINT);
    return add_bytes(unit, half, sizeof half);
}

static bool take_one(struct math_reader *reader, struct unit *unit)
{
    if (is_braced_unit(reader))
        return take_braced_unit(reader, unit);
    if (is_dotted_half(reader, reader->at))
        return take_dotted_half(reader, unit);
    if (is_unit_fraction(reader))
        return take_unit_fraction(reader, unit);
    if (is_time_unit(reader)) {
        reader->at++;
        return add_word(unit, token_text(reader, &reader->tokens[reader->at - 1]));
    }
    if (sees(reader, TOKEN_TEXT)) {
        struct text text = token_text(reader, peek(reader));
        reader->at++;
        return add_half_of_day(unit, text) || (add_text(unit, text) && take_exponent(reader, unit));
    }
    do {
        struct text word = math_word_at(reader, reader->at);
        if (!add_word(unit, word))
            return false;
        reader->at += word.length_bytes;
    } while (is_bare_unit(reader, reader->at));
    return take_exponent(reader, unit);
}

/* The sign that joins the next part of a unit, as it is kept; NULL: it is complete. */
static const char *joint(const struct math_reader *reader, size_t *ret_tokens)
{
    enum token_kind kind = peek(reader)->kind;
    bool sign = kind == TOKEN_SLASH || kind == TOKEN_TIMES;
    const struct math_token *next = peek_at(reader, sign);

    *ret_tokens = sign;
    if (next->kind != TOKEN_TEXT && !(next->kind == TOKEN_LETTER && sign))
        return NULL;
    return kind == TOKEN_SLASH ? "/" : kind == TOKEN_TIMES ? "*" : " ";
}

static bool ends_well(const struct unit *unit)
{
    size_t start = unit->length;

    while (start && isalpha((unsigned char)unit->bytes[start - 1]))
        start--;
    return math_may_end_unit((struct text){unit->bytes + start, unit->length - start});
}

static bool take_unit(struct math_reader *reader, struct unit *unit)
{
    size_t tokens = sees(reader, TOKEN_SLASH);
    const char *sign = tokens ? "/" : "";

    do {
        reader->at += tokens;
        /* A space is only between words: add_word() puts it there. */
        if (sign[0] && sign[0] != ' ' && (unit->length == 0 || !add_bytes(unit, sign, 1)))
            return false;
        if (!take_one(reader, unit))
            return false;
    } while ((sign = joint(reader, &tokens)));
    return ends_well(unit);
}

static struct math_node *with_unit(struct math_reader *reader, struct math_node *value, struct text unit)
{
    static const char *const percents[] = {"percent", "percents", "per cent", "pct", "%"};
    char lower[MATH_WORD_BYTES];
    struct text word = math_lowered(unit, lower);
    struct math_node *quantity;
    bool degrees = text_equals(word, "degrees") || text_equals(word, "degree") || text_equals(word, "deg");

    if (math_is_listed(percents, ARRAY_LENGTH(percents), word))
        return value->kind == MATH_PERCENT ? math_refuse(reader, "one percent sign")
                                           : math_make_one(reader, MATH_PERCENT, value);
    if (unit.length_bytes && memchr(unit.data, '%', unit.length_bytes))
        return math_refuse(reader, "a unit without a percent sign");
    if (degrees && value->kind != MATH_DEGREES)
        return math_make_one(reader, MATH_DEGREES, value);
    quantity = math_make_one(reader, MATH_QUANTITY, value);
    if (quantity)
        quantity->text = math_copy_text(reader->arena, unit);
    return quantity && quantity->text.data ? quantity : math_too_large(reader, "a smaller answer");
}

/* -20^\circ C: the degree sign belongs to the unit. */
static struct math_node *without_degree_sign(struct math_reader *reader, struct math_node *value)
{
    if (value->kind == MATH_NEGATE && value->children[0]->kind == MATH_DEGREES)
        return math_make_one(reader, MATH_NEGATE, value->children[0]->children[0]);
    return value->kind == MATH_DEGREES ? value->children[0] : NULL;
}

/* Celsius or Fahrenheit, bare or as text, behind a degree sign. */
bool math_sees_temperature(const struct math_reader *reader)
{
    struct text word = sees(reader, TOKEN_TEXT) ? math_trimmed(token_text(reader, peek(reader)), "")
                                                : math_word_at(reader, reader->at);
    enum token_kind before = reader->at ? reader->tokens[reader->at - 1].kind : TOKEN_END;
    bool degrees =
        before == TOKEN_DEGREE || before == TOKEN_CIRCLE ||
        (before == TOKEN_CLOSE_BRACE && reader->at > 1 &&
         (reader->tokens[reader->at - 2].kind == TOKEN_DEGREE || reader->tokens[reader->at - 2].kind == TOKEN_CIRCLE));

    return degrees && (sees(reader, TOKEN_TEXT) || sees(reader, TOKEN_LETTER)) &&
           (text_equals(word, "C") || text_equals(word, "F") || text_equals(word, "Celsius") ||
            text_equals(word, "Fahrenheit"));
}

static struct math_node *read_temperature(struct math_reader *reader, struct math_node *value)
{
    struct math_node *number = without_degree_sign(reader, value);
    bool celsius = sees(reader, TOKEN_TEXT) ? math_trimmed(token_text(reader, peek(reader)), "").data[0] == 'C'
                                            : peek(reader)->value == 'C';

    if (!number)
        return math_refuse(reader, "a number of degrees");
    reader->at += sees(reader, TOKEN_TEXT) ? 1 : peek(reader)->run;
    return with_unit(reader, number, text_of(celsius ? "\u00b0C" : "\u00b0F"));
}

/* \$5 dollars is \$5; \$5 per hour keeps both. */
static struct math_node *read_rate(struct math_reader *reader, struct math_node *quantity)
{
    struct unit unit = {.reading = reader->reading};
    struct text words;

    if (quantity->kind != MATH_QUANTITY || !add_bytes(&unit, quantity->text.data, quantity->text.length_bytes) ||
        !take_unit(reader, &unit))
        return math_refuse(reader, "one unit");
    words = (struct text){unit.bytes + quantity->text.length_bytes, unit.length - quantity->text.length_bytes};
    if (text_equals(words, " dollars") || text_equals(words, " dollar") || text_equals(words, " USD"))
        return quantity;
    if (!text_equals((struct text){words.data, words.length_bytes < 4 ? words.length_bytes : 4}, " per") &&
        words.data[0] != '/')
        return math_refuse(reader, "one unit");
    return with_unit(reader, quantity->children[0], unit_text(&unit));
}

static bool has_unit(const struct math_node *value)
{
    return value->kind == MATH_QUANTITY || value->kind == MATH_PERCENT;
}

static struct math_node *read_currency(struct math_reader *reader, struct math_node *value)
{
    const char *money = math_money[peek(reader)->value];

    reader->at++;
    return value->kind < MATH_QUANTITY && !has_unit(value) ? with_unit(reader, value, text_of(money))
                                                           : math_refuse(reader, "a number in front of the currency");
}

/* [-2,2] \text{ is the range}: at the very end. */
static bool is_label_behind(const struct math_reader *reader)
{
    static const char *const labels[] = {"is the range",        "is the answer", "is the solution", "is the domain",
                                         "is the solution set", "is the result", "is the value"};
    char lower[MATH_WORD_BYTES];

    return sees(reader, TOKEN_TEXT) && peek_at(reader, 1)->kind == TOKEN_END &&
           math_is_listed(labels, ARRAY_LENGTH(labels),
                          math_lowered(math_trimmed(token_text(reader, peek(reader)), "."), lower));
}

struct math_node *math_read_unit(struct math_reader *reader, struct math_node *value)
{
    struct unit unit = {.reading = reader->reading};
    bool slash =
        value && value->kind == MATH_QUANTITY && sees(reader, TOKEN_SLASH) && peek_at(reader, 1)->kind == TOKEN_TEXT;

    if (!value)
        return NULL;
    if (sees(reader, TOKEN_MONEY))
        return read_currency(reader, value);
    if (math_sees_temperature(reader))
        return read_temperature(reader, value);
    if ((!sees(reader, TOKEN_TEXT) && !math_starts_unit(reader) && !slash) || math_sees_condition(reader, 0))
        return value;
    if (is_label_behind(reader)) {
        reader->at++;
        return value;
    }
    if (value->kind == MATH_QUANTITY)
        return read_rate(reader, value);
    if ((value->kind > MATH_QUANTITY && value->kind != MATH_RATIO) || has_unit(value) || value->kind == MATH_DEGREES)
        return math_refuse(reader, "a number in front of the unit");
    if (!take_unit(reader, &unit) || (value->kind == MATH_RATIO && !is_half_of_day(unit_text(&unit))))
        return math_refuse(reader, "a unit");
    return unit.length || !unit.counted ? with_unit(reader, value, unit_text(&unit)) : value;
}
