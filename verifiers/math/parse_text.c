/* Words: texts, whole answers of words. */
#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/words.h"

/* The whole word of letters that starts here; empty where none starts. */
struct text math_word_at(const struct math_reader *reader, size_t at)
{
    const struct math_token *token = &reader->tokens[at];

    if (token->kind != TOKEN_LETTER || token->flags & TOKEN_UPRIGHT ||
        (at && token[-1].kind == TOKEN_LETTER && is_adjacent(token) && token[-1].run == token->run + 1))
        return TEXT_LITERAL("");
    return (struct text){reader->text.data + token->at, token->run};
}

bool math_sees_word(const struct math_reader *reader, const char *word)
{
    return sees(reader, TOKEN_LETTER) && text_equals(math_word_at(reader, reader->at), word);
}

bool math_sees_in(const struct math_reader *reader)
{
    static const uint8_t sets[TOKEN_KINDS] = {[TOKEN_OPEN_PAREN] = true,
                                              [TOKEN_OPEN_SQUARE] = true,
                                              [TOKEN_OPEN_SET] = true,
                                              [TOKEN_NUMBER_SET] = true,
                                              [TOKEN_EMPTY_SET] = true};

    return math_sees_word(reader, "in") && sets[peek_at(reader, 2)->kind];
}

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

/* A single letter is a name: \text{A} is A. \text{n!} is none: nobody would know what the sign says. */
struct math_node *math_read_text(struct math_reader *reader)
{
    struct text words = math_trimmed(token_text(reader, peek(reader)), "");
    struct math_node *number = NULL;

    if (peek_at(reader, 1)->kind == TOKEN_SUBSCRIPT)
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
