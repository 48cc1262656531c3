/* holder: the process that makes the programs' processes, and its Python zygote, as the supervisor sees them.
 *
 * The holder is in namespaces of its own with a read-only root (cage.h); its zygote is a child that has loaded Python.
 * Both are launchers: they serve orders (launch.h) from their socket until it ends, and end with everything that they
 * started. The holder is a child of the slot's keeper, which has never held a program or its input: what the memory of a
 * zygote holds, every program can read. */
#ifndef VERIFIERS_SANDBOX_HOLDER_PRIVATE_H
#define VERIFIERS_SANDBOX_HOLDER_PRIVATE_H

#include "verifiers/sandbox/launch_private.h"
#include "verifiers/sandbox/slot.h"

#include <stdbool.h>

struct cage;

struct holder {
    int keeper; /* socket of the keeper */
    int socket; /* of the holder; -1: there is none */
    int zygote; /* socket of the zygote; -1: there is none yet */
    int bare;   /* socket of the launcher of bare commands, which is a child of the keeper; likewise */
    unsigned launched;
    bool left[LAUNCH_STAYERS_MAX]; /* what stayed at this place ended while nobody ran it */
    int64_t killed;                /* usage_killed_for_memory() when it was asked last */
};

/* Ends the holder that there is, with everything below it, waits for that, and has a new one made. That it could not be
 * made is told by its first report. 0, or -1: the keeper is gone. */
int holder_renew(struct holder *holder);
/* Has the zygote made, if there is none. 0, or -1 with errno. */
int holder_start_zygote(struct holder *holder);
/* The same for the launcher of bare commands. It ends with the holder. */
int holder_start_bare(struct holder *holder);

/* In the keeper: serves its socket until the supervisor is gone, then ends everything. */
void keeper_serve(int socket, pid_t supervisor, const struct sandbox_settings *settings) __attribute__((noreturn));

/* In a process that is to be a holder: makes its cage, then serves the socket. That it could not is its first report. */
void holder_serve(int socket, const struct sandbox_settings *settings) __attribute__((noreturn));

/* In the process that is the holder, or its zygote: serves the socket until it ends. settings: NULL for a zygote, which
 * makes no zygote. */
void launcher_serve(int socket, struct cage *cage, const struct sandbox_settings *settings) __attribute__((noreturn));

/* Signals for a whole group: a slot's own processes ignore them, a launcher blocks them. */
static const int slot_group_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
void launcher_blocked_signals(sigset_t *ret_signals);

#endif
