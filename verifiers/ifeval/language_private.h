/* language_private: the tables behind language.c. */
#ifndef VERIFIERS_IFEVAL_LANGUAGE_PRIVATE_H
#define VERIFIERS_IFEVAL_LANGUAGE_PRIVATE_H

#include <stddef.h>

enum script {
    SCRIPT_LATIN,
    SCRIPT_CYRILLIC,
    SCRIPT_ARABIC,
    SCRIPT_DEVANAGARI,
    SCRIPT_GREEK,
    SCRIPT_HEBREW,
    SCRIPT_BENGALI,
    SCRIPT_GURMUKHI,
    SCRIPT_GUJARATI,
    SCRIPT_TAMIL,
    SCRIPT_TELUGU,
    SCRIPT_KANNADA,
    SCRIPT_MALAYALAM,
    SCRIPT_THAI,
    SCRIPT_HANGUL,
    SCRIPT_KANA,
    SCRIPT_HAN,
    SCRIPT_OTHER,
    SCRIPTS
};

struct language {
    const char *code;
    enum script script;
    const char *words; /* its commonest, with a space between; "": none are known; NULL: it has its script to itself */
    const char *letters; /* that mark a word as its own among the languages of this table that share its script */
};

#define LANGUAGES_MAX 64 /* bits of a word */

extern const struct language language_rows[];
extern const size_t language_row_count;

#endif
