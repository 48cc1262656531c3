/* Runs of words that come again, counted exactly and in bounded time. */
#include "tests/unit/verifiers/grade.h"
#include "verifiers/text/ngrams.h"

#include <stdlib.h>

static void expect_count(const char *text, size_t n, size_t words, size_t all, size_t distinct)
{
    struct ngrams found = ngrams_count(text_of(text), n);

    if (found.words != words || found.all != all || found.distinct != distinct)
        fail_msg("\"%s\", n %zu: %zu words, %zu of %zu runs differ; expected %zu, %zu of %zu", text, n, found.words,
                 found.distinct, found.all, words, distinct, all);
}

static void test_runs_are_counted_by_hand(void **state)
{
    (void)state;
    expect_count("a b c a b c", 3, 6, 4, 3);
    expect_count("a b c a b c", 1, 6, 6, 3);
    expect_count("a b c a b c", 6, 6, 1, 1);
    expect_count("a b a b a b a b", 3, 8, 6, 2);
    expect_count("a b a b a b a b", 5, 8, 4, 2);
    expect_count("a b a b a b a b", 7, 8, 2, 2);
    expect_count("a a a a a a a", 4, 7, 4, 1);
}

static void test_a_text_shorter_than_a_run_has_none(void **state)
{
    (void)state;
    expect_count("", 1, 0, 0, 0);
    expect_count(" \t\r\n\v\f", 1, 0, 0, 0);
    expect_count("a b", 3, 2, 0, 0);
    expect_count("a b", (size_t)-1, 2, 0, 0);
}

static void test_only_ascii_white_space_parts_words(void **state)
{
    (void)state;
    expect_count("a\tb\na\vb\fa\rb", 2, 6, 5, 2);
    expect_count("a\xc2\xa0"
                 "b a\xc2\xa0"
                 "b",
                 1, 2, 2, 1);
    expect_count("a. a", 1, 2, 2, 2);
    struct ngrams found = ngrams_count((struct text){"a\0b a\0c", 7}, 1);
    assert_int_equal(found.words, 2);
    assert_int_equal(found.distinct, 2);
}

static void test_words_that_begin_or_end_alike_differ(void **state)
{
    (void)state;
    expect_count("aaaaaaaa aaaaaaaab aaaaaaaa aaaaaaaac aaaaaaa aaaaaaaaaaaaaaaa", 1, 6, 6, 5);
    expect_count("ab c a bc", 2, 4, 3, 3);
}

/* --- against a count that compares every two runs --- */

#define LETTERS 200

static size_t count_slowly(const char *letters, size_t count, size_t n)
{
    size_t distinct = 0;

    for (size_t i = 0; i + n <= count; i++) {
        size_t before = 0;
        while (before < i && memcmp(letters + before, letters + i, n) != 0)
            before++;
        distinct += before == i;
    }
    return distinct;
}

static void test_every_length_agrees_with_a_slow_count(void **state)
{
    char letters[LETTERS];
    char text[LETTERS * 2];
    unsigned seed = 15;

    (void)state;
    for (unsigned alphabet = 1; alphabet <= 4; alphabet++) {
        for (size_t i = 0; i < LETTERS; i++) {
            seed = seed * 1103515245 + 12345;
            letters[i] = (char)('a' + (seed >> 16) % alphabet);
            text[i * 2] = letters[i];
            text[i * 2 + 1] = ' ';
        }
        memcpy(letters + LETTERS / 2, letters, LETTERS / 2); /* long runs come again, too */
        for (size_t i = 0; i < LETTERS; i++)
            text[i * 2] = letters[i];
        for (size_t n = 1; n <= LETTERS; n++)
            assert_int_equal(ngrams_count((struct text){text, sizeof text}, n).distinct,
                             count_slowly(letters, LETTERS, n));
    }
}

static void test_words_beyond_the_bound_do_not_count(void **state)
{
    size_t bytes = (size_t)8 << 20;
    _cleanup_free_ char *text = xrealloc(NULL, bytes);

    (void)state;
    for (size_t i = 0; i < bytes; i++)
        text[i] = i % 2 ? ' ' : 'w';
    struct ngrams found = ngrams_count((struct text){text, bytes}, 3);
    assert_int_equal(found.words, NGRAMS_WORDS_MAX);
    assert_int_equal(found.all, NGRAMS_WORDS_MAX - 2);
    assert_int_equal(found.distinct, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_are_counted_by_hand),
        cmocka_unit_test(test_a_text_shorter_than_a_run_has_none),
        cmocka_unit_test(test_only_ascii_white_space_parts_words),
        cmocka_unit_test(test_words_that_begin_or_end_alike_differ),
        cmocka_unit_test(test_every_length_agrees_with_a_slow_count),
        cmocka_unit_test(test_words_beyond_the_bound_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
