/* parts: lines, words and other parts of a text, one after the other. All linear, nothing is allocated.
 *
 * Three kinds of words: what stands between white space (`Well-known,`); a run of letters, numbers and _ (`Well`, `known`);
 * a spoken word, in which an apostrophe, hyphen, dot or comma between two letters or numbers is part (`Well-known`). */
#ifndef VERIFIERS_IFEVAL_PARTS_H
#define VERIFIERS_IFEVAL_PARTS_H

#include "server/base/text.h"
#include "verifiers/text/characters.h"

#include <stdbool.h>
#include <stddef.h>

/* Parts between separators, blank ones too: there is always one more than separators. */
struct parts {
    struct text rest; /* TEXT_NONE at the end */
};

static inline struct parts parts_of(struct text text)
{
    return (struct parts){text.data ? text : TEXT_LITERAL("")};
}

bool next_part(struct parts *parts, struct text separator, struct text *ret_part);
bool next_line(struct parts *parts, struct text *ret_line);      /* separated by line feeds */
bool next_full_line(struct parts *parts, struct text *ret_line); /* blank ones are left out */

bool next_chunk(struct text *rest, struct text *ret_word);
bool next_run(struct text *rest, struct text *ret_run);
bool next_spoken(struct text *rest, struct text *ret_word);

/* Without the punctuation at both ends. */
struct text word_bare(struct text word);
/* The next character of a word that is no punctuation; 0 at the end. */
uint32_t word_next_letter(struct text *rest);
uint32_t word_first_letter(struct text word); /* of those, small; 0: none */
/* The next word that has a character beside punctuation. */
bool next_lettered(struct text *rest, struct text *ret_word);

static inline bool is_one_of(char byte, const char *signs)
{
    return byte && strchr(signs, byte);
}

bool text_is_blank(struct text text);
bool text_begins_with(struct text text, struct text start);
bool text_ends_with(struct text text, struct text end);
bool text_contains(struct text text, struct text part);   /* of one byte at least */
size_t text_index_of(struct text text, struct text part); /* its offset, or the text's length */
size_t text_count_of(struct text text, struct text part); /* without overlap */
struct text text_from(struct text text, size_t offset_bytes);
/* Is the part at `offset` a word of its own? No letter or number may touch an end of it that is one. */
bool is_whole_word(struct text text, size_t offset_bytes, struct text part);
bool text_contains_word(struct text text, struct text word);

#endif
