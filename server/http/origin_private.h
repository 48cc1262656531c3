/* http_origin: detects requests that a foreign web page sent. Pure.
 *
 * A page can make its reader's browser talk to loopback. By a name of its own that is pointed there (DNS rebinding) it
 * would even see the replies: Host tells. Else it can only send, as a form does: Origin, Sec-Fetch-Site and Referer
 * tell. */
#ifndef SERVER_HTTP_ORIGIN_PRIVATE_H
#define SERVER_HTTP_ORIGIN_PRIVATE_H

#include "server/base/text.h"

#include <stdbool.h>

struct origin_signs {
    const char *host; /* headers as they came; NULL: none */
    const char *origin;
    const char *sec_fetch_site;
    const char *referer;
};

/* A loopback name or address, or the address that is listened on; with any port, or none: a forwarded port is
 * another one. */
bool origin_host_is_ours(struct text host, const char *listen_host);

/* Whether Origin and Sec-Fetch-Site, where they are given, name the service itself. */
bool origin_is_ours(const struct origin_signs *signs, const char *listen_host, int listen_port);

/* The same of Referer: browsers too old for the others send it with a form. */
bool origin_referer_is_ours(const struct origin_signs *signs, const char *listen_host, int listen_port);

#endif
