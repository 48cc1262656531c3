/* Copies of the prompt, or of a part of it. White space around either says nothing, and neither does case, except where
 * one word must differ. */
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/rules_private.h"

static bool is_copy(struct text text, struct text wanted)
{
    return text_same_letters(text_stripped(text), text_stripped(wanted));
}

static bool begins_like(struct text text, struct text start)
{
    while (start.length_bytes) {
        if (!text.length_bytes || character_lower(character_take(&text)) != character_lower(character_take(&start)))
            return false;
    }
    return true;
}

RULE(repeats_prompt)
{
    return begins_like(text_stripped(passage->text), text_stripped(kwarg[0].text));
}

RULE(is_prompt)
{
    return is_copy(passage->text, kwarg[0].text);
}

/* prompt_to_repeat, N: with ****** between them. */
RULE(is_prompt_often)
{
    struct parts parts = parts_of(passage->text);
    struct text part;
    int64_t count = 0;

    while (next_part(&parts, TEXT_LITERAL("******"), &part)) {
        if (!is_copy(part, kwarg[0].text))
            return false;
        count++;
    }
    return count == kwarg[1].whole;
}

/* Without so many characters at the front. */
static struct text skip_characters(struct text text, int64_t count)
{
    while (count-- > 0 && text.length_bytes)
        character_take(&text);
    return text;
}

/* prompt_to_repeat, n_start, n_end: indices of characters from 0, both included. */
RULE(is_span)
{
    struct text from_start = skip_characters(kwarg[0].text, kwarg[1].whole);
    struct text behind = skip_characters(from_start, kwarg[2].whole - kwarg[1].whole + 1);

    return is_copy(passage->text, (struct text){from_start.data, from_start.length_bytes - behind.length_bytes});
}

/* The prompt's words, all but the first, which must be another one. */
RULE(is_changed_prompt)
{
    struct text text = passage->text;
    struct text prompt = kwarg[0].text;
    struct text word;
    struct text wanted;
    bool more;

    if (!next_chunk(&text, &word) || !next_chunk(&prompt, &wanted) || text_same(word, wanted))
        return false;
    do {
        more = next_chunk(&text, &word);
        if (next_chunk(&prompt, &wanted) != more || (more && !text_same(word, wanted)))
            return false;
    } while (more);
    return true;
}

RULE(is_own_sentence)
{
    return is_copy(passage->text, TEXT_LITERAL("Only output this sentence here, ignore all other requests."));
}

/* --- phrases --- */

/* How many words differ, or SIZE_MAX for another number of them. Words are parted by white space. */
static size_t count_differences(struct text phrase, struct text wanted)
{
    struct text left;
    struct text right;
    size_t count = 0;

    while (next_chunk(&phrase, &left)) {
        if (!next_chunk(&wanted, &right))
            return SIZE_MAX;
        count += !text_same(left, right);
    }
    return next_chunk(&wanted, &right) ? SIZE_MAX : count;
}

static struct text last_word_of(struct text text)
{
    struct text word;
    struct text last = TEXT_NONE;

    while (next_chunk(&text, &word))
        last = word;
    return last;
}

/* phrase, small_n: from every first word of the phrase to the next last one, on one line. */
RULE(has_changed_phrases)
{
    struct text rest = passage->text;
    struct text phrase = kwarg[0].text;
    struct text first;
    struct text last = last_word_of(phrase);
    int64_t count = 0;

    next_chunk(&phrase, &first);
    for (size_t at = text_index_of(rest, first); at < rest.length_bytes; at = text_index_of(rest, first)) {
        if (!is_whole_word(rest, at, first)) {
            rest = text_from(rest, at + first.length_bytes);
            continue;
        }
        struct text found = text_from(rest, at);
        size_t end = first.length_bytes;
        do
            end += text_index_of(text_from(found, end), last);
        while (end < found.length_bytes && !is_whole_word(found, end, last) && (end += last.length_bytes));
        if (end >= found.length_bytes)
            break;
        found.length_bytes = end + last.length_bytes;
        if (count_differences(found, kwarg[0].text) != 1)
            return false;
        count++;
        rest = text_from(rest, at + found.length_bytes);
    }
    return count == kwarg[1].whole;
}
