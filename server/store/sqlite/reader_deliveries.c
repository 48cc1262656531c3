#include "server/store/sqlite/reader.h"

#include "server/base/clock.h"
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/lease_rows.h"

/* An SQLite result code of a read without memory of its own, as a status. */
static enum store_status end_read(struct store_reader *reader, int result)
{
    reader_end(reader);
    if (result == SQLITE_DONE)
        return STORE_NOT_FOUND;
    return result == SQLITE_OK || result == SQLITE_ROW ? STORE_OK : STORE_UNAVAILABLE;
}

enum store_status store_read_delivery(struct store_reader *reader, struct text group_id,
                                      struct store_delivery *ret_delivery)
{
    char batch_id[ID_BYTES];
    int64_t index = 0;
    *ret_delivery = (struct store_delivery){0};
    if (!id_split_group(group_id, batch_id, &index))
        return STORE_NOT_FOUND;
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_DELIVERY);
    bind_text(row, 1, text_of(batch_id));
    bind_int(row, 2, index);
    int result = database_first(row);
    if (result == SQLITE_ROW) {
        struct store_delivery *into = ret_delivery;
        struct store_memory *memory = NULL; /* it has no text */
        int place = 1;
        COLUMNS_READ(DELIVERY_COLUMNS)
    }
    return end_read(reader, result);
}

static int read_counts(sqlite3_stmt *rows, struct store_delivery_counts *counts)
{
    int result;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW)
        counts->groups[column_name(rows, 0, store_delivery_state_names)] = sqlite3_column_int64(rows, 1);
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

enum store_status store_count_deliveries(struct store_reader *reader, struct text run,
                                         struct store_delivery_counts *ret_counts)
{
    *ret_counts = (struct store_delivery_counts){0};
    int64_t run_seq = 0;
    int result = SQLITE_ROW;
    enum statement which = run.data ? SQL_READ_DELIVERY_COUNTS : SQL_READ_ALL_DELIVERY_COUNTS;
    if (run.data)
        result = reader_find_seq(reader, SQL_RUN_SEQ, run, &run_seq);
    if (result == SQLITE_ROW) {
        sqlite3_stmt *rows = database_statement(&reader->database, which);
        if (run.data)
            bind_int(rows, 1, run_seq);
        result = read_counts(rows, ret_counts);
    }
    return end_read(reader, result);
}

static int read_lease(struct store_reader *reader, int64_t run_seq, struct text lease_id, struct store_lease *ret_lease,
                      int64_t *ret_seq)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_LEASE);
    bind_text(row, 1, lease_id);
    bind_int(row, 2, run_seq);
    int result = database_first(row);
    if (result == SQLITE_ROW)
        *ret_seq = lease_read_row(row, ret_lease);
    return result;
}

static int read_groups(struct store_reader *reader, int64_t lease_seq, struct store_lease_groups *ret_groups)
{
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_READ_LEASE_GROUPS);
    bind_int(rows, 1, lease_seq);
    return lease_read_groups(rows, lease_seq, ret_groups);
}

enum store_status store_read_lease(struct store_reader *reader, struct text run, struct text lease_id,
                                   struct store_lease *ret_lease, struct store_lease_groups *ret_groups)
{
    int64_t run_seq = 0;
    int64_t lease_seq = 0;
    *ret_lease = (struct store_lease){0};
    *ret_groups = (struct store_lease_groups){0};
    int result = reader_begin(reader);
    if (result == SQLITE_OK)
        result = reader_find_seq(reader, SQL_RUN_SEQ, run, &run_seq);
    if (result == SQLITE_ROW)
        result = read_lease(reader, run_seq, lease_id, ret_lease, &lease_seq);
    if (result == SQLITE_ROW)
        result = read_groups(reader, lease_seq, ret_groups);
    return end_read(reader, result);
}

enum store_status store_list_open_leases(struct store_reader *reader, struct text run, size_t limit,
                                         struct store_leases *ret_leases)
{
    int64_t run_seq = 0;
    *ret_leases = (struct store_leases){0};
    int result = reader_find_seq(reader, SQL_RUN_SEQ, run, &run_seq);
    if (result == SQLITE_ROW) {
        sqlite3_stmt *rows = database_statement(&reader->database, SQL_LIST_OPEN_LEASES);
        bind_int(rows, 1, run_seq);
        bind_int(rows, 2, (int64_t)limit);
        result = lease_read_rows(rows, ret_leases);
    }
    return end_read(reader, result);
}

enum store_status store_read_pacing(struct store_reader *reader, struct text run, struct store_pacing *ret_pacing)
{
    int64_t run_seq = 0;
    *ret_pacing = (struct store_pacing){0};
    int result = reader_find_seq(reader, SQL_RUN_SEQ, run, &run_seq);
    if (result == SQLITE_ROW) {
        sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_PACING);
        bind_int(row, 1, run_seq);
        result = database_first(row);
        if (result == SQLITE_ROW) {
            struct store_pacing *into = ret_pacing;
            struct store_memory *memory = NULL; /* it has no text */
            int place = 1;
            COLUMNS_READ(PACING_COLUMNS)
        }
    }
    return end_read(reader, result);
}
