/* Conditions behind a value: "for all real x", (k \in Z), "where k is an integer". One becomes a relation, k \in Z. */
#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/words.h"

#define PHRASE_WORDS_MAX 6

/* --- phrases --- */

/* Words that may open a condition, and those that say of which numbers its names are. */
static const char *const openings[] = {"for", "where", "with", "all", "any", "every", "each", "some"};
static const char *const fillings[] = {"is",     "are",   "an", "a",      "any",     "all",   "arbitrary",
                                       "values", "value", "of", "number", "numbers", "every", "and"};

static const struct {
    const char *word, *set;
} sets[] = {{"integer", "Z"}, {"integers", "Z"}, {"real", "R"}, {"reals", "R"}, {"natural", "N"}, {"naturals", "N"}};

/* The meaning of a phrase. */
struct phrase {
    bool read;       /* all of its words are known */
    bool opens;      /* "for all" */
    bool positive;   /* "positive integers" */
    const char *set; /* NULL: of none */
};

static void read_word(struct phrase *phrase, struct text word, size_t at)
{
    char lower[MATH_WORD_BYTES];

    word = math_lowered(word, lower);
    phrase->opens |= at == 0 && (text_equals(word, "for") || text_equals(word, "where") || text_equals(word, "with"));
    if (text_equals(word, "positive")) {
        phrase->positive = true;
        return;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(sets); i++) {
        if (!text_equals(word, sets[i].word))
            continue;
        phrase->read &= !phrase->set;
        phrase->set = sets[i].set;
        return;
    }
    phrase->read &= math_is_listed(openings, ARRAY_LENGTH(openings), word) ||
                    math_is_listed(fillings, ARRAY_LENGTH(fillings), word);
}

static struct phrase read_phrase(struct text text)
{
    struct phrase phrase = {.read = true};
    size_t words = 0;

    for (size_t at = 0; at < text.length_bytes && phrase.read;) {
        struct text word = {text.data + at, 0};
        while (at + word.length_bytes < text.length_bytes && isalpha((unsigned char)word.data[word.length_bytes]))
            word.length_bytes++;
        if (word.length_bytes)
            read_word(&phrase, word, words++);
        else
            phrase.read = math_is_space(text.data[at]) || text.data[at] == ',' || text.data[at] == '.';
        at += word.length_bytes ? word.length_bytes : 1;
    }
    phrase.read &= words > 0 && words <= PHRASE_WORDS_MAX;
    return phrase;
}

static struct phrase phrase_at(const struct math_reader *reader, size_t ahead)
{
    const struct math_token *token = peek_at(reader, ahead);

    return token->kind == TOKEN_TEXT ? read_phrase(token_text(reader, token)) : (struct phrase){.read = false};
}

static bool is_name(const struct math_token *token)
{
    return token->kind == TOKEN_GREEK || (token->kind == TOKEN_LETTER && token->run == 1);
}

/* (k \in Z), (n \ge 1) */
static bool is_bracketed(const struct math_reader *reader, size_t ahead)
{
    return peek_at(reader, ahead)->kind == TOKEN_OPEN_PAREN && is_name(peek_at(reader, ahead + 1)) &&
           peek_at(reader, ahead + 2)->kind == TOKEN_RELATION && peek_at(reader, ahead + 2)->value != MATH_EQUALS;
}

bool math_sees_condition(const struct math_reader *reader, size_t ahead)
{
    const struct math_token *token = peek_at(reader, ahead);
    struct phrase phrase = phrase_at(reader, ahead + (is_name(token) ? 1 : 0));

    if (token->kind == TOKEN_FOR_ALL || (ahead == 0 && is_bracketed(reader, 0))) /* behind a comma it is an element */
        return true;
    if (is_name(token)) /* k is an integer */
        return phrase.read && phrase.set && !phrase.opens;
    return phrase.read && phrase.opens;
}

/* --- reading --- */

static struct math_node *make_membership(struct math_reader *reader, struct math_node *name, const char *set)
{
    struct math_node *node =
        math_make_two(reader, MATH_RELATION, name, math_make_text(reader, MATH_NUMBER_SET, text_of(set)));

    if (node)
        node->relations = math_allocate(reader->arena, sizeof *node->relations);
    if (!node || !node->relations)
        return math_too_large(reader, "a smaller answer");
    node->relations[0] = MATH_IN;
    return node;
}

/* The set that a phrase names; the real numbers where it names none. */
static const char *set_of(const struct phrase *before, const struct phrase *after)
{
    const char *set = before->set ? before->set : after->set;

    if (set && (before->positive || after->positive))
        return set[0] == 'Z' ? "Z^{+}" : set[0] == 'R' ? "R^{+}" : "N^{+}";
    return set ? set : "R";
}

static struct math_node *read_named(struct math_reader *reader, const struct phrase *before)
{
    struct phrase after = {.read = false};
    struct math_node *name;

    if (!is_name(peek(reader)))
        return math_refuse(reader, "a name that the condition is of");
    if (peek_at(reader, 1)->kind == TOKEN_RELATION && !before->set)
        return math_read_relation(reader);
    name = math_read_name(reader);
    if (name && name->kind != MATH_NAME)
        return math_refuse(reader, "a name that the condition is of");
    if (sees(reader, TOKEN_TEXT)) {
        after = phrase_at(reader, 0);
        if (!after.read || after.opens || (before->set && after.set))
            return math_refuse(reader, "a condition");
        reader->at++;
    }
    return name ? make_membership(reader, name, set_of(before, &after)) : NULL;
}

struct math_node *math_read_condition(struct math_reader *reader)
{
    struct phrase phrase = {.read = false};
    bool bracket = is_bracketed(reader, 0);
    struct math_node *node;

    if (sees(reader, TOKEN_TEXT))
        phrase = phrase_at(reader, 0);
    reader->at += bracket || sees(reader, TOKEN_TEXT) || sees(reader, TOKEN_FOR_ALL);
    node = read_named(reader, &phrase);
    if (node && bracket && !take(reader, TOKEN_CLOSE_PAREN))
        return math_refuse(reader, "a closing bracket behind the condition");
    return node;
}
