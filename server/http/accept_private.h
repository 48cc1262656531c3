/* accept: the media types that a client accepts. Pure. */
#ifndef SERVER_HTTP_ACCEPT_PRIVATE_H
#define SERVER_HTTP_ACCEPT_PRIVATE_H

#include "server/http/call.h"

#include <stddef.h>

/* How much of a media type an Accept header wants: 1000 without a q, 0 for q=0 or where it is not named; wildcards name
 * none. accept: NULL: there is no header. ret_place: of the type in the header. */
int accept_quality(const char *accept, const char *type, size_t *ret_place);
/* The form of a page that is wanted most, of several the first; else JSON. */
enum call_page accept_page_of(const char *accept);

#endif
