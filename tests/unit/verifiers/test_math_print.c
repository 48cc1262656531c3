/* A printed tree reads back as the same tree. */
#include "tests/unit/base/cmocka_all.h"
#include "tests/unit/verifiers/random_tree.h"

#include "verifiers/math/parse.h"

#define ARENA_BYTES (16 << 20)

static const struct math_reading reading = {.max_depth = 256};

/* Prints, reads, compares; the text for a message is in *printed. */
static bool reads_back(struct math_arena *arena, const struct math_node *tree, struct buffer *printed)
{
    struct math_node *again;

    buffer_clear(printed);
    math_print(tree, printed);
    assert_false(printed->failed);
    if (printed->length_bytes > MATH_ANSWER_BYTES)
        return true; /* longer than any answer may be */
    return math_parse(arena, buffer_text(printed), &reading, &again, NULL) == MATH_PARSED &&
           math_same_tree(tree, again);
}

static void check(struct math_node *(*make)(struct math_arena *, int), int depth)
{
    _cleanup_math_arena_ struct math_arena *arena = math_arena_create(ARENA_BYTES);
    _cleanup_buffer_ struct buffer printed;

    buffer_init(&printed, 1 << 20);
    if (!reads_back(arena, make(arena, depth), &printed))
        fail_msg("does not read back: %s", printed.data);
}

static void test_a_printed_expression_reads_back_as_the_same_tree(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++)
        check(random_scalar, 1 + i % 4);
}

static void test_a_printed_structure_reads_back_as_the_same_tree(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++)
        check(random_answer, 1 + i % 4);
}

static void test_a_number_without_digits_of_its_own_is_printed_by_its_value(void **state)
{
    _cleanup_math_arena_ struct math_arena *arena = math_arena_create(ARENA_BYTES);
    _cleanup_buffer_ struct buffer printed;
    fmpq_t value;

    (void)state;
    buffer_init(&printed, 100);
    fmpq_init(value);
    fmpq_set_si(value, 22, 7);
    math_print(math_number_create(arena, value), &printed);
    fmpq_clear(value);
    assert_string_equal(printed.data, "\\frac{22}{7}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_printed_expression_reads_back_as_the_same_tree),
        cmocka_unit_test(test_a_printed_structure_reads_back_as_the_same_tree),
        cmocka_unit_test(test_a_number_without_digits_of_its_own_is_printed_by_its_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
