#include "server/base/buffer.h"
#include "tests/unit/base/cmocka_all.h"

static void test_appends_are_kept_in_order_with_a_nul_behind(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer buffer;
    buffer_init(&buffer, 100);
    buffer_append(&buffer, "a\0b", 3);
    buffer_append_string(&buffer, "cd");
    buffer_append_byte(&buffer, 'e');
    buffer_append_format(&buffer, "%d", 42);
    assert_int_equal(buffer.length_bytes, 8);
    assert_memory_equal(buffer.data, "a\0bcde42", 9);
}

static void test_the_maximum_is_reached_exactly_and_never_passed(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer buffer;
    buffer_init(&buffer, 300);
    for (int i = 0; i < 300; i++)
        buffer_append_byte(&buffer, 'x');
    assert_false(buffer.failed);
    buffer_append_byte(&buffer, 'y');
    assert_true(buffer.failed);
    assert_int_equal(buffer.length_bytes, 300);
}

static void test_a_failed_buffer_refuses_what_would_fit(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer buffer;
    buffer_init(&buffer, 4);
    buffer_append(&buffer, "12345", 5);
    buffer_append(&buffer, "1", 1);
    assert_true(buffer.failed);
    assert_int_equal(buffer.length_bytes, 0);
    buffer_clear(&buffer);
    buffer_append(&buffer, "1", 1);
    assert_false(buffer.failed);
    assert_int_equal(buffer.length_bytes, 1);
}

static void test_a_format_beyond_the_maximum_appends_nothing(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer buffer;
    buffer_init(&buffer, 3);
    buffer_append_format(&buffer, "%s", "four");
    assert_true(buffer.failed);
    assert_int_equal(buffer.length_bytes, 0);
}

static void test_an_unlimited_buffer_takes_more_than_its_first_memory(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer buffer;
    buffer_init(&buffer, SIZE_MAX);
    for (int i = 0; i < 100000; i++)
        buffer_append(&buffer, "0123456789", 10);
    assert_false(buffer.failed);
    assert_int_equal(buffer.length_bytes, 1000000);
    buffer_reserve(&buffer, SIZE_MAX);
    assert_true(buffer.failed);
}

static void test_stealing_empties_the_buffer_and_hands_the_bytes_over(void **state)
{
    (void)state;
    struct buffer buffer;
    size_t length;
    buffer_init(&buffer, 100);
    buffer_append_string(&buffer, "mine");
    _cleanup_free_ char *stolen = buffer_steal(&buffer, &length);
    assert_string_equal(stolen, "mine");
    assert_int_equal(length, 4);
    assert_null(buffer.data);
    assert_null(buffer_steal(&buffer, &length));
    assert_int_equal(length, 0);
}

static void test_a_failed_buffer_is_stolen_as_null(void **state)
{
    (void)state;
    struct buffer buffer;
    size_t length;
    buffer_init(&buffer, 4);
    buffer_append_string(&buffer, "1234");
    buffer_append_string(&buffer, "5");
    assert_null(buffer_steal(&buffer, &length));
    assert_null(buffer.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appends_are_kept_in_order_with_a_nul_behind),
        cmocka_unit_test(test_the_maximum_is_reached_exactly_and_never_passed),
        cmocka_unit_test(test_a_failed_buffer_refuses_what_would_fit),
        cmocka_unit_test(test_a_format_beyond_the_maximum_appends_nothing),
        cmocka_unit_test(test_an_unlimited_buffer_takes_more_than_its_first_memory),
        cmocka_unit_test(test_stealing_empties_the_buffer_and_hands_the_bytes_over),
        cmocka_unit_test(test_a_failed_buffer_is_stolen_as_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
