/* pieces: the steps of a text, its lines or its paragraphs.
 *
 * A line ends at LF or CRLF and at nothing else. Lines of space, tab, CR, VT, FF alone are blank: no steps. A paragraph is
 * a run of other lines with the breaks between them. Pure; linear in the text; any bytes. */
#ifndef VERIFIERS_TEXT_PIECES_H
#define VERIFIERS_TEXT_PIECES_H

#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>

enum pieces_kind { PIECES_NONE, PIECES_PER_LINE, PIECES_PER_PARAGRAPH, PIECES_KINDS };

extern const char
    *const pieces_kind_names[PIECES_KINDS]; /* "none", "per_line", "per_paragraph": the values of `steps` */

struct piece {
    struct text text; /* without the break behind it */
    size_t end_bytes; /* in the whole text, behind its break */
};

/* Steps of one verdict at most. A completion with more of them is wrong: score 0, too_many_steps. */
#define PIECES_MAX 65536

/* PIECES_NONE for what is no value of `steps`. */
enum pieces_kind pieces_kind_of(struct text name);

/* The next piece from byte *at on, which moves behind it. Begin with 0. False: there is none. */
bool pieces_next(struct text whole, enum pieces_kind kind, size_t *at, struct piece *ret_piece);

/* All of them, an array to be freed (never NULL). *ret_count is PIECES_MAX + 1 if there are more than PIECES_MAX: then the
 * array holds the first ones. */
struct piece *pieces_of(struct text whole, enum pieces_kind kind, size_t *ret_count);

#endif
