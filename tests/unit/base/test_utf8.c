#include "server/base/utf8.h"
#include "tests/unit/base/cmocka_all.h"

/* Unicode 15.0, tables 3-7 and 3-8 (maximal subparts). */
static void test_broken_parts_are_replaced_one_by_one(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *mended; /* with ? for U+FFFD */
        size_t replaced;
    } rows[] = {
        {"plain", "plain", 0},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 0},
        {"a\x80z", "a?z", 1},
        {"\xc0\xaf", "??", 2},
        {"\xe0\x80\xaf", "???", 3},
        {"\xed\xa0\x80", "???", 3},
        {"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", "?????A??B", 7},
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", "????A", 4},
        {"\xe2\x82", "?", 1},
        {"12345678\xff", "12345678?", 1},
        {"\xf0\x9f\x98", "?", 1},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        _cleanup_buffer_ struct buffer mended;
        _cleanup_buffer_ struct buffer expected;
        buffer_init(&mended, 100);
        buffer_init(&expected, 100);
        for (const char *at = rows[i].mended; *at; at++)
            buffer_append(&expected, *at == '?' ? "\xef\xbf\xbd" : at, *at == '?' ? 3 : 1);
        assert_int_equal(utf8_append_mended(&mended, text_of(rows[i].text)), rows[i].replaced);
        assert_true(text_same(buffer_text(&mended), buffer_text(&expected)));
        assert_int_equal(utf8_is_valid(text_of(rows[i].text), NULL), rows[i].replaced == 0);
        assert_true(utf8_is_valid(buffer_text(&mended), NULL));
    }
}

static void test_the_first_bad_byte_is_named(void **state)
{
    (void)state;
    size_t offset = 0;
    assert_false(utf8_is_valid(TEXT_LITERAL("0123456789\xc3\xa9\xff"), &offset));
    assert_int_equal(offset, 12);
}

static void test_nul_is_an_ordinary_character(void **state)
{
    (void)state;
    assert_true(utf8_is_valid(TEXT_LITERAL("a\0b"), NULL));
    assert_true(utf8_is_valid(TEXT_LITERAL(""), NULL));
}

static void test_every_code_point_is_written_as_it_is_read(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x110000; code++) {
        _cleanup_buffer_ struct buffer text;
        buffer_init(&text, 4);
        utf8_append(&text, code);
        bool scalar = code < 0x110000 && (code < 0xD800 || code > 0xDFFF);
        size_t length = !scalar ? 3 : code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        assert_int_equal(text.length_bytes, length);
        assert_true(utf8_is_valid(buffer_text(&text), NULL));
        if (!scalar)
            assert_memory_equal(text.data, "\xef\xbf\xbd", 3);
        code += code > 0x800 && code < 0x10F000 ? 0x40 : 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_parts_are_replaced_one_by_one),
        cmocka_unit_test(test_the_first_bad_byte_is_named),
        cmocka_unit_test(test_nul_is_an_ordinary_character),
        cmocka_unit_test(test_every_code_point_is_written_as_it_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
