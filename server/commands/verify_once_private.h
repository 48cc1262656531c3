/* verify_once: workers for a command, without a loop: one blocking request after the other.
 *
 * The same spawner, the same lock-down, the same frames as in the service. One thread. */
#ifndef SERVER_COMMANDS_VERIFY_ONCE_PRIVATE_H
#define SERVER_COMMANDS_VERIFY_ONCE_PRIVATE_H

#include "server/verify/pool.h"
#include "server/verify/sandbox.h"
#include "server/verify/spec.h"

struct verify_once {
    struct spawner spawner;
    uint32_t last_id;
    struct sandbox_settings sandbox; /* of slots; its level is found when one is needed */
    bool is_probed;
    char refusal[SANDBOX_REFUSAL_BYTES]; /* why no program is run; "": they are */
};

/* sandbox: NULL: no verifier runs programs. 0, or -1 with errno. */
int verify_once_init(struct verify_once *once, const struct sandbox_settings *sandbox);
void verify_once_finish(struct verify_once *once);

/* Judges one frame with a worker of its own of each kind that it needs. *ret_job gets the replies or failures as in
 * verify/pool.h, with the verdict that was lost; ret_how says how a worker ended, "" if none did. timeout_us is of the
 * text worker. Messages live as long as `once`. */
#define VERIFY_HOW_BYTES 160
void verify_once(struct verify_once *once, const struct verifier_list *list, const struct buffer *frame,
                 int64_t timeout_us, struct verify_job *ret_job, char ret_how[VERIFY_HOW_BYTES]);

#endif
