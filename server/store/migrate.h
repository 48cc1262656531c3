/* migrate: brings the schema to the newest version, by the embedded files of schema/migrations. Private to the room. */
#ifndef STORE_MIGRATE_H
#define STORE_MIGRATE_H

#include <stdint.h>

struct database;

int64_t migrate_latest(void); /* the version after the last file: user_version counts them */
/* Each step is one transaction. An SQLite result code. */
int migrate(struct database *database);

#endif
