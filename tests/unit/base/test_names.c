#include "server/base/names.h"

#include "server/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void test_a_key_has_one_number_in_order_of_appearance(void **state)
{
    struct names names = {0};
    (void)state;

    assert_int_equal(names_number(&names, TEXT_LITERAL("b")), 0);
    assert_int_equal(names_number(&names, TEXT_LITERAL("a")), 1);
    assert_int_equal(names_number(&names, TEXT_LITERAL("b")), 0);
    assert_true(text_equals(names_key(&names, 1), "a"));
    names_finish(&names);
}

static void test_keys_may_be_empty_or_hold_nul_or_begin_alike(void **state)
{
    const struct text keys[] = {TEXT_LITERAL(""),     TEXT_LITERAL("\0"),       TEXT_LITERAL("\0\0"),
                                TEXT_LITERAL("long"), TEXT_LITERAL("long\0er"), TEXT_LITERAL("longlong")};
    struct names names = {0};
    (void)state;

    for (unsigned round = 0; round < 2; round++)
        for (uint32_t i = 0; i < ARRAY_LENGTH(keys); i++)
            assert_int_equal(names_number(&names, keys[i]), i);
    names_finish(&names);
}

static void test_many_keys_keep_their_numbers(void **state)
{
    enum { MANY = 20000 };
    struct names names = {0};
    char key[16];
    (void)state;

    for (unsigned round = 0; round < 2; round++)
        for (uint32_t i = 0; i < MANY; i++) {
            snprintf(key, sizeof key, "t%u", i * 7);
            assert_int_equal(names_number(&names, text_of(key)), i);
        }
    assert_int_equal(names.count, MANY);
    assert_true(text_equals(names_key(&names, MANY - 1), key));
    names_finish(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_key_has_one_number_in_order_of_appearance),
        cmocka_unit_test(test_keys_may_be_empty_or_hold_nul_or_begin_alike),
        cmocka_unit_test(test_many_keys_keep_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
