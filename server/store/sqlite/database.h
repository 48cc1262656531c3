/* database: one SQLite connection of ours, with its prepared statements. Private to the room. One thread at a time. */
#ifndef SERVER_STORE_SQLITE_DATABASE_H
#define SERVER_STORE_SQLITE_DATABASE_H

#include "server/base/text.h"
#include "server/store/sqlite/memory.h"
#include "server/store/sqlite/statements.h"
#include "server/store/store.h"

#include <sqlite3.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "arrays on record are little endian and are copied as they are");

#define STORE_APPLICATION_ID 0x524F4C44 /* "ROLD" */

struct database {
    sqlite3 *handle;
    sqlite3_stmt *statements[SQL_COUNT];
};

enum database_mode {
    DATABASE_WRITER,
    DATABASE_READER,
    DATABASE_PROBE,           /* read-only, no statements, leaves the write-ahead log where it is */
    DATABASE_PROBE_IMMUTABLE, /* likewise, for a file without a log: makes no file beside it either */
    /* For the whole check: SQLite forgets the CHECKs of a file that it may only read, so it may write, and is told not
     * to. The log, and what is in it alone, stays where it is. */
    DATABASE_VERIFY_LOG,
    DATABASE_VERIFY, /* the same where there is no log: that which it makes goes with it */
};

/* Opens and sets up the connection; statements are prepared later. An SQLite result code; the handle is set even after
 * a failure so that database_close() and sqlite3_errmsg() work. The cache grows to cache_bytes and stays; probes have
 * SQLite's own. */
int database_open(struct database *database, const char *path, enum database_mode mode, bool durability_normal,
                  size_t cache_bytes);
/* To read all of a file that a service may have open, and leave it and its log as they are. Where nothing may be made
 * beside the file it is read without its CHECKs, if there is no log as one that nobody changes. */
int database_open_to_verify(struct database *database, const char *path);
/* Statements that cannot be prepared yet, because an index is still to be built, are left to their first use if the
 * database is `incomplete`. */
int database_prepare(struct database *database, bool writes, bool incomplete);
void database_close(struct database *database); /* zeroed is fine */

/* The status of an SQLite result code; OK, ROW and DONE are STORE_OK. */
enum store_status database_status(const struct database *database, int result);

/* The statement, reset and without bindings. NULL: it cannot be prepared; binding to it does nothing, and its first step
 * says so. */
sqlite3_stmt *database_statement(struct database *database, enum statement which);
/* Steps a statement that gives no rows, and resets it. An SQLite result code, SQLITE_OK if done. */
int database_run(sqlite3_stmt *statement);
int database_run_plain(struct database *database, enum statement which);
/* Steps a statement that gives at most one row: SQLITE_ROW (still to be reset), SQLITE_DONE (reset) or an error
 * (reset). */
int database_first(sqlite3_stmt *statement);

/* One number from one statement that is not kept. An SQLite result code. */
int database_number(struct database *database, const char *sql, int64_t *ret_number);

void bind_int(sqlite3_stmt *statement, int place, int64_t value);
void bind_int_or_null(sqlite3_stmt *statement, int place, int64_t value); /* negative: null */
void bind_double(sqlite3_stmt *statement, int place, double value);       /* NAN: null */
void bind_text(sqlite3_stmt *statement, int place, struct text text);     /* TEXT_NONE: null; not copied */
void bind_blob(sqlite3_stmt *statement, int place, const void *bytes, size_t length_bytes); /* NULL: null; not copied */

int64_t column_int_or(sqlite3_stmt *statement, int place, int64_t if_null);
double column_double(sqlite3_stmt *statement, int place);                                 /* null: NAN */
struct text column_text(sqlite3_stmt *statement, int place, struct store_memory *memory); /* a copy; null: TEXT_NONE */
/* Without a copy: until the next step or reset. */
struct text column_view(sqlite3_stmt *statement, int place);
/* A copy of a blob, and its count of elements; null: NULL. */
void *column_array(sqlite3_stmt *statement, int place, size_t element_bytes, struct store_memory *memory,
                   size_t *ret_count);
int column_name(sqlite3_stmt *statement, int place,
                const char *const *names); /* the word's index, 0 if it is none of them */
void column_id(sqlite3_stmt *statement, int place, char ret_id[ID_BYTES]);
/* Fills *ret_update from the list of its columns (columns.h), the first of which is column `place`. */
void database_read_update(sqlite3_stmt *row, int place, struct store_policy_update *ret_update);

#endif
