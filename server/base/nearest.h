/* nearest: the name that was probably meant. Pure, any thread. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

/* rows[count] of row_bytes each begin with a `const char *` name. Returns the one nearest to `name` (Levenshtein's
 * distance) if a typing error or two could have made it, else NULL. */
const char *nearest_name(const char *name, const void *rows, size_t row_bytes, size_t count);

#endif
