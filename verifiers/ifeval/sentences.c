/* Where a sentence ends. It is decided by what stands at the end of it, never by the line: one line may have several
 * sentences, and one sentence several lines. docs/verifiers/ifeval.md has the rules in words. */
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/passage.h"

/* A dot behind these never ends a sentence. */
static const char *const titles[] = {
    "approx", "cf", "dr", "e.g", "i.e", "messrs", "mlle", "mme", "mr", "mrs", "ms", "mx", "prof", "rev", "viz", "vs",
};
/* A dot behind these ends no sentence if a number follows. */
static const char *const numbered[] = {
    "art", "ch", "eq", "fig", "figs", "no", "nos", "p", "pp", "sec", "vol",
};
/* A dot behind these ends a sentence only if a word of `starters` with a capital follows. */
static const char *const shortened[] = {
    "a.m", "al",  "apr", "aug", "ave", "blvd", "bros", "capt", "cmdr", "co",  "col", "corp", "cpt", "dec", "dept",
    "etc", "feb", "fr",  "ft",  "gen", "gov",  "hon",  "inc",  "jan",  "jr",  "jul", "jun",  "llc", "lt",  "ltd",
    "mar", "mt",  "nov", "oct", "p.m", "ph.d", "pres", "rd",   "rep",  "sen", "sep", "sept", "sgt", "sr",  "st",
};
static const char *const starters[] = {
    "a",      "after",  "all",  "also",  "although", "an",    "and",  "are",   "as",    "at",   "because",
    "before", "both",   "but",  "by",    "do",       "does",  "each", "every", "for",   "from", "he",
    "her",    "here",   "his",  "how",   "however",  "i",     "if",   "in",    "is",    "it",   "its",
    "let",    "many",   "most", "my",    "no",       "not",   "now",  "on",    "once",  "one",  "or",
    "our",    "please", "she",  "since", "so",       "some",  "that", "the",   "their", "then", "there",
    "these",  "they",   "this", "those", "to",       "today", "was",  "we",    "what",  "when", "where",
    "while",  "who",    "why",  "with",  "yes",      "you",   "your",
};

/* No word of the lists is longer. */
#define LISTED_BYTES 12

/* In any case. The list is sorted, and of ASCII. */
static bool is_listed(struct text word, const char *const *list, size_t count)
{
    char small[LISTED_BYTES + 1] = {0};
    size_t first = 0;

    if (word.length_bytes > LISTED_BYTES || memchr(word.data, 0, word.length_bytes))
        return false;
    for (size_t i = 0; i < word.length_bytes; i++)
        small[i] = (char)character_lower((unsigned char)word.data[i] & 0x7f);
    while (first < count) {
        size_t middle = (first + count) / 2;
        int order = strcmp(small, list[middle]);
        if (order == 0)
            return true;
        if (order > 0)
            first = middle + 1;
        else
            count = middle;
    }
    return false;
}

static const struct {
    uint32_t point;
    bool full; /* ends a sentence without a space behind it */
} ends[] = {
    {'.', false},    {'!', false},    {'?', false},    {0x2026, false}, {0x203d, false}, {0x0964, false},
    {0x0965, false}, {0x061f, false}, {0x06d4, false}, {0x3002, true},  {0xff01, true},  {0xff1f, true},
};

static bool is_end(uint32_t point, bool *ret_full)
{
    if (point < 0x80 && !is_one_of((char)point, ".!?"))
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(ends); i++) {
        if (point != ends[i].point)
            continue;
        *ret_full = ends[i].full;
        return true;
    }
    return false;
}

/* Quotes, brackets and emphasis close a sentence behind its end. */
static bool is_closing(uint32_t point)
{
    static const uint32_t closing[] = {'"', '\'',   ')',    ']',  '}',    '*',    '_',
                                       '`', 0x201d, 0x2019, 0xbb, 0x300d, 0x300f, 0xff09};

    for (size_t i = 0; i < ARRAY_LENGTH(closing); i++)
        if (point == closing[i])
            return true;
    return false;
}

/* A run of signs that may end a sentence. */
struct stop {
    size_t signs;       /* ends, in a row */
    bool dots;          /* they are dots alone, or the one sign of three */
    bool full;          /* one of them needs no space */
    bool closed;        /* quotes or brackets close behind them */
    bool emoji;         /* emoji follow, with or without a space */
    struct text before; /* what stands in front of it since the last space */
    bool line_start;    /* that word begins a line */
    struct text after;  /* what follows the stop */
};

static void take_ends(struct text *rest, struct stop *stop)
{
    struct text ahead = *rest;
    bool full = false;

    stop->dots = true;
    while (ahead.length_bytes) {
        uint32_t point = character_take(&ahead);
        if (!is_end(point, &full))
            break;
        stop->full = stop->full || full;
        stop->dots = stop->dots && (point == '.' || point == 0x2026);
        stop->signs += point == 0x2026 ? 3 : 1;
        *rest = ahead;
    }
}

static void take_closing(struct text *rest, struct stop *stop)
{
    struct text ahead = *rest;

    while (ahead.length_bytes && is_closing(character_take(&ahead))) {
        *rest = ahead;
        stop->closed = true;
    }
}

/* Part of an emoji that has several code points, or one. */
static bool is_emoji_part(uint32_t point)
{
    return character_classes(point) & CHARACTER_EMOJI || point == 0xfe0f || point == 0x200d || point == 0x20e3 ||
           (point >= 0x1f1e6 && point <= 0x1f1ff);
}

/* Emoji behind the end belong to the sentence, also behind a space. */
static void take_emoji(struct text *rest, struct stop *stop)
{
    struct text ahead = *rest;
    struct text last = *rest;

    while (ahead.length_bytes && (*ahead.data == ' ' || *ahead.data == '\n'))
        ahead = text_from(ahead, 1);
    if (ahead.length_bytes && (unsigned char)*ahead.data < 0x80)
        return;

    while (ahead.length_bytes) {
        uint32_t point = character_take(&ahead);
        if (is_emoji_part(point))
            last = ahead;
        else if (!(character_classes(point) & CHARACTER_SPACE))
            break;
    }
    stop->emoji = last.data != rest->data;
    *rest = last;
}

static bool is_space_next(struct text after)
{
    return after.length_bytes == 0 || character_classes(character_take(&after)) & CHARACTER_SPACE;
}

/* The word that follows, behind quotes and brackets; it is looked for no farther than this. */
#define WORD_AFTER_BYTES 64
/* A longer one in front is no abbreviation. */
#define WORD_BEFORE_BYTES 40

static struct text word_after(struct text after)
{
    struct text word = {"", 0};

    if (after.length_bytes > WORD_AFTER_BYTES)
        after.length_bytes = WORD_AFTER_BYTES;
    next_run(&after, &word);
    return word;
}

static unsigned first_class(struct text word)
{
    return word.length_bytes ? character_classes(character_take(&word)) : 0;
}

static bool is_digits(struct text word)
{
    while (word.length_bytes)
        if (!(character_classes(character_take(&word)) & CHARACTER_DIGIT))
            return false;
    return true;
}

/* J. of a name, U.S of an acronym: single letters with dots between them. */
static bool is_initials(struct text word)
{
    while (word.length_bytes) {
        if (!(character_classes(character_take(&word)) & CHARACTER_LETTER))
            return false;
        if (word.length_bytes && character_take(&word) != '.')
            return false;
    }
    return true;
}

/* A single full stop behind a word that is written with one. */
static bool goes_on(const struct stop *stop)
{
    struct text before = stop->before.length_bytes > WORD_BEFORE_BYTES
                             ? (struct text){"", 0}
                             : text_stripped_of(stop->before, CHARACTER_PUNCTUATION);
    struct text next;

    if (before.length_bytes == 0)
        return false;
    if (stop->line_start && (is_digits(before) || characters_count(before) == 1))
        return true; /* the number of an item in a list */
    if (is_listed(before, titles, ARRAY_LENGTH(titles)))
        return true;
    next = word_after(stop->after);
    if (is_listed(before, shortened, ARRAY_LENGTH(shortened)) || is_initials(before))
        return !is_listed(next, starters, ARRAY_LENGTH(starters)) || first_class(next) & CHARACTER_LOWER;
    return first_class(next) & CHARACTER_DIGIT && is_listed(before, numbered, ARRAY_LENGTH(numbered));
}

static bool ends_here(const struct stop *stop)
{
    if (stop->full)
        return true;
    if (!stop->emoji && !is_space_next(stop->after))
        return false;
    if (text_is_blank(stop->after))
        return true;
    if (stop->closed || (stop->dots && stop->signs > 1)) /* "Really?" she said. Wait... then go. */
        return !(first_class(word_after(stop->after)) & CHARACTER_LOWER);
    return !(stop->dots && stop->signs == 1 && !stop->emoji && goes_on(stop));
}

/* Remembers the word in front of a place while a text is walked through. */
struct walk {
    struct text rest;
    const char *start; /* of the sentence */
    const char *word;  /* of the word that stands there */
    bool line_start;   /* it begins its line */
};

static void read_stop(struct walk *walk, struct stop *ret_stop)
{
    const char *end = walk->rest.data;

    *ret_stop = (struct stop){.before = {walk->word, (size_t)(end - walk->word)}, .line_start = walk->line_start};
    take_ends(&walk->rest, ret_stop);
    take_closing(&walk->rest, ret_stop);
    take_emoji(&walk->rest, ret_stop);
    ret_stop->after = walk->rest;
}

/* A sentence has a letter or a number; a part without one belongs to the sentence before it. */
static void add_sentence(struct text part, struct spans *spans)
{
    struct text run;
    struct text ahead = part;

    part = text_stripped(part);
    if (part.length_bytes == 0)
        return;
    if (spans->count == 0 || next_run(&ahead, &run))
        spans_add(spans, part);
    else
        spans->span[spans->count - 1].length_bytes =
            (size_t)(part.data + part.length_bytes - spans->span[spans->count - 1].data);
}

static void step_over_stop(struct walk *walk, struct spans *spans)
{
    struct stop stop;

    read_stop(walk, &stop);
    if (!ends_here(&stop))
        return;
    add_sentence((struct text){walk->start, (size_t)(walk->rest.data - walk->start)}, spans);
    walk->start = walk->word = walk->rest.data;
    walk->line_start = false;
}

/* Letters of ASCII end nothing. */
static void skip_plain(struct text *rest)
{
    size_t bytes = 0;

    while (bytes < rest->length_bytes && ((rest->data[bytes] | 32) >= 'a' && (rest->data[bytes] | 32) <= 'z'))
        bytes++;
    *rest = text_from(*rest, bytes);
}

static void step(struct walk *walk, struct spans *spans)
{
    struct text ahead = walk->rest;
    uint32_t point = character_take(&ahead);
    bool full;

    if (is_end(point, &full)) {
        step_over_stop(walk, spans);
        return;
    }
    if (character_classes(point) & CHARACTER_SPACE) {
        walk->line_start = point == '\n' || (walk->line_start && walk->word == walk->rest.data);
        walk->word = ahead.data;
    }
    walk->rest = ahead;
}

void split_sentences(struct text text, struct spans *spans)
{
    struct walk walk = {text, text.data, text.data, true};

    for (skip_plain(&walk.rest); walk.rest.length_bytes; skip_plain(&walk.rest))
        step(&walk, spans);
    add_sentence((struct text){walk.start, (size_t)(walk.rest.data - walk.start)}, spans);
}
