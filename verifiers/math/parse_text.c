/* Words: texts, whole answers of words. */
#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/words.h"

/* --- text --- */

/* Lower case, single spaces, no punctuation at the end. */
static struct text normal_words(struct text words, char *out)
{
    size_t length = 0;

    for (size_t i = 0; i < words.length_bytes; i++) {
        bool escaped = words.data[i] == '\\' && i + 1 < words.length_bytes; /* \, and its like */
        i += escaped;
        if (!escaped && !math_is_space(words.data[i]))
            out[length++] = (char)tolower((unsigned char)words.data[i]);
        else if (length && out[length - 1] != ' ')
            out[length++] = ' ';
    }
    while (length && strchr(" .,;:!\\", out[length - 1]))
        length--;
    return (struct text){out, length};
}

struct math_node *math_make_words(struct math_reader *reader, struct text words)
{
    char *lower = math_allocate(reader->arena, words.length_bytes + 1);
    const struct word *known;

    if (!lower)
        return math_too_large(reader, "a smaller answer");
    words = normal_words(words, lower);
    known = math_find_word(words);
    if (words.length_bytes == 0 ||
        (known && !(known->kind == TOKEN_FUNCTION && (known->value == MATH_MIN || known->value == MATH_SEC))))
        return math_refuse(reader, "words");
    return words.length_bytes == 1 ? math_make_name(reader, words) : math_make_text(reader, MATH_TEXT, words);
}

static bool is_month(struct text word)
{
    static const char *const months[] = {"january", "february", "march",     "april",   "may",      "june",
                                         "july",    "august",   "september", "october", "november", "december"};
    char lower[MATH_WORD_BYTES];

    return math_is_listed(months, ARRAY_LENGTH(months), math_lowered(word, lower));
}

/* \text{June }20 is \text{June 20}; NULL without a refusal: no date. */
static struct math_node *read_date(struct math_reader *reader, struct text word)
{
    char date[MATH_WORD_BYTES];
    size_t digits = 0;
    int length;

    while (digits < 3 && peek_at(reader, 1 + digits)->kind == TOKEN_DIGIT)
        digits++;
    if (digits == 0 || digits > 2 || !is_month(word))
        return NULL;
    length = snprintf(date, sizeof date, "%.*s %.*s", (int)word.length_bytes, word.data, (int)digits,
                      reader->text.data + peek_at(reader, 1)->at);
    reader->at += 1 + digits;
    return math_make_words(reader, (struct text){date, (size_t)length});
}

/* A single letter is a name: \text{A} is A. \text{n!} is none: nobody would know what the sign says. */
struct math_node *math_read_text(struct math_reader *reader)
{
    struct text words = math_trimmed(token_text(reader, peek(reader)), "");
    struct math_node *number = read_date(reader, words);

    if (!number && reader->status == MATH_PARSED)
        number = math_read_combination(reader);

    if (!number && reader->status == MATH_PARSED && peek_at(reader, 1)->kind == TOKEN_SUBSCRIPT)
        number = math_read_digits_in_base(reader);
    if (number || reader->status != MATH_PARSED)
        return number;
    reader->at++;
    while (words.length_bytes > 1 && strchr(".,;:!", words.data[words.length_bytes - 1]))
        words.length_bytes--;
    if (words.length_bytes == 1 && isalpha((unsigned char)words.data[0]))
        return words.data[1] == '!' ? math_refuse(reader, "words") : math_make_name(reader, words);
    if (words.length_bytes == 0 || !isalpha((unsigned char)words.data[0]))
        return math_refuse(reader, "words");
    for (size_t i = 0; i < words.length_bytes; i++)
        if (strchr("^$%*{?", words.data[i]) || words.data[i] & 0x80) /* "odd?" is a guess */
            return math_refuse(reader, "words");
    return math_make_words(reader, words);
}

/* --- whole answers of words --- */

static bool is_word_byte(char byte)
{
    return isalpha((unsigned char)byte) || byte == '-' || byte == '\'';
}

bool math_is_answer_word(struct text word)
{
    static const char *const words[] = {"yes", "no", "true", "false", "none", "even", "odd", "undefined"};
    char lower[MATH_WORD_BYTES];

    return math_is_listed(words, ARRAY_LENGTH(words), math_lowered(word, lower));
}

/* Two words or more, one of them too long for variables, none of them mathematics. */
struct math_node *math_read_prose(struct math_reader *reader)
{
    struct text text = reader->text;
    size_t words = 0;
    size_t longest = 0;

    for (size_t i = 0; i < text.length_bytes; words++) {
        size_t start = i;
        const struct word *known;
        while (i < text.length_bytes && is_word_byte(text.data[i]))
            i++;
        if (i == start || !isalpha((unsigned char)text.data[start]) || !isalpha((unsigned char)text.data[i - 1]))
            return NULL;
        known = math_find_word((struct text){text.data + start, i - start});
        if (known && known->kind != TOKEN_AND && known->kind != TOKEN_OR)
            return NULL;
        if (!known && i - start > longest)
            longest = i - start;
        while (i < text.length_bytes && math_is_space(text.data[i]))
            i++;
    }
    if ((words < 2 || longest < 3) && !math_is_answer_word(text))
        return NULL;
    reader->at = reader->count - 1;
    return math_make_words(reader, text);
}
