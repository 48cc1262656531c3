/* How many sentences, paragraphs, words and letters there are. */
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/rules_private.h"

static int64_t count_runs(struct text text)
{
    struct text run;
    int64_t count = 0;

    while (next_run(&text, &run))
        count++;
    return count;
}

/* num_words, relation */
RULE(has_words)
{
    return compares(count_runs(passage->text), &kwarg[1], &kwarg[0]);
}

/* min_words, max_words */
RULE(has_words_between)
{
    int64_t count = count_runs(passage->text);

    return count >= kwarg[0].whole && count <= kwarg[1].whole;
}

/* num_sentences, relation */
RULE(has_sentences)
{
    return compares((int64_t)passage_sentences(passage)->count, &kwarg[1], &kwarg[0]);
}

/* N, relation */
RULE(has_letters)
{
    struct text rest = passage->text;
    int64_t count = 0;

    while (rest.length_bytes)
        count += character_classes(character_take(&rest)) & CHARACTER_LETTER;
    return compares(count, &kwarg[1], &kwarg[0]);
}

static bool is_small(struct text word)
{
    while (word.length_bytes)
        if (!(character_classes(character_take(&word)) & CHARACTER_LOWER))
            return false;
    return true;
}

RULE(has_few_small_words)
{
    struct text rest = passage->text;
    struct text run;
    int64_t count = 0;

    while (next_run(&rest, &run))
        count += is_small(run);
    return count <= kwarg[0].whole;
}

/* --- paragraphs --- */

/* Parts between dividers. A blank one at either end is none, one in the middle is a fault: -1. */
static int64_t count_parts(struct text text, struct text divider)
{
    struct parts parts = parts_of(text);
    struct text part;
    int64_t count = 0;

    for (bool first = true; next_part(&parts, divider, &part); first = false) {
        if (!text_is_blank(part))
            count++;
        else if (!first && parts.rest.data)
            return -1;
    }
    return count;
}

RULE(has_paragraphs)
{
    return count_parts(passage->text, TEXT_LITERAL("***")) == kwarg[0].whole;
}

RULE(has_two_paragraphs)
{
    return count_parts(passage->text, TEXT_LITERAL("***")) == 2;
}

RULE(has_two_blocks)
{
    return count_parts(passage->text, TEXT_LITERAL("\n\n")) == 2;
}

/* The first word, without quotes in front of it, up to the first of . , ? ! ' " */
static struct text first_word_of(struct text paragraph)
{
    struct text word = {"", 0};
    size_t length_bytes = 0;

    next_chunk(&paragraph, &word);
    while (word.length_bytes && *word.data == '\'')
        word = text_from(word, 1);
    while (word.length_bytes && *word.data == '"')
        word = text_from(word, 1);
    while (length_bytes < word.length_bytes && !is_one_of(word.data[length_bytes], ".,?!'\""))
        length_bytes++;
    return (struct text){word.data, length_bytes};
}

/* num_paragraphs, nth_paragraph, first_word. Blank paragraphs do not count. */
RULE(has_paragraph_with_first_word)
{
    struct parts parts = parts_of(passage->text);
    struct text wanted = first_word_of(kwarg[2].text);
    struct text part;
    int64_t count = 0;
    bool found = false;

    while (next_part(&parts, TEXT_LITERAL("\n\n"), &part)) {
        if (text_is_blank(part))
            continue;
        if (++count == kwarg[1].whole)
            found = text_same_letters(first_word_of(part), wanted);
    }
    return found && count == kwarg[0].whole;
}

static int64_t count_spoken(struct text text)
{
    struct text word;
    int64_t count = 0;

    while (next_spoken(&text, &word))
        count++;
    return count;
}

/* n_sent, n_words: of one paragraph. */
static bool is_composed(struct text paragraph, const struct kwarg *kwarg)
{
    _cleanup_spans_ struct spans sentences = {0};

    split_sentences(paragraph, &sentences);
    for (size_t i = 0; i < sentences.count; i++)
        if (count_spoken(sentences.span[i]) != kwarg[1].whole)
            return false;
    return (int64_t)sentences.count == kwarg[0].whole;
}

/* Three paragraphs; the divider is *** or, as the instruction writes it, * * *. */
RULE(has_composed_paragraphs)
{
    bool spaced = text_contains(passage->text, TEXT_LITERAL("* * *"));
    struct text divider = spaced ? TEXT_LITERAL("* * *") : TEXT_LITERAL("***");
    struct parts parts = parts_of(passage->text);
    struct text part;

    if (count_parts(passage->text, divider) != 3)
        return false;
    while (next_part(&parts, divider, &part))
        if (!text_is_blank(part) && !is_composed(part, kwarg))
            return false;
    return true;
}

/* --- sentences --- */

/* Three, of as many characters each, and no word twice. */
RULE(has_three_even_sentences)
{
    const struct spans *sentences = passage_sentences(passage);
    _cleanup_word_set_ struct word_set set = {0};
    struct text rest = passage_lowered(passage);
    struct text word;

    if (sentences->count != 3)
        return false;
    for (size_t i = 1; i < 3; i++)
        if (characters_count(sentences->span[i]) != characters_count(sentences->span[0]))
            return false;
    while (next_spoken(&rest, &word))
        if (word_set_add(&set, word) > 1)
            return false;
    return true;
}

static int64_t count_lettered(struct text text)
{
    struct text word;
    int64_t count = 0;

    while (next_lettered(&text, &word))
        count++;
    return count;
}

/* small_n: so many words more than the sentence before. */
RULE(has_growing_sentences)
{
    const struct spans *sentences = passage_sentences(passage);
    int64_t before = sentences->count ? count_lettered(sentences->span[0]) : 0;

    for (size_t i = 1; i < sentences->count; i++) {
        int64_t count = count_lettered(sentences->span[i]);
        if (count != before + kwarg[0].whole)
            return false;
        before = count;
    }
    return sentences->count > 0;
}
