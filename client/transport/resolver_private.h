/* resolver: host names to addresses, without ever making the loop wait.
 *
 * Each lookup runs on a thread of its own (getaddrinfo can hang for minutes and cannot be stopped); there is at most
 * one per name. An answer is kept until resolver_distrust(). Loop thread only. */
#ifndef CLIENT_TRANSPORT_RESOLVER_PRIVATE_H
#define CLIENT_TRANSPORT_RESOLVER_PRIVATE_H

#include "client/transport/transport.h"

#define RESOLVED_BYTES 512

enum resolved_state { RESOLVED_NOT, RESOLVED_LOOKING, RESOLVED_KNOWN, RESOLVED_FAILED };

struct resolved_name {
    struct resolved_name *next;
    char *host;
    char *port;
    enum resolved_state state;
    char addresses[RESOLVED_BYTES]; /* KNOWN: "127.0.0.1,[::1]"; FAILED: a message */
};

struct resolver;

/* `answered` is called on the loop thread after one or more names left LOOKING. NULL with errno. */
struct resolver *resolver_create(const struct transport_host *host,
                                 int (*lookup)(const char *host, const char *port, char *ret_addresses,
                                               size_t size_bytes),
                                 void (*answered)(void *arg), void *arg);
void resolver_destroy(struct resolver *resolver); /* does not wait for lookups */

/* Starts a lookup unless the name is KNOWN or LOOKING. Lives as long as the resolver. */
struct resolved_name *resolver_want(struct resolver *resolver, const char *host, const char *port);
void resolver_distrust(struct resolved_name *name); /* the next want looks again */

/* The default lookup: 0, or -1 with a message in ret_addresses. */
int resolver_getaddrinfo(const char *host, const char *port, char *ret_addresses, size_t size_bytes);

#endif
