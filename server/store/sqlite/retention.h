/* retention: the choice of runs to delete by the settings, without a request. Looks at a few runs at a time. Writer
 * thread. Private to the room. */
#ifndef SERVER_STORE_SQLITE_RETENTION_H
#define SERVER_STORE_SQLITE_RETENTION_H

#include "server/store/sqlite/database.h"

struct retention;

/* database and the texts of `rules` outlive it. NULL: these rules never delete a run. */
struct retention *retention_create(struct database *database, const struct store_retention *rules);
void retention_destroy(struct retention *retention); /* NULL is fine */

/* When it looks next; INT64_MAX: never. NULL is fine. */
int64_t retention_due_us(const struct retention *retention);
/* Looks at the next few runs; after the last, the one to delete, if any, is marked on record and logged:
 * *ret_marked. An SQLite result code, outside of a transaction. */
int retention_look(struct retention *retention, bool *ret_marked);
/* A deletion has ended: there may be another run. NULL is fine. */
void retention_look_again(struct retention *retention);

#endif
