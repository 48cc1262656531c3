/* sandbox: the settings of slots, and whether what the machine offers is enough for them. Any thread. */
#ifndef SERVER_VERIFY_SANDBOX_H
#define SERVER_VERIFY_SANDBOX_H

#include "verifiers/sandbox/probe.h"
#include "verifiers/verifier.h"

struct settings;

#define SANDBOX_REFUSAL_BYTES 448

/* Its level is not known yet: the trial finds it. */
void sandbox_settings_of(const struct settings *settings, struct sandbox_settings *ret_sandbox);
bool sandbox_is_enough(const struct sandbox_settings *sandbox, enum sandbox_level level);
/* Why it is not, with what to change: the message of sandbox_unavailable (a
 * verdict keeps the beginning). */
void sandbox_say_refusal(const struct sandbox_settings *sandbox, const struct sandbox_report *probed,
                         char ret_message[SANDBOX_REFUSAL_BYTES]);

#endif
