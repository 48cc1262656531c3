#include "server/base/cleanup.h"
#include "server/base/number.h"
#include "tests/unit/base/cmocka_all.h"
#include "tests/unit/base/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool same_bits(double left, double right)
{
    return memcmp(&left, &right, sizeof(left)) == 0;
}

static void assert_reads_like_strtod(const char *text)
{
    struct number number;
    const char *end = text + strlen(text);
    assert_ptr_equal(number_parse(text, end, &number), end);
    if (!same_bits(number.value, strtod(text, NULL)))
        fail_msg("%s was read as %.17g", text, number.value);
}

static void test_edges_are_read_like_strtod(void **state)
{
    (void)state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "-0.0",
                                        "0e0",
                                        "0e999999999999",
                                        "1",
                                        "-1",
                                        "0.1",
                                        "1e22",
                                        "1e23",
                                        "9007199254740991",
                                        "9007199254740992",
                                        "9007199254740993",
                                        "9007199254740994",
                                        "9007199254740993.0",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "123456789012345678901234567890",
                                        "2.2250738585072011e-308",
                                        "2.2250738585072014e-308",
                                        "4.9e-324",
                                        "2.47e-324",
                                        "2.4703282292062328e-324",
                                        "5e-324",
                                        "1.7976931348623157e308",
                                        "1.7976931348623158e308",
                                        "1e-400",
                                        "0.000000000000000000000000000000000000001",
                                        "0.3",
                                        "2.675",
                                        "1.0000000000000002",
                                        "1.00000000000000011102230246251565404236316680908203125",
                                        "1.00000000000000011102230246251565404236316680908203124",
                                        "1.00000000000000011102230246251565404236316680908203126",
                                        "1e-22",
                                        "1e-27",
                                        "123456789012345678e-27",
                                        "9223372036854775807e27",
                                        "6.0221407600000000e23",
                                        "0.1e1",
                                        "100e-2",
                                        "1E5",
                                        "1e+5"};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        assert_reads_like_strtod(texts[i]);
}

static void test_long_numbers_are_decided_by_their_last_digit(void **state)
{
    (void)state;
    char text[1200];
    /* 2^-1074 * 1.5 lies half way: 751 digits decide it, and one more digit anywhere behind */
    snprintf(text, sizeof(text), "%.1080f", ldexp(1, -1074) * 1);
    assert_reads_like_strtod(text);
    strcat(text, "0000000000000000000000000000001");
    assert_reads_like_strtod(text);
    memset(text, '1', 1000);
    text[1000] = '\0';
    assert_reads_like_strtod(text + 700);
    strcpy(text + 900, "e-500");
    assert_reads_like_strtod(text);
}

static void test_random_texts_are_read_like_strtod(void **state)
{
    (void)state;
    for (int i = 0; i < 300000; i++) {
        char text[80];
        unsigned long long first = random_u64() >> random_below(64);
        unsigned long long second = random_u64() >> random_below(64);
        if (i % 3 == 0)
            snprintf(text, sizeof(text), "%llu.%llue%d", first, second, (int)random_below(700) - 350);
        else if (i % 3 == 1)
            snprintf(text, sizeof(text), "-0.%0*llu", (int)random_below(30) + 1, first);
        else
            snprintf(text, sizeof(text), "%.*e", (int)random_below(20),
                     ldexp((double)(first >> 11), -(int)random_below(90)));
        assert_reads_like_strtod(text);
    }
}

static void test_integers_are_exact_to_64_bits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_integer;
        int64_t integer;
    } rows[] = {{"9223372036854775807", true, INT64_MAX},
                {"-9223372036854775808", true, INT64_MIN},
                {"9223372036854775808", false, 0},
                {"-9223372036854775809", false, 0},
                {"9007199254740993", true, INT64_C(9007199254740993)},
                {"99999999999999999999", false, 0},
                {"18446744073709551617", false, 0},
                {"-0", true, 0},
                {"1.0", false, 0},
                {"1e2", false, 0}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct number number;
        assert_non_null(number_parse(rows[i].text, rows[i].text + strlen(rows[i].text), &number));
        assert_int_equal(number.is_integer, rows[i].is_integer);
        if (rows[i].is_integer)
            assert_true(number.integer == rows[i].integer);
    }
}

static void test_a_text_that_is_no_number_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",   "-",  "+1",  ".5",   "1.", "01",  "-01",
                                        "00", "1e", "1e+", "1.e5", "x",  "NaN", "-.5"};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        struct number number;
        assert_null(number_parse(texts[i], texts[i] + strlen(texts[i]), &number));
    }
}

static void test_nothing_is_read_behind_the_end(void **state)
{
    (void)state;
    struct number number;
    static const char text[] = "123456.789e10";
    for (size_t length = 1; length < sizeof(text); length++) {
        _cleanup_free_ char *exact = xcalloc(length, 1); /* no byte more: a sanitizer sees a read behind it */
        memcpy(exact, text, length);
        const char *behind = number_parse(exact, exact + length, &number);
        assert_true(behind == NULL || behind == exact + length);
    }
}

static void test_beyond_the_range_is_infinite(void **state)
{
    (void)state;
    struct number number;
    static const char text[] = "-1e400";
    assert_non_null(number_parse(text, text + 6, &number));
    assert_true(isinf(number.value) && number.value < 0);
}

/* --- writing --- */

static void assert_double_reads_back(double value)
{
    char text[NUMBER_BYTES + 1];
    size_t length = number_format_double(value, text);
    assert_true(length <= NUMBER_BYTES);
    text[length] = '\0';
    if (!same_bits(strtod(text, NULL), value))
        fail_msg("%.17g was written as %s", value, text);
    assert_non_null(strpbrk(text, ".e"));
}

static void assert_float_reads_back(float value)
{
    char text[NUMBER_BYTES + 1];
    size_t length = number_format_float(value, text);
    text[length] = '\0';
    float direct = strtof(text, NULL);
    float through_double = (float)strtod(text, NULL);
    if (memcmp(&direct, &value, sizeof(value)) != 0 || memcmp(&through_double, &value, sizeof(value)) != 0)
        fail_msg("%.9g was written as %s", (double)value, text);
}

/* By the definition of printf: one digit less, rounded to the nearest, is another number; and of those with as many
 * digits the written one is the nearest. */
static void assert_shortest(double value)
{
    char text[NUMBER_BYTES + 1];
    char fewer[40];
    char nearest[40];
    char digits[NUMBER_BYTES + 1];
    int count = 0;
    text[number_format_double(value, text)] = '\0';
    for (const char *at = text; *at && *at != 'e'; at++)
        if (*at >= '0' && *at <= '9' && (count > 0 || *at != '0'))
            digits[count++] = *at;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    digits[count] = '\0';
    snprintf(fewer, sizeof(fewer), "%.*e", count - 2 < 0 ? 0 : count - 2, value);
    if (count > 1 && strtod(fewer, NULL) == value)
        fail_msg("%s is shorter than %s", fewer, text);
    snprintf(nearest, sizeof(nearest), "%.*e", count - 1, value);
    if (strtod(nearest, NULL) == value)
        assert_true(nearest[value < 0] == digits[0] &&
                    (count == 1 || strncmp(nearest + (value < 0) + 2, digits + 1, (size_t)count - 1) == 0));
}

static void test_numbers_are_written_in_the_shortest_form(void **state)
{
    (void)state;
    for (int i = 0; i < 30000; i++) {
        uint64_t bits = random_u64() >> (i % 4 ? 0 : random_below(64));
        double value;
        memcpy(&value, &bits, sizeof(value));
        if (isfinite(value) && value != 0)
            assert_shortest(value);
        assert_shortest((double)((bits >> 44) + 1) / 1000);
    }
}

static void test_random_bit_patterns_read_back_the_same(void **state)
{
    (void)state;
    for (int i = 0; i < 500000; i++) {
        uint64_t bits = random_u64();
        double wide;
        float narrow;
        memcpy(&wide, &bits, sizeof(wide));
        memcpy(&narrow, &bits, sizeof(narrow));
        if (isfinite(wide))
            assert_double_reads_back(wide);
        if (isfinite(narrow))
            assert_float_reads_back(narrow);
        assert_double_reads_back(ldexp((double)(bits >> 11), (int)(bits & 127) - 110));
        assert_float_reads_back((float)ldexp((double)(bits >> 40), (int)(bits & 63) - 60));
    }
}

static void test_neighbours_of_powers_read_back_the_same(void **state)
{
    (void)state;
    for (int power = -358; power < 341; power++) {
        char text[16];
        snprintf(text, sizeof(text), "1e%d", power < -323 ? -323 : power > 308 ? 308 : power);
        double ten = strtod(text, NULL);
        double two = ldexp(1, 3 * power);
        for (int side = -2; side <= 2; side++) {
            double near_ten = ten;
            double near_two = two;
            for (int i = 0; i < abs(side); i++) {
                near_ten = nextafter(near_ten, side < 0 ? 0 : INFINITY);
                near_two = nextafter(near_two, side < 0 ? 0 : INFINITY);
            }
            assert_double_reads_back(near_ten);
            assert_double_reads_back(-near_two);
            if (near_ten > 0)
                assert_shortest(near_ten);
            if (near_two > 0)
                assert_shortest(near_two);
        }
        if (power > -38 && power < 38)
            assert_float_reads_back(nextafterf((float)ten, 0));
        assert_float_reads_back((float)two);
    }
}

static void test_short_decimals_stay_short(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {{0, "0.0"},
                {-0.0, "-0.0"},
                {1, "1.0"},
                {-1.5, "-1.5"},
                {0.1, "0.1"},
                {0.866, "0.866"},
                {7.6, "7.6"},
                {100, "100.0"},
                {1e15, "1000000000000000.0"},
                {1e16, "1e16"},
                {1e-4, "0.0001"},
                {1e-5, "1e-5"},
                {1.5e-7, "1.5e-7"},
                {1e22, "1e22"},
                {1e300, "1e300"},
                {0.3, "0.3"},
                {5e-324, "5e-324"},                                   /* the least subnormal, 4.94…e-324 */
                {2.2250738585072014e-308, "2.2250738585072014e-308"}, /* the least normal */
                {2.225073858507201e-308, "2.225073858507201e-308"},   /* the greatest subnormal */
                {1.7976931348623157e308, "1.7976931348623157e308"},
                {9007199254740992, "9007199254740992.0"},
                {9.5367431640625e-7, "9.5367431640625e-7"},       /* 2^-20: the neighbour below is nearer */
                {2e-323, "2e-323"},                               /* of 1.97…e-323 and its neighbours */
                {1.2345678901234567e16, "1.2345678901234568e16"}, /* even */
                {12345.0, "12345.0"},
                {1234567890123456.0, "1234567890123456.0"},
                {123456.789, "123456.789"}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        char text[NUMBER_BYTES + 1];
        text[number_format_double(rows[i].value, text)] = '\0';
        assert_string_equal(text, rows[i].text);
    }
    char text[NUMBER_BYTES + 1];
    text[number_format_float(-0.12345f, text)] = '\0';
    assert_string_equal(text, "-0.12345");
    text[number_format_float(16777216.0f, text)] = '\0';
    assert_string_equal(text, "16777216.0");
}

static void test_integers_are_written_like_printf(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        char text[NUMBER_BYTES + 1];
        char expected[NUMBER_BYTES + 1];
        uint64_t value = i < 1000 ? (uint64_t)i : random_u64() >> random_below(64);
        text[number_format_u64(value, text)] = '\0';
        snprintf(expected, sizeof(expected), "%llu", (unsigned long long)value);
        assert_string_equal(text, expected);
        text[number_format_i64((int64_t)value, text)] = '\0';
        snprintf(expected, sizeof(expected), "%lld", (long long)value);
        assert_string_equal(text, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges_are_read_like_strtod),
        cmocka_unit_test(test_long_numbers_are_decided_by_their_last_digit),
        cmocka_unit_test(test_random_texts_are_read_like_strtod),
        cmocka_unit_test(test_integers_are_exact_to_64_bits),
        cmocka_unit_test(test_a_text_that_is_no_number_is_refused),
        cmocka_unit_test(test_nothing_is_read_behind_the_end),
        cmocka_unit_test(test_beyond_the_range_is_infinite),
        cmocka_unit_test(test_random_bit_patterns_read_back_the_same),
        cmocka_unit_test(test_neighbours_of_powers_read_back_the_same),
        cmocka_unit_test(test_numbers_are_written_in_the_shortest_form),
        cmocka_unit_test(test_short_decimals_stay_short),
        cmocka_unit_test(test_integers_are_written_like_printf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
