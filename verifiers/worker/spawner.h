/* spawner: the small process that makes, kills and reaps workers and their slots, so that the service never forks.
 *
 * It is this same binary, executed again with a private argument before the service has settings, secrets, a database
 * or threads. The service talks to it over one SOCK_SEQPACKET socket in fixed messages; a new worker's socket and page
 * come back by SCM_RIGHTS. It ends when that socket ends, and its children with it (PDEATHSIG). If it dies, start
 * another one. Service side: any one thread (the loop). */
#ifndef VERIFIERS_WORKER_SPAWNER_H
#define VERIFIERS_WORKER_SPAWNER_H

#include "verifiers/sandbox/probe.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum worker_kind {
    WORKER_TEXT, /* grades texts */
    WORKER_CODE, /* grades programs: a slot of its own runs them */
    WORKER_KINDS
};

/* Call first in main(), and in a test's main(). Never returns in a process that is a spawner; returns at once in any
 * other. */
void spawner_main(int argc, char **argv);

struct worker_page;

struct spawner {
    pid_t pid;
    int fd; /* non-blocking, close-on-exec; readable: spawner_receive() */
};

/* Starts one from /proc/self/exe. 0, or -1 with errno. */
int spawner_start(struct spawner *ret_spawner);
/* Closes the socket and waits for the end, a second at most; then kills. Reaps. Fine on {0, -1} and on a dead one. */
void spawner_stop(struct spawner *spawner);

/* Asks for a worker; spawner_receive() gives it or its failure. id: the caller's number for it, never used twice. sandbox:
 * NULL: a text worker; else a code worker, with a slot made by these settings. 0, or -1 with errno. */
int spawner_make_worker(const struct spawner *spawner, uint32_t id, const struct sandbox_settings *sandbox);
/* With its slot, and all that runs there. */
int spawner_kill_worker(const struct spawner *spawner, uint32_t id);
/* Asks what the machine offers to programs: SPAWNER_PROBED. 0, or -1 with errno. */
int spawner_probe(const struct spawner *spawner, const struct sandbox_settings *sandbox);

enum spawner_event_kind {
    SPAWNER_NOTHING,    /* no more for now */
    SPAWNER_MADE,       /* fd is the worker's socket: non-blocking, close-on-exec, the caller's */
    SPAWNER_FAILED,     /* the worker could not be made: error holds errno */
    SPAWNER_ENDED,      /* the worker is gone and reaped: status as of waitpid(). Its slot ends now, if it has not */
    SPAWNER_SLOT_ENDED, /* the slot of a living worker ended: the worker cannot be used again */
    SPAWNER_PROBED,     /* probed is what the machine offers */
    SPAWNER_GONE        /* the spawner itself is gone: stop it, start another */
};

struct spawner_event {
    enum spawner_event_kind kind;
    uint32_t id;
    int fd;
    const struct worker_page *page; /* SPAWNER_MADE: what the worker is at; the caller's, worker_page_unmap() */
    int error;
    int status;
    struct sandbox_report probed;
};

void worker_page_unmap(const struct worker_page *page); /* NULL is fine */

void spawner_receive(const struct spawner *spawner, struct spawner_event *ret_event);

#endif
