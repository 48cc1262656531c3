/* labels: the letters of options that a value names, "(B)", "**B**: a rocky planet", "A and C".
 *
 * The value is what stands in a box, a tag or behind "Answer:"; it is read as a whole. Around a letter may stand white
 * space, emphasis, quotes, brackets, LaTeX fonts and dollars; before it a word such as "option"; behind it a label's
 * sign (`:` `)` `.` a dash) with the option's text, or an explanation that begins with a word of a closed list ("because").
 * A word that could take the letter back or name another one ("A or B", "B is wrong", "B?") is not a letter. Letters of
 * other scripts are words, and signs that are not listed are no decoration.
 *
 * Pure, linear in the value. */
#ifndef VERIFIERS_TEXT_LABELS_H
#define VERIFIERS_TEXT_LABELS_H

#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LABELS_MAX 36

struct labels_rule {
    struct text letters;          /* different ones of A-Z and 0-9, 1 to LABELS_MAX */
    struct text text[LABELS_MAX]; /* of the option with the letter of this place; TEXT_NONE: unknown */
    bool multi;                   /* a list of letters is a value */
    bool strict;                  /* a capital alone, or a label in front of its text */
};

enum labels_outcome {
    LABELS_READ,
    LABELS_BLANK,
    LABELS_UNREADABLE,
    LABELS_SEVERAL, /* letters without `multi`, a choice of letters, or a letter in front of another option's text */
    LABELS_DENIED,
};

struct labels {
    enum labels_outcome outcome;
    uint64_t set; /* of LABELS_READ: bit i for the letter at place i */
    bool alone;   /* of LABELS_READ: nothing but the letters was there */
};

struct labels labels_read(const struct labels_rule *rule, struct text value);

/* The place of a letter in `letters`, in either case, or LABELS_MAX. */
size_t labels_place(const struct labels_rule *rule, char letter);

#endif
