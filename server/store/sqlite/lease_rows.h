/* lease_rows: rows of leases and of their groups, as the writer and readers read them. Private to the room. */
#ifndef SERVER_STORE_SQLITE_LEASE_ROWS_H
#define SERVER_STORE_SQLITE_LEASE_ROWS_H

#include "server/store/sqlite/database.h"

/* A row of SELECT_LEASE. Returns its seq. */
int64_t lease_read_row(sqlite3_stmt *row, struct store_lease *ret_lease);
/* Steps through rows of SELECT_LEASE and adds them. An SQLite result code, SQLITE_OK at the end. Not reset. */
int lease_read_rows(sqlite3_stmt *rows, struct store_leases *leases);

/* A row of LEASE_GROUP_COLUMNS, for a lease. */
struct lease_group_row {
    int64_t group_seq;
    bool was_acked; /* by this lease */
    bool was_released;
    struct store_lease_group group;
};
void lease_read_group_row(sqlite3_stmt *row, int64_t lease_seq, struct lease_group_row *ret_row);
/* Adds one at the end. */
void lease_add_group(struct store_lease_groups *groups, const struct store_lease_group *group);
/* Steps through rows of LIST_LEASE_GROUPS and adds them. As lease_read_rows(). */
int lease_read_groups(sqlite3_stmt *rows, int64_t lease_seq, struct store_lease_groups *groups);

#endif
