/* languages: the table languages.def as the slot uses it. Constant data. Any thread. */
#ifndef VERIFIERS_SANDBOX_LANGUAGES_PRIVATE_H
#define VERIFIERS_SANDBOX_LANGUAGES_PRIVATE_H

#include "verifiers/sandbox/sandbox.h"

struct language { /* the columns of languages.def */
    const char *file, *command, *compiler, *standard;
};
extern const struct language languages[SANDBOX_LANGUAGES];

#endif
