/* A row of a weight update, as readers and the writer read it. */
#include "server/store/sqlite/columns.h"

void database_read_update(sqlite3_stmt *row, int place, struct store_policy_update *ret_update)
{
    struct store_policy_update *into = ret_update;
    struct store_memory *memory = NULL; /* it has no text */
    *into = (struct store_policy_update){0};
    COLUMNS_READ(UPDATE_COLUMNS)
}
