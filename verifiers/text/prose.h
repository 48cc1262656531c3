/* prose: the text around an answer as words and signs, without what only decorates it.
 *
 * Decoration is white space, emphasis, quotes, brackets, dollars, fonts of LaTeX and HTML, and check marks: a closed list.
 * Other bytes beyond ASCII are letters of words unless they are a known sign; other bytes of ASCII are unknown signs. Pure,
 * linear in the text. */
#ifndef VERIFIERS_TEXT_PROSE_H
#define VERIFIERS_TEXT_PROSE_H

#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>

enum prose_kind {
    PROSE_END,
    PROSE_WORD,    /* letters and digits; B's, A_1, B-52, D.C and 3.5 are one word */
    PROSE_LIST,    /* , ; / & */
    PROSE_STOP,    /* a full stop or exclamation mark */
    PROSE_LABEL,   /* a colon or dash */
    PROSE_UNKNOWN, /* any other sign */
};

struct prose_word {
    enum prose_kind kind;
    struct text text;
    bool decorated; /* more than spaces stood before it: a bracket, a quote, emphasis, a line break */
};

/* A place in a text: {text, 0} is its beginning. */
struct prose {
    struct text text;
    size_t at;
};

struct prose_word prose_next(struct prose *prose);
struct prose_word prose_peek(struct prose prose);

/* Is it one of the words of a list in small letters, NULL-terminated? The case of ASCII letters is ignored. */
bool prose_is_one_of(struct prose_word word, const char *const *list);

#endif
