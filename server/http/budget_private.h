/* reply_budget: the share of memory_budget for replies that wait for their sockets.
 *
 * A reply in parts holds the bytes of one part from before its status line until its end; a whole reply holds its
 * bytes. Requests that find no room wait in the order of arrival. Loop thread unless marked otherwise. */
#ifndef SERVER_HTTP_BUDGET_PRIVATE_H
#define SERVER_HTTP_BUDGET_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reply_wait {
    struct reply_wait *next;
    struct reply_wait **link; /* NULL: it does not wait */
    size_t bytes;             /* wanted beside those held already; 0: only that replies hold no more than the limit */
    void (*room)(void *arg);  /* called once, when the bytes are taken */
    void *arg;
};

/* Those who hold a part already come before those who want to begin: their rest is what frees memory. */
enum { REPLY_GOES_ON, REPLY_BEGINS, REPLY_QUEUES };

struct reply_budget {
    int64_t limit_bytes;
    _Atomic int64_t held_bytes;
    bool oversize; /* one reply alone is larger than the limit */
    struct reply_wait *first[REPLY_QUEUES];
    struct reply_wait **last[REPLY_QUEUES];
};

void reply_budget_init(struct reply_budget *budget, int64_t limit_bytes);

/* False: there is no room, or others wait for it. */
bool reply_budget_take(struct reply_budget *budget, size_t bytes);
/* The same for a whole reply. One that is larger than the limit fits while there is no other such.
 * *ret_oversize: it is one, and reply_budget_give_oversize() follows. */
bool reply_budget_take_whole(struct reply_budget *budget, size_t bytes, bool *ret_oversize);
void reply_budget_add(struct reply_budget *budget, size_t bytes); /* for bytes that are there already */
void reply_budget_give(struct reply_budget *budget, size_t bytes);
void reply_budget_give_oversize(struct reply_budget *budget);
/* Any thread: replies hold more than the limit, so no further part may be made. */
bool reply_budget_is_over(const struct reply_budget *budget);

void reply_budget_wait(struct reply_budget *budget, struct reply_wait *wait);
void reply_budget_leave(struct reply_budget *budget, struct reply_wait *wait); /* also of one that does not wait */
/* Calls those for whom there is room now. Once a turn of the loop. */
void reply_budget_serve(struct reply_budget *budget);

#endif
