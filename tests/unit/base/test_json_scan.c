#include "server/base/json_scan.h"
#include "tests/unit/base/cmocka_all.h"
#include "tests/unit/base/random_json.h"

#include <jansson.h>
#include <math.h>

static struct json_scan scan_of(struct text text)
{
    struct json_scan scan;
    json_scan_init(&scan, text);
    return scan;
}

/* --- against jansson --- */

static void assert_same(struct json_scan *scan, const json_t *value);

static void assert_same_members(struct json_scan *scan, const json_t *value)
{
    struct text key;
    size_t count = 0;
    for (json_scan_object(scan); json_scan_member(scan, &key); count++) {
        char name[16] = "";
        memcpy(name, key.data, key.length_bytes < 15 ? key.length_bytes : 15);
        assert_same(scan, json_object_get(value, name));
    }
    assert_int_equal(count, json_object_size(value));
}

static void assert_same_elements(struct json_scan *scan, const json_t *value)
{
    size_t count = 0;
    for (json_scan_array(scan); json_scan_element(scan); count++)
        assert_same(scan, json_array_get(value, count));
    assert_int_equal(count, json_array_size(value));
}

static void assert_same_string(struct json_scan *scan, const json_t *value)
{
    _cleanup_buffer_ struct buffer string;
    buffer_init(&string, 10000);
    assert_true(json_scan_string(scan, &string));
    assert_int_equal(string.length_bytes, json_string_length(value));
    assert_memory_equal(buffer_text(&string).data, json_string_value(value), string.length_bytes);
}

static void assert_same_number(struct json_scan *scan, const json_t *value)
{
    int64_t integer = 0;
    double number = 0;
    double expected = json_real_value(value);
    if (json_is_integer(value)) {
        assert_true(json_scan_integer(scan, &integer));
        assert_true(integer == json_integer_value(value));
        return;
    }
    assert_true(json_scan_number(scan, &number));
    assert_memory_equal(&number, &expected, sizeof(number));
}

static void assert_same(struct json_scan *scan, const json_t *value)
{
    bool boolean = false;
    switch (json_scan_peek(scan)) {
    case JSON_KIND_OBJECT:
        assert_true(json_is_object(value));
        assert_same_members(scan, value);
        break;
    case JSON_KIND_ARRAY:
        assert_true(json_is_array(value));
        assert_same_elements(scan, value);
        break;
    case JSON_KIND_STRING:
        assert_same_string(scan, value);
        break;
    case JSON_KIND_NUMBER:
        assert_same_number(scan, value);
        break;
    case JSON_KIND_BOOL:
        assert_true(json_scan_bool(scan, &boolean));
        assert_int_equal(boolean, json_is_true(value));
        break;
    case JSON_KIND_NULL:
        assert_true(json_scan_null(scan));
        assert_true(json_is_null(value));
        break;
    case JSON_KIND_NONE:
        fail_msg("no value where jansson has one: %s", scan->error ? scan->error : "");
    }
}

static void test_random_documents_have_jansson_s_values(void **state)
{
    (void)state;
    for (int i = 0; i < 3000; i++) {
        _cleanup_buffer_ struct buffer text;
        json_error_t error;
        buffer_init(&text, 1000000);
        random_value(&text, 5);
        json_t *root = json_loadb(text.data, text.length_bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        if (!root)
            fail_msg("jansson refuses %s: %s", text.data, error.text);
        struct json_scan scan = scan_of(buffer_text(&text));
        assert_same(&scan, root);
        assert_true(json_scan_end(&scan));
        assert_int_equal(scan.replaced, 0);
        json_decref(root);
    }
}

/* 1, 0, or -1 where jansson stopped at one of its own limits: numbers beyond the range, NUL in keys. */
static int jansson_accepts(struct text text)
{
    json_error_t error;
    json_t *root = json_loadb(text.data, text.length_bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    bool limit = !root && (json_error_code(&error) == json_error_numeric_overflow ||
                           json_error_code(&error) == json_error_null_byte_in_key);
    json_decref(root);
    return limit ? -1 : root != NULL;
}

static bool scan_accepts(struct text text)
{
    struct json_scan scan = scan_of(text);
    return json_scan_raw(&scan).data && json_scan_end(&scan);
}

static void spoil(struct buffer *text)
{
    static const char bytes[] = "\"\\{}[],:0-.eE+ntf \n\x01\xc3\xff";
    for (uint64_t i = 0, count = 1 + random_below(3); i < count && text->length_bytes > 0; i++) {
        size_t place = random_below(text->length_bytes);
        if (random_below(2)) {
            text->data[place] = bytes[random_below(sizeof(bytes) - 1)];
        } else {
            memmove(text->data + place, text->data + place + 1, text->length_bytes - place);
            text->length_bytes--;
        }
    }
}

static void test_spoiled_documents_are_refused_when_jansson_refuses(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        _cleanup_buffer_ struct buffer text;
        buffer_init(&text, 1000000);
        random_value(&text, 3);
        spoil(&text);
        int accepted = jansson_accepts(buffer_text(&text));
        if (accepted >= 0 && accepted != scan_accepts(buffer_text(&text)))
            fail_msg("jansson %s: %.*s", accepted ? "accepts" : "refuses", (int)text.length_bytes, text.data);
    }
}

static void test_a_document_cut_anywhere_is_refused(void **state)
{
    (void)state;
    static const char document[] =
        "{\"a\\u00e9\": [1.5e3, -0, null, true, false, \"\\ud83d\\ude00\\n\"], \"b\": {\"c\": \"\xc3\xa9\"}}";
    size_t whole = sizeof(document) - 1;
    assert_true(scan_accepts(TEXT_LITERAL(document)));
    for (size_t length = 0; length < whole; length++) {
        _cleanup_free_ char *exact = malloc(length + 1); /* a sanitizer sees a read behind it */
        memcpy(exact, document, length);
        exact = realloc(exact, length ? length : 1);
        struct json_scan scan = scan_of((struct text){exact, length});
        json_scan_skip(&scan);
        assert_false(json_scan_end(&scan));
        assert_false(json_scan_ok(&scan));
    }
}

/* --- numbers that are none --- */

static void test_nan_and_infinity_are_read_in_every_spelling(void **state)
{
    (void)state;
    static const char *const spellings[] = {"NaN",       "nan",  "-nan", "NAN", "Infinity",
                                            "-Infinity", "+Inf", "-Inf", "inf", "-inf"};
    for (size_t i = 0; i < ARRAY_LENGTH(spellings); i++) {
        double value = 0;
        struct json_scan scan = scan_of(text_of(spellings[i]));
        assert_int_equal(json_scan_peek(&scan), JSON_KIND_NUMBER);
        assert_true(json_scan_number(&scan, &value));
        assert_true(json_scan_end(&scan));
        assert_int_equal(isnan(value), strpbrk(spellings[i], "aA") != NULL);
        if (!isnan(value))
            assert_int_equal(signbit(value) != 0, spellings[i][0] == '-');
    }
}

static void test_words_that_only_begin_like_nan_are_refused(void **state)
{
    (void)state;
    static const char *const words[] = {"NaNs", "nanx", "Infinit", "infinityy", "+1",
                                        "+",    "nul",  "nulls",   "--Inf",     "Na"};
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
        double value;
        struct json_scan scan = scan_of(text_of(words[i]));
        assert_false(json_scan_number(&scan, &value) && json_scan_end(&scan));
    }
}

static void test_nan_is_skipped_but_never_handed_on(void **state)
{
    (void)state;
    struct json_scan scan = scan_of(TEXT_LITERAL("[NaN, -Infinity]"));
    assert_true(json_scan_skip(&scan) && json_scan_end(&scan));
    scan = scan_of(TEXT_LITERAL("[NaN]"));
    assert_null(json_scan_raw(&scan).data);
    assert_false(json_scan_ok(&scan));
}

static void test_a_number_beyond_double_is_an_error(void **state)
{
    (void)state;
    double value;
    struct json_scan scan = scan_of(TEXT_LITERAL("1e400"));
    assert_false(json_scan_number(&scan, &value));
    assert_false(json_scan_ok(&scan));
}

/* --- strings --- */

static void assert_string(const char *json, const char *expected, uint64_t replaced)
{
    _cleanup_buffer_ struct buffer string;
    struct json_scan scan = scan_of(text_of(json));
    buffer_init(&string, 1000);
    assert_true(json_scan_string(&scan, &string) && json_scan_end(&scan));
    assert_true(text_equals(buffer_text(&string), expected));
    assert_int_equal(scan.replaced, replaced);
}

static void test_lone_surrogates_and_broken_bytes_become_replacements_and_are_counted(void **state)
{
    (void)state;
    assert_string("\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", 0);
    assert_string("\"\\ud83d\"", "\xef\xbf\xbd", 1);
    assert_string("\"\\ude00x\"", "\xef\xbf\xbdx", 1);
    assert_string("\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80", 1);
    assert_string("\"\\ud83d\\u0041\"",
                  "\xef\xbf\xbd"
                  "A",
                  1);
    assert_string("\"a\xff"
                  "b\xe2\x82\"",
                  "a\xef\xbf\xbd"
                  "b\xef\xbf\xbd",
                  2);
}

static void test_bytes_that_no_string_may_hold_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"\"a\nb\"", "\"\\x\"", "\"\\u12\"", "\"\\u12G4\"",     "\"",
                                        "\"\\",     "\"\\\"",  "'a'",       "\"12345678\x1f\""};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        _cleanup_buffer_ struct buffer string;
        struct json_scan scan = scan_of(text_of(texts[i]));
        buffer_init(&string, 1000);
        assert_false(json_scan_string(&scan, &string));
        assert_non_null(scan.error);
    }
}

static void test_a_string_beyond_its_buffer_is_an_error(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer string;
    struct json_scan scan = scan_of(TEXT_LITERAL("\"12345\""));
    buffer_init(&string, 4);
    assert_false(json_scan_string(&scan, &string));
    assert_false(json_scan_ok(&scan));
}

static void test_nul_is_an_ordinary_character_of_a_string(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer string;
    struct json_scan scan = scan_of(TEXT_LITERAL("\"a\\u0000b\""));
    buffer_init(&string, 100);
    assert_true(json_scan_string(&scan, &string));
    assert_int_equal(string.length_bytes, 3);
    assert_memory_equal(string.data, "a\0b", 3);
}

/* --- structure --- */

static void test_an_error_stays(void **state)
{
    (void)state;
    int64_t integer;
    bool boolean;
    struct json_scan scan = scan_of(TEXT_LITERAL("[true, 1]"));
    assert_true(json_scan_array(&scan) && json_scan_element(&scan));
    assert_false(json_scan_integer(&scan, &integer));
    assert_ptr_equal(scan.at, scan.start + 1);
    assert_false(json_scan_bool(&scan, &boolean));
    assert_false(json_scan_element(&scan));
    assert_false(json_scan_skip(&scan));
    assert_false(json_scan_end(&scan));
    assert_int_equal(json_scan_peek(&scan), JSON_KIND_NONE);
}

static void test_depth_is_limited_to_64(void **state)
{
    (void)state;
    char text[300];
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    assert_true(scan_accepts((struct text){text, 128}));
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    assert_false(scan_accepts((struct text){text, 130}));
}

static void test_integers_with_a_fraction_or_too_many_bits_are_errors(void **state)
{
    (void)state;
    static const char *const texts[] = {"1.0", "1e2", "9223372036854775808", "-9223372036854775809", "null", "\"1\""};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        int64_t integer;
        struct json_scan scan = scan_of(text_of(texts[i]));
        assert_false(json_scan_integer(&scan, &integer));
        assert_ptr_equal(scan.at, scan.start);
    }
}

static void test_text_behind_the_value_is_an_error(void **state)
{
    (void)state;
    struct json_scan scan = scan_of(TEXT_LITERAL(" {} \n"));
    assert_true(json_scan_skip(&scan) && json_scan_end(&scan));
    scan = scan_of(TEXT_LITERAL("{} {}"));
    assert_true(json_scan_skip(&scan));
    assert_false(json_scan_end(&scan));
    scan = scan_of(TEXT_LITERAL("1,"));
    assert_false(json_scan_skip(&scan) && json_scan_end(&scan));
}

static void test_raw_refuses_a_lone_surrogate_in_a_key_too(void **state)
{
    (void)state;
    struct json_scan scan;
    json_scan_init(&scan, (struct text)TEXT_LITERAL("{\"a\\ud800\": 1}"));
    assert_null(json_scan_raw(&scan).data);
    json_scan_init(&scan, (struct text)TEXT_LITERAL("{\"a\\ud800\": 1}"));
    assert_true(json_scan_skip(&scan) && scan.replaced == 0);
}

static void test_raw_is_the_value_s_text_without_blanks_around_it(void **state)
{
    (void)state;
    struct json_scan scan = scan_of(TEXT_LITERAL("[ {\"a\": [1, 2]} , 3]"));
    assert_true(json_scan_array(&scan) && json_scan_element(&scan));
    assert_true(text_equals(json_scan_raw(&scan), "{\"a\": [1, 2]}"));
    assert_true(json_scan_element(&scan));
    assert_true(text_equals(json_scan_raw(&scan), "3"));
    assert_false(json_scan_element(&scan));
    assert_true(json_scan_end(&scan));
}

/* --- arrays of numbers --- */

static void test_floats_are_rounded_once_and_null_is_nan(void **state)
{
    (void)state;
    float values[8];
    struct json_scan scan = scan_of(TEXT_LITERAL("[ -0.12345 ,null,NaN, 1e39,-1e400 ]"));
    assert_int_equal(json_scan_floats(&scan, values, 8), -1);
    scan = scan_of(TEXT_LITERAL("[ -0.12345 ,null,NaN, 1e39,\n-Infinity,16777217 ]"));
    assert_int_equal(json_scan_floats(&scan, values, 8), 6);
    assert_true(json_scan_end(&scan));
    assert_true(values[0] == -0.12345f && isnan(values[1]) && isnan(values[2]) && isinf(values[3]));
    assert_true(values[4] == -INFINITY && values[5] == 16777216.0f);
}

static void test_numbers_may_stand_on_lines_of_their_own(void **state)
{
    (void)state;
    uint32_t ids[3];
    float values[3];
    struct json_scan scan = scan_of(TEXT_LITERAL("[\n  7,\n  8 ,\r\n\t9\n]"));
    assert_int_equal(json_scan_u32(&scan, ids, 3), 3);
    assert_true(ids[0] == 7 && ids[1] == 8 && ids[2] == 9 && json_scan_end(&scan));
    scan = scan_of(TEXT_LITERAL("[\n  -1.5,\n  null,\r\n\t9\n]"));
    assert_int_equal(json_scan_floats(&scan, values, 3), 3);
    assert_true(values[0] == -1.5F && isnan(values[1]) && values[2] == 9 && json_scan_end(&scan));
}

static void test_token_ids_are_32_bits_and_nothing_else(void **state)
{
    (void)state;
    static const char *const refused[] = {"[1.0]", "[-1]",    "[4294967296]", "[null]", "[1,]",  "[,1]",
                                          "[1 2]", "[\"1\"]", "[1",           "{}",     "[1e2]", "[01]"};
    uint32_t values[4];
    struct json_scan scan = scan_of(TEXT_LITERAL("[0, 4294967295,-0]"));
    assert_int_equal(json_scan_u32(&scan, values, 4), 3);
    assert_true(values[0] == 0 && values[1] == UINT32_MAX && values[2] == 0);
    for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
        scan = scan_of(text_of(refused[i]));
        assert_int_equal(json_scan_u32(&scan, values, 4), -1);
        assert_non_null(scan.error);
    }
}

static void test_more_values_than_the_limit_are_an_error(void **state)
{
    (void)state;
    float values[2];
    struct json_scan scan = scan_of(TEXT_LITERAL("[1,2]"));
    assert_int_equal(json_scan_floats(&scan, values, 2), 2);
    scan = scan_of(TEXT_LITERAL("[1,2,3]"));
    assert_int_equal(json_scan_floats(&scan, values, 2), -1);
    scan = scan_of(TEXT_LITERAL("[]"));
    assert_int_equal(json_scan_floats(&scan, values, 0), 0);
}

static void test_positions_count_from_one(void **state)
{
    (void)state;
    size_t line;
    size_t column;
    struct text text = TEXT_LITERAL("ab\nc\n");
    json_position(text, 0, &line, &column);
    assert_true(line == 1 && column == 1);
    json_position(text, 3, &line, &column);
    assert_true(line == 2 && column == 1);
    json_position(text, 99, &line, &column);
    assert_true(line == 3 && column == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_documents_have_jansson_s_values),
        cmocka_unit_test(test_spoiled_documents_are_refused_when_jansson_refuses),
        cmocka_unit_test(test_a_document_cut_anywhere_is_refused),
        cmocka_unit_test(test_nan_and_infinity_are_read_in_every_spelling),
        cmocka_unit_test(test_words_that_only_begin_like_nan_are_refused),
        cmocka_unit_test(test_nan_is_skipped_but_never_handed_on),
        cmocka_unit_test(test_a_number_beyond_double_is_an_error),
        cmocka_unit_test(test_lone_surrogates_and_broken_bytes_become_replacements_and_are_counted),
        cmocka_unit_test(test_bytes_that_no_string_may_hold_are_refused),
        cmocka_unit_test(test_a_string_beyond_its_buffer_is_an_error),
        cmocka_unit_test(test_nul_is_an_ordinary_character_of_a_string),
        cmocka_unit_test(test_an_error_stays),
        cmocka_unit_test(test_depth_is_limited_to_64),
        cmocka_unit_test(test_integers_with_a_fraction_or_too_many_bits_are_errors),
        cmocka_unit_test(test_text_behind_the_value_is_an_error),
        cmocka_unit_test(test_raw_refuses_a_lone_surrogate_in_a_key_too),
        cmocka_unit_test(test_raw_is_the_value_s_text_without_blanks_around_it),
        cmocka_unit_test(test_floats_are_rounded_once_and_null_is_nan),
        cmocka_unit_test(test_numbers_may_stand_on_lines_of_their_own),
        cmocka_unit_test(test_token_ids_are_32_bits_and_nothing_else),
        cmocka_unit_test(test_more_values_than_the_limit_are_an_error),
        cmocka_unit_test(test_positions_count_from_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
