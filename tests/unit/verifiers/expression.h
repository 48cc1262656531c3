/* expression: trees for the decider's tests, from a short ASCII notation, so that they do not depend on the parser.
 *
 *   + - * / ^ ! ( ) numbers with a point, names of one letter (i, e and the word pi are constants, inf is infinity),
 *   60deg, 50%, f(a, b) with the functions' names, also sqrt, root(degree, x), binom, abs, floor, ceil, log(base, x),
 *   plain(x) for \log x, sum(k, from, to, body), prod(…), dfac(n) for n!!, mixed(1, 5/12).
 */
#ifndef TESTS_EXPRESSION_H
#define TESTS_EXPRESSION_H

#include "verifiers/math/tree.h"

/* Ends the test if it cannot be read. */
struct math_node *expression(struct math_arena *arena, const char *text);

#endif
