/* A real slot for a test, at the level that this machine offers. */
#ifndef TESTS_VERIFIERS_SLOT_FIXTURE_H
#define TESTS_VERIFIERS_SLOT_FIXTURE_H

#include <stdbool.h>
#include <sys/types.h>

#include "verifiers/sandbox/sandbox.h"
#include "verifiers/sandbox/slot.h"

struct slot_fixture {
    pid_t pid; /* the slot's first process, a child of the test */
    int fd;
};

/* The level of this machine by a trial: asked once. Where it is SANDBOX_LEVEL_NONE no slot is started. */
enum sandbox_level fixture_level(void);

/* testlib: NULL for none. */
struct slot_fixture fixture_start(const char *testlib);
/* Closes its socket and waits for its end. */
void fixture_stop(struct slot_fixture *slot);

extern const struct sandbox_limits fixture_limits; /* ample: a loaded machine keeps them */

struct sandbox_program fixture_program(enum sandbox_language language, const char *source);
/* sandbox_run() of one program, which must be answered. The result is to be finished. */
struct sandbox_result fixture_run(const struct slot_fixture *slot, const struct sandbox_program *program);
/* Runs a sh program; the result has begun and ended by itself. */
struct sandbox_result fixture_sh(const struct slot_fixture *slot, const char *source);

/* Every process below this one, as /proc shows them. */
size_t fixture_descendants(pid_t pid, pid_t *ret_pids, size_t room);
/* Waits until none of them is left. */
void fixture_wait_gone(const pid_t *pids, size_t count);

#endif
