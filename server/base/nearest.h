/* nearest: the name that was probably meant. Pure, any thread. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include "server/base/text.h"

#include <stddef.h>

/* rows[count] of row_bytes each begin with a `const char *` name. Returns the one nearest to `name` (Levenshtein's
 * distance) if a typing error or two could have made it, else NULL. */
const char *nearest_name(const char *name, const void *rows, size_t row_bytes, size_t count);

/* The end of a search, for a message: `did you mean "grpo"? Known are: dapo, grpo, …`. The name that other services
 * have for the same thing comes before the nearest one. The list is cut where ret_advice ends. */
#define ADVICE_BYTES 832
void names_advise(struct text name, const void *rows, size_t row_bytes, size_t count, char ret_advice[ADVICE_BYTES]);
/* The same for a NULL-terminated list. */
void names_advise_list(struct text name, const char *const *list, char ret_advice[ADVICE_BYTES]);

/* Names for such a list: once each, and as many as a message holds. {0} is empty. */
#define NAME_LIST_MAX 64
struct name_list {
    char *names[NAME_LIST_MAX + 1]; /* ended by NULL */
    size_t count;
    size_t bytes; /* of all, as they stand in a message */
};
void name_list_add(struct name_list *list, struct text name);
void name_list_finish(struct name_list *list);
void name_list_advise(struct text name, const struct name_list *list, char ret_advice[ADVICE_BYTES]);

#endif
