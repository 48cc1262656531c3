#include "tiny_loop.h"

#include "server/base/clock.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>

void tiny_loop_init(struct tiny_loop *loop)
{
    *loop = (struct tiny_loop){.timer_us = NEVER_US};
    for (size_t i = 0; i < TINY_SOURCES; i++)
        loop->sources[i].fd = -1;
}

static void *watch(void *arg, int fd, uint32_t events, void (*ready)(void *ready_arg, uint32_t events), void *ready_arg)
{
    struct tiny_loop *loop = arg;

    for (size_t i = 0; i < TINY_SOURCES; i++) {
        if (loop->sources[i].fd >= 0)
            continue;
        loop->sources[i] = (struct tiny_source){.fd = fd, .events = events, .ready = ready, .arg = ready_arg};
        return &loop->sources[i];
    }
    return NULL;
}

static void modify(void *arg, void *source, uint32_t events)
{
    (void)arg;
    ((struct tiny_source *)source)->events = events;
}

static void unwatch(void *arg, void *source)
{
    (void)arg;
    ((struct tiny_source *)source)->fd = -1;
}

static void set_timer(void *arg, int64_t at_us, void (*expired)(void *timer_arg), void *timer_arg)
{
    struct tiny_loop *loop = arg;

    loop->timer_us = at_us;
    loop->expired = expired;
    loop->timer_arg = timer_arg;
}

struct transport_host tiny_loop_host(struct tiny_loop *loop)
{
    return (struct transport_host){
        .arg = loop, .watch = watch, .modify = modify, .unwatch = unwatch, .set_timer = set_timer};
}

static void note_duration(struct tiny_loop *loop, int64_t began_us)
{
    int64_t took_us = clock_monotonic_us() - began_us;

    if (took_us > loop->longest_us)
        loop->longest_us = took_us;
}

static void run_once(struct tiny_loop *loop, int64_t until_us)
{
    struct pollfd fds[TINY_SOURCES];
    size_t places[TINY_SOURCES], count = 0;
    int64_t began_us = clock_monotonic_us(), wake_us = loop->timer_us < until_us ? loop->timer_us : until_us;

    for (size_t i = 0; i < TINY_SOURCES; i++) {
        if (loop->sources[i].fd < 0)
            continue;
        fds[count] = (struct pollfd){.fd = loop->sources[i].fd,
                                     .events = (short)loop->sources[i].events}; /* EPOLLIN is POLLIN */
        places[count++] = i;
    }
    poll(fds, count, wake_us <= began_us ? 0 : (int)((wake_us - began_us) / 1000 + 1));
    for (size_t i = 0; i < count; i++) {
        struct tiny_source *source = &loop->sources[places[i]];

        began_us = clock_monotonic_us();
        if (fds[i].revents && source->fd == fds[i].fd)
            source->ready(source->arg, (uint32_t)fds[i].revents);
        note_duration(loop, began_us);
    }
    began_us = clock_monotonic_us();
    if (loop->timer_us <= began_us) {
        loop->timer_us = NEVER_US;
        loop->expired(loop->timer_arg);
        note_duration(loop, began_us);
    }
}

bool tiny_loop_run(struct tiny_loop *loop, const bool *flag, int64_t at_most_us)
{
    int64_t until_us = clock_monotonic_us() + at_most_us;

    while (!*flag && clock_monotonic_us() < until_us)
        run_once(loop, until_us);
    return *flag;
}
