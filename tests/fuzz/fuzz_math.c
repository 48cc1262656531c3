/* An answer is read, printed, and read again as the same tree. Input: a byte of choices, the answer. */
#include "tests/fuzz/fuzz.h"
#include "verifiers/math/parse.h"

static enum math_parse_status read_answer(struct math_arena *arena, struct text text,
                                          const struct math_reading *reading, struct math_node **ret_node)
{
    struct math_parse_error error = {0, NULL};
    enum math_parse_status status = math_parse(arena, text, reading, ret_node, &error);

    FUZZ_CHECK((status == MATH_PARSED) == (*ret_node != NULL));
    FUZZ_CHECK(status == MATH_PARSED || (error.expected && error.at_bytes <= text.length_bytes));
    return status;
}

/* The printed form has more braces than the answer had: it may be too long, or too deep. */
static void check_printed(struct math_arena *arena, const struct math_node *node)
{
    struct math_reading reading = {.max_depth = 1024};
    _cleanup_buffer_ struct buffer printed;
    struct math_node *again = NULL;
    enum math_parse_status status;

    buffer_init(&printed, MATH_ANSWER_BYTES);
    math_print(node, &printed);
    if (printed.failed)
        return;
    status = read_answer(arena, buffer_text(&printed), &reading, &again);
    FUZZ_CHECK(status != MATH_UNPARSED);
    FUZZ_CHECK(status == MATH_TOO_LARGE || math_same_tree(node, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct text rest = {(const char *)data, size_bytes};
    uint8_t choices = fuzz_take_byte(&rest);
    struct math_reading reading = {256, choices & 1, choices & 2, choices & 4};
    /* Most inputs have room enough; some end where memory does. */
    _cleanup_math_arena_ struct math_arena *arena =
        math_arena_create(choices & 8 ? (size_t)(choices >> 4) << 8 : 8 << 20);
    struct math_node *node = NULL;

    if (read_answer(arena, rest, &reading, &node) == MATH_PARSED)
        check_printed(arena, node);
    return 0;
}
