/* The smallest host for the transport: poll() and one timer. */
#ifndef TESTS_CLIENT_TINY_LOOP_H
#define TESTS_CLIENT_TINY_LOOP_H

#include "client/transport/transport.h"

#define TINY_SOURCES 512

struct tiny_source {
    int fd; /* -1: free */
    uint32_t events;
    void (*ready)(void *arg, uint32_t events);
    void *arg;
};

struct tiny_loop {
    struct tiny_source sources[TINY_SOURCES];
    int64_t timer_us;
    void (*expired)(void *arg);
    void *timer_arg;
    int64_t longest_us; /* that any callback took */
};

void tiny_loop_init(struct tiny_loop *loop);
struct transport_host tiny_loop_host(struct tiny_loop *loop);

/* Runs until *flag, at most so long; whether the flag is set. */
bool tiny_loop_run(struct tiny_loop *loop, const bool *flag, int64_t at_most_us);

#endif
