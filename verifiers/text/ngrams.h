/* ngrams: how many runs of n words a text has, and how many of them differ.
 *
 * A word is what stands between ASCII white space (space, tab, LF, VT, FF, CR), byte for byte. The count is exact: no
 * two different runs are taken for one. Pure; memory and time are bounded by the words, whatever they are: runs of n
 * are told apart by four of a quarter of the length, so n costs its logarithm. */
#ifndef VERIFIERS_TEXT_NGRAMS_H
#define VERIFIERS_TEXT_NGRAMS_H

#include "server/base/text.h"

#include <stddef.h>

#define NGRAMS_WORDS_MAX ((size_t)1 << 19) /* the words behind these do not count: as many as fit into 1 MiB */

struct ngrams {
    size_t words;
    size_t all; /* runs of n words; 0: there are fewer words than n */
    size_t distinct;
};

/* n: at least 1. */
struct ngrams ngrams_count(struct text text, size_t n);

#endif
