/* deletion: slices of a run's rows that the writer deletes between the commits of operations. Writer thread, except
 * create and destroy. Private to the room. */
#ifndef SERVER_STORE_SQLITE_DELETION_H
#define SERVER_STORE_SQLITE_DELETION_H

#include "server/store/sqlite/database.h"

struct deletion;

/* On the writer's connection, which outlives it. NULL: the schema cannot be read; sqlite3_errmsg() says why. */
struct deletion *deletion_create(struct database *database, const struct store_retention *retention);
void deletion_destroy(struct deletion *deletion); /* NULL is fine */

/* An operation has marked a run. */
void deletion_wake(struct deletion *deletion);
bool deletion_is_awake(const struct deletion *deletion);
/* When the next slice may be made; INT64_MAX: nothing is to be deleted. `idle`: no operation waits. */
int64_t deletion_due_us(const struct deletion *deletion, bool idle);
/* The next slice is made a second later: the files are not there. */
void deletion_put_off(struct deletion *deletion);
/* One slice: a transaction of few milliseconds. Failures are logged, and it is tried again later. */
void deletion_work(struct deletion *deletion);

#endif
