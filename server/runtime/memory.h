/* memory: the pages that the allocator keeps, and their return to the kernel. */
#ifndef SERVER_RUNTIME_MEMORY_H
#define SERVER_RUNTIME_MEMORY_H

#include "server/runtime/loop.h"
#include "server/runtime/workers.h"

struct settings;

struct memory_trim {
    struct job job;
    struct loop *loop;
    struct workers *workers;
    struct loop_timer timer;
    struct loop_timer blocks_timer;
    int64_t blocks_rest_us; /* until kept blocks have been idle for long; not above 0: there are none */
    bool running;
    bool wanted;            /* at any size */
    int64_t resident_bytes; /* after the last one */
    int64_t freed_bytes;    /* since it was last asked whether there is something to trim */
};

/* The pages of the record that the store's writer keeps: a share of memory_budget, up to a size beyond which more does not help. */
size_t memory_cache_bytes(const struct settings *settings);
/* The rest of memory_budget beside the caches of the writer and of each worker and the blocks that are kept for the
 * next request (base/blocks.h): at least half of it. */
int64_t memory_for_batches_bytes(const struct settings *settings);

/* The share of it for replies that wait for their sockets. */
int64_t memory_for_replies_bytes(const struct settings *settings);

/* The limit of the trees of request bodies (input/memory.h): all of it, and enough for ordinary bodies. */
size_t memory_for_trees_bytes(const struct settings *settings);

/* Before threads. */
void memory_setup(const struct settings *settings);

void memory_trim_init(struct memory_trim *self, struct loop *loop, struct workers *workers);
/* Loop thread. About so many bytes are being freed now: if that is much, the kernel gets them back soon. */
void memory_freed(struct memory_trim *self, size_t bytes);
/* Loop thread, now and then: the same where much was freed in small pieces. */
void memory_trim_if_grown(struct memory_trim *self);

#endif
