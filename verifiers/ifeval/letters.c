/* Letters: their case, their language, and what words begin with. */
#include "verifiers/ifeval/language.h"
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/rules_private.h"

/* --- case --- */

/* Has it cased letters, and all of them large (or small)? */
static bool is_all(struct text text, unsigned class)
{
    unsigned other = class == CHARACTER_UPPER ? CHARACTER_LOWER : CHARACTER_UPPER;
    bool found = false;

    while (text.length_bytes) {
        unsigned classes = character_classes(character_take(&text));
        if (classes & other)
            return false;
        found = found || classes & class;
    }
    return found;
}

/* capital_frequency, capital_relation */
RULE(has_capital_words)
{
    struct text rest = passage->text;
    struct text word;
    int64_t count = 0;

    while (next_spoken(&rest, &word))
        count += is_all(word, CHARACTER_UPPER);
    return compares(count, &kwarg[1], &kwarg[0]);
}

/* A word that begins with a small letter, and is not of mixed case like iPhone. */
static bool is_uncapitalised(struct text word)
{
    struct text rest = word;
    unsigned first = character_classes(character_take(&rest));

    if (!(first & CHARACTER_LOWER))
        return false;
    return rest.length_bytes == 0 || is_all(rest, CHARACTER_LOWER) || is_all(rest, CHARACTER_UPPER);
}

RULE(is_in_title_case)
{
    struct text rest = passage->text;
    struct text word;

    while (next_spoken(&rest, &word))
        if (is_uncapitalised(word))
            return false;
    return true;
}

static bool is_language(struct passage *passage, struct text code)
{
    enum language_answer answer = language_is(passage_lowered(passage), code);

    if (answer == LANGUAGE_UNDECIDED)
        passage->undecided = "the language of the text is not decided";
    return answer == LANGUAGE_SAME;
}

RULE(is_in_language)
{
    return is_language(passage, kwarg[0].text);
}

RULE(is_capital_english)
{
    return is_all(passage->text, CHARACTER_UPPER) && is_language(passage, TEXT_LITERAL("en"));
}

RULE(is_small_english)
{
    return is_all(passage->text, CHARACTER_LOWER) && is_language(passage, TEXT_LITERAL("en"));
}

/* --- vowels and consonants --- */

/* One line, with at most three of a, e, i, o and u in it. */
RULE(has_three_vowels)
{
    static const char vowels[] = "aeiou";
    struct text text = text_stripped(passage_lowered(passage));
    int kinds = 0;

    if (text_contains(text, TEXT_LITERAL("\n")))
        return false;
    for (const char *vowel = vowels; *vowel; vowel++)
        kinds += memchr(text.data, *vowel, text.length_bytes) != NULL;
    return kinds <= 3;
}

static bool has_cluster(struct text word)
{
    size_t run = 0;

    while (word.length_bytes && run < 2) {
        uint32_t point = character_lower(character_take(&word));
        bool consonant = point >= 'a' && point <= 'z' && !is_one_of((char)point, "aeiou");
        run = consonant ? run + 1 : 0;
    }
    return run == 2;
}

RULE(has_consonant_clusters)
{
    struct text rest = passage->text;
    struct text word;

    while (next_lettered(&rest, &word))
        if (!has_cluster(word))
            return false;
    return true;
}

/* --- first letters --- */

/* Does `holds` hold for the first letters of every two words in a row? */
static bool each_two(struct text text, bool (*holds)(uint32_t before, uint32_t letter))
{
    struct text word;
    uint32_t before = 0;

    while (next_lettered(&text, &word)) {
        uint32_t letter = word_first_letter(word);
        if (before && !holds(before, letter))
            return false;
        before = letter;
    }
    return before != 0;
}

static bool is_latin(uint32_t letter)
{
    return letter >= 'a' && letter <= 'z';
}

static bool follow(uint32_t before, uint32_t letter)
{
    return is_latin(before) && letter == (before == 'z' ? 'a' : before + 1);
}

static bool differ(uint32_t before, uint32_t letter)
{
    return before != letter;
}

static bool are_not_in_order(uint32_t before, uint32_t letter)
{
    return !(is_latin(before) && is_latin(letter) && letter == before + 1);
}

RULE(follows_alphabet)
{
    struct text rest = passage->text;
    struct text word;

    return next_lettered(&rest, &word) && is_latin(word_first_letter(word)) && each_two(passage->text, follow);
}

RULE(has_no_letters_alike)
{
    return each_two(passage->text, differ);
}

RULE(has_no_letters_in_order)
{
    return each_two(passage->text, are_not_in_order);
}

/* The most words in a row with one first letter; 0 where no two are. */
static size_t alliteration_of(struct text sentence)
{
    struct text word;
    uint32_t before = 0;
    size_t run = 0;
    size_t longest = 0;

    while (next_lettered(&sentence, &word)) {
        uint32_t letter = word_first_letter(word);
        run = letter == before ? run + 1 : 1;
        longest = run > longest ? run : longest;
        before = letter;
    }
    return longest > 1 ? longest : 0;
}

RULE(has_growing_alliteration)
{
    const struct spans *sentences = passage_sentences(passage);
    size_t before = 0;

    for (size_t i = 0; i < sentences->count; i++) {
        size_t length = alliteration_of(sentences->span[i]);
        if (i > 0 && length <= before)
            return false;
        before = length;
    }
    return sentences->count > 0;
}

static bool is_prime(size_t number)
{
    for (size_t divisor = 2; divisor * divisor <= number; divisor++)
        if (number % divisor == 0)
            return false;
    return number > 1;
}

static size_t count_letters(struct text word)
{
    size_t count = 0;

    while (word_next_letter(&word))
        count++;
    return count;
}

RULE(has_prime_lengths)
{
    struct text rest = passage->text;
    struct text word;

    while (next_lettered(&rest, &word))
        if (!is_prime(count_letters(word)))
            return false;
    return true;
}
