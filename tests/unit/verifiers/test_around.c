/* Text beside a box. */
#include "tests/unit/base/cmocka_all.h"
#include "verifiers/text/around.h"
#include "verifiers/text/extract.h"

static enum around beside(const char *text)
{
    struct extracted extracted;

    extract_answer(text_of(text), EXTRACT_AUTO, &extracted);
    if (!extracted.whole.data)
        fail_msg("no box in %s", text);
    return text_around(extracted.text, extracted.whole);
}

static void expect_each(const char *const *texts, enum around expected)
{
    for (; *texts; texts++)
        if (beside(*texts) != expected)
            fail_msg("%s: %d, expected %d", *texts, (int)beside(*texts), (int)expected);
}

static void test_text_punctuation_and_units_beside_a_box_say_nothing(void **state)
{
    static const char *const texts[] = {"\\boxed{3}",
                                        "So $\\boxed{3}$.",
                                        "$$\n\\boxed{3}\n$$",
                                        "\\[\\boxed{3}.\\]",
                                        "- \\boxed{3}",
                                        "$x = \\boxed{3}$",
                                        "**\\boxed{3}**",
                                        "$\\boxed{3}\\text{ cm}$",
                                        "$\\boxed{3}^\\circ$",
                                        "$\\mathbf{\\boxed{3}}$",
                                        "it is \\boxed{3}!",
                                        "\\boxed{3} - done",
                                        "$\\boxed{3}, \\quad$",
                                        "$\\therefore \\boxed{3}$",
                                        "$a$ \\boxed{3} $b$",
                                        "costs \\$5: $\\boxed{3}$",
                                        "$\\boxed{12}cm$",
                                        "$\\text{Now }\\boxed{3}$",
                                        NULL};

    (void)state;
    expect_each(texts, AROUND_NOTHING);
}

static void test_a_percent_sign_behind_a_box_belongs_to_it(void **state)
{
    static const char *const texts[] = {"$\\boxed{3}\\%$", "$\\boxed{3}\\,\\%$", "\\boxed{3}%", "\\[\\boxed{3} \\%\\]",
                                        NULL};

    (void)state;
    expect_each(texts, AROUND_PERCENT);
}

static void test_a_minus_before_a_box_is_its_sign(void **state)
{
    static const char *const texts[] = {"$-\\boxed{3}$", "$x = -\\boxed{3}$", "\\(- \\boxed{3}\\)", "so -\\boxed{3}",
                                        NULL};

    (void)state;
    expect_each(texts, AROUND_MINUS);
}

static void test_a_continuation_in_the_formula_makes_another_value(void **state)
{
    static const char *const texts[] = {
        "$\\boxed{3}\\pi$",   "$\\boxed{3}!$",        "$2\\boxed{3}$",       "$x\\boxed{3}$",
        "$\\boxed{3}x$",      "$\\boxed{3}^2$",       "$\\boxed{3} + 2$",    "$5 - \\boxed{3}$",
        "$2 + \\boxed{3}$",   "$\\sqrt{\\boxed{3}}$", "$2^{\\boxed{3}}$",    "$\\frac{\\boxed{3}}{4}$",
        "$\\boxed{3}/4$",     "$4\\cdot\\boxed{3}$",  "$\\boxed{3}_8$",      "$\\boxed{3}\\text{ million}$",
        "\\boxed{3} million", "$-\\boxed{3}\\%$",     "$\\boxed{3}\\sqrt2$", NULL};

    (void)state;
    expect_each(texts, AROUND_MORE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_punctuation_and_units_beside_a_box_say_nothing),
        cmocka_unit_test(test_a_percent_sign_behind_a_box_belongs_to_it),
        cmocka_unit_test(test_a_minus_before_a_box_is_its_sign),
        cmocka_unit_test(test_a_continuation_in_the_formula_makes_another_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
