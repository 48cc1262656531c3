/* A small HTTP server for the transport's tests: what it does is in the path of the request. */
#ifndef TESTS_CLIENT_STUB_SERVER_H
#define TESTS_CLIENT_STUB_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct stub_server {
    int fd;
    int port;
    char url[64];
    pthread_t thread;
    atomic_int connections; /* accepted so far */
    atomic_int requests;    /* read so far */
    atomic_int hung_up;     /* hangs that ended because the peer closed */
    atomic_int open;        /* connections now */
};

void stub_server_start(struct stub_server *server);
void stub_server_stop(struct stub_server *server);

#endif
