/* UTF-8: strict checking, and mending of what engines send. Any thread. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* No overlong forms, no surrogates, nothing above U+10FFFF. NUL is legal. ret_bad_offset may be NULL. */
bool utf8_is_valid(struct text text, size_t *ret_bad_offset_bytes);

/* Appends the text with every maximal broken part as U+FFFD; returns how many were replaced. */
size_t utf8_append_mended(struct buffer *out, struct text text);

/* Appends one code point (a surrogate or one beyond the range becomes U+FFFD). */
void utf8_append(struct buffer *out, uint32_t code_point);

#endif
