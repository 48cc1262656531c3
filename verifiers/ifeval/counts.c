/* Words of a kind, and how often words or sentences of a kind are there. Case says nothing. */
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/rules_private.h"

/* --- words --- */

/* N */
RULE(has_unique_words)
{
    struct text rest = passage_lowered(passage);
    _cleanup_word_set_ struct word_set set = {0};
    struct text word;

    while ((int64_t)set.count < kwarg[0].whole && next_lettered(&rest, &word))
        word_set_add(&set, word_bare(word));
    return (int64_t)set.count >= kwarg[0].whole;
}

static bool repeats_at_most(struct text lowered, size_t times)
{
    _cleanup_word_set_ struct word_set set = {0};
    struct text word;

    while (next_spoken(&lowered, &word))
        if (word_set_add(&set, word) > times)
            return false;
    return true;
}

RULE(has_only_unique_words)
{
    return repeats_at_most(passage_lowered(passage), 1);
}

/* small_n */
RULE(has_few_repeats)
{
    return repeats_at_most(passage_lowered(passage), (size_t)kwarg[0].whole);
}

static int compare(struct text left, struct text right)
{
    size_t shorter = left.length_bytes < right.length_bytes ? left.length_bytes : right.length_bytes;
    int order = memcmp(left.data, right.data, shorter);

    return order ? order : (left.length_bytes > shorter) - (right.length_bytes > shorter);
}

/* In a sorted list; its length if it is not there. */
static size_t index_in(struct text word, const char *const *list, size_t count)
{
    size_t first = 0;
    size_t behind = count;

    while (first < behind) {
        size_t middle = (first + behind) / 2;
        int order = compare(word, text_of(list[middle]));
        if (order == 0)
            return middle;
        if (order > 0)
            first = middle + 1;
        else
            behind = middle;
    }
    return count;
}

/* small_n different ones */
RULE(has_conjunctions)
{
    static const char *const conjunctions[] = {
        "and", "but", "for", "nor", "or", "so", "yet",
    };
    struct text rest = passage_lowered(passage);
    struct text word;
    uint64_t found = 0;

    while (next_chunk(&rest, &word))
        found |= UINT64_C(1) << index_in(word_bare(word), conjunctions, ARRAY_LENGTH(conjunctions));
    found &= (UINT64_C(1) << ARRAY_LENGTH(conjunctions)) - 1;
    return __builtin_popcountll(found) >= kwarg[0].whole;
}

/* N different ones, written with a capital */
RULE(has_person_names)
{
    static const char *const names[] = {
        "Abigail",  "Alexander",   "Amelia", "Andrew",   "Aria",     "Audrey",   "Ava",     "Benjamin", "Charlotte",
        "Chloe",    "Christopher", "Claire", "Daniel",   "David",    "Elijah",   "Ella",    "Emma",     "Ethan",
        "Gabriel",  "Grace",       "Hannah", "Harper",   "Isabella", "Jackson",  "Jacob",   "Jonathan", "Joseph",
        "Layla",    "Leo",         "Liam",   "Lily",     "Lucas",    "Mason",    "Matthew", "Mia",      "Nathan",
        "Nicholas", "Noah",        "Nora",   "Olivia",   "Owen",     "Penelope", "Ryan",    "Samuel",   "Scarlett",
        "Sophia",   "Stella",      "Thomas", "Victoria", "Zoe",
    };
    struct text rest = passage->text;
    struct text run;
    uint64_t found = 0;

    while (next_run(&rest, &run))
        if (*run.data >= 'A' && *run.data <= 'Z' && run.length_bytes < 12)
            found |= UINT64_C(1) << index_in(run, names, ARRAY_LENGTH(names));
    found &= (UINT64_C(1) << ARRAY_LENGTH(names)) - 1;
    return __builtin_popcountll(found) >= kwarg[0].whole;
}

/* N: digits in a row, without ASCII punctuation between them: 1,000 and 3.5 are one. */
RULE(has_numbers)
{
    int64_t count = 0;
    bool inside = false;

    for (struct text rest = passage->text; rest.length_bytes;) {
        uint32_t point = character_take(&rest);
        unsigned classes = character_classes(point);
        if (point < 0x80 && classes & CHARACTER_PUNCTUATION)
            continue;
        count += classes & CHARACTER_DIGIT && !inside;
        inside = classes & CHARACTER_DIGIT;
    }
    return count == kwarg[0].whole;
}

/* . , ! ? ; : and besides them one of ?! !? and the interrobang's own sign */
RULE(has_all_punctuation)
{
    static const char signs[] = ".,!?;:";
    struct text text = passage->text;
    struct text front = text;
    struct text back = {"", 0};
    size_t at = text_index_of(text, TEXT_LITERAL("?!"));

    if (at == text.length_bytes)
        at = text_index_of(text, TEXT_LITERAL("!?"));
    if (at < text.length_bytes) {
        front.length_bytes = at;
        back = text_from(text, at + 2);
    } else if (!text_contains(text, TEXT_LITERAL("\xe2\x80\xbd"))) {
        return false;
    }
    for (const char *sign = signs; *sign; sign++)
        if (!memchr(front.data, *sign, front.length_bytes) && !memchr(back.data, *sign, back.length_bytes))
            return false;
    return true;
}

static bool is_japanese(struct text word)
{
    while (word.length_bytes) {
        uint32_t point = character_take(&word);
        if ((point >= 0x3040 && point <= 0x30ff) || (point >= 0x4e00 && point <= 0x9fff))
            return true;
    }
    return false;
}

static bool is_number(struct text word)
{
    while (word.length_bytes)
        if (!(character_classes(character_take(&word)) & CHARACTER_DIGIT))
            return false;
    return true;
}

/* N: every N-th word has kana or a Chinese character in it; numbers and lone punctuation may stand there, too. */
RULE(has_japanese_words)
{
    struct text rest = passage->text;
    struct text word;

    for (int64_t place = 1; next_chunk(&rest, &word); place++) {
        word = word_bare(word);
        if (place % kwarg[0].whole == 0 && word.length_bytes && !is_number(word) && !is_japanese(word))
            return false;
    }
    return true;
}

/* Up to an apostrophe: of it's the word it. */
static struct text without_ending(struct text word)
{
    size_t end = text_index_of(word, TEXT_LITERAL("'"));
    size_t curly = text_index_of(word, TEXT_LITERAL("\xe2\x80\x99"));

    return (struct text){word.data, end < curly ? end : curly};
}

/* N */
RULE(has_pronouns)
{
    static const char *const pronouns[] = {
        "all",       "any",      "anybody",    "anyone",   "anything",  "both",      "each",       "either",
        "everybody", "everyone", "everything", "he",       "her",       "hers",      "herself",    "him",
        "himself",   "his",      "i",          "it",       "its",       "itself",    "me",         "mine",
        "my",        "myself",   "neither",    "nobody",   "none",      "nothing",   "our",        "ours",
        "ourselves", "she",      "some",       "somebody", "someone",   "something", "that",       "their",
        "theirs",    "them",     "themselves", "these",    "they",      "this",      "those",      "us",
        "we",        "what",     "whatever",   "which",    "whichever", "who",       "whoever",    "whom",
        "whomever",  "whose",    "you",        "your",     "yours",     "yourself",  "yourselves",
    };
    struct text rest = passage_lowered(passage);
    struct text word;
    int64_t count = 0;

    while (count < kwarg[0].whole && next_spoken(&rest, &word))
        count += index_in(without_ending(word), pronouns, ARRAY_LENGTH(pronouns)) < ARRAY_LENGTH(pronouns);
    return count >= kwarg[0].whole;
}

/* The same from both ends, punctuation aside; so many characters at least. */
static bool is_palindrome(struct text word, size_t minimum)
{
    struct text front = word;
    struct text back = word;
    size_t count = 0;

    for (;;) {
        uint32_t left = word_next_letter(&front);
        uint32_t right = 0;
        while (back.length_bytes && !right) {
            right = character_take_last(&back);
            right = character_classes(right) & CHARACTER_PUNCTUATION ? 0 : right;
        }
        if (left != right)
            return false;
        if (!left)
            return count >= minimum;
        count++;
    }
}

static size_t count_palindromes(struct text lowered, size_t minimum, size_t enough)
{
    struct text word;
    size_t count = 0;

    while (count < enough && next_lettered(&lowered, &word))
        count += is_palindrome(word, minimum);
    return count;
}

RULE(has_palindrome)
{
    return count_palindromes(passage_lowered(passage), 1, 1) == 1;
}

RULE(has_ten_palindromes)
{
    return count_palindromes(passage_lowered(passage), 5, 10) == 10;
}

/* percentage */
RULE(has_few_stop_words)
{
    static const char *const stop_words[] = {
        "a",       "about",  "above",   "after", "again",     "against", "ain",     "all",        "am",
        "an",      "and",    "any",     "are",   "aren",      "as",      "at",      "be",         "because",
        "been",    "before", "being",   "below", "between",   "both",    "but",     "by",         "can",
        "couldn",  "d",      "did",     "didn",  "do",        "does",    "doesn",   "doing",      "don",
        "down",    "during", "each",    "few",   "for",       "from",    "further", "had",        "hadn",
        "has",     "hasn",   "have",    "haven", "having",    "he",      "her",     "here",       "hers",
        "herself", "him",    "himself", "his",   "how",       "i",       "if",      "in",         "into",
        "is",      "isn",    "it",      "its",   "itself",    "just",    "ll",      "m",          "ma",
        "me",      "mightn", "more",    "most",  "mustn",     "my",      "myself",  "needn",      "no",
        "nor",     "not",    "now",     "o",     "of",        "off",     "on",      "once",       "only",
        "or",      "other",  "our",     "ours",  "ourselves", "out",     "over",    "own",        "re",
        "s",       "same",   "shan",    "she",   "should",    "shouldn", "so",      "some",       "such",
        "t",       "than",   "that",    "the",   "their",     "theirs",  "them",    "themselves", "then",
        "there",   "these",  "they",    "this",  "those",     "through", "to",      "too",        "under",
        "until",   "up",     "ve",      "very",  "was",       "wasn",    "we",      "were",       "weren",
        "what",    "when",   "where",   "which", "while",     "who",     "whom",    "why",        "will",
        "with",    "won",    "wouldn",  "y",     "you",       "your",    "yours",   "yourself",   "yourselves",
    };
    struct text rest = passage_lowered(passage);
    struct text run;
    int64_t words = 0;
    int64_t stops = 0;

    while (next_run(&rest, &run)) {
        words++;
        stops += index_in(run, stop_words, ARRAY_LENGTH(stop_words)) < ARRAY_LENGTH(stop_words);
    }
    return words > 0 && (double)stops * 100 <= kwarg[0].number * (double)words;
}
