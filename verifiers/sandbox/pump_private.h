/* pump: feeds one program's standard input from memory, and gathers what the program writes. Never waits; the pipes are
 * polled by whoever runs the program. No locking: one thread at a time. */
#ifndef VERIFIERS_SANDBOX_PUMP_PRIVATE_H
#define VERIFIERS_SANDBOX_PUMP_PRIVATE_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

enum pump_stream { PUMP_OUTPUT, PUMP_ERROR, PUMP_RECORDS, PUMP_STREAMS };
#define PUMP_POLLED (1 + PUMP_STREAMS)

struct pump {
    int input; /* -1: it is fed, or nobody reads it */
    struct text left;
    bool stays;                           /* more input may follow */
    bool unread;                          /* it stays, and nobody reads it any more */
    int fds[PUMP_STREAMS];                /* -1: ended, or there is none */
    struct buffer gathered[PUMP_STREAMS]; /* exactly up to the limit */
    bool over;                            /* there was more than that */
};

#define PUMP_NONE ((struct pump){.input = -1, .fds = {-1, -1, -1}})

/* Makes the pipes and fills the first one. `input` must stay. records: there is a third stream. stays: the first pipe
 * stays open behind the input. ret_theirs: the program's
 * ends of descriptors 0 to 3, the caller's; -1 for none. 0, or -1 with errno; in either case pump_finish() is due. */
int pump_init(struct pump *pump, struct text input, bool records, bool stays, size_t limit_bytes, int ret_theirs[4]);
void pump_finish(struct pump *pump);

void pump_poll(const struct pump *pump, struct pollfd ret_polled[PUMP_POLLED]);
/* After poll(). */
void pump_move(struct pump *pump, const struct pollfd polled[PUMP_POLLED]);
/* One that stays: forgets what was gathered and feeds another input, which must stay. */
void pump_feed_again(struct pump *pump, struct text input);
/* Bytes of the input that nobody has read: they are still here, or in the pipe. */
size_t pump_untaken_bytes(const struct pump *pump);
/* Takes what one stream has now. */
void pump_take(struct pump *pump, size_t stream);
/* Everything that is in the pipes now: for when nobody is left who writes. */
void pump_drain(struct pump *pump);

#endif
