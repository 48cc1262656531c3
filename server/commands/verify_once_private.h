/* verify_once: a text worker for a command, without a loop: one blocking request after the other.
 *
 * The same spawner, the same lock-down, the same frames as in the service. One thread. */
#ifndef SERVER_COMMANDS_VERIFY_ONCE_PRIVATE_H
#define SERVER_COMMANDS_VERIFY_ONCE_PRIVATE_H

#include "server/verify/pool.h"
#include "server/verify/spec.h"

struct verify_once {
    struct spawner spawner;
    uint32_t last_id;
};

int verify_once_init(struct verify_once *once); /* 0, or -1 with errno */
void verify_once_finish(struct verify_once *once);

/* Judges one frame with a worker of its own. *ret_job gets the reply (the caller frees it) or the failure as in
 * verify/pool.h, with the verdict that was lost; ret_how says how the worker ended, "" if it did not. */
#define VERIFY_HOW_BYTES 160
void verify_once(struct verify_once *once, const struct verifier_list *list, struct buffer *frame, int64_t timeout_us,
                 struct verify_job *ret_job, char ret_how[VERIFY_HOW_BYTES]);

#endif
