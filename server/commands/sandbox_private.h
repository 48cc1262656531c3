/* sandbox: slots and externals by the settings, for the commands that run programs or ask whether they
 * would run. */
#ifndef SERVER_COMMANDS_SANDBOX_PRIVATE_H
#define SERVER_COMMANDS_SANDBOX_PRIVATE_H

#include "server/settings/settings.h"
#include "verifiers/sandbox/slot.h"

/* From the file (NULL: as the service finds it), the environment and the defaults. 0, or -1 with one line. */
int command_sandbox(const char *config, struct sandbox_settings *ret_sandbox, char ret_message[SETTINGS_MESSAGE_BYTES]);
/* Makes the externals of the settings known (verify/externals.h) until the process ends, as the settings themselves are
 * then. NULL with one line. */
const struct settings *command_settings(const char *config, char ret_message[SETTINGS_MESSAGE_BYTES]);

#endif
