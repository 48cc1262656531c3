/* loop: the one thread that waits. Descriptors, timers, a mailbox for other threads; it knows nothing of rollouts.
 *
 * All functions but loop_post() belong to the loop thread. Callbacks may watch, unwatch, set and clear freely: a
 * source that is removed while its event is still in the current batch of events is not called and is freed after the
 * batch. */
#ifndef SERVER_RUNTIME_LOOP_H
#define SERVER_RUNTIME_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct loop_source;

struct loop *loop_create(void); /* NULL with errno */
void loop_destroy(struct loop *loop);

/* Runs until loop_stop(). `before_wait` (may be NULL) is called before each wait and after each batch of events; it
 * returns how long the wait may last at most, in microseconds, NEVER_US for no limit of its own. */
void loop_run(struct loop *loop, int64_t (*before_wait)(void *arg), void *arg);
void loop_stop(struct loop *loop);

/* The time at which the current batch of events began. */
int64_t loop_now_us(const struct loop *loop);

/* events: EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLET. The descriptor stays the caller's and must be closed after
 * loop_unwatch(). NULL with errno if the kernel refuses. */
struct loop_source *loop_watch(struct loop *loop, int fd, uint32_t events, void (*ready)(void *arg, uint32_t events),
                               void *arg);
void loop_modify(struct loop_source *source, uint32_t events);
void loop_unwatch(struct loop_source *source); /* NULL is fine */

/* A timer lives inside its owner's struct, zeroed at first. Setting a set timer moves it. */
struct loop_timer {
    int64_t at_us;
    size_t place; /* 1 + its index in the heap; 0 = not set */
    void (*expired)(void *arg);
    void *arg;
};
void loop_timer_set(struct loop *loop, struct loop_timer *timer, int64_t at_us, void (*expired)(void *arg), void *arg);
void loop_timer_clear(struct loop *loop, struct loop_timer *timer);

/* Any thread: `deliver` runs once on the loop thread, in the order of posting. The message lives inside the sender's
 * object. */
struct loop_message {
    struct loop_message *next;
    void (*deliver)(struct loop_message *message);
};
void loop_post(struct loop *loop, struct loop_message *message);
/* Messages that came when loop_run() had ended, linked by `next`: nobody will deliver them. NULL: none. */
struct loop_message *loop_take_messages(struct loop *loop);

#endif
