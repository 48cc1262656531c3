/* Words: equality only, never a part of a sentence. */
#include "verifiers/math/comparison.h"

#include "server/base/cleanup.h"

bool math_is_word(const struct math_node *node)
{
    return node->kind == MATH_TEXT || node->kind == MATH_NAME || (node->flags & MATH_WORD);
}

/* \text{(A)} is the choice A. */
static struct text without_brackets(struct text text)
{
    if (text.length_bytes == 3 && text.data[0] == '(' && text.data[2] == ')')
        return (struct text){text.data + 1, 1};
    return text;
}

static char lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte + 32) : byte;
}

static bool same_fold(struct text left, struct text right)
{
    if (left.length_bytes != right.length_bytes)
        return false;
    for (size_t i = 0; i < left.length_bytes; i++)
        if (lower(left.data[i]) != lower(right.data[i]))
            return false;
    return true;
}

/* Bare letters that nobody means as a product. */
static bool is_common(struct text word)
{
    static const char *const words[] = {"yes",  "no",   "true",      "false", "even",   "odd",
                                        "none", "both", "undefined", "never", "always", "neither"};

    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        if (same_fold(word, text_of(words[i])))
            return true;
    return false;
}

bool math_same_words(const struct math_node *reference, const struct math_node *answer)
{
    struct text wanted = without_brackets(reference->text);
    struct text given = without_brackets(answer->text);
    bool prose = reference->kind == MATH_TEXT || answer->kind == MATH_TEXT || is_common(wanted);

    return prose ? same_fold(wanted, given) : text_same(wanted, given);
}

bool math_denies(struct text words)
{
    static const char *const denials[] = {"not", "no", "never", "or", "nor", "neither", "isn't", "without", "wrong"};
    const char *end = words.data + words.length_bytes;

    for (const char *at = words.data; at < end;) {
        const char *space = memchr(at, ' ', (size_t)(end - at));
        struct text word = {at, (size_t)((space ? space : end) - at)};
        for (size_t i = 0; i < ARRAY_LENGTH(denials); i++)
            if (same_fold(word, text_of(denials[i])))
                return true;
        at += word.length_bytes + 1;
    }
    return false;
}

static const struct phrase {
    const char *words;
    enum math_kind kind;
    const char *text;
} phrases[] = {
    {"no solution", MATH_SET, ""},
    {"no solutions", MATH_SET, ""},
    {"empty set", MATH_SET, ""},
    {"the empty set", MATH_SET, ""},
    {"all real numbers", MATH_NUMBER_SET, "R"},
    {"all reals", MATH_NUMBER_SET, "R"},
    {"all integers", MATH_NUMBER_SET, "Z"},
};

const struct math_node *math_said(struct comparison *comparison, const struct math_node *node)
{
    for (size_t i = 0; node->kind == MATH_TEXT && i < ARRAY_LENGTH(phrases); i++) {
        struct math_node *said;
        if (!text_equals(node->text, phrases[i].words))
            continue;
        said = math_node_create(comparison->rules->arena, phrases[i].kind, 0);
        if (said)
            said->text = text_of(phrases[i].text);
        return said;
    }
    return node;
}
