/* supervisor: the process of a slot that talks to the client. It alone holds programs, inputs and outputs. */
#ifndef VERIFIERS_SANDBOX_SUPERVISOR_PRIVATE_H
#define VERIFIERS_SANDBOX_SUPERVISOR_PRIVATE_H

#include "verifiers/sandbox/slot.h"

/* Serves the client until it is gone. testlib: the text of testlib.h, or TEXT_NONE. */
void supervisor_serve(int client, int keeper, struct text testlib, const struct sandbox_settings *settings)
    __attribute__((noreturn));

#endif
