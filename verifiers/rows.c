/* The table, in a file of its own: a test program links another one in its place. */
#include "verifiers/rows.h"

#include "verifiers/registry.h"

const struct verifier *const verifiers[] = {&verifier_exact, &verifier_format, &verifier_math, &verifier_regex,
                                            &verifier_countdown};
const size_t verifier_count = ARRAY_LENGTH(verifiers);
