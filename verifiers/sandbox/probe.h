/* probe: the level of isolation that this machine, this user and this container allow. It is found by a trial: a whole cage
 * is made, and a program in it tries what must not work. No sysctl and no version is asked, because each of them can
 * allow what another one then forbids. */
#ifndef VERIFIERS_SANDBOX_PROBE_H
#define VERIFIERS_SANDBOX_PROBE_H

#include "verifiers/sandbox/slot.h"

struct sandbox_report { /* of fixed size, without a pointer: it travels to the service */
    enum sandbox_level level;
    int landlock_abi; /* 0: there is none */
    char step[32];    /* at which `full` failed (cage_step_names); empty: it did not */
    int error;        /* errno of that step, or 0 */
    char advice[320]; /* what to change, one or two sentences; empty if level is full */
    char open[160];   /* what this level does not hold back, as words behind commas; empty if nothing */
};

/* Forks, and waits for the trial: some ms. Changes nothing in the calling process, which must have no other thread. It
 * may be root: the trial drops to settings->uid. Never fails: what it cannot do is level none with its reason. */
void sandbox_probe(const struct sandbox_settings *settings, struct sandbox_report *ret_report);

#endif
