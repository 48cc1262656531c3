/* The time of one decision: math_decide [LEFT RIGHT]. Without arguments the ordinary kinds, one line each; with a
 * pair (in the notation of tests/unit/verifiers/expression.h) that pair once, with the work it took. Not a test. */
#include "../unit/verifiers/expression.h"
#include "verifiers/math/decider.h"

#include <flint/flint.h>
#include <stdio.h>
#include <time.h>

#define ROUNDS 2000

static const struct {
    const char *kind, *left, *right;
} pairs[] = {
    {"integer", "42", "42"},
    {"decimal", "1/2", "0.50"},
    {"fraction", "17/12", "mixed(1, 5/12)"},
    {"big", "2^100", "1267650600228229401496703205376"},
    {"radical, equal", "2*sqrt(2)", "sqrt(8)"},
    {"radical, different", "2*sqrt(2)", "2*sqrt(3)"},
    {"radical, rationalised", "1+sqrt(2)", "1/(sqrt(2)-1)"},
    {"radical, denested", "1+sqrt(2)", "sqrt(3+2*sqrt(2))"},
    {"pi", "pi/2", "0.5*pi"},
    {"pi, different", "pi/2", "1.5708"},
    {"logarithms", "log(2, 3)", "log(4, 9)"},
    {"exponential", "e^2", "e*e"},
    {"sine by the table", "sqrt(3)/2", "cos(pi/6)"},
    {"complex", "1/2+sqrt(3)/2*i", "e^(i*pi/3)"},
    {"arcs by the field", "atan(1/2)+atan(1/3)", "pi/4"},
    {"polynomial, equal", "x^2+2*x+1", "(x+1)^2"},
    {"polynomial, different", "x^2+2*x+1", "(x-1)^2"},
    {"binomial", "n*(n+1)/2", "binom(n+1, 2)"},
    {"root of a polynomial", "sqrt(x^2+1)", "(1+x^2)^(1/2)"},
    {"points, different", "sqrt(x^2+1)", "x+1"},
    {"points, equal", "sqrt(x^2)", "abs(x)"},
    {"points, sines", "sin(2*x)", "2*sin(x)*cos(x)"},
};

static double now_us(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static enum math_decision decide(const struct math_node *left, const struct math_node *right, int64_t *ret_work,
                                 const char **ret_method)
{
    struct math_arena *arena = math_arena_create(1 << 20);
    struct math_decider *decider = math_decider_create(arena, MATH_DECIDER_WORK);
    enum math_decision decision = math_decide_equal(decider, left, right);

    *ret_work = MATH_DECIDER_WORK - decider->work;
    *ret_method = math_decider_method(decider);
    math_decider_destroy(decider);
    math_arena_destroy(arena);
    return decision;
}

static void measure(const char *kind, const char *left, const char *right, int rounds)
{
    struct math_arena *arena = math_arena_create(1 << 20);
    const struct math_node *one = expression(arena, left), *other = expression(arena, right);
    enum math_decision decision = MATH_UNDECIDED;
    const char *method = "";
    int64_t work = 0;
    double begin = now_us();

    for (int i = 0; i < rounds; i++)
        decision = decide(one, other, &work, &method);
    double each = (now_us() - begin) / rounds;
    printf("%-24s %10.2f us  work %9ld  %-9s %s\n", kind, each, (long)work, math_decision_names[decision], method);
    math_arena_destroy(arena);
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        measure("", argv[1], argv[2], 1);
        flint_cleanup();
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(pairs); i++)
        measure(pairs[i].kind, pairs[i].left, pairs[i].right, ROUNDS);
    flint_cleanup();
    return 0;
}
