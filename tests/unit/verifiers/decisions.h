/* Two answers, read by the parser and decided by the decider. */
#ifndef TESTS_VERIFIERS_DECISIONS_H
#define TESTS_VERIFIERS_DECISIONS_H

#include "verifiers/math/compare.h"

enum math_decision decide(const char *reference, const char *answer, bool percent_is_unit);
/* Fails at any other decision, and if one of the texts is not read. */
void expect_decision(const char *reference, const char *answer, enum math_decision expected);

/* Both ways round: being the same has no direction. */
void same(const char *left, const char *right);
void differ(const char *left, const char *right);
/* Not equal, and nobody can say that it differs. */
void never(const char *left, const char *right);

#endif
