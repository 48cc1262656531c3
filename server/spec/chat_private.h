/* chat: a prompt of messages. */
#ifndef SERVER_SPEC_CHAT_PRIVATE_H
#define SERVER_SPEC_CHAT_PRIVATE_H

#include "server/input/input.h"

/* At least one, each an object with a role. path: of the object with the `messages`. 0, or -1 with the call refused. */
int chat_check(struct call *call, const json_t *messages, const char *path);

#endif
