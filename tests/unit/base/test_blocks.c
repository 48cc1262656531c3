#include "server/base/blocks.h"
#include "server/base/buffer.h"
#include "tests/unit/base/cmocka_all.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>

static int begin(void **state)
{
    (void)state;
    blocks_setup(16 * BLOCK_BYTES);
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)blocks_release(0);
    blocks_setup(0);
    return 0;
}

static void test_a_block_that_was_given_back_is_found_again(void **state)
{
    (void)state;
    size_t capacity_bytes;
    void *block = block_take(2 * BLOCK_BYTES);
    block_give(block);
    assert_null(block_find(3 * BLOCK_BYTES, &capacity_bytes));
    assert_ptr_equal(block_find(BLOCK_BYTES, &capacity_bytes), block);
    assert_true(capacity_bytes >= 2 * BLOCK_BYTES);
    assert_null(block_find(1, &capacity_bytes));
    free(block); /* it is memory like any other */
}

static void test_the_smallest_that_is_large_enough_is_taken(void **state)
{
    (void)state;
    size_t capacity_bytes;
    void *blocks[] = {block_take(5 * BLOCK_BYTES), block_take(2 * BLOCK_BYTES), block_take(3 * BLOCK_BYTES)};
    for (size_t i = 0; i < ARRAY_LENGTH(blocks); i++)
        block_give(blocks[i]);
    assert_ptr_equal(block_find(2 * BLOCK_BYTES + 4096 * 4, &capacity_bytes), blocks[2]);
    assert_ptr_equal(block_take(2 * BLOCK_BYTES + 4096 * 4), blocks[0]);
    block_give(blocks[0]);
    block_give(blocks[2]);
}

static void test_no_more_is_kept_than_was_allowed(void **state)
{
    (void)state;
    size_t capacity_bytes;
    block_give(block_take(20 * BLOCK_BYTES));
    assert_null(block_find(1, &capacity_bytes));
    for (int i = 0; i < 5; i++)
        block_give(malloc(5 * BLOCK_BYTES));
    size_t kept = 0;
    for (void *block; (block = block_find(1, &capacity_bytes)); free(block))
        kept++;
    assert_in_range(kept, 1, 3);
}

static void test_small_pieces_are_not_kept(void **state)
{
    (void)state;
    size_t capacity_bytes;
    block_give(block_take(100));
    block_give(NULL);
    assert_null(block_find(1, &capacity_bytes));
}

static void test_a_block_is_freed_once_it_is_idle_and_not_before(void **state)
{
    (void)state;
    size_t capacity_bytes;
    int64_t long_us = INT64_C(3600) * 1000000;
    assert_int_equal(blocks_release(long_us), -1);
    block_give(block_take(BLOCK_BYTES));
    assert_in_range(blocks_release(long_us), 1, long_us);
    void *block = block_find(1, &capacity_bytes);
    assert_non_null(block);
    block_give(block);
    assert_int_equal(blocks_release(0), -1);
    assert_null(block_find(1, &capacity_bytes));
}

static void test_a_buffer_grows_into_a_kept_block_with_what_it_holds(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer buffer;
    void *block = block_take(4 * BLOCK_BYTES);
    block_give(block);
    buffer_init(&buffer, SIZE_MAX);
    for (int i = 0; buffer.length_bytes < 3 * BLOCK_BYTES; i++)
        buffer_append_format(&buffer, "%d,", i);
    assert_ptr_equal(buffer.data, block);
    const char *at = buffer.data;
    for (int i = 0; at < buffer.data + buffer.length_bytes;
         i++) { /* strtol() under strict_string_checks reads it all */
        char number[16];
        int length = snprintf(number, sizeof(number), "%d,", i);
        assert_memory_equal(at, number, (size_t)length);
        at += length;
    }
}

static void test_a_kept_block_is_no_way_around_a_buffers_maximum(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer buffer;
    block_give(block_take(8 * BLOCK_BYTES));
    buffer_init(&buffer, 2 * BLOCK_BYTES);
    assert_non_null(buffer_reserve(&buffer, 2 * BLOCK_BYTES));
    memset(buffer.data, 'x', 2 * BLOCK_BYTES);
    buffer.length_bytes = 2 * BLOCK_BYTES;
    buffer_append_byte(&buffer, 'x');
    assert_true(buffer.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_block_that_was_given_back_is_found_again, begin, end),
        cmocka_unit_test_setup_teardown(test_the_smallest_that_is_large_enough_is_taken, begin, end),
        cmocka_unit_test_setup_teardown(test_no_more_is_kept_than_was_allowed, begin, end),
        cmocka_unit_test_setup_teardown(test_small_pieces_are_not_kept, begin, end),
        cmocka_unit_test_setup_teardown(test_a_block_is_freed_once_it_is_idle_and_not_before, begin, end),
        cmocka_unit_test_setup_teardown(test_a_buffer_grows_into_a_kept_block_with_what_it_holds, begin, end),
        cmocka_unit_test_setup_teardown(test_a_kept_block_is_no_way_around_a_buffers_maximum, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
