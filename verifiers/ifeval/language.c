#include "verifiers/ifeval/language.h"

#include "verifiers/ifeval/language_private.h"
#include "verifiers/ifeval/parts.h"

#include <pthread.h>

/* --- scripts --- */

static const struct {
    uint32_t first, last;
    enum script script;
} blocks[] = {
    {0x41, 0x24f, SCRIPT_LATIN},      {0x250, 0x2af, SCRIPT_LATIN},    {0x370, 0x3ff, SCRIPT_GREEK},
    {0x400, 0x52f, SCRIPT_CYRILLIC},  {0x590, 0x5ff, SCRIPT_HEBREW},   {0x600, 0x6ff, SCRIPT_ARABIC},
    {0x750, 0x77f, SCRIPT_ARABIC},    {0x8a0, 0x8ff, SCRIPT_ARABIC},   {0x900, 0x97f, SCRIPT_DEVANAGARI},
    {0x980, 0x9ff, SCRIPT_BENGALI},   {0xa00, 0xa7f, SCRIPT_GURMUKHI}, {0xa80, 0xaff, SCRIPT_GUJARATI},
    {0xb80, 0xbff, SCRIPT_TAMIL},     {0xc00, 0xc7f, SCRIPT_TELUGU},   {0xc80, 0xcff, SCRIPT_KANNADA},
    {0xd00, 0xd7f, SCRIPT_MALAYALAM}, {0xe00, 0xe7f, SCRIPT_THAI},     {0x1100, 0x11ff, SCRIPT_HANGUL},
    {0x1e00, 0x1eff, SCRIPT_LATIN},   {0x1f00, 0x1fff, SCRIPT_GREEK},  {0x3040, 0x30ff, SCRIPT_KANA},
    {0x3130, 0x318f, SCRIPT_HANGUL},  {0x31f0, 0x31ff, SCRIPT_KANA},   {0x3400, 0x9fff, SCRIPT_HAN},
    {0xac00, 0xd7af, SCRIPT_HANGUL},  {0xf900, 0xfaff, SCRIPT_HAN},    {0xfb1d, 0xfb4f, SCRIPT_HEBREW},
    {0xfb50, 0xfdff, SCRIPT_ARABIC},  {0xfe70, 0xfeff, SCRIPT_ARABIC}, {0xff21, 0xff5a, SCRIPT_LATIN},
    {0xff66, 0xff9f, SCRIPT_KANA},    {0x20000, 0x3134f, SCRIPT_HAN},
};

/* *hint: the block of the letter before, which is nearly always this one's, too. */
static enum script script_of(uint32_t point, size_t *hint)
{
    if (point >= blocks[*hint].first && point <= blocks[*hint].last)
        return blocks[*hint].script;
    for (size_t i = 0; i < ARRAY_LENGTH(blocks); i++) {
        if (point < blocks[i].first || point > blocks[i].last)
            continue;
        *hint = i;
        return blocks[i].script;
    }
    return SCRIPT_OTHER;
}

struct letters {
    size_t all;
    size_t of[SCRIPTS];
};

/* Japanese is written in kana and Chinese characters. Where a tenth of both is kana, both are. */
static void count_letters(struct text text, struct letters *ret_letters)
{
    size_t hint = 0;

    *ret_letters = (struct letters){0};
    while (text.length_bytes) {
        uint32_t point = character_take(&text);
        if (!(character_classes(point) & CHARACTER_LETTER))
            continue;
        ret_letters->all++;
        ret_letters->of[script_of(point, &hint)]++;
    }
    if (ret_letters->of[SCRIPT_KANA] * 9 < ret_letters->of[SCRIPT_HAN])
        return;
    ret_letters->of[SCRIPT_KANA] += ret_letters->of[SCRIPT_HAN];
    ret_letters->of[SCRIPT_HAN] = 0;
}

/* --- words --- */

#define SLOTS 4096 /* three times as many as words */
#define MARKS 0x2000

static struct {
    struct text word;
    uint64_t languages; /* a bit each */
} lexicon[SLOTS];
static uint64_t marks[MARKS]; /* of a letter: likewise */
static pthread_once_t lexicon_once = PTHREAD_ONCE_INIT;

static size_t slot_of(struct text word)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < word.length_bytes; i++)
        hash = (hash ^ (unsigned char)word.data[i]) * 16777619u;
    for (hash %= SLOTS; lexicon[hash].word.data && !text_same(lexicon[hash].word, word); hash = (hash + 1) % SLOTS)
        ;
    return hash;
}

static void fill_language(size_t index)
{
    struct text words = text_of(language_rows[index].words);
    struct text letters = text_of(language_rows[index].letters);
    struct text word;

    while (next_chunk(&words, &word)) {
        size_t slot = slot_of(word);
        lexicon[slot].word = word;
        lexicon[slot].languages |= UINT64_C(1) << index;
    }
    while (letters.length_bytes)
        marks[character_take(&letters)] |= UINT64_C(1) << index;
}

static void fill_lexicon(void)
{
    for (size_t i = 0; i < language_row_count; i++)
        fill_language(i);
}

/* Languages that have one of the word's letters for themselves. */
static uint64_t languages_of_letters(struct text word)
{
    uint64_t found = 0;

    while (word.length_bytes) {
        uint32_t point = character_take(&word);
        found |= point < MARKS ? marks[point] : 0;
    }
    return found;
}

/* Shares of a word that several languages have. */
#define WHOLE_WORD 5040

struct score {
    size_t words;                   /* of the text */
    size_t known[LANGUAGES_MAX];    /* of them, in the list of a language */
    uint64_t weight[LANGUAGES_MAX]; /* the same in shares */
};

static void score_word(struct text word, struct score *score)
{
    uint64_t found = lexicon[slot_of(word)].languages;
    unsigned count;

    if (!found)
        found = languages_of_letters(word);
    count = (unsigned)__builtin_popcountll(found);
    score->words++;
    for (size_t i = 0; found; i++, found >>= 1) {
        score->known[i] += found & 1;
        score->weight[i] += found & 1 ? WHOLE_WORD / count : 0;
    }
}

static void score_text(struct text lowered, struct score *ret_score)
{
    struct text word;

    *ret_score = (struct score){0};
    while (next_run(&lowered, &word))
        score_word(word, ret_score);
}

/* The language that the words belong to, or language_row_count: three words and a tenth of all are known to it, and the next
 * one has at most two thirds of its weight. */
static size_t language_of(const struct score *score)
{
    size_t best = 0;
    uint64_t second = 0;

    for (size_t i = 1; i < language_row_count; i++)
        if (score->weight[i] > score->weight[best])
            best = i;
    for (size_t i = 0; i < language_row_count; i++)
        if (i != best && score->weight[i] > second)
            second = score->weight[i];
    if (score->known[best] < 3 || score->known[best] * 10 < score->words || 3 * second > 2 * score->weight[best])
        return language_row_count;
    return best;
}

/* --- answers --- */

static size_t index_of(struct text code)
{
    for (size_t i = 0; i < language_row_count; i++)
        if (text_equals(code, language_rows[i].code))
            return i;
    return language_row_count;
}

bool language_is_known(struct text code)
{
    return index_of(code) < language_row_count;
}

enum language_answer language_is(struct text lowered, struct text code)
{
    size_t wanted = index_of(code);
    struct letters letters;
    struct score score;
    size_t found;

    count_letters(lowered, &letters);
    if (letters.of[language_rows[wanted].script] * 2 <= letters.all)
        return LANGUAGE_OTHER;
    if (!language_rows[wanted].words)
        return LANGUAGE_SAME;
    if (!*language_rows[wanted].words)
        return LANGUAGE_UNDECIDED;
    pthread_once(&lexicon_once, fill_lexicon);
    score_text(lowered, &score);
    found = language_of(&score);
    if (found == language_row_count)
        return LANGUAGE_UNDECIDED;
    return found == wanted ? LANGUAGE_SAME : LANGUAGE_OTHER;
}
