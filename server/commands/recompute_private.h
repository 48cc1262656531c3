/* recompute: the advantages of a record, computed anew from its rewards and objectives, and compared with those on
 * record. */
#ifndef SERVER_COMMANDS_RECOMPUTE_PRIVATE_H
#define SERVER_COMMANDS_RECOMPUTE_PRIVATE_H

#include "server/base/buffer.h"

#include <stddef.h>
#include <stdint.h>

struct recompute_report {
    int64_t batches;
    int64_t groups;
    int64_t rollouts; /* with an advantage or a reward */
    int64_t wrong;    /* groups whose advantages differ, in the arithmetic of this version */
    int64_t older;    /* groups whose advantages differ, in an older one: reported, no fault */
    int64_t unread;   /* batches whose objective this version cannot read: reported, no fault */
};

/* Writes nothing, also beside a running service. `problems` gets a line for each fault, at most 20. 0; or -1:
 * the record cannot be read, or is of an older schema, with a message. */
int recompute_advantages(const char *path, struct buffer *problems, struct recompute_report *ret_report,
                         char message[512]);

#endif
