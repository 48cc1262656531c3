/* values: a stored value from a column and to a parameter, one pair of functions for each type that columns.h names.
 * Each type has a value for null: -1 for `optional` and `known`, NAN for `real`, TEXT_NONE for `text`. Private to
 * the room. */
#ifndef SERVER_STORE_SQLITE_VALUES_H
#define SERVER_STORE_SQLITE_VALUES_H

#include "server/store/sqlite/database.h"

#include <string.h>

#define COLUMN_READER(type, target) /* `target` is a pointer, named `ret_value` */                                     \
    static inline void column_read_##type(sqlite3_stmt *row, int place, struct store_memory *memory, target)
#define COLUMN_WRITER(type, source) /* named `value` */                                                                \
    static inline void column_write_##type(sqlite3_stmt *insert, int place, source)

COLUMN_READER(int, int64_t *ret_value)
{
    (void)memory;
    *ret_value = sqlite3_column_int64(row, place);
}
COLUMN_WRITER(int, int64_t value)
{
    bind_int(insert, place, value);
}

COLUMN_READER(optional, int64_t *ret_value)
{
    (void)memory;
    *ret_value = column_int_or(row, place, -1);
}
COLUMN_WRITER(optional, int64_t value)
{
    bind_int_or_null(insert, place, value);
}

/* 63 bits. */
COLUMN_READER(unsigned, uint64_t *ret_value)
{
    (void)memory;
    *ret_value = (uint64_t)sqlite3_column_int64(row, place);
}
COLUMN_WRITER(unsigned, uint64_t value)
{
    bind_int(insert, place, (int64_t)value);
}

COLUMN_READER(flag, bool *ret_value)
{
    (void)memory;
    *ret_value = sqlite3_column_int64(row, place) != 0;
}
COLUMN_WRITER(flag, bool value)
{
    bind_int(insert, place, value);
}

COLUMN_READER(known, enum store_known *ret_value)
{
    (void)memory;
    *ret_value = (enum store_known)column_int_or(row, place, STORE_KNOWN_UNKNOWN);
}
COLUMN_WRITER(known, enum store_known value)
{
    bind_int_or_null(insert, place, value);
}

COLUMN_READER(real, double *ret_value)
{
    (void)memory;
    *ret_value = column_double(row, place);
}
COLUMN_WRITER(real, double value)
{
    bind_double(insert, place, value);
}

COLUMN_READER(text, struct text *ret_value)
{
    *ret_value = column_text(row, place, memory);
}
COLUMN_WRITER(text, struct text value)
{
    bind_text(insert, place, value);
}

/* Of a text that has a column for each of its forms: if this one is NULL, the value stays as it is. */
COLUMN_READER(packed, struct text *ret_value)
{
    struct text packed = column_view(row, place);
    if (packed.data)
        *ret_value = store_memory_unpacked(memory, packed);
}
COLUMN_WRITER(blob, struct text value)
{
    bind_blob(insert, place, value.data, value.length_bytes);
}

COLUMN_READER(id, char (*ret_value)[ID_BYTES])
{
    (void)memory;
    column_id(row, place, *ret_value);
}

/* A value that is no digest leaves ret_value as it is. */
COLUMN_READER(sha256, uint8_t (*ret_value)[SHA256_BYTES])
{
    struct text view = column_view(row, place);
    (void)memory;
    if (view.length_bytes == SHA256_BYTES)
        memcpy(*ret_value, view.data, SHA256_BYTES);
}
COLUMN_WRITER(sha256, const uint8_t value[SHA256_BYTES])
{
    bind_blob(insert, place, value, SHA256_BYTES);
}

/* A word of a list in names.c, by its enum. */
#define COLUMN_WORD(word)                                                                                              \
    COLUMN_READER(word, enum store_##word *ret_value)                                                                  \
    {                                                                                                                  \
        (void)memory;                                                                                                  \
        *ret_value = (enum store_##word)column_name(row, place, store_##word##_names);                                 \
    }                                                                                                                  \
    COLUMN_WRITER(word, enum store_##word value)                                                                       \
    {                                                                                                                  \
        bind_text(insert, place, text_of(store_##word##_names[value]));                                                \
    }

COLUMN_WORD(purpose)
COLUMN_WORD(deliver)
COLUMN_WORD(batch_state)
COLUMN_WORD(group_state)
COLUMN_WORD(rollout_state)
COLUMN_WORD(logprobs_mode)
COLUMN_WORD(update_mode)
COLUMN_WORD(update_state)
COLUMN_WORD(deletion_reason)
COLUMN_WORD(delivery_state)
COLUMN_WORD(lease_state)
COLUMN_WORD(on_stale)
COLUMN_WORD(reverify_state)

#endif
