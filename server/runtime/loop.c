#include "server/runtime/loop.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define EVENTS_PER_WAIT 256

struct loop_source {
    struct loop *loop;
    struct loop_source *next_dead;
    int fd;
    bool dead;
    void (*ready)(void *arg, uint32_t events);
    void *arg;
};

struct loop {
    int epoll_fd;
    int mailbox_fd;
    bool stopping;
    int64_t now_us;
    struct loop_source *dead; /* freed after the batch of events: one of its events may still name them */
    struct loop_source *mailbox_source;

    struct loop_timer **timers; /* binary heap by at_us */
    size_t timer_count;
    size_t timer_capacity;

    pthread_mutex_t mailbox_lock;
    struct loop_message *mailbox_first;
    struct loop_message **mailbox_last;
};

/* --- mailbox ---------------------------------------------------------------------------------- */

void loop_post(struct loop *loop, struct loop_message *message)
{
    message->next = NULL;
    pthread_mutex_lock(&loop->mailbox_lock);
    bool was_empty = !loop->mailbox_first;
    *loop->mailbox_last = message;
    loop->mailbox_last = &message->next;
    pthread_mutex_unlock(&loop->mailbox_lock);

    uint64_t one = 1;
    if (was_empty)
        (void)!write(loop->mailbox_fd, &one, sizeof(one));
}

struct loop_message *loop_take_messages(struct loop *loop)
{
    pthread_mutex_lock(&loop->mailbox_lock);
    struct loop_message *first = loop->mailbox_first;
    loop->mailbox_first = NULL;
    loop->mailbox_last = &loop->mailbox_first;
    pthread_mutex_unlock(&loop->mailbox_lock);
    return first;
}

static void deliver_mailbox(void *arg, uint32_t events)
{
    (void)events;
    struct loop *loop = arg;
    uint64_t count;
    (void)!read(loop->mailbox_fd, &count, sizeof(count));

    struct loop_message *message = loop_take_messages(loop);
    while (message) {
        struct loop_message *next = message->next; /* delivering may free the message */
        message->deliver(message);
        message = next;
    }
}

/* --- timers: a binary heap that knows each timer's place ----------------------------------------- */

static void heap_put(struct loop *loop, size_t index, struct loop_timer *timer)
{
    loop->timers[index] = timer;
    timer->place = index + 1;
}

static void heap_rise(struct loop *loop, size_t index)
{
    struct loop_timer *timer = loop->timers[index];
    while (index > 0 && loop->timers[(index - 1) / 2]->at_us > timer->at_us) {
        heap_put(loop, index, loop->timers[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    heap_put(loop, index, timer);
}

static void heap_sink(struct loop *loop, size_t index)
{
    struct loop_timer *timer = loop->timers[index];
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= loop->timer_count)
            break;
        if (child + 1 < loop->timer_count && loop->timers[child + 1]->at_us < loop->timers[child]->at_us)
            child++;
        if (loop->timers[child]->at_us >= timer->at_us)
            break;
        heap_put(loop, index, loop->timers[child]);
        index = child;
    }
    heap_put(loop, index, timer);
}

void loop_timer_clear(struct loop *loop, struct loop_timer *timer)
{
    if (!timer->place)
        return;
    size_t index = timer->place - 1;
    timer->place = 0;
    struct loop_timer *last = loop->timers[--loop->timer_count];
    if (last == timer)
        return;
    heap_put(loop, index, last);
    heap_rise(loop, index);
    heap_sink(loop, last->place - 1);
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer, int64_t at_us, void (*expired)(void *arg), void *arg)
{
    loop_timer_clear(loop, timer);
    timer->at_us = at_us;
    timer->expired = expired;
    timer->arg = arg;
    if (loop->timer_count == loop->timer_capacity) {
        loop->timer_capacity = loop->timer_capacity ? 2 * loop->timer_capacity : 64;
        loop->timers = xrealloc(loop->timers, loop->timer_capacity * sizeof(struct loop_timer *));
    }
    heap_put(loop, loop->timer_count++, timer);
    heap_rise(loop, timer->place - 1);
}

static void expire_timers(struct loop *loop)
{
    while (loop->timer_count > 0 && loop->timers[0]->at_us <= loop->now_us) {
        struct loop_timer *timer = loop->timers[0];
        loop_timer_clear(loop, timer);
        timer->expired(timer->arg);
    }
}

/* --- descriptors ------------------------------------------------------------------------------- */

struct loop_source *loop_watch(struct loop *loop, int fd, uint32_t events, void (*ready)(void *arg, uint32_t events),
                               void *arg)
{
    struct loop_source *source = xcalloc(1, sizeof(*source));
    *source = (struct loop_source){.loop = loop, .fd = fd, .ready = ready, .arg = arg};
    struct epoll_event event = {.events = events, .data.ptr = source};
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        free(source);
        return NULL;
    }
    return source;
}

void loop_modify(struct loop_source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    (void)epoll_ctl(source->loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event);
}

void loop_unwatch(struct loop_source *source)
{
    if (!source || source->dead)
        return;
    (void)epoll_ctl(source->loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
    source->dead = true;
    source->next_dead = source->loop->dead;
    source->loop->dead = source;
}

static void free_dead_sources(struct loop *loop)
{
    while (loop->dead) {
        struct loop_source *source = loop->dead;
        loop->dead = source->next_dead;
        free(source);
    }
}

/* --- life -------------------------------------------------------------------------------------- */

struct loop *loop_create(void)
{
    struct loop *loop = xcalloc(1, sizeof(*loop));
    pthread_mutex_init(&loop->mailbox_lock, NULL);
    loop->mailbox_last = &loop->mailbox_first;
    loop->now_us = clock_monotonic_us();
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->mailbox_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll_fd >= 0 && loop->mailbox_fd >= 0)
        loop->mailbox_source = loop_watch(loop, loop->mailbox_fd, EPOLLIN, deliver_mailbox, loop);
    if (!loop->mailbox_source) {
        loop_destroy(loop);
        return NULL;
    }
    return loop;
}

void loop_destroy(struct loop *loop)
{
    if (!loop)
        return;
    loop_unwatch(loop->mailbox_source);
    free_dead_sources(loop);
    if (loop->mailbox_fd >= 0)
        close(loop->mailbox_fd);
    if (loop->epoll_fd >= 0)
        close(loop->epoll_fd);
    pthread_mutex_destroy(&loop->mailbox_lock);
    free(loop->timers);
    free(loop);
}

static int wait_ms(const struct loop *loop, int64_t limit_us)
{
    int64_t wait_us = limit_us;
    if (loop->timer_count > 0) {
        int64_t until_us = loop->timers[0]->at_us - clock_monotonic_us();
        wait_us = until_us < wait_us ? until_us : wait_us;
    }
    if (loop->stopping || wait_us <= 0)
        return 0;
    if (wait_us > 3600 * US_PER_S)
        return 3600 * 1000;
    return (int)((wait_us + 999) / 1000);
}

void loop_run(struct loop *loop, int64_t (*before_wait)(void *arg), void *arg)
{
    struct epoll_event events[EVENTS_PER_WAIT];

    while (!loop->stopping) {
        int64_t limit_us = before_wait ? before_wait(arg) : NEVER_US;
        free_dead_sources(loop);
        int count = epoll_wait(loop->epoll_fd, events, EVENTS_PER_WAIT, wait_ms(loop, limit_us));
        loop->now_us = clock_monotonic_us();
        for (int i = 0; i < count; i++) {
            struct loop_source *source = events[i].data.ptr;
            if (!source->dead)
                source->ready(source->arg, events[i].events);
        }
        expire_timers(loop);
    }
    free_dead_sources(loop);
    loop->stopping = false;
}

void loop_stop(struct loop *loop)
{
    loop->stopping = true;
}

int64_t loop_now_us(const struct loop *loop)
{
    return loop->now_us;
}
