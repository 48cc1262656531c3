/* Two answers against each other and each against itself. Input: a byte of choices, the reference, the separator, the
 * answer. Nothing differs from itself: it is equal, has no value, or is too hard. */
#include "tests/fuzz/fuzz.h"
#include "verifiers/math/compare.h"
#include "verifiers/math/parse.h"

#define WORK 3000000 /* a limit must be met by a fuzzer, too */

static struct math_node *read_answer(struct math_arena *arena, struct text text, uint8_t choices)
{
    struct math_reading reading = {64, choices & 1, choices & 2, choices & 4};
    struct math_parse_error error = {0, NULL};
    struct math_node *node = NULL;
    enum math_parse_status status = math_parse(arena, text, &reading, &node, &error);

    FUZZ_CHECK((status == MATH_PARSED) == (node != NULL));
    FUZZ_CHECK(status == MATH_PARSED || error.at_bytes <= text.length_bytes);
    return node;
}

static enum math_decision compare(struct math_arena *arena, const struct math_node *reference,
                                  const struct math_node *answer, uint8_t choices)
{
    struct math_decider *decider = math_decider_create(arena, WORK);
    struct math_rules rules = {.arena = arena, .percent_is_unit = choices & 8};
    enum math_decision decision = math_compare(decider, reference, answer, &rules);

    FUZZ_CHECK((unsigned)decision < MATH_DECISIONS);
    for (int form = 0; decision == MATH_EQUAL && form < MATH_FORMS; form++)
        math_has_form(decider, reference, answer, (enum math_form)form, &rules);
    math_decider_destroy(decider);
    return decision;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    _cleanup_math_arena_ struct math_arena *arena = math_arena_create(4 << 20);
    struct text rest = {(const char *)data, size_bytes};
    uint8_t choices = fuzz_take_byte(&rest);
    size_t reference_bytes;
    _cleanup_free_ char *reference_text = fuzz_take_part(&rest, &reference_bytes);
    struct math_node *reference = read_answer(arena, (struct text){reference_text, reference_bytes}, choices);
    struct math_node *answer = read_answer(arena, rest, choices);

    if (reference && answer)
        compare(arena, reference, answer, choices);
    FUZZ_CHECK(!reference || compare(arena, reference, reference, choices) != MATH_DIFFERENT);
    FUZZ_CHECK(!answer || compare(arena, answer, answer, choices) != MATH_DIFFERENT);
    return 0;
}
