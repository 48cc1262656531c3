/* The declarations of rows.def. */
#ifndef VERIFIERS_ROWS_H
#define VERIFIERS_ROWS_H

#include "verifiers/verifier.h"

#define VERIFIER(name) extern const struct verifier verifier_##name;
#include "verifiers/rows.def"
#undef VERIFIER

#endif
