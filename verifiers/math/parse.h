/* parse: an answer's text (LaTeX, ASCII, a closed list of Unicode signs) to a tree. The whole input, or nothing.
 *
 * Pure, linear in the text, except numbers (their digits are bounded). A text outside the grammar is unparsed, not
 * skipped; a byte that is in no list (NUL, zero-width and direction signs, digits of other scripts) makes the whole
 * unparsed. Decorations around the whole ($…$, \(…\), \[…\], **…**, a final full stop, \text{…} around a number,
 * \boxed, fonts, \displaystyle, spaces) say nothing and leave nothing. */
#ifndef VERIFIERS_MATH_PARSE_H
#define VERIFIERS_MATH_PARSE_H

#include "verifiers/math/tree.h"

#define MATH_ANSWER_BYTES 8192 /* longer answers are refused */

enum math_parse_status {
    MATH_PARSED,
    MATH_UNPARSED, /* not in the grammar; also blank */
    MATH_TOO_LARGE /* deeper than max_depth, more digits, nodes or bytes than are allowed */
};

struct math_reading {
    int max_depth;
    bool decimal_comma; /* 1,5 is 1.5; lists are separated by ; */
    bool wide_digits;   /* full-width digits U+FF10… are digits */
    bool prose;         /* from running text: words may follow the value and are dropped */
    /* Texts whose words may stand beside a value. Not copied. */
    struct text prompt; /* TEXT_NONE: unknown */
    const struct text *references;
    size_t reference_count;
    bool any_unit; /* of a reference: any word may be a unit */
};

struct math_parse_error {
    size_t at_bytes;      /* where in the text reading stopped */
    const char *expected; /* static words for a person: "a closing brace", "a number after ^" */
};

/* ret_error: filled unless MATH_PARSED; may be NULL. *ret_node is in the arena; NULL unless MATH_PARSED. */
enum math_parse_status math_parse(struct math_arena *arena, struct text answer, const struct math_reading *reading,
                                  struct math_node **ret_node, struct math_parse_error *ret_error);

#endif
