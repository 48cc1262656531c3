/* Arrays of a batch one behind the other. */
#include "server/render/columns.h"

#include "tests/unit/base/cmocka_all.h"

#include <math.h>

#define BOTH (1U << RETURNS_COMPLETION_IDS | 1U << RETURNS_LOGPROBS)

static const uint32_t ids[] = {5, 6, 7};
static const float logprobs[] = {-0.5F, -1, -2};

static struct store_rollout rollout_with(const float *values)
{
    return (struct store_rollout){.completion_ids = ids, .logprobs = values, .token_count = 3};
}

static void test_columns_that_a_rollout_lacks_have_no_numbers(void **state)
{
    struct render_columns columns;
    struct store_rollout known = rollout_with(logprobs);
    struct store_rollout unknown = rollout_with(NULL);
    struct store_rollout nothing = {0};
    (void)state;

    render_columns_init(&columns, BOTH, 1000);
    render_columns_add_rollout(&columns, &known, NULL, NULL);
    render_columns_add_rollout(&columns, &nothing, NULL, NULL);
    render_columns_add_rollout(&columns, &unknown, NULL, NULL);
    assert_false(render_columns_failed(&columns));
    const int64_t *offsets = (const int64_t *)(const void *)columns.cu_seqlens.data;
    const float *values = (const float *)(const void *)columns.columns[RETURNS_LOGPROBS].data;
    assert_int_equal(columns.cu_seqlens.length_bytes, 4 * sizeof *offsets);
    assert_true(offsets[0] == 0 && offsets[1] == 3 && offsets[2] == 3 && offsets[3] == 6);
    assert_int_equal(columns.columns[RETURNS_LOGPROBS].length_bytes, 6 * sizeof *values);
    assert_true(values[2] == -2 && isnan(values[3]) && isnan(values[5]));
    assert_int_equal(columns.columns[RETURNS_SURROGATES].length_bytes, 0);
    render_columns_finish(&columns);
}

/* 16 bytes of offsets, then 32 of each rollout. */
static void test_the_limit_is_of_all_columns_together(void **state)
{
    struct render_columns columns;
    struct store_rollout rollout = rollout_with(logprobs);
    (void)state;

    render_columns_init(&columns, BOTH, 16 + 2 * 32 + 31);
    for (size_t i = 0; i < 2; i++)
        render_columns_add_rollout(&columns, &rollout, NULL, NULL);
    assert_false(render_columns_failed(&columns));
    render_columns_add_rollout(&columns, &rollout, NULL, NULL);
    assert_true(render_columns_failed(&columns));
    assert_true(columns.bytes <= columns.maximum_bytes);
    render_columns_finish(&columns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_that_a_rollout_lacks_have_no_numbers),
        cmocka_unit_test(test_the_limit_is_of_all_columns_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
