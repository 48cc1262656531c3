/* The text in front of a value: labels, which say nothing, and left sides that only name what was asked for.
 *
 * \angle ABC, P(A \mid B), \min f(x), (f \circ g)(2), \text{Area of } \triangle ABC: one name, as it is written. Never with a
 * number or sign of its own outside of brackets, which could make another value of it. */
#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/words.h"

#define SUBJECT_BYTES 160
#define SUBJECT_TOKENS_MAX 64

/* --- labels --- */

/* clang-format off */
static const char *const label_words[] = {
    "answer", "ans", "final", "the", "is", "so", "thus", "hence", "therefore", "then", "value", "result", "solution",
    "solutions", "vertex", "center", "centre", "focus", "point", "coordinates", "minimum", "maximum", "min", "max",
    "radius", "diameter", "area", "perimeter", "volume", "length", "width", "height", "distance", "slope", "sum",
    "probability", "total", "number", "of", "ways", "range", "domain", "median", "mean", "average", "we", "get",
    "have", "required", "smallest", "largest", "possible", "values", "equation", "function", "integer", "angle",
};
/* clang-format on */

static bool is_label_word(const struct math_reader *reader, struct text word)
{
    char lower[MATH_WORD_BYTES];

    return math_is_listed(label_words, ARRAY_LENGTH(label_words), math_lowered(word, lower)) ||
           (word.length_bytes > 2 && !math_is_no_unit(word) && math_is_in_prompt(reader->reading, word) &&
            !math_is_in_references(reader->reading, word));
}

/* Words of the list and punctuation, at least one word. */
static bool is_label(const struct math_reader *reader, struct text text)
{
    size_t words = 0;

    for (size_t at = 0; at < text.length_bytes;) {
        struct text word = {text.data + at, 0};
        while (at + word.length_bytes < text.length_bytes && isalpha((unsigned char)word.data[word.length_bytes]))
            word.length_bytes++;
        if (word.length_bytes ? !is_label_word(reader, word) : !strchr(" .,:~", text.data[at]))
            return false;
        words += word.length_bytes > 0;
        at += word.length_bytes ? word.length_bytes : 1;
    }
    return words > 0;
}

/* Answer: 5. Words of letters up to a colon; how many tokens, 0: something else. */
static size_t bare_label_tokens(const struct math_reader *reader)
{
    size_t tokens = 0;
    struct text word;

    while ((word = math_word_at(reader, reader->at + tokens)).length_bytes > 2 && is_label_word(reader, word))
        tokens += word.length_bytes;
    return tokens && peek_at(reader, tokens)->kind == TOKEN_COLON ? tokens + 1 : 0;
}

static size_t label_tokens(const struct math_reader *reader)
{
    enum token_kind next = peek_at(reader, 1)->kind;

    if (next == TOKEN_END)
        return 0;
    if (sees(reader, TOKEN_THEREFORE) || (sees(reader, TOKEN_RELATION) && peek(reader)->value == MATH_EQUALS))
        return 1;
    if (sees(reader, TOKEN_LETTER))
        return bare_label_tokens(reader);
    if (!sees(reader, TOKEN_TEXT) || next == TOKEN_RELATION || next == TOKEN_SUBSCRIPT || next == TOKEN_OPEN_BRACE ||
        next == TOKEN_HEAD || next == TOKEN_CARET || !is_label(reader, token_text(reader, peek(reader))))
        return 0;
    return next == TOKEN_COLON ? 2 : 1;
}

void math_skip_labels(struct math_reader *reader)
{
    size_t tokens;

    while ((tokens = label_tokens(reader)) > 0)
        reader->at += tokens;
}

/* --- names of more than one word or sign --- */

/* Words that make another value of what they stand at. */
static bool rescales(struct text word)
{
    static const char *const fine[] = {"the", "is", "of", "a", "an", "least", "most", "minimum", "maximum",
                                       "e",   "p",  "x",  "n", "in", "to",    "from", "point"};
    static const char *const others[] = {"square", "cube", "opposite", "complement", "supplement", "shifted"};
    char lower[MATH_WORD_BYTES];
    struct text folded = math_lowered(word, lower);

    if (math_is_listed(fine, ARRAY_LENGTH(fine), folded))
        return false;
    return math_is_no_unit(word) || !math_may_end_unit(word) || math_is_listed(others, ARRAY_LENGTH(others), folded);
}

static bool is_fine_text(struct text text)
{
    for (size_t at = 0; at < text.length_bytes;) {
        struct text word = {text.data + at, 0};
        while (at + word.length_bytes < text.length_bytes && isalpha((unsigned char)word.data[word.length_bytes]))
            word.length_bytes++;
        if (word.length_bytes ? rescales(word) : !strchr(" ~-", text.data[at]))
            return false;
        at += word.length_bytes ? word.length_bytes : 1;
    }
    return true;
}

static enum token_kind closing_of(enum token_kind opening)
{
    static const uint8_t closings[TOKEN_KINDS] = {[TOKEN_OPEN_PAREN] = TOKEN_CLOSE_PAREN,
                                                  [TOKEN_OPEN_SQUARE] = TOKEN_CLOSE_SQUARE,
                                                  [TOKEN_OPEN_BRACE] = TOKEN_CLOSE_BRACE,
                                                  [TOKEN_OPEN_SET] = TOKEN_CLOSE_SET};

    return closings[opening];
}

/* Arguments that may stand between the brackets of a subject. */
static bool may_be_inside(const struct math_reader *reader, const struct math_token *token)
{
    static const uint8_t fine[TOKEN_KINDS] = {
        [TOKEN_DIGIT] = true,       [TOKEN_LETTER] = true,       [TOKEN_GREEK] = true,      [TOKEN_PLUS] = true,
        [TOKEN_MINUS] = true,       [TOKEN_TIMES] = true,        [TOKEN_SLASH] = true,      [TOKEN_COMMA] = true,
        [TOKEN_POINT] = true,       [TOKEN_PRIME] = true,        [TOKEN_CARET] = true,      [TOKEN_SUBSCRIPT] = true,
        [TOKEN_OPEN_BRACE] = true,  [TOKEN_CLOSE_BRACE] = true,  [TOKEN_OPEN_PAREN] = true, [TOKEN_CLOSE_PAREN] = true,
        [TOKEN_OPEN_SQUARE] = true, [TOKEN_CLOSE_SQUARE] = true, [TOKEN_OPEN_SET] = true,   [TOKEN_CLOSE_SET] = true,
        [TOKEN_MID] = true,         [TOKEN_BAR] = true,          [TOKEN_RELATION] = true,   [TOKEN_CIRCLE] = true,
        [TOKEN_HEAD] = true,
    };

    return token->kind == TOKEN_TEXT ? is_fine_text(token_text(reader, token)) : fine[token->kind];
}

/* Behind the bracket that opens `ahead`; 0: nothing closes it, it is too long, or something else is in it. *ret_odd: the
 * grammar cannot read what is in it. */
static size_t behind_bracket(const struct math_reader *reader, size_t ahead, bool *ret_odd)
{
    enum token_kind closings[8];
    size_t depth = 0;

    for (; ahead < SUBJECT_TOKENS_MAX; ahead++) {
        enum token_kind kind = peek_at(reader, ahead)->kind;
        if (!may_be_inside(reader, peek_at(reader, ahead)))
            return 0;
        if (closing_of(kind) && depth < ARRAY_LENGTH(closings))
            closings[depth++] = closing_of(kind);
        else if (closing_of(kind))
            return 0;
        else if (depth && kind == closings[depth - 1] && --depth == 0)
            return ahead + 1;
        *ret_odd |= kind == TOKEN_MID || kind == TOKEN_BAR || kind == TOKEN_RELATION;
    }
    return 0;
}

struct subject {
    size_t tokens;
    bool odd;  /* the grammar could not read it */
    bool name; /* there is more than a sign */
};

/* The part of a subject that begins at its end. false: none does. */
static bool add_part(const struct math_reader *reader, struct subject *subject)
{
    const struct math_token *token = peek_at(reader, subject->tokens);
    enum token_kind next = peek_at(reader, subject->tokens + 1)->kind;
    bool letter = token->kind == TOKEN_LETTER || token->kind == TOKEN_GREEK;
    bool bracket = token->kind == TOKEN_OPEN_PAREN || token->kind == TOKEN_OPEN_SQUARE;
    bool many = token->kind == TOKEN_FUNCTION && token->value >= MATH_GCD && token->value <= MATH_MAX;

    if (token->kind == TOKEN_SUBSCRIPT && closing_of(next)) {
        subject->tokens = behind_bracket(reader, subject->tokens + 1, &(bool){false});
        return subject->tokens > 0;
    }
    if (bracket || (token->kind == TOKEN_OPEN_SET && subject->odd)) {
        subject->odd |= token->kind == TOKEN_OPEN_SQUARE;
        subject->tokens = behind_bracket(reader, subject->tokens, &subject->odd);
        return subject->tokens > 0;
    }
    if (token->kind == TOKEN_TEXT && !is_fine_text(token_text(reader, token)))
        return false;
    if (!letter && !many && token->kind != TOKEN_TEXT && token->kind != TOKEN_HEAD && token->kind != TOKEN_PRIME &&
        token->kind != TOKEN_SUBSCRIPT && token->kind != TOKEN_DETERMINANT)
        return false;
    subject->odd |= token->kind == TOKEN_HEAD || (many && next != TOKEN_OPEN_PAREN && next != TOKEN_OPEN_SET) ||
                    (token->kind == TOKEN_DETERMINANT && next != TOKEN_BEGIN) ||
                    (token->kind == TOKEN_TEXT && next != TOKEN_RELATION);
    subject->name |= letter || many || token->kind == TOKEN_TEXT || token->kind == TOKEN_HEAD;
    subject->tokens += 1 + (token->kind == TOKEN_SUBSCRIPT);
    return true;
}

/* May a subject begin with it? A letter only if a probability or expectation does. */
static bool begins_subject(const struct math_reader *reader)
{
    const struct math_token *token = peek(reader);
    enum token_kind next = peek_at(reader, 1)->kind;

    if (token->kind == TOKEN_LETTER)
        return token->run == 1 && strchr("PEVD", token->value) &&
               (next == TOKEN_OPEN_PAREN || next == TOKEN_OPEN_SQUARE);
    if (token->kind == TOKEN_OPEN_PAREN)
        return next == TOKEN_LETTER && peek_at(reader, 2)->kind == TOKEN_CIRCLE;
    if (token->kind == TOKEN_FUNCTION)
        return token->value >= MATH_GCD && token->value <= MATH_MAX && next != TOKEN_OPEN_PAREN &&
               next != TOKEN_OPEN_SET;
    return token->kind == TOKEN_HEAD || token->kind == TOKEN_TEXT || token->kind == TOKEN_DETERMINANT;
}

/* How many tokens stand before the equals sign; 0: the grammar reads it, or it is no name. */
static size_t subject_tokens(const struct math_reader *reader)
{
    struct subject subject = {.tokens = 0};

    if (!begins_subject(reader))
        return 0;
    subject.name = subject.odd = sees(reader, TOKEN_OPEN_PAREN); /* (f \circ g)(2) */
    while (subject.tokens < SUBJECT_TOKENS_MAX) {
        const struct math_token *token = peek_at(reader, subject.tokens);
        if (token->kind == TOKEN_RELATION)
            return token->value == MATH_EQUALS && subject.odd && subject.name ? subject.tokens : 0;
        if (!add_part(reader, &subject))
            return 0;
    }
    return 0;
}

/* Two letters that are no part of one word are kept apart: s i n is no sine. */
static bool begins_word(const struct math_token *token)
{
    return token[-1].kind != TOKEN_LETTER || token[-1].run != token->run + 1 || !is_adjacent(token);
}

/* A token in one spelling, whatever its layout was. */
static void write_token(const struct math_reader *reader, const struct math_token *token, struct buffer *out)
{
    static const char *const spellings[TOKEN_KINDS] = {
        [TOKEN_OPEN_BRACE] = "{",
        [TOKEN_CLOSE_BRACE] = "}",
        [TOKEN_OPEN_PAREN] = "(",
        [TOKEN_CLOSE_PAREN] = ")",
        [TOKEN_CARET] = "^",
        [TOKEN_SUBSCRIPT] = "_",
        [TOKEN_MID] = "\\mid ",
        [TOKEN_BAR] = "\\mid ",
        [TOKEN_MINUS] = "-",
        [TOKEN_PRIME] = "'",
        [TOKEN_COMMA] = ",",
        [TOKEN_PLUS] = "+",
        [TOKEN_TIMES] = "\\cdot ",
        [TOKEN_SLASH] = "/",
        [TOKEN_POINT] = ".",
        [TOKEN_CIRCLE] = "\\circ ",
        [TOKEN_DETERMINANT] = "\\det ",
    };
    static const char *const names[MATH_FUNCTIONS] = {
        [MATH_GCD] = "\\gcd ", [MATH_LCM] = "\\lcm ", [MATH_MIN] = "\\min ", [MATH_MAX] = "\\max "};
    struct text text = token_text(reader, token);
    const char digit[] = {(char)('0' + token->value), ' '};

    if (token->kind == TOKEN_HEAD || token->kind == TOKEN_GREEK) {
        buffer_append_format(out, "%s ",
                             token->kind == TOKEN_HEAD ? math_heads[token->value] : math_greek[token->value]);
    } else if (token->kind == TOKEN_FUNCTION) {
        buffer_append_string(out, names[token->value] ? names[token->value] : "");
    } else if (token->kind == TOKEN_LETTER) {
        buffer_append_string(out, out->length_bytes && isalpha((unsigned char)out->data[out->length_bytes - 1]) &&
                                          begins_word(token)
                                      ? " "
                                      : "");
        buffer_append(out, (const char *)&token->value, 1);
    } else if (token->kind == TOKEN_DIGIT) {
        buffer_append(out, digit, 1);
    } else if (token->kind == TOKEN_TEXT) {
        text = math_trimmed(text, "");
        buffer_append_format(out, "\\text{%.*s}", (int)text.length_bytes, text.data);
    } else if (spellings[token->kind]) {
        buffer_append_string(out, spellings[token->kind]);
    } else { /* brackets and relations, which are spelled in many ways */
        buffer_append(out, text.data, text.length_bytes);
        buffer_append_string(out, " ");
    }
}

struct math_node *math_read_subject(struct math_reader *reader)
{
    size_t tokens = subject_tokens(reader);
    _cleanup_buffer_ struct buffer name;

    buffer_init(&name, SUBJECT_BYTES);
    for (size_t i = 0; i < tokens; i++)
        write_token(reader, peek_at(reader, i), &name);
    while (name.length_bytes && name.data[name.length_bytes - 1] == ' ')
        name.length_bytes--;
    if (tokens == 0 || name.failed)
        return NULL;
    reader->at += tokens;
    return math_make_text(reader, MATH_NAME, buffer_text(&name));
}
