/* server: everything that one running service owns. The loop thread owns this struct; workers see only what a job hands
 * them. */
#ifndef SERVER_API_SERVER_H
#define SERVER_API_SERVER_H

#include "server/api/storage.h"
#include "server/api/verify.h"
#include "server/runtime/limits.h"
#include "server/runtime/loop.h"
#include "server/runtime/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct alarms;
struct batches;
struct delivery;
struct draft_drop;
struct engines;
struct http;
struct incidents;
struct pool;
struct reverify;
struct settings;
struct store;
struct transport;
struct verify_calls;
struct verify_pool;

struct server {
    const struct settings *settings;
    struct descriptor_shares shares;
    struct loop *loop;
    struct store *store;
    struct workers *workers;
    struct http *http;
    struct transport *transport;
    struct pool *pool;
    struct engines *engines;
    struct verify_pool *verify_pool; /* of text workers: jobs are submitted here */
    struct verify_pool *code_pool;   /* what it does not judge goes there */
    struct verify_calls *calls;      /* that verifiers make */
    struct verify_context verify;
    struct incidents *incidents;
    struct batches *batches;
    struct delivery *delivery;
    struct alarms *alarms;
    struct reverify *reverify;
    struct draft_drop *draft_drops; /* on their way (taskset_drafts.c) */
    char *token;                    /* required of requests; NULL: none */
    int argc;                       /* of the first reading of the settings, for the next ones */
    char **argv;
    char url[128];
    bool failed; /* it ran, but the start was not completed */
    int64_t drain_until_us;
    int64_t leave_at_us;
    struct loop_timer drain_timer;
    struct loop_timer start_timer;
    int64_t announce_by_us; /* ready, whether or not a text worker is there */
    struct loop_timer gauge_timer;
    struct storage_history storage;
    struct memory_trim trim;
    struct loop_timer transport_timer;
    int signal_fd;
    struct loop_source *signal_source;
};

/* Runs the service until it is told to stop; the exit code. Settings stay the caller's. argc and argv: what
 * they were read from, for SIGHUP. */
int server_run(const struct settings *settings, int argc, char **argv);

/* taskset_drafts.c: drops drafts that a crash left behind, in the background. Before the first request. */
void server_drop_old_drafts(struct server *server);

/* drain.c: the first call stops admission and lets running batches end; the second one stops at once. */
void server_drain(struct server *server);

#endif
