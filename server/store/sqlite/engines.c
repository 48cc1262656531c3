/* Engines that were named at run time: written, forgotten, listed. */
#include "server/base/clock.h"
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/operations.h"
#include "server/store/sqlite/reader.h"

enum store_status operation_put_engine(struct store *store, struct store_op *op)
{
    struct store_engine row = op->put_engine;
    const struct store_engine *from = &row;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_PUT_ENGINE);
    int place = 2;
    if (!row.pool.data)
        row.pool = TEXT_LITERAL("default");
    bind_text(insert, 1, from->name);
    COLUMNS_WRITTEN(ENGINE_COLUMNS)
    int result = database_run(insert);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

enum store_status operation_delete_engine(struct store *store, struct store_op *op)
{
    sqlite3_stmt *forget = database_statement(&store->writer, SQL_DELETE_ENGINE);
    bind_text(forget, 1, op->delete_engine);
    int result = database_run(forget);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

static struct store_engine read_engine(sqlite3_stmt *row, struct store_memory *memory)
{
    struct store_engine engine = {.name = column_text(row, 0, memory)};
    struct store_engine *into = &engine;
    int place = 1;
    COLUMNS_READ(ENGINE_COLUMNS)
    return engine;
}

enum store_status store_list_engines(struct store_reader *reader, struct store_engines *ret_engines)
{
    *ret_engines = (struct store_engines){.memory = store_memory_create()};
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_LIST_ENGINES);
    size_t capacity = 0;
    int result;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        struct store_engine *engines = store_memory_grow(ret_engines->memory, ret_engines->engines, ret_engines->count,
                                                         &capacity, sizeof(*engines));
        if (!engines)
            break;
        ret_engines->engines = engines;
        engines[ret_engines->count++] = read_engine(rows, ret_engines->memory);
    }
    reader_end(reader);
    return reader_status(reader, result, ret_engines->memory);
}

void store_engines_finish(struct store_engines *engines)
{
    store_memory_destroy(TAKE_PTR(engines->memory));
}
