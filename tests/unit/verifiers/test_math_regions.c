/* Sets of real numbers: intervals, inequalities, unions of them. */
#include "tests/unit/base/cmocka_all.h"
#include "tests/unit/verifiers/decisions.h"

static void test_an_inequality_is_its_interval(void **state)
{
    (void)state;
    same("[0,1)", "0\\le x<1");
    same("[0,1)", "1>x\\ge 0");
    same("[0,1)", "x\\in[0,1)");
    same("[0,1)", "\\{x: 0\\le x<1\\}");
    same("[0,1)", "x\\ge 0\\text{ and }x<1");
    same("x>3", "3<x");
    same("x>3", "(3,\\infty)");
    same("x>3", "x\\in(3,\\infty)");
    same("\\{x\\mid x>3\\}", "\\{t\\mid t>3\\}");
    same("(1,\\sqrt8)", "1<x<2\\sqrt2");
    same("(-2,2)", "|x|<2");
    same("(-\\infty,-1]\\cup[1,\\infty)", "|x|\\ge 1");
    same("x<-1\\text{ or }x>1", "1<|x|");
    differ("(-2,2)", "|x-1|<2");
    differ("(-2,2)", "|x|\\le 2");
    differ("\\mathbb{R}", "|x|>-1");
    differ("[0,1)", "(0,1)");
    differ("[0,1)", "[0,1]");
    differ("[0,1)", "x<1");
    differ("[0,1)", "[1,0)");
    differ("x>3", "y>3");
    differ("x>3", "x\\ge 3");
    differ("x>3", "3");
    differ("[-2,2]", "-2,2");
    differ("[-2,2]", "\\pm 2");
}

static void test_unions_have_one_form(void **state)
{
    (void)state;
    same("(-\\infty,2)\\cup(3,\\infty)", "x<2\\text{ or }x>3");
    same("(-\\infty,2)\\cup(3,\\infty)", "(3,\\infty)\\cup(-\\infty,2)");
    same("(0,3)", "(0,2)\\cup[2,3)");
    same("(0,3)", "(0,2)\\cup(1,3)");
    same("[1,3]", "\\{1\\}\\cup(1,3]");
    same("\\{1\\}\\cup[2,3]", "x=1\\text{ or }2\\le x\\le 3");
    same("(-\\infty,0)\\cup(0,\\infty)", "x\\ne 0");
    same("(-\\infty,0)\\cup(0,\\infty)", "\\mathbb{R}\\setminus\\{0\\}");
    same("(1,2)", "(0,2)\\cap(1,3)");
    differ("(0,3)", "(0,2)\\cup(2,3)");
    differ("(-\\infty,2)\\cup(3,\\infty)", "x<2\\text{ and }x>3");
    differ("(-\\infty,2)\\cup(3,\\infty)", "(-\\infty,2]\\cup(3,\\infty)");
}

static void test_or_between_two_answers_is_a_hedge(void **state)
{
    (void)state;
    differ("\\{1,2,3\\}", "\\{1,2,3\\}\\text{ or }\\{1,2\\}");
    differ("\\{1,2,3\\}", "\\{1,2\\}\\text{ or }\\{3\\}");
    differ("\\{1,2,3\\}", "\\{1,2\\}\\text{ or }3");
    differ("\\{1,2,3\\}", "S=\\{1,2\\}\\text{ or }S=\\{3\\}");
    differ("\\{0\\}", "\\emptyset\\text{ or }\\{0\\}");
    differ("1,2,3", "1,2,3\\text{ or }1.0,2");
    differ("\\pm 3", "x=\\pm 3\\text{ or }x=3");
    differ("(1,2),(3,4)", "(1,2),(3,4)\\text{ or }(1,2)");
    never("[0,1]", "[0,1)\\text{ or }[0,1]");
    never("(1,2)", "(1,2)\\text{ or }\\emptyset");
    differ("(1,2)", "(1,2)\\text{ or }(1,2)");
    differ("(1,4)", "(1,3)\\text{ or }(2,4)");
    never("x\\ge 3", "x>3\\text{ or }x\\ge 3");
    never("\\mathbb{R}", "x<2\\text{ or }x>1");
    expect_decision("\\{1\\}\\text{ or }\\{2\\}", "\\{1\\}\\text{ or }\\{2\\}", MATH_UNDECIDED);
    same("1,2,3", "1,2\\text{ or }3");
    same("1,2,3", "x=1\\text{ or }x=2\\text{ or }x=2\\text{ or }x=3");
    same("x\\ge 3", "x>3\\text{ or }x=3");
    same("(-\\infty,0)\\cup\\{2,3\\}", "x<0\\text{ or }x\\in\\{2,3\\}");
    same("(1,3),(2,4)", "(1,3)\\text{ or }(2,4)");
    same("x<a\\text{ or }x>b", "x>b\\text{ or }x<a");
}

static void test_a_distance_from_zero_is_an_interval(void **state)
{
    (void)state;
    same("(-1,1)", "|x|<1");
    same("[-1,1]", "1\\ge|x|");
    differ("(1,3)", "|x-2|<1");
    differ("x<2\\text{ or }x>3", "|x-2.5|>0.5");
    differ("(1,3)", "|x-2|\\le 1");
    differ("(1,2)", "|2x-3|<1");
    differ("(1,3)", "|x-y|<1");
    differ("1,3", "|x-2|=1");
}

static void test_a_point_left_out_leaves_the_rest_of_the_region(void **state)
{
    (void)state;
    same("(-\\infty,2)\\cup(3,\\infty)", "x\\notin[2,3]");
    same("x\\ne 2", "x\\notin\\{2\\}");
    differ("(-\\infty,2)\\cup(3,\\infty)", "x\\notin(2,3)");
    differ("\\{2\\}", "x\\notin\\{2\\}");
    differ("x\\notin\\{2\\}", "y\\notin\\{2\\}");
}

static void test_infinity_is_open(void **state)
{
    (void)state;
    same("(-\\infty,\\infty)", "\\mathbb{R}");
    same("(-\\infty,\\infty)", "x\\in\\mathbb{R}");
    same("(-\\infty,\\infty)", "(-\\infty,+\\infty)");
    same("(-\\infty,\\infty)", "\\text{all real numbers}");
    same("(0,\\infty)", "\\mathbb{R}^+");
    same("[0,\\infty)", "\\mathbb{R}_{\\ge 0}");
    same("\\mathbb{Z}^+", "\\mathbb{Z}_{>0}");
    differ("\\mathbb{Z}^+", "\\mathbb{Z}");
    differ("[0,\\infty)", "\\mathbb{R}^+");
    differ("(-\\infty,\\infty)", "[-\\infty,\\infty)");
    differ("(-\\infty,\\infty)", "\\infty");
    differ("(-\\infty,\\infty)", "\\mathbb{Z}");
    differ("(3,\\infty)", "(3,\\infty]");
}

static void test_an_inequality_that_is_not_solved_is_its_positive_multiples(void **state)
{
    (void)state;
    same("y>2x+3", "2x+3<y");
    same("y>2x+3", "2y-4x>6");
    same("y>2x+3", "2x-y<-3");
    differ("y>2x+3", "2x-y>-3");
    differ("y>2x+3", "y\\ge 2x+3");
    same("a<b<c", "c>b>a");
    differ("a<b<c", "a<c<b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_inequality_is_its_interval),
        cmocka_unit_test(test_unions_have_one_form),
        cmocka_unit_test(test_or_between_two_answers_is_a_hedge),
        cmocka_unit_test(test_a_distance_from_zero_is_an_interval),
        cmocka_unit_test(test_a_point_left_out_leaves_the_rest_of_the_region),
        cmocka_unit_test(test_infinity_is_open),
        cmocka_unit_test(test_an_inequality_that_is_not_solved_is_its_positive_multiples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
