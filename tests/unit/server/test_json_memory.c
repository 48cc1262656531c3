/* How much the trees of all bodies may take together: 4 MiB here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "server/input/memory.h"

#define LIMIT_BYTES ((size_t)4 << 20)

/* "[{},{},…]" of so many objects; one costs at least the 64 bytes of its hash table. */
static char *objects(size_t count)
{
    char *text = malloc(3 * count + 2);
    char *at = text;

    *at++ = '[';
    for (size_t i = 0; i < count; i++, at += 3)
        memcpy(at, "{},", 3);
    strcpy(at - 1, "]");
    return text;
}

static enum json_memory_end load(size_t count, json_t **ret_root, size_t *ret_held_bytes)
{
    char *text = objects(count);
    enum json_memory_end end;

    json_memory_begin();
    *ret_root = json_loads(text, 0, NULL);
    end = json_memory_end(ret_held_bytes);
    free(text);
    return end;
}

static void test_a_tree_that_fits_is_held_and_given_back(void **state)
{
    json_t *root;
    size_t held_bytes;

    (void)state;
    for (int i = 0; i < 100; i++) { /* without giving back, the second would not fit */
        assert_int_equal(load(8000, &root, &held_bytes), JSON_MEMORY_FITS);
        assert_int_equal(json_array_size(root), 8000);
        assert_true(held_bytes > LIMIT_BYTES / 8 && held_bytes <= LIMIT_BYTES);
        json_decref(root);
        json_memory_give(held_bytes);
    }
}

static void test_a_body_larger_than_the_limit_is_not_read(void **state)
{
    json_t *root;
    size_t held_bytes;

    (void)state;
    assert_int_equal(load(1000000, &root, &held_bytes), JSON_MEMORY_TOO_LARGE);
    assert_null(root);
    assert_true(held_bytes <= LIMIT_BYTES);
    json_memory_give(held_bytes);
}

static void test_a_tree_that_would_fit_alone_waits_for_the_others(void **state)
{
    json_t *first;
    json_t *second;
    size_t first_bytes;
    size_t second_bytes;

    (void)state;
    assert_int_equal(load(12000, &first, &first_bytes), JSON_MEMORY_FITS);
    assert_true(first_bytes > LIMIT_BYTES / 2);
    assert_int_equal(load(12000, &second, &second_bytes), JSON_MEMORY_BUSY);
    assert_null(second);
    json_memory_give(second_bytes);
    assert_int_equal(load(1, &second, &second_bytes), JSON_MEMORY_FITS); /* a small body always comes through */
    json_decref(second);
    json_memory_give(second_bytes);
    json_decref(first);
    json_memory_give(first_bytes);
    assert_int_equal(load(12000, &second, &second_bytes), JSON_MEMORY_FITS);
    json_decref(second);
    json_memory_give(second_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tree_that_fits_is_held_and_given_back),
        cmocka_unit_test(test_a_body_larger_than_the_limit_is_not_read),
        cmocka_unit_test(test_a_tree_that_would_fit_alone_waits_for_the_others),
    };

    json_memory_setup(LIMIT_BYTES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
