/* Runs of words: ngrams_count() against a count that compares every two runs. Input: a byte for n, then the text. */
#include "tests/fuzz/fuzz.h"
#include "verifiers/text/ngrams.h"

#define WORDS_MAX 512 /* of the slow count */

static bool is_space(char byte)
{
    return byte && strchr(" \t\n\v\f\r", byte);
}

static size_t split(struct text text, struct text words[WORDS_MAX])
{
    size_t count = 0;

    for (size_t at = 0; at < text.length_bytes && count < WORDS_MAX;) {
        size_t start = at;
        while (at < text.length_bytes && !is_space(text.data[at]))
            at++;
        if (at > start)
            words[count++] = (struct text){text.data + start, at - start};
        else
            at++;
    }
    return count;
}

static bool same_run(const struct text *left, const struct text *right, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!text_same(left[i], right[i]))
            return false;
    return true;
}

static size_t count_distinct(const struct text *words, size_t runs, size_t n)
{
    size_t distinct = 0;

    for (size_t i = 0; i < runs; i++) {
        size_t before = 0;
        while (before < i && !same_run(words + before, words + i, n))
            before++;
        distinct += before == i;
    }
    return distinct;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    static struct text words[WORDS_MAX];
    struct text text = {(const char *)data, size_bytes};
    size_t n = fuzz_take_byte(&text) % 32 + 1U;
    size_t count = split(text, words);
    struct ngrams found = ngrams_count(text, n);

    if (count == WORDS_MAX)
        return 0;
    FUZZ_CHECK(found.words == count);
    FUZZ_CHECK(found.all == (n > count ? 0 : count - n + 1));
    FUZZ_CHECK(found.distinct == count_distinct(words, found.all, n));
    return 0;
}
