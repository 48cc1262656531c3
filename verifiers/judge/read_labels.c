/* Labels in running text: words for yes_no and letter, texts in brackets. */
#include "verifiers/judge/read_private.h"
#include "verifiers/text/characters.h"

/* --- words --- */

/* Scripts that are written without spaces, or whose particles stick to a foreign word: their letters end a Latin word, as
 * punctuation does. */
static const struct {
    uint32_t first, last;
} unspaced[] = {
    {0xe00, 0xeff},                         /* Thai, Lao */
    {0x1000, 0x109f},                       /* Myanmar */
    {0x1100, 0x11ff},   {0x1780, 0x17ff},   /* Hangul; Khmer */
    {0x2e80, 0x9fff},                       /* Han, kana, Bopomofo */
    {0xa960, 0xa97f},   {0xac00, 0xd7ff},   /* Hangul */
    {0xf900, 0xfaff},                       /* Han */
    {0xff66, 0xffdc},                       /* narrow kana and Hangul */
    {0x1b000, 0x1b16f}, {0x20000, 0x3ffff}, /* kana; Han */
};

static bool is_in_a_word(uint32_t point)
{
    for (size_t i = 0; i < ARRAY_LENGTH(unspaced) && point >= unspaced[i].first; i++)
        if (point <= unspaced[i].last)
            return false;
    return character_classes(point) & (CHARACTER_LETTER | CHARACTER_NUMBER);
}

/* The next word, taken off with what stands before it; false: none. */
static bool next_word(struct text *rest, struct text *ret_word)
{
    const char *start = rest->data;
    const char *end = rest->data;

    while (rest->length_bytes > 0) {
        const char *before = rest->data;
        bool inside = is_in_a_word(character_take(rest));
        if (inside && end == start)
            start = before;
        if (!inside && end > start)
            break;
        end = inside ? rest->data : (start = rest->data);
    }
    *ret_word = (struct text){start, (size_t)(end - start)};
    return end > start;
}

static char lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte + 32) : byte;
}

static bool is_label(struct text word, struct text name, bool any_case)
{
    if (word.length_bytes != name.length_bytes)
        return false;
    for (size_t i = 0; i < word.length_bytes; i++)
        if ((any_case ? lower(word.data[i]) : word.data[i]) != name.data[i])
            return false;
    return true;
}

/* Its label, or their count. */
static size_t label_of(const struct judge_rule *rule, struct text word)
{
    size_t label = 0;

    while (label < rule->label_count && !is_label(word, rule->labels[label].name, rule->kind == JUDGE_YES_NO))
        label++;
    return label;
}

void judge_search_words(struct judge_search *search, struct text text)
{
    const struct judge_rule *rule = search->rule;
    struct text word;

    while (next_word(&text, &word)) {
        size_t label = label_of(rule, word);
        if (label < rule->label_count)
            judge_search_add_label(search, label);
        else if (rule->position == JUDGE_LAST_WORD)
            judge_search_add(search, NULL);
    }
}

/* --- brackets --- */

static size_t label_at(const struct judge_rule *rule, struct text rest)
{
    size_t label = 0;

    for (; label < rule->label_count; label++) {
        struct text name = rule->labels[label].name;
        if (rest.length_bytes >= name.length_bytes && memcmp(rest.data, name.data, name.length_bytes) == 0)
            break;
    }
    return label;
}

void judge_search_brackets(struct judge_search *search, struct text text)
{
    const char *end = text.data + text.length_bytes;
    const char *at = text.data;

    while (at < end && (at = memchr(at, '[', (size_t)(end - at)))) {
        size_t label = label_at(search->rule, (struct text){at, (size_t)(end - at)});
        if (label < search->rule->label_count)
            judge_search_add_label(search, label);
        at++;
    }
}
