/* limits: the kernel's limits of this process (ulimit), and whether they suffice.
 *
 * A limit that is too small must not be seen first as a crash of a verifier or as an engine that is down. Soft limits
 * are raised to the hard ones; if that does not suffice, the service does not start. */
#ifndef SERVER_RUNTIME_LIMITS_H
#define SERVER_RUNTIME_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

struct settings;

#define LIMITS_MESSAGE_BYTES 256

/* Shares of the descriptors, beside those of the service itself, its workers and the database. */
struct descriptor_shares {
    size_t clients;  /* connections at once, at most connection_limit */
    size_t refusals; /* connections that are being told that there are too many */
    size_t engines;  /* connections to engines, those that wait for the next request included */
};

/* Looks at every limit that a thread, a worker or the database needs. 0, or -1 with a sentence that names the limit,
 * its value, and what it must be. `raise`: soft limits are set to the hard ones, and threads that are made later get a
 * stack of their own size; else nothing is changed (--check). Before threads and the spawner. */
int limits_check(const struct settings *settings, bool raise, struct descriptor_shares *ret_shares,
                 char ret_message[LIMITS_MESSAGE_BYTES]);
/* The same for a command: the needs of one text worker. Raises. */
int limits_check_worker(char ret_message[LIMITS_MESSAGE_BYTES]);

#endif
