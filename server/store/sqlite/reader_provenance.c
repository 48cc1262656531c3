#include "server/store/sqlite/reader.h"

#include "server/store/provenance.h"
#include "server/store/sqlite/columns.h"

/* ---- distinct values
 * -------------------------------------------------------------------------------------------------------- */

static bool has_name(const struct store_names *names, struct text name)
{
    for (size_t i = 0; i < names->count; i++)
        if (text_same(names->names[i], name))
            return true;
    return false;
}

/* A list that could not grow is told by reader_status(). */
static void add_name(struct store_memory *memory, struct store_names *names, struct text name)
{
    struct text *list = store_memory_grow(memory, names->names, names->count, &names->capacity, sizeof(*names->names));
    if (!list)
        return;
    names->names = list;
    names->names[names->count++] = store_memory_text(memory, name.data, name.length_bytes);
}

static void add_if_new(struct store_memory *memory, struct store_names *names, struct text name)
{
    if (name.length_bytes > 0 && !has_name(names, name))
        add_name(memory, names, name);
}

static void add_sha256(struct store_memory *memory, struct store_names *names, struct text sha256)
{
    char hex[SHA256_HEX_BYTES];
    if (sha256.length_bytes != SHA256_BYTES)
        return;
    sha256_hex((const uint8_t *)sha256.data, hex);
    add_if_new(memory, names, text_of(hex));
}

/* ---- a batch
 * ---------------------------------------------------------------------------------------------------------------- */

/* Names of engines may be the client's, one for each rollout: the database keeps them apart. */
static int read_engines(struct store_reader *reader, int64_t batch_seq, bool is_old, struct store_provenance *into)
{
    int result;
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_READ_BATCH_ENGINES);
    bind_int(rows, 1, batch_seq);
    bind_int(rows, 2, is_old);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW)
        add_name(into->memory, &into->engines, column_view(rows, 0));
    return result;
}

static int read_others(struct store_reader *reader, int64_t batch_seq, struct store_provenance *into)
{
    struct store_names *const texts[] = {&into->engine_models, &into->engine_versions, &into->tokenizer_sha256s,
                                         &into->rolloutd_versions};
    int result;
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_READ_PROVENANCE);
    bind_int(rows, 1, batch_seq);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        for (int i = 0; i < (int)ARRAY_LENGTH(texts); i++)
            add_if_new(into->memory, texts[i], column_view(rows, i));
        add_sha256(into->memory, &into->settings_sha256s, column_view(rows, (int)ARRAY_LENGTH(texts)));
    }
    return result;
}

static enum store_status read_provenance(struct store_reader *reader, struct text batch_id,
                                         struct store_provenance *into)
{
    sqlite3_stmt *batch = database_statement(&reader->database, SQL_READ_BATCH_SETTINGS);
    bind_text(batch, 1, batch_id);
    int result = database_first(batch);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    into->memory = store_memory_create();
    int64_t batch_seq = sqlite3_column_int64(batch, 0);
    bool is_old = sqlite3_column_type(batch, 1) == SQLITE_NULL;
    add_sha256(into->memory, &into->settings_sha256s, column_view(batch, 1));
    result = read_engines(reader, batch_seq, is_old, into);
    if (result == SQLITE_DONE)
        result = read_others(reader, batch_seq, into);
    return reader_status(reader, result, into->memory);
}

enum store_status store_read_provenance(struct store_reader *reader, struct text batch_id,
                                        struct store_provenance *ret_provenance)
{
    *ret_provenance = (struct store_provenance){0};
    if (reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    enum store_status status = read_provenance(reader, batch_id, ret_provenance);
    reader_end(reader);
    return status;
}

void store_provenance_finish(struct store_provenance *provenance)
{
    store_memory_destroy(TAKE_PTR(provenance->memory));
}

/* ---- settings
 * --------------------------------------------------------------------------------------------------------------- */

enum store_status store_read_settings(struct store_reader *reader, const uint8_t sha256[SHA256_BYTES],
                                      struct store_settings_row *ret_settings)
{
    *ret_settings = (struct store_settings_row){0};
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_SETTINGS);
    bind_blob(row, 1, sha256, SHA256_BYTES);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    struct store_memory *memory = ret_settings->memory = store_memory_create();
    ret_settings->json = column_text(row, 0, memory);
    ret_settings->first_at_us = sqlite3_column_int64(row, 1);
    reader_end(reader);
    return reader_status(reader, SQLITE_OK, memory);
}

void store_settings_row_finish(struct store_settings_row *settings)
{
    store_memory_destroy(TAKE_PTR(settings->memory));
}
