/* rollups: the writer's additions to them. Inside the transaction of the operation; SQLite result codes. Private to the
 * room. */
#ifndef SERVER_STORE_SQLITE_ROLLUPS_H
#define SERVER_STORE_SQLITE_ROLLUPS_H

#include "server/store/sqlite/operations.h"

/* A group that has just been closed: seq, run_seq, task_seq and purpose are looked at. Nothing happens to one of a batch
 * from before there were roll-ups. */
int rollups_add_group(struct store *store, const struct group_row *group);
/* Those that a batch leaves open when it ends: no row comes to them any more. */
int rollups_add_open_groups(struct store *store, int64_t batch_seq);

#endif
