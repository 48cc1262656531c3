#include "server/store/sqlite/lease_rows.h"

#include "server/base/cleanup.h"
#include "server/store/sqlite/columns.h"

#include <stdlib.h>

void store_leases_finish(struct store_leases *leases)
{
    free(TAKE_PTR(leases->leases));
    leases->count = 0;
}

void store_lease_groups_finish(struct store_lease_groups *groups)
{
    free(TAKE_PTR(groups->groups));
    groups->count = 0;
}

/* An array grows whenever its count is a power of two. */
static void *grow(void *array, size_t count, size_t size_bytes)
{
    return count & (count - 1) ? array : xrealloc(array, (count ? 2 * count : 1) * size_bytes);
}

int64_t lease_read_row(sqlite3_stmt *row, struct store_lease *ret_lease)
{
    struct store_lease *into = ret_lease;
    struct store_memory *memory = NULL; /* it has no text */
    int place = 1;
    COLUMNS_READ(LEASE_COLUMNS)
    return sqlite3_column_int64(row, 0);
}

int lease_read_rows(sqlite3_stmt *rows, struct store_leases *leases)
{
    int result;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        leases->leases = grow(leases->leases, leases->count, sizeof(*leases->leases));
        lease_read_row(rows, &leases->leases[leases->count++]);
    }
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

/* Columns of LEASE_GROUP_COLUMNS; the last is the first of a delivery. */
enum { AT_GROUP_SEQ, AT_BATCH_ID, AT_GROUP_INDEX, AT_LEASE_SEQ, AT_OUTCOME, AT_DELIVERY, AT_STALENESS, AT_ON_RECORD };

static void read_delivery(sqlite3_stmt *row, struct store_delivery *into)
{
    struct store_memory *memory = NULL; /* it has no text */
    int place = AT_ON_RECORD;
    COLUMNS_READ(DELIVERY_COLUMNS)
}

void lease_read_group_row(sqlite3_stmt *row, int64_t lease_seq, struct lease_group_row *ret_row)
{
    struct store_lease_group *group = &ret_row->group;
    char batch_id[ID_BYTES];
    *ret_row = (struct lease_group_row){.group_seq = sqlite3_column_int64(row, AT_GROUP_SEQ)};
    column_id(row, AT_BATCH_ID, batch_id);
    id_of_group(batch_id, sqlite3_column_int64(row, AT_GROUP_INDEX), group->id);
    read_delivery(row, &group->on_record);
    group->is_known = true;
    group->is_of_lease = sqlite3_column_type(row, AT_OUTCOME) != SQLITE_NULL;
    group->delivery = column_int_or(row, AT_DELIVERY, -1);
    group->staleness = column_int_or(row, AT_STALENESS, -1);
    bool is_with_it = column_int_or(row, AT_LEASE_SEQ, -1) == lease_seq;
    group->is_held = is_with_it && group->on_record.state == STORE_DELIVERY_LEASED;
    ret_row->was_acked = is_with_it && group->on_record.state == STORE_DELIVERY_ACKED;
    ret_row->was_released = text_equals(column_view(row, AT_OUTCOME), "released");
}

void lease_add_group(struct store_lease_groups *groups, const struct store_lease_group *group)
{
    groups->groups = grow(groups->groups, groups->count, sizeof(*groups->groups));
    groups->groups[groups->count++] = *group;
}

int lease_read_groups(sqlite3_stmt *rows, int64_t lease_seq, struct store_lease_groups *groups)
{
    int result;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        struct lease_group_row row;
        lease_read_group_row(rows, lease_seq, &row);
        lease_add_group(groups, &row.group);
    }
    return result == SQLITE_DONE ? SQLITE_OK : result;
}
