#include "verifiers/sandbox/languages_private.h"

const struct language languages[SANDBOX_LANGUAGES] = {
#define LANGUAGE(constant, name, file, command, compiler, standard)                                                    \
    [SANDBOX_##constant] = {file, command, compiler, standard},
#include "verifiers/sandbox/languages.def"
#undef LANGUAGE
};
