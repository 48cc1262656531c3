/* The table, in a file of its own: a test program links another one in its place. */
#include "verifiers/rows.h"

#include "verifiers/registry.h"

#define VERIFIER(name) &verifier_##name,
const struct verifier *const verifiers[] = {
#include "verifiers/rows.def"
};
#undef VERIFIER
const size_t verifier_count = ARRAY_LENGTH(verifiers);
