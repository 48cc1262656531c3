/* compat_rewards: the routes on which trainers ask a reward server of theirs (docs/compat.md): what came becomes the items
 * of a verify (verify_private.h), and the verdicts are said as the trainer expects. */
#ifndef SERVER_API_COMPAT_REWARDS_H
#define SERVER_API_COMPAT_REWARDS_H

#include <stddef.h>

struct settings;

#define COMPAT_MESSAGE_BYTES 512

/* Can the settings compat.* and verifier_sets be meant? 0, or -1 with the message. Needs externals_setup(). */
int compat_rewards_check(const struct settings *settings, char ret_message[COMPAT_MESSAGE_BYTES]);

#endif
