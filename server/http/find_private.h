/* find: from a raw path and query to a row of the route table and decoded arguments. */
#ifndef SERVER_HTTP_FIND_PRIVATE_H
#define SERVER_HTTP_FIND_PRIVATE_H

#include "server/base/text.h"
#include "server/http/call.h"
#include "server/http/route.h"

#include <stdbool.h>

/* Finds the route of a raw, still encoded path; fills call->args (decoded, into storage the caller frees).
 * NULL with *ret_error = ERR_NOT_FOUND (no pattern fits), ERR_METHOD_NOT_ALLOWED (another method would), or
 * ERR_BAD_REQUEST (broken percent escape, NUL or broken UTF-8). */
const struct route *route_find(const struct route_table *table, const char *method, struct text raw_path,
                               struct call *call, struct buffer *storage, enum error_code *ret_error);

/* Appends the decoded text to storage; false for a broken escape, NUL, or broken UTF-8. The buffer must not move while
 * the decoded text is used: reserve enough before. */
bool percent_decode(struct text raw, bool plus_is_space, struct buffer *storage, struct text *ret_decoded);

/* Reads the text after the '?' into call->query. 0, or -1 with the call refused. The storage as above. */
int query_parse(struct text raw, struct call *call, struct buffer *storage);

/* Methods of the path, for the Allow header: "GET, DELETE". */
void route_allowed(const struct route_table *table, struct text raw_path, char ret_allow[64]);

#endif
