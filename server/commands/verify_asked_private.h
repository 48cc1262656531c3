/* verify_asked: one completion judged by verifiers that ask servers.
 *
 * The pools of workers, the calls and the loop are those of the service, around one job. Engines are not probed: those of
 * the settings are asked as they are written. One thread beside its own. */
#ifndef SERVER_COMMANDS_VERIFY_ASKED_PRIVATE_H
#define SERVER_COMMANDS_VERIFY_ASKED_PRIVATE_H

#include "server/base/buffer.h"
#include "server/settings/settings.h"
#include "server/verify/pool.h"
#include "server/verify/spec.h"

/* Fills *ret_set. timeout_us is of the text worker. The frame is verify_request_build()'s. 0, or -1 with what is wrong:
 * a pool that is not in the settings, or no means for a loop. */
int verify_asked(const struct settings *settings, const struct verifier_list *list, const struct buffer *frame,
                 int64_t timeout_us, struct verdict_set *ret_set, char ret_message[SETTINGS_MESSAGE_BYTES]);

#endif
