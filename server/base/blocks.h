/* blocks: large pieces of memory that are used again.
 *
 * A fresh page costs a fault and its clearing: for a body of 42 MB 15 to 25 ms, more than reading it. A block is
 * ordinary memory of malloc(): it may be given back with block_give(), which keeps it for the next block_find() if
 * there is room, or with free(). Any thread. */
#ifndef BASE_BLOCKS_H
#define BASE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#define BLOCK_BYTES ((size_t)1 << 20) /* smaller pieces are not kept */

/* How many bytes may be kept; 0, as at the start: none. */
void blocks_setup(size_t kept_bytes_max);

/* The smallest kept block of at least so many bytes, now the caller's; NULL: there is none. Its content is undefined.
 */
void *block_find(size_t size_bytes, size_t *ret_capacity_bytes);
/* The same, or a new one. NULL without memory. */
void *block_take(size_t size_bytes);
void block_give(void *block); /* NULL: nothing */

/* Frees what is kept and has not been taken or given for idle_us. Returns how long until there is something to free
 * again; -1: nothing is kept. */
int64_t blocks_release(int64_t idle_us);

#endif
