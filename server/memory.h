/* memory: what the allocator keeps, and when the kernel gets it back. */
#ifndef SERVER_MEMORY_H
#define SERVER_MEMORY_H

#include "server/loop.h"
#include "server/workers.h"

struct server;
struct settings;

struct memory_trim {
    struct job job;
    struct loop_timer timer;
    bool running;
    bool wanted;            /* whatever the size is */
    int64_t resident_bytes; /* after the last one */
};

/* Before threads. */
void memory_setup(const struct settings *settings);

/* Loop thread. About so many bytes are being freed now: if that is much, the kernel gets them back soon. */
void memory_freed(struct server *server, size_t bytes);
/* Loop thread, now and then: the same where much was freed in small pieces. */
void memory_trim_if_grown(struct server *server);

#endif
