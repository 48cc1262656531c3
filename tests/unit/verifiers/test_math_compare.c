/* Structures against structures: every row is read by the parser and decided by the decider. */
#include "tests/unit/base/cmocka_all.h"
#include "tests/unit/verifiers/decisions.h"

/* --- sets, lists, tuples --- */

static void test_a_set_has_no_order_and_repeats_say_nothing(void **state)
{
    (void)state;
    same("\\{1,2,3\\}", "\\{3,1,2\\}");
    same("\\{1,2,3\\}", "\\{1,2,3,3\\}");
    same("\\{1,2,3\\}", "3, 2, 1");
    same("\\{1,2,3\\}", "1, 2, \\text{ and } 3");
    same("\\{1,2,3\\}", "x\\in\\{1,2,3\\}");
    same("\\{\\frac12,\\sqrt{8}\\}", "2\\sqrt{2}, 0.5");
    same("\\{1,2\\}", "\\{1\\}\\cup\\{2\\}");
    differ("\\{1,2,3\\}", "\\{1,2\\}");
    differ("\\{1,2,3\\}", "\\{1,2,4\\}");
    differ("\\{1,2,3\\}", "(1,2,3)");
    differ("\\{1,2,3\\}", "6");
    differ("\\{\\{1\\},2\\}", "\\{1,2\\}");
    differ("\\{\\{1,2\\}\\}", "\\{1,2\\}");
}

static void test_the_empty_set_has_nothing_in_it(void **state)
{
    (void)state;
    same("\\emptyset", "\\varnothing");
    same("\\emptyset", "\\{\\}");
    same("\\emptyset", "\\text{no solution}");
    differ("\\emptyset", "0");
    differ("\\emptyset", "\\{0\\}");
    differ("\\emptyset", "\\{\\emptyset\\}");
}

static void test_one_value_is_no_list_of_it(void **state)
{
    (void)state;
    differ("42", "\\{42\\}");
    differ("42", "42, 42");
    differ("42", "42\\text{ or }43");
    differ("42", "\\pm 42");
    differ("42", "(42, 43)");
}

static void test_a_tuple_has_an_order_and_its_brackets_count(void **state)
{
    (void)state;
    same("(3,-2)", "(3.0, -2)");
    same("((1,2),(3,4))", "((1,2),(3,4))");
    same("\\{(1,2),(3,4)\\}", "(3,4),(1,2)");
    differ("(3,-2)", "(-2,3)");
    differ("(3,-2)", "[3,-2]");
    differ("(3,-2)", "\\{3,-2\\}");
    differ("(3,-2)", "3,-2");
    differ("(3,-2)", "(3,-2,0)");
    differ("(1,2),(3,4)", "(1,2)\\cup(3,4)");
}

static void test_plus_minus_is_two_values(void **state)
{
    (void)state;
    same("\\pm 3", "\\{3,-3\\}");
    same("\\pm 3", "-3, 3");
    same("\\pm 3", "\\mp 3");
    same("\\pm 3", "x=\\pm 3");
    same("\\pm 3", "x=3\\text{ or }x=-3");
    same("1\\pm\\sqrt{2}", "1\\mp\\sqrt{2}");
    same("1\\pm\\sqrt{2}", "1+\\sqrt2, 1-\\sqrt2");
    same("0, \\pm 2", "\\{-2,0,2\\}");
    same("\\frac{1\\pm\\sqrt5}{2}", "\\frac{1+\\sqrt5}{2},\\frac{1-\\sqrt5}{2}");
    differ("\\pm 3", "3");
    differ("\\pm 3", "\\pm 9");
    differ("1\\pm\\sqrt{2}", "\\pm 1+\\sqrt{2}");
    differ("\\pm 1, \\pm 2", "\\pm 1");
}

/* --- names, equations --- */

static void test_a_name_before_the_value_may_be_left_out_but_not_be_another(void **state)
{
    (void)state;
    same("5", "x=5");
    same("x=5", "5=x");
    same("5", "P(A)=5");
    same("5", "AB=5");
    same("2x+3", "y=2x+3");
    same("f(x)=x^2-4", "x^2-4");
    same("f(x)=x^2-4", "f(x)=(x-2)(x+2)");
    same("f(x)=x^2-4", "y=x^2-4");
    same("x=1,2", "1,2");
    same("x=1\\text{ or }x=2", "x=2,1");
    differ("x=5", "y=5");
    differ("5", "x=5\\text{ or }x=-5");
    differ("f(x)=x^2-4", "g(x)=x^2-4");
    differ("x=1,2", "n=1,2");
    differ("n=1,2,3", "n=4,2,3");
    same("5", "\\text{Area}=5");
    differ("5", "\\text{not}=5");
    differ("5", "\\text{the answer is not}=5");
}

/* Only an answer may have it: it says more than the reference. */
static void test_the_quantity_asked_for_may_stand_before_the_value(void **state)
{
    (void)state;
    expect_decision("5", "m+n=5", MATH_EQUAL);
    expect_decision("5", "x-y=5", MATH_EQUAL);
    expect_decision("5", "mn=2+3=5", MATH_EQUAL);
    expect_decision("5", "AB+BC=5\\text{ cm}", MATH_EQUAL);
    expect_decision("5", "|AB|=5", MATH_EQUAL);
    expect_decision("5", "|\\vec{a}-\\overrightarrow{AB}|=5", MATH_EQUAL);
    expect_decision("\\{1,2\\}", "A\\cap(B\\cup C)=\\{1,2\\}", MATH_EQUAL);
    expect_decision("\\emptyset", "A\\cap B=\\emptyset", MATH_EQUAL);
    expect_decision("[0,1]", "A\\setminus B=[0,1]", MATH_EQUAL);
    expect_decision("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "A^{-1}=\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}",
                    MATH_EQUAL);
    expect_decision("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "A+B=\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}",
                    MATH_EQUAL);
    expect_decision("(1,2,3)", "\\vec{a}\\times\\vec{b}=(1,2,3)", MATH_EQUAL);
    expect_decision("5", "m+n=2+4=5", MATH_UNDEFINED);
    expect_decision("5", "m+n=4", MATH_DIFFERENT);
    expect_decision("5", "m+1=5", MATH_DIFFERENT);
    expect_decision("5", "2x=5", MATH_DIFFERENT);
    expect_decision("5", "x+x=5", MATH_DIFFERENT);
    expect_decision("5", "x-x=5", MATH_DIFFERENT);
    expect_decision("5", "|x|=5", MATH_DIFFERENT);
    expect_decision("5", "x^2=5", MATH_DIFFERENT);
    expect_decision("5", "x+y=z", MATH_DIFFERENT);
    expect_decision("x=5", "x+y=5", MATH_DIFFERENT);
    expect_decision("\\{3\\}", "A\\cap\\{3\\}=\\{3\\}", MATH_DIFFERENT);
    expect_decision("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "2A=\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}",
                    MATH_UNDECIDED);
}

static void test_a_point_may_have_its_name(void **state)
{
    (void)state;
    same("(3,-2)", "P(3,-2)");
    same("P(3,-2)", "P=(3.0,-2)");
    same("(1,2),(3,4)", "A_1(1,2),A_2(3,4)");
    differ("P(3,-2)", "Q(3,-2)");
    differ("[3,-2]", "P(3,-2)");
    differ("(a,b)", "P(a,b)");
    differ("(3,-2)", "p(3,-2)");
}

static void test_assignments_are_a_tuple_in_the_order_of_their_names(void **state)
{
    (void)state;
    same("(3,-2)", "x=3, y=-2");
    same("(3,-2)", "y=-2, x=3");
    same("(3,-2)", "(x,y)=(3,-2)");
    same("x=3, y=-2", "y=-2, x=3");
    same("(2,7)", "m=2, b=7");
    same("(5,5)", "x=y=5");
    same("x=y=5", "y=5, x=5");
    differ("x=y=5", "x=5");
    same("(3,-2)", "(x=3, y=-2)");
    same("(3,-2)", "(y=-2, x=3)");
    differ("(3,-2)", "(y=3, x=-2)");
    differ("\\{1,2\\}", "x=1, y=2, x=2");
    differ("(3,-2)", "x=-2, y=3");
    differ("x=3, y=5", "5, 3");
    differ("x=3, y=5", "x=5, y=3");
    differ("x=3, y=5", "x=3");
    differ("[3,-2]", "x=3, y=-2");
    differ("(5,3)", "x=5\\text{ or }y=3");
    differ("x=5, y=3", "x=5\\text{ or }y=3");
    differ("x+y=3, x-y=1", "x+y=3\\text{ or }x-y=1");
}

static void test_assignments_that_repeat_are_several_tuples(void **state)
{
    (void)state;
    same("(1,2),(3,4)", "x=1, y=2\\text{ or }x=3, y=4");
    same("(1,2),(3,4)", "(x,y)=(3,4),(1,2)");
    same("(1,2),(3,4)", "y=4, x=3\\text{ or }y=2, x=1");
    differ("(1,2),(3,4)", "x=1, y=4\\text{ or }x=3, y=2");
}

static void test_numbered_names_are_values_without_an_order(void **state)
{
    (void)state;
    same("\\{1,2\\}", "x_1=1, x_2=2");
    same("1,2", "x_1=2, x_2=1");
    differ("1,2", "x=1, y=2");
    differ("1,2", "x_1=1, y_2=2");
    differ("(1,2)", "x_1=2, x_2=1");
}

static void test_a_remainder_has_its_modulus(void **state)
{
    (void)state;
    same("x\\equiv 3\\pmod 7", "x\\equiv 10\\pmod 7");
    same("x\\equiv 3\\pmod 7", "3\\pmod 7");
    differ("x\\equiv 3\\pmod 7", "x\\equiv 3\\pmod 8");
    differ("x\\equiv 3\\pmod 7", "x\\equiv 4\\pmod 7");
    differ("x\\equiv 3\\pmod 7", "y\\equiv 3\\pmod 7");
    differ("x\\equiv 3\\pmod 7", "x=3");
    differ("3\\pmod 7", "3\\pmod 8");
}

static void test_an_equation_is_its_multiples(void **state)
{
    (void)state;
    same("y=2x+3", "2x-y+3=0");
    same("y=2x+3", "4x-2y+6=0");
    same("y=2x+3", "y-3=2x");
    same("3x+4y-7=0", "y=-\\frac34x+\\frac74");
    same("x+2y-4=0", "x+2y=4");
    same("x+y=3, x-y=1", "x-y-1=0, 3=x+y");
    differ("y=2x+3", "x=2y+3");
    differ("y=2x+3", "2x+y+3=0");
    differ("y=2x+3", "y>2x+3");
    differ("x+2y-4=0", "0");
    differ("x+2y-4=0", "5x+y+9=0");
    differ("3x+4y-7=0", "3x+4y");
}

static void test_the_question_again_is_no_answer(void **state)
{
    (void)state;
    expect_decision("2", "x^2-4=0", MATH_DIFFERENT);
    expect_decision("x=5", "3x+5=2x+10", MATH_DIFFERENT);
    expect_decision("x>3", "2x+4>10", MATH_DIFFERENT);
    expect_decision("\\{2,-2\\}", "x^2=4", MATH_DIFFERENT);
    expect_decision("x=2", "x^2=4", MATH_DIFFERENT);
    /* A multiple of the solution is one still. */
    expect_decision("x=5", "2x=10", MATH_EQUAL);
    expect_decision("x=5", "x-5=0", MATH_EQUAL);
    expect_decision("x<1", "-x>-1", MATH_EQUAL);
    expect_decision("x<1", "-x<-1", MATH_DIFFERENT);
    expect_decision("5", "2x=10", MATH_DIFFERENT);
}

static void test_a_chain_must_be_consistent(void **state)
{
    (void)state;
    expect_decision("5", "x=2+3=5", MATH_EQUAL);
    expect_decision("5", "2+3=5", MATH_EQUAL);
    expect_decision("42", "42=43", MATH_UNDEFINED);
    expect_decision("43", "42=43", MATH_UNDEFINED);
    expect_decision("42=43", "42=43", MATH_UNDEFINED);
    expect_decision("7", "x=2+3=7", MATH_UNDEFINED);
    expect_decision("2\\sqrt2", "2\\sqrt2\\approx 2.83", MATH_EQUAL);
    expect_decision("2\\sqrt2", "2\\sqrt2\\approx 7", MATH_UNDEFINED);
    expect_decision("2.83", "2\\sqrt2\\approx 2.83", MATH_DIFFERENT);
    expect_decision("(x-2)(x+2)", "x^2-4=(x-2)(x+2)", MATH_EQUAL);
    expect_decision("w=(y=a)", "w=(y=a)", MATH_EQUAL);
    expect_decision("w=(y<1)", "w=(x<1)", MATH_DIFFERENT);
}

static void test_an_expression_without_a_value_equals_nothing(void **state)
{
    (void)state;
    expect_decision("1/0", "1/0", MATH_UNDEFINED);
    expect_decision("\\infty", "1/0", MATH_DIFFERENT);
    expect_decision("0", "0/0", MATH_UNDEFINED);
    same("\\infty", "+\\infty");
    differ("\\infty", "-\\infty");
    differ("\\infty", "5");
}

/* --- matrices --- */

static void test_matrices_are_compared_by_entry(void **state)
{
    (void)state;
    same("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{bmatrix}1&\\frac42\\\\3&4\\\\\\end{bmatrix}");
    same("\\begin{pmatrix}2\\\\4\\end{pmatrix}", "2\\begin{pmatrix}1\\\\2\\end{pmatrix}");
    same("\\begin{pmatrix}2\\\\4\\end{pmatrix}",
         "\\begin{pmatrix}1\\\\1\\end{pmatrix}+\\begin{pmatrix}1\\\\3\\end{pmatrix}");
    same("\\begin{pmatrix}1&2\\end{pmatrix}^T", "\\begin{pmatrix}1\\\\2\\end{pmatrix}");
    same("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\langle 1,2\\rangle");
    differ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix}1&3\\\\2&4\\end{pmatrix}");
    differ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}1&2\\end{pmatrix}");
    differ("\\begin{pmatrix}1&2\\end{pmatrix}", "(1,2)");
    differ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}");
    same("-2", "\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}");
    same("0", "\\begin{vmatrix}1&2&3\\\\4&5&6\\\\7&8&9\\end{vmatrix}");
    expect_decision("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "[[1,2],[3,4]]", MATH_EQUAL);
    expect_decision("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "[[1,3],[2,4]]", MATH_DIFFERENT);
    expect_decision("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "((1,2),(3,4))", MATH_DIFFERENT);
}

/* --- units, percent --- */

static void test_a_unit_may_stand_on_one_side(void **state)
{
    (void)state;
    same("12", "12\\text{ cm}");
    same("12", "\\$12");
    same("12", "12\\ \\text{apples}");
    same("12", "12\\,\\mathrm{m}^2");
    same("120^\\circ", "120");
    same("120^\\circ", "120\\text{ degrees}");
    same("-12\\text{ cm}", "-12");
    same("\\{1\\text{ cm},2\\text{ cm}\\}", "1,2");
    differ("12", "120\\text{ mm}");
    differ("12", "12^2");
    differ("120^\\circ", "\\frac{2\\pi}{3}");
}

static void test_two_units_must_be_the_same_however_they_are_spelled(void **state)
{
    (void)state;
    same("5\\text{ km}", "5\\text{ kilometers}");
    same("5\\text{ hour}", "5\\text{ hours}");
    same("5\\text{ cm}^2", "5\\text{ square centimeters}");
    same("5\\text{ m/s}", "5\\text{ meters per second}");
    same("5\\text{ mph}", "5\\text{ miles per hour}");
    same("\\$5", "5\\text{ dollars}");
    same("5\\text{ apples}", "5\\text{ apple}");
    same("5^\\circ\\text{C}", "5\\text{ degrees Celsius}");
    differ("5^\\circ\\text{C}", "5^\\circ\\text{F}");
    differ("5\\text{ m/s}", "5\\text{ s/m}");
    differ("5\\text{ km}", "5\\text{ m}");
    differ("5\\text{ km}", "5\\text{ kg}");
    differ("5\\text{ cm}^2", "5\\text{ cm}");
    differ("5\\text{ m/s}", "5\\text{ m}");
    differ("\\$5", "5\\text{ cents}");
    differ("120\\text{ mm}", "12\\text{ cm}");
}

static void test_a_percent_sign_is_a_hundredth_unless_it_is_declared_a_unit(void **state)
{
    (void)state;
    same("50\\%", "0.5");
    same("50\\%", "\\frac12");
    differ("50\\%", "50");
    differ("25", "25\\%");
    assert_int_equal(decide("25", "25\\%", true), MATH_EQUAL);
    assert_int_equal(decide("25", "0.25", true), MATH_DIFFERENT);
    assert_int_equal(decide("50\\%", "0.5", true), MATH_EQUAL);
    assert_int_equal(decide("50\\%", "50", true), MATH_DIFFERENT);
    assert_int_equal(decide("25\\text{ cm}", "25\\%", true), MATH_DIFFERENT);
}

/* --- bases, ratios, times, words --- */

static void test_a_base_is_part_of_the_answer(void **state)
{
    (void)state;
    same("1010_2", "1010_{\\text{two}}");
    same("1010", "1010_{10}");
    same("2A_{16}", "2a_{16}");
    expect_decision("2A_{16}", "2A", MATH_EQUAL);
    expect_decision("2A", "2A_{16}", MATH_DIFFERENT);
    expect_decision("1010_2", "1010", MATH_EQUAL);
    expect_decision("1010", "1010_2", MATH_DIFFERENT);
    differ("1010_2", "10");
    differ("2A_{16}", "2a_{15}");
    differ("1010_2", "1010_3");
    differ("1010_2", "10_{10}");
    differ("2A_{16}", "A2_{16}");
}

static void test_a_ratio_is_a_proportion_and_a_time_is_a_time(void **state)
{
    (void)state;
    same("3:4", "3\\colon 4");
    same("3:4", "6:8");
    same("3:4", "\\frac34");
    same("1:2:3", "2:4:6");
    differ("3:4", "3:5");
    differ("3:4", "34");
    differ("3:4", "4:3");
    differ("1:2:3", "2:4:7");
    same("12:30", "\\text{12:30}");
    differ("12:30", "12:03");
    differ("12:30", "12.30");
    differ("12:30", "0.4");
    differ("12:30", "2:5");
}

static void test_words_are_the_same_or_not(void **state)
{
    (void)state;
    same("\\text{even}", "even");
    same("\\text{even}", "\\textbf{Even}.");
    same("\\text{A}", "(A)");
    same("\\text{all odd primes}", "\\text{All odd primes}");
    same("yes", "Yes");
    differ("\\text{even}", "\\text{not even}");
    differ("\\text{even}", "\\text{even or odd}");
    differ("\\text{Yes}", "\\text{yes/no}");
    differ("\\text{Alice}", "A");
    differ("abc", "ABC");
    same("abc", "cab");
    same("abc", "a\\cdot b\\cdot c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_set_has_no_order_and_repeats_say_nothing),
        cmocka_unit_test(test_the_empty_set_has_nothing_in_it),
        cmocka_unit_test(test_one_value_is_no_list_of_it),
        cmocka_unit_test(test_a_tuple_has_an_order_and_its_brackets_count),
        cmocka_unit_test(test_plus_minus_is_two_values),
        cmocka_unit_test(test_a_name_before_the_value_may_be_left_out_but_not_be_another),
        cmocka_unit_test(test_the_quantity_asked_for_may_stand_before_the_value),
        cmocka_unit_test(test_a_point_may_have_its_name),
        cmocka_unit_test(test_assignments_are_a_tuple_in_the_order_of_their_names),
        cmocka_unit_test(test_assignments_that_repeat_are_several_tuples),
        cmocka_unit_test(test_numbered_names_are_values_without_an_order),
        cmocka_unit_test(test_a_remainder_has_its_modulus),
        cmocka_unit_test(test_an_equation_is_its_multiples),
        cmocka_unit_test(test_the_question_again_is_no_answer),
        cmocka_unit_test(test_a_chain_must_be_consistent),
        cmocka_unit_test(test_an_expression_without_a_value_equals_nothing),
        cmocka_unit_test(test_matrices_are_compared_by_entry),
        cmocka_unit_test(test_a_unit_may_stand_on_one_side),
        cmocka_unit_test(test_two_units_must_be_the_same_however_they_are_spelled),
        cmocka_unit_test(test_a_percent_sign_is_a_hundredth_unless_it_is_declared_a_unit),
        cmocka_unit_test(test_a_base_is_part_of_the_answer),
        cmocka_unit_test(test_a_ratio_is_a_proportion_and_a_time_is_a_time),
        cmocka_unit_test(test_words_are_the_same_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
