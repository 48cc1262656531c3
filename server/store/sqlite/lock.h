/* lock: one process has a database. The lock is a file of its own beside it, because SQLite's locks live on the database
 * file and are let go by any close() of it. Private to the room. */
#ifndef SERVER_STORE_SQLITE_LOCK_H
#define SERVER_STORE_SQLITE_LOCK_H

#include "server/store/store.h"

/* Takes the lock of the database at this real path, held until *ret_fd is closed. 0, or a negative errno value with a
 * message; EWOULDBLOCK: another process has it, and the message names it. *ret_fd may be open either way, -1 if not. */
int lock_take(const char *path, int *ret_fd, char message[STORE_MESSAGE_BYTES]);

#endif
