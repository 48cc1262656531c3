/* compare: is the output of a program what is expected?
 *
 * Pure; linear in the texts, except for `json` objects: their keys are sorted. White space is that of ASCII; every other
 * byte counts, NUL included.
 *
 *   lines   line by line, without white space at the ends of lines and blank lines at the end
 *   exact   byte by byte
 *   tokens  the words between white space
 *   float   words; those that are numbers on both sides are numbers within the tolerance, two whole numbers exactly
 *   json    JSON values (value.h) */
#ifndef VERIFIERS_CODE_COMPARE_H
#define VERIFIERS_CODE_COMPARE_H

#include "verifiers/code/value.h"

enum compare_mode { COMPARE_LINES, COMPARE_EXACT, COMPARE_TOKENS, COMPARE_FLOAT, COMPARE_JSON, COMPARE_MODES };
extern const char *const compare_mode_names[COMPARE_MODES + 1]; /* NULL-terminated */

struct compare_rule {
    enum compare_mode mode;
    struct tolerance tolerance;
};

bool compare_output(struct text got, struct text expected, const struct compare_rule *rule);

/* The next word between white space; false: there is none. */
bool next_word(struct text text, size_t *at, struct text *ret_word);

#endif
