/* indexes: those that the migrations make on an empty file and this one has not. Private to the room.
 *
 * An index on a large table takes minutes, so migrate() leaves them out on a file that has rows, and the writer builds
 * them before it takes its first operation: one transaction each, so that a death costs the one that was being built.
 */
#ifndef SERVER_STORE_SQLITE_INDEXES_H
#define SERVER_STORE_SQLITE_INDEXES_H

#include "server/store/sqlite/database.h"

struct missing_index {
    char *name;
    char *sql;
};

struct missing_indexes {
    struct missing_index *list;
    size_t count;
};

/* An SQLite result code. Reads the schema alone. */
int indexes_find_missing(struct database *database, struct missing_indexes *ret_missing);
void indexes_finish(struct missing_indexes *missing);

/* Builds one. `stop` is asked every few thousand rows: true ends it with SQLITE_INTERRUPT and nothing changed. */
int indexes_build(struct database *database, const struct missing_index *index, bool (*stop)(void *arg), void *arg);

#endif
