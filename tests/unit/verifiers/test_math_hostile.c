/* Answers that are written against the parser: long, deep, and where memory ends. */
#include "tests/unit/base/cmocka_all.h"

#include "server/base/cleanup.h"
#include "verifiers/math/parse.h"

#include <string.h>

#define ARENA_BYTES (8 << 20)

static enum math_parse_status read_limited(struct text answer, int max_depth, size_t arena_bytes)
{
    _cleanup_math_arena_ struct math_arena *arena = math_arena_create(arena_bytes);
    struct math_reading reading = {.max_depth = max_depth};
    struct math_parse_error error = {0, NULL};
    struct math_node *node;
    enum math_parse_status status = math_parse(arena, answer, &reading, &node, &error);

    assert_true((status == MATH_PARSED) == (node != NULL));
    assert_true(status == MATH_PARSED || (error.expected && error.at_bytes <= answer.length_bytes));
    return status;
}

static enum math_parse_status read_text(struct text answer, int max_depth)
{
    return read_limited(answer, max_depth, ARENA_BYTES);
}

/* --- length --- */

static void append_times(struct buffer *out, const char *what, size_t times)
{
    for (size_t i = 0; i < times; i++)
        buffer_append_string(out, what);
}

static const char *const pieces[] = {
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "^",
    "_",
    "!",
    "|",
    "'",
    "+",
    "-",
    "*",
    "/",
    "=",
    "<",
    ".",
    ",",
    ":",
    ";",
    "&",
    "%",
    "$",
    "~",
    "0",
    "9",
    "a",
    "e",
    "x",
    "E",
    "Z",
    " ",
    "\\",
    "\\\\",
    "\\frac",
    "\\frac{",
    "\\frac1",
    "\\sqrt",
    "\\sqrt{",
    "\\sqrt[",
    "\\left(",
    "\\{",
    "\\text{",
    "\\text{a",
    "\\text{1",
    "\\mathrm{",
    "\\mathrm{a",
    "\\mathbf{",
    "\\binom{",
    "\\lvert",
    "\\lfloor ",
    "\\sin ",
    "\\log_",
    "\\sum_{",
    "\\int ",
    "\\lim_{",
    "\\overline{",
    "\\vec{",
    "\\pm ",
    "\\cdot ",
    "\\cup ",
    "\\langle ",
    "\\det",
    "\\boxed{",
    "\\$",
    "\\%",
    "^\\circ",
    "x^",
    "x_",
    "x_{",
    "-x^",
    "f(",
    "f(x)=",
    "x=",
    "(1,",
    "1,",
    "1,000,",
    "1 ",
    "1{,}",
    "1A",
    "A1_",
    "(1",
    "{1",
    "1/",
    "1:",
    "x|",
    "\\{x|",
    "0.\\dot1",
    "\\begin{pmatrix}",
    "\\begin{array}{c}",
    "1&",
    "1\\\\",
    "{n\\choose ",
    "\\quad",
    "5 cm ",
    "apples ",
    "and ",
    "\u00bd",
    "\u00b2",
    "\u221a",
    "\u2212",
    "\u00e9",
    "\u00a0",
    "\uff11",
    "\x00",
    "\x80",
    "\xff",
    "\\operatorname{",
    "\\mathbb{R}^{",
    "\\max\\{",
    "2\\frac12",
    "\\pmod ",
    "x!",
    "1 1/",
    "\\int x d",
    "\\text{ and }",
    "\\left|",
    "sinx",
    "\\frac{d",
};

static void test_eight_kilobytes_of_any_piece_are_answered(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(pieces); i++) {
        _cleanup_buffer_ struct buffer answer;
        size_t length = pieces[i][0] ? strlen(pieces[i]) : 1;
        buffer_init(&answer, 2 * MATH_ANSWER_BYTES);
        while (answer.length_bytes + length < MATH_ANSWER_BYTES)
            buffer_append(&answer, pieces[i], length);
        read_text(buffer_text(&answer), 256);
        read_text(buffer_text(&answer), 1024);
        buffer_append_byte(&answer, '1');
        read_text(buffer_text(&answer), 1024);
    }
}

static void test_every_single_byte_and_pair_of_bytes_is_answered(void **state)
{
    (void)state;
    for (int first = 0; first < 256; first++) {
        for (int second = 0; second < 256; second++) {
            char bytes[] = {(char)first, (char)second};
            read_text((struct text){bytes, 2}, 256);
        }
        read_text((struct text){(const char[]){(char)first}, 1}, 256);
    }
}

static void test_an_answer_beyond_the_limit_is_too_large_whatever_it_says(void **state)
{
    _cleanup_buffer_ struct buffer answer;

    (void)state;
    buffer_init(&answer, 2 * MATH_ANSWER_BYTES);
    append_times(&answer, " ", MATH_ANSWER_BYTES - 1);
    buffer_append_byte(&answer, '7');
    assert_int_equal(read_text(buffer_text(&answer), 256), MATH_PARSED);
    buffer_append_byte(&answer, ' ');
    assert_int_equal(read_text(buffer_text(&answer), 256), MATH_TOO_LARGE);
}

/* --- depth --- */

static const struct {
    const char *opening, *closing;
} nestings[] = {
    {"(", ")"},          {"{", "}"},
    {"[1+", "]"},        {"\\{", "\\}"},
    {"|", "|"},          {"\\lvert ", "\\rvert "},
    {"\\sqrt{", "}"},    {"\\frac{", "}{1}"},
    {"\\frac{1}{", "}"}, {"x^{", "}"},
    {"\\sin(", ")"},     {"(1,", ")"},
    {"\\text{1", "}"},   {"\\binom{1}{", "}"},
    {"f(", ")"},         {"\\lfloor ", "\\rfloor "},
    {"\\sqrt", ""},      {"x^", ""},
    {"\\sin ", ""},      {"\\overline{1+", "}"},
};

static enum math_parse_status read_nested(size_t which, size_t depth, int max_depth)
{
    _cleanup_buffer_ struct buffer answer;

    buffer_init(&answer, 1 << 16);
    append_times(&answer, nestings[which].opening, depth);
    buffer_append_byte(&answer, '1');
    append_times(&answer, nestings[which].closing, depth);
    return read_text(buffer_text(&answer), max_depth);
}

static void test_nesting_is_read_up_to_the_limit_and_refused_as_too_large_beyond(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(nestings); i++) {
        if (read_nested(i, 20, 256) == MATH_UNPARSED)
            continue; /* bars that close as they open, digits in a row */
        assert_int_equal(read_nested(i, 120, 256), MATH_PARSED);
        assert_int_equal(read_nested(i, 300, 256), MATH_TOO_LARGE);
        assert_int_not_equal(read_nested(i, 1000, 1024), MATH_UNPARSED);
    }
}

static void test_brackets_are_counted_exactly(void **state)
{
    (void)state;
    assert_int_equal(read_nested(0, 256, 256), MATH_PARSED);
    assert_int_equal(read_nested(0, 257, 256), MATH_TOO_LARGE);
    assert_int_equal(read_nested(0, 3, 3), MATH_PARSED);
    assert_int_equal(read_nested(0, 4, 3), MATH_TOO_LARGE);
}

static void test_a_long_chain_of_divisions_is_deep_too(void **state)
{
    _cleanup_buffer_ struct buffer answer;

    (void)state;
    buffer_init(&answer, 1 << 16);
    append_times(&answer, "1/", 4000);
    buffer_append_byte(&answer, '1');
    assert_int_equal(read_text(buffer_text(&answer), 256), MATH_TOO_LARGE);
}

/* --- size --- */

static void test_exponents_of_ten_and_digits_are_bounded_before_they_are_computed(void **state)
{
    _cleanup_buffer_ struct buffer digits;

    (void)state;
    assert_int_equal(read_text(text_of("1e16384"), 256), MATH_PARSED);
    assert_int_equal(read_text(text_of("1e16385"), 256), MATH_TOO_LARGE);
    assert_int_equal(read_text(text_of("1E-99999999999999999999999"), 256), MATH_TOO_LARGE);
    buffer_init(&digits, MATH_ANSWER_BYTES);
    append_times(&digits, "9", 8000);
    assert_int_equal(read_text(buffer_text(&digits), 256), MATH_PARSED);
    buffer_append_string(&digits, "e16384");
    assert_int_equal(read_text(buffer_text(&digits), 256), MATH_TOO_LARGE);
}

static void test_an_arena_that_is_full_at_any_point_is_too_large(void **state)
{
    static const char *const answers[] = {
        "1\\frac{5}{12}+x_1^{2}\\sin 2x",
        "\\{x \\in \\mathbb{R} : 0 \\le x < 1\\}",
        "(-\\infty,1]\\cup[2,\\infty)",
        "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}",
        "f(x)=\\int_0^1 9x^2\\,dx",
        "12{,}000.5\\text{ km/h}, \\$5 or 2A_{16}",
        "all odd primes",
        "\\text{Yes}",
        "a \\equiv 3 \\pmod{7}",
        "\\overline{AB}=\\frac{dy}{dx}",
        "2\\pm\\sqrt[3]{-8}, 12:30 pm",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(answers); i++) {
        size_t bytes = 0;
        while (read_limited(text_of(answers[i]), 256, bytes) == MATH_TOO_LARGE)
            bytes += 16;
        assert_int_equal(read_limited(text_of(answers[i]), 256, bytes), MATH_PARSED);
        assert_in_range(bytes, 64, 20000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eight_kilobytes_of_any_piece_are_answered),
        cmocka_unit_test(test_every_single_byte_and_pair_of_bytes_is_answered),
        cmocka_unit_test(test_an_answer_beyond_the_limit_is_too_large_whatever_it_says),
        cmocka_unit_test(test_nesting_is_read_up_to_the_limit_and_refused_as_too_large_beyond),
        cmocka_unit_test(test_brackets_are_counted_exactly),
        cmocka_unit_test(test_a_long_chain_of_divisions_is_deep_too),
        cmocka_unit_test(test_exponents_of_ten_and_digits_are_bounded_before_they_are_computed),
        cmocka_unit_test(test_an_arena_that_is_full_at_any_point_is_too_large),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
