#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "tests/unit/base/cmocka_all.h"

static void test_an_instant_is_written_with_six_digits_and_z(void **state)
{
    (void)state;
    char text[RFC3339_BYTES];
    clock_format_rfc3339(0, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000000Z");
    clock_format_rfc3339(INT64_C(1709210096123456), text); /* a leap day: 19782 days and 44096 s after 1970 */
    assert_string_equal(text, "2024-02-29T12:34:56.123456Z");
    clock_format_rfc3339(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999999Z");
}

static void test_instants_with_offset_and_short_fraction_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t utc_us;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T00:00:00.5Z", 500000},
        {"1970-01-01T01:00:00.000001+01:00", 1},
        {"1969-12-31T23:30:00-00:30", 0},
        {"2024-02-29t12:34:56.123456z", INT64_C(1709210096123456)},
        {"9999-12-31T23:59:59.999999Z", INT64_C(253402300799999999)},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        int64_t utc_us = -1;
        assert_true(clock_parse_rfc3339(text_of(rows[i].text), &utc_us));
        assert_int_equal(utc_us, rows[i].utc_us);
    }
}

static void test_a_text_that_is_no_instant_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "1970-01-01",
                                        "1970-01-01T00:00:00",
                                        "1970-13-01T00:00:00Z",
                                        "2023-02-29T00:00:00Z",
                                        "1970-01-01T24:00:00Z",
                                        "1970-01-01T00:00:00.Z",
                                        "1970-01-01T00:00:00.1234567Z",
                                        "1970-01-01T00:00:00Zx",
                                        "1970-01-01T00:00:00+1:00",
                                        "1969-12-31T23:59:59Z",
                                        "1970-01-01T00:00:00+00:60",
                                        "+970-01-01T00:00:00Z"};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        int64_t utc_us = 7;
        assert_false(clock_parse_rfc3339(text_of(texts[i]), &utc_us));
        assert_int_equal(utc_us, 7);
    }
}

static void test_durations_have_digits_and_one_unit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t us;
    } rows[] = {{"250us", 250},     {"250ms", 250000},
                {"30s", 30000000},  {"5m", 300000000},
                {"2h", 7200000000}, {"1d", INT64_C(86400000000)},
                {"0s", 0},          {"36500d", INT64_C(36500) * 86400000000},
                {"007s", 7000000}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        int64_t us = -1;
        assert_true(duration_parse(text_of(rows[i].text), &us));
        assert_int_equal(us, rows[i].us);
    }
}

static void test_a_text_that_is_no_duration_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "30", "s", "-1s", "+1s", "1.5s", "30 s", "30S", "1h30m", "36501d", "999999999999999999999s", "1w"};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        int64_t us = 7;
        assert_false(duration_parse(text_of(texts[i]), &us));
        assert_int_equal(us, 7);
    }
    int64_t us;
    assert_false(duration_parse((struct text){"1s\0", 3}, &us));
}

static void test_a_duration_is_written_in_its_largest_exact_unit(void **state)
{
    (void)state;
    char text[32];
    duration_format(30 * US_PER_S, text);
    assert_string_equal(text, "30s");
    duration_format(1500 * US_PER_MS, text);
    assert_string_equal(text, "1500ms");
    duration_format(120 * US_PER_S, text);
    assert_string_equal(text, "2m");
    duration_format(1, text);
    assert_string_equal(text, "1us");
    duration_format(0, text);
    assert_string_equal(text, "0s");
}

static void test_sizes_are_powers_of_1024(void **state)
{
    (void)state;
    int64_t bytes = 0;
    char text[32];
    assert_true(size_parse(TEXT_LITERAL("64MiB"), &bytes));
    assert_int_equal(bytes, 64 * 1024 * 1024);
    assert_true(size_parse(TEXT_LITERAL("500B"), &bytes));
    assert_int_equal(bytes, 500);
    assert_true(size_parse(TEXT_LITERAL("12"), &bytes));
    assert_int_equal(bytes, 12);
    assert_false(size_parse(TEXT_LITERAL("64MB"), &bytes));
    assert_false(size_parse(TEXT_LITERAL("9999999TiB"), &bytes));
    size_format(INT64_C(1) << 30, text);
    assert_string_equal(text, "1GiB");
    size_format(1536, text);
    assert_string_equal(text, "1536B");
}

static void test_the_monotonic_clock_never_goes_back(void **state)
{
    (void)state;
    int64_t last_us = clock_monotonic_us();
    for (int i = 0; i < 1000; i++) {
        int64_t now_us = clock_monotonic_us();
        assert_true(now_us >= last_us);
        last_us = now_us;
    }
}

static void test_pauses_double_up_to_a_bound_and_are_spread(void **state)
{
    int64_t first_us = backoff_us(1, 100, 1000, 7);
    bool differs = false;

    (void)state;
    for (unsigned tries = 1; tries < 100; tries++) {
        int64_t whole_us = tries < 5 ? 100 << (tries - 1) : 1000;
        int64_t pause_us = backoff_us(tries, 100, 1000, tries * UINT64_C(12345));
        assert_true(pause_us >= whole_us / 2 && pause_us < whole_us);
    }
    for (uint64_t spread = 0; spread < 16; spread++)
        differs = differs || backoff_us(1, 100, 1000, spread) != first_us;
    assert_true(differs);
    assert_int_equal(backoff_us(1, 100, 1000, 7), first_us);
    assert_int_equal(backoff_us(3, 0, 0, 7), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses_double_up_to_a_bound_and_are_spread),
        cmocka_unit_test(test_an_instant_is_written_with_six_digits_and_z),
        cmocka_unit_test(test_instants_with_offset_and_short_fraction_are_read),
        cmocka_unit_test(test_a_text_that_is_no_instant_is_refused),
        cmocka_unit_test(test_durations_have_digits_and_one_unit),
        cmocka_unit_test(test_a_text_that_is_no_duration_is_refused_and_changes_nothing),
        cmocka_unit_test(test_a_duration_is_written_in_its_largest_exact_unit),
        cmocka_unit_test(test_sizes_are_powers_of_1024),
        cmocka_unit_test(test_the_monotonic_clock_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
