/* The rows of the registry: one per verifier, each defined in the file of its name. */
#ifndef VERIFIERS_ROWS_H
#define VERIFIERS_ROWS_H

#include "verifiers/verifier.h"

extern const struct verifier verifier_countdown;
extern const struct verifier verifier_exact;
extern const struct verifier verifier_format;
extern const struct verifier verifier_math;
extern const struct verifier verifier_regex;

#endif
