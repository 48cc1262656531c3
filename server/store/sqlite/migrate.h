/* migrate: brings a database to the current schema. Private to the room. */
#ifndef SERVER_STORE_SQLITE_MIGRATE_H
#define SERVER_STORE_SQLITE_MIGRATE_H

#include <stdint.h>

struct database;

int64_t migrate_latest(void); /* the number of the last file: user_version counts them */
/* Each step is one transaction, and does nothing that takes longer on a larger file: of a file that has rows the
 * indexes are left to indexes.h. An SQLite result code. */
int migrate(struct database *database);
/* An empty database in memory with the schema that migrations make. Close it, whatever the result code. */
int migrate_model(struct database *ret_model);

#endif
