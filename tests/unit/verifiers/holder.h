/* A holder for a test: a process of its own, because what a holder becomes cannot be undone. */
#ifndef TESTS_UNIT_VERIFIERS_HOLDER_H
#define TESTS_UNIT_VERIFIERS_HOLDER_H

#include "verifiers/sandbox/cage_private.h"

/* Acts in a holder of the level. Returns the text that it writes to out, to be freed; "no holder: STEP: ERROR"
 * if there is none. Root drops to an ordinary user. */
typedef void (*holder_act)(struct cage *cage, int out, const void *arg);
char *in_holder(enum sandbox_level level, holder_act act, const void *arg);
char *in_holder_of(const struct sandbox_settings *settings, holder_act act, const void *arg);

/* For an act: a program with out as its standard output and error, limits that are enough for anything small. */
struct cage_program holder_program(int out, void (*run)(void *), void *arg);
/* Runs it to its end and writes how it ended: "[exit 0]", "[signal 9]", "[never began: exec: No such file or directory]". */
void holder_run(struct cage *cage, const struct cage_program *program, int out);
void holder_tell_end(struct cage *cage, struct cage_child *child, int out);

/* An act: the shell script arg, run by holder_run. */
void holder_act_script(struct cage *cage, int out, const void *arg);
/* The output and the end of a shell script. */
char *script_in_holder(enum sandbox_level level, const char *script);

#endif
