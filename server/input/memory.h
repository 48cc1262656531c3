/* json_memory: how much memory the trees of request bodies may take.
 *
 * jansson makes of two bytes ("[]", "{}") up to two hundred, so a limit on bodies is none on memory. All trees together
 * keep within one limit; while a body is parsed its allocations count, and one that does not fit ends the parsing.
 * Without json_memory_setup() nothing is counted and everything fits. */
#ifndef SERVER_INPUT_MEMORY_H
#define SERVER_INPUT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum json_memory_end {
    JSON_MEMORY_FITS,
    JSON_MEMORY_TOO_LARGE, /* more than the limit, even alone */
    JSON_MEMORY_BUSY,      /* other trees take up what this one would need */
};

/* Once, before threads: jansson allocates by this module from now on. */
void json_memory_setup(size_t limit_bytes);

/* Around one parsing, on one thread. Memory of the tree, even after a failure, is given back when it has been freed. */
void json_memory_begin(void);
enum json_memory_end json_memory_end(size_t *ret_held_bytes);
void json_memory_give(size_t held_bytes); /* any thread */

/* A large tree has been freed on this thread: the kernel gets its pages back now. */
void json_memory_trim(void);

#endif
