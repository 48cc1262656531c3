/* The program that a spawner is started from. */
#ifndef VERIFIERS_WORKER_OWN_PROGRAM_PRIVATE_H
#define VERIFIERS_WORKER_OWN_PROGRAM_PRIVATE_H

/* A descriptor of a sealed copy in memory of the running program, if its file belongs to an ordinary user; -1 if it is root's,
 * or a copy cannot be made or executed here: /proc/self/exe must do.
 *
 * Programs of Python are forked, not exec'ed: in them /proc/self/exe is our own file, on a mount that is not theirs. If
 * they have its owner's id, they can change its mode. They cannot write to it while it runs. */
int own_program_copy(void);

#endif
