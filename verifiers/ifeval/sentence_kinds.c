/* Ends of sentences and paragraphs, and the words that join them. */
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/rules_private.h"

/* The sign that a sentence ends with, behind which quotes, brackets and emoji may stand; 0: none of . ? ! */
static uint32_t end_of(struct text sentence)
{
    while (sentence.length_bytes) {
        uint32_t point = character_take_last(&sentence);
        if (point == '.' || point == '?' || point == '!')
            return point;
        if (character_classes(point) & (CHARACTER_LETTER | CHARACTER_NUMBER))
            return 0;
    }
    return 0;
}

static size_t count_ending(const struct spans *sentences, uint32_t sign)
{
    size_t count = 0;

    for (size_t i = 0; i < sentences->count; i++)
        count += end_of(sentences->span[i]) == sign;
    return count;
}

RULE(has_sentence_types)
{
    const struct spans *sentences = passage_sentences(passage);
    size_t questions = count_ending(sentences, '?');

    return questions > 0 && count_ending(sentences, '.') == 2 * questions;
}

RULE(has_balanced_sentences)
{
    const struct spans *sentences = passage_sentences(passage);
    size_t questions = count_ending(sentences, '?');

    return questions > 0 && count_ending(sentences, '.') == questions && count_ending(sentences, '!') == questions;
}

static struct text first_of(struct text text)
{
    struct text word;

    return next_lettered(&text, &word) ? word_bare(word) : TEXT_NONE;
}

static struct text last_of(struct text text)
{
    struct text word;
    struct text last = TEXT_NONE;

    while (next_lettered(&text, &word))
        last = word_bare(word);
    return last;
}

RULE(chains_sentences)
{
    const struct spans *sentences = passage_sentences(passage);

    for (size_t i = 1; i < sentences->count; i++)
        if (!text_same_letters(last_of(sentences->span[i - 1]), first_of(sentences->span[i])))
            return false;
    return sentences->count > 0;
}

RULE(frames_paragraphs)
{
    struct parts lines = parts_of(passage->text);
    struct text line;

    while (next_full_line(&lines, &line))
        if (!text_same_letters(first_of(line), last_of(line)))
            return false;
    return true;
}
