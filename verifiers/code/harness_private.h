/* harness: the Python programs that run in a sandbox beside a program of a model. The build puts them together from the
 * files *.py of this folder. Static texts. */
#ifndef VERIFIERS_CODE_HARNESS_PRIVATE_H
#define VERIFIERS_CODE_HARNESS_PRIVATE_H

#include "server/base/text.h"

struct text harness_calls(void);     /* calls a function, records its values */
struct text harness_candidate(void); /* of a pair: the program's side */
struct text harness_tests(void);     /* of a pair: the test's side, which records the verdicts */

#endif
