/* json_big: whole numbers beyond 64 bits in JSON, which jansson cannot hold, as texts that nobody else can write.
 *
 * json_big_mark() is for a text that jansson refused; json_big_restore() for what is dumped of its tree, before anybody
 * else sees it. The mark is drawn at random for each process. Any thread. */
#ifndef BASE_JSON_BIG_H
#define BASE_JSON_BIG_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <jansson.h>
#include <stdbool.h>

/* Draws the mark: for a process that may not ask for random bytes later. */
void json_big_prepare(void);

/* Appends the text with a marked string in place of each whole number beyond 64 bits. False: there was none (or the
 * buffer failed), and what was appended is of no use. */
bool json_big_mark(struct text json, struct buffer *out);

/* Appends one number, marked. */
void json_big_append(struct buffer *out, struct text digits);

/* Puts the numbers back, in place: they are shorter. Returns the new length; a NUL is behind it. */
size_t json_big_restore(char *json, size_t length_bytes);

/* json_loadb() and json_dumps() with both: a tree for a text, and the text for a tree. NULL as theirs. */
json_t *json_big_load(struct text json, size_t flags, json_error_t *ret_error);
char *json_big_dump(const json_t *value, size_t flags);
bool json_big_is_in(const json_t *value); /* anywhere */

/* The digits of a string that stands for a number, or TEXT_NONE. */
struct text json_big_digits(struct text string);

#endif
