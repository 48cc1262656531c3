/* Engines that were named at run time: written, forgotten, listed. */
#include "server/base/clock.h"
#include "server/store/sqlite/operations.h"
#include "server/store/sqlite/reader.h"

enum store_status operation_put_engine(struct store *store, struct store_op *op)
{
    const struct store_engine *engine = &op->put_engine;
    sqlite3_stmt *put = database_statement(&store->writer, SQL_PUT_ENGINE);
    bind_text(put, 1, engine->name);
    bind_text(put, 2, engine->url);
    bind_text(put, 3, engine->kind);
    bind_text(put, 4, engine->model);
    bind_text(put, 5, engine->pool.data ? engine->pool : TEXT_LITERAL("default"));
    bind_int_or_null(put, 6, engine->in_flight);
    bind_int(put, 7, engine->shared);
    bind_int(put, 8, engine->draining);
    bind_text(put, 9, engine->token_name);
    bind_int(put, 10, clock_utc_us());
    int result = database_run(put);
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
    return (struct store_engine){.name = column_text(row, 0, memory),
                                 .url = column_text(row, 1, memory),
                                 .kind = column_text(row, 2, memory),
                                 .model = column_text(row, 3, memory),
                                 .pool = column_text(row, 4, memory),
                                 .in_flight = column_int_or(row, 5, -1),
                                 .shared = sqlite3_column_int(row, 6) == 1,
                                 .draining = sqlite3_column_int(row, 7) == 1,
                                 .token_name = column_text(row, 8, memory)};
}

/* How many there are is not known here: the array doubles. */
static bool make_room(struct store_engines *engines, size_t *capacity)
{
    if (engines->count < *capacity)
        return true;
    size_t larger = *capacity ? *capacity * 2 : 16;
    struct store_engine *moved = store_memory_take(engines->memory, larger, sizeof(*moved));
    if (!moved)
        return false;
    if (engines->count)
        memcpy(moved, engines->engines, engines->count * sizeof(*moved));
    engines->engines = moved;
    *capacity = larger;
    return true;
}

enum store_status store_list_engines(struct store_reader *reader, struct store_engines *ret_engines)
{
    *ret_engines = (struct store_engines){.memory = store_memory_create()};
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_LIST_ENGINES);
    size_t capacity = 0;
    int result;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW && make_room(ret_engines, &capacity))
        ret_engines->engines[ret_engines->count++] = read_engine(rows, ret_engines->memory);
    reader_end(reader);
    return reader_status(reader, result, ret_engines->memory);
}

void store_engines_finish(struct store_engines *engines)
{
    store_memory_destroy(TAKE_PTR(engines->memory));
}
