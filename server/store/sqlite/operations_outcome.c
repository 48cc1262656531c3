/* The result of an operation that was not carried out. */
#include "server/store/sqlite/operations.h"

#include <stdio.h>

enum store_status operation_fail(struct store *store, struct store_op *op, int result)
{
    if (result == RESULT_RUN_IS_DELETED)
        return operation_decline(op, STORE_RUN_IS_DELETED, "the run is being deleted");
    enum store_status status = database_status(&store->writer, result);
    snprintf(op->message, sizeof(op->message), "%s", sqlite3_errmsg(store->writer.handle));
    return status == STORE_OK ? STORE_UNAVAILABLE : status;
}

enum store_status operation_decline(struct store_op *op, enum store_status status, const char *message)
{
    snprintf(op->message, sizeof(op->message), "%s", message);
    return status;
}
