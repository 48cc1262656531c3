/* Keywords, and words that stand at a place. A keyword is literal, in any case, and a part of a word is enough; a word
 * stands by itself. */
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/rules_private.h"

/* --- keywords --- */

/* The keyword in small letters: as often as it stands in the text, without overlap. */
static size_t count_keyword(struct passage *passage, struct text keyword)
{
    struct text lowered = passage_lowered(passage);
    _cleanup_buffer_ struct buffer small;

    buffer_init(&small, 2 * keyword.length_bytes + 16);
    text_append_lower(&small, keyword);
    return text_count_of(lowered, buffer_text(&small));
}

static bool has_keyword(struct passage *passage, struct text keyword)
{
    struct text lowered = passage_lowered(passage);
    _cleanup_buffer_ struct buffer small;

    buffer_init(&small, 2 * keyword.length_bytes + 16);
    text_append_lower(&small, keyword);
    return text_contains(lowered, buffer_text(&small));
}

static bool has_word(struct text lowered, struct text word)
{
    _cleanup_buffer_ struct buffer small;

    buffer_init(&small, 2 * word.length_bytes + 16);
    text_append_lower(&small, word);
    return text_contains_word(lowered, buffer_text(&small));
}

RULE(has_keywords)
{
    size_t i;
    const json_t *keyword;

    json_array_foreach (kwarg[0].list, i, keyword)
        if (!has_keyword(passage, json_text_of(keyword)))
            return false;
    return true;
}

/* keyword, frequency, relation */
RULE(has_keyword_often)
{
    return compares((int64_t)count_keyword(passage, kwarg[0].text), &kwarg[2], &kwarg[1]);
}

RULE(has_keyword_once)
{
    return count_keyword(passage, kwarg[0].text) == 1;
}

RULE(has_keywords_once_and_twice)
{
    return count_keyword(passage, kwarg[0].text) == 1 && count_keyword(passage, kwarg[1].text) == 2;
}

RULE(has_keywords_primes_often)
{
    static const size_t counts[] = {1, 2, 3, 5, 7};

    for (size_t i = 0; i < ARRAY_LENGTH(counts); i++)
        if (count_keyword(passage, kwarg[i].text) != counts[i])
            return false;
    return true;
}

RULE(has_no_forbidden_word)
{
    size_t i;
    const json_t *word;

    json_array_foreach (kwarg[0].list, i, word)
        if (has_word(passage_lowered(passage), json_text_of(word)))
            return false;
    return true;
}

RULE(has_no_such_word)
{
    return !has_word(passage_lowered(passage), kwarg[0].text);
}

/* letter, let_frequency, let_relation */
RULE(has_letter_often)
{
    return compares((int64_t)count_keyword(passage, kwarg[0].text), &kwarg[2], &kwarg[1]);
}

static bool sentence_has_word(struct text sentence, struct text word)
{
    _cleanup_buffer_ struct buffer lowered;

    buffer_init(&lowered, 2 * sentence.length_bytes + 16);
    text_append_lower(&lowered, sentence);
    return has_word(buffer_text(&lowered), word);
}

/* word, N */
RULE(has_keyword_in_sentence)
{
    const struct spans *sentences = passage_sentences(passage);

    return (int64_t)sentences->count >= kwarg[1].whole &&
           sentence_has_word(sentences->span[kwarg[1].whole - 1], kwarg[0].text);
}

/* --- words at places --- */

/* keyword, n, m: the m-th word of the n-th sentence. */
RULE(has_keyword_at_place)
{
    const struct spans *sentences = passage_sentences(passage);
    struct text word = TEXT_NONE;

    if ((int64_t)sentences->count < kwarg[1].whole)
        return false;
    struct text rest = sentences->span[kwarg[1].whole - 1];
    for (int64_t i = 0; i < kwarg[2].whole; i++)
        if (!next_spoken(&rest, &word))
            return false;
    return text_same_letters(word, kwarg[0].text);
}

RULE(has_keyword_second)
{
    struct text rest = passage->text;
    struct text word;
    struct text second = TEXT_NONE;
    struct text last[2] = {TEXT_NONE, TEXT_NONE}; /* but one, and the last */
    size_t count = 0;

    while (next_spoken(&rest, &word)) {
        if (++count == 2)
            second = word;
        last[0] = last[1];
        last[1] = word;
    }
    return count >= 2 && text_same_letters(second, kwarg[0].text) && text_same_letters(last[0], kwarg[0].text);
}

static bool first_is(struct text text, struct text wanted)
{
    struct text word;

    return next_chunk(&text, &word) && text_same_letters(word_bare(word), word_bare(wanted));
}

static struct text last_word(struct text text)
{
    struct text rest;

    text = text_stripped(text);
    for (rest = text; rest.length_bytes;) {
        struct text before = rest;
        if (character_classes(character_take_last(&before)) & CHARACTER_SPACE)
            break;
        rest = before;
    }
    return text_from(text, rest.length_bytes);
}

static bool last_is(struct text text, struct text wanted)
{
    return text_same_letters(word_bare(last_word(text)), word_bare(wanted));
}

RULE(starts_with_word)
{
    return first_is(passage->text, kwarg[0].text);
}

RULE(ends_with_word)
{
    return last_is(passage->text, kwarg[0].text);
}

static bool all_sentences(struct passage *passage, bool (*holds)(struct text sentence, struct text wanted),
                          struct text wanted)
{
    const struct spans *sentences = passage_sentences(passage);

    for (size_t i = 0; i < sentences->count; i++)
        if (!holds(sentences->span[i], wanted))
            return false;
    return sentences->count > 0;
}

RULE(starts_sentences_with_word)
{
    return all_sentences(passage, first_is, kwarg[0].text);
}

RULE(ends_sentences_with_word)
{
    return all_sentences(passage, last_is, kwarg[0].text);
}

/* Nothing may follow the last word, not even punctuation. */
RULE(starts_and_ends_alike)
{
    struct text rest = text_stripped(passage->text);
    struct text end = {rest.data + rest.length_bytes, 0};
    struct text first;
    struct text word;
    struct text last = TEXT_NONE;

    if (!next_spoken(&rest, &first))
        return false;
    while (next_spoken(&rest, &word))
        last = word;
    return last.data && last.data + last.length_bytes == end.data && text_same_letters(first, last);
}
