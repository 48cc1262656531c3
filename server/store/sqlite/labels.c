/* Labels: written and visited. */
#include "server/base/clock.h"
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/operations.h"
#include "server/store/sqlite/reader.h"

/* ---- written ----------------------------------------------------------------------------------------------- */

/* SQLITE_ROW: the rollout is on record, of a run that stays. */
static int find_rollout(struct store *store, struct text id, int64_t *ret_seq, int64_t *ret_run_seq)
{
    char group_id[ID_BYTES];
    char batch_id[ID_BYTES];
    int64_t sample_index;
    int64_t group_index;
    if (!id_split_rollout(id, group_id, &sample_index) || !id_split_group(text_of(group_id), batch_id, &group_index))
        return SQLITE_DONE;
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_LABELLED);
    bind_text(find, 1, text_of(batch_id));
    bind_int(find, 2, group_index);
    bind_int(find, 3, sample_index);
    int result = database_first(find);
    if (result == SQLITE_ROW) {
        *ret_seq = sqlite3_column_int64(find, 0);
        *ret_run_seq = sqlite3_column_int64(find, 1);
    }
    sqlite3_reset(find); /* the bindings point to locals, and are cleared before the next use */
    return result;
}

static int put_label(struct store *store, const struct store_label *label, int64_t now_us)
{
    int64_t rollout_seq;
    int64_t run_seq;
    int result = find_rollout(store, label->rollout, &rollout_seq, &run_seq);
    if (result != SQLITE_ROW)
        return result;
    sqlite3_stmt *put = database_statement(&store->writer, SQL_PUT_LABEL);
    bind_int(put, 1, run_seq);
    bind_text(put, 2, label->verifier);
    bind_int(put, 3, rollout_seq);
    bind_text(put, 4, label->by);
    bind_int(put, 5, label->truth);
    bind_int(put, 6, now_us);
    return database_run(put);
}

enum store_status operation_put_labels(struct store *store, struct store_op *op)
{
    struct store_put_labels *put = &op->put_labels;
    int64_t now_us = clock_utc_us();
    for (size_t i = 0; i < put->count; i++) {
        int result = put_label(store, &put->labels[i], now_us);
        put->unknown = i;
        if (result == SQLITE_DONE)
            return operation_decline(op, STORE_NOT_FOUND, "no such rollout");
        if (result != SQLITE_OK)
            return operation_fail(store, op, result);
    }
    return STORE_OK;
}

/* ---- visited ----------------------------------------------------------------------------------------------- */

static int visit(sqlite3_stmt *row, const struct store_label_visitor *visitor)
{
    struct store_memory *memory = NULL; /* texts are views */
    int result;
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        struct store_labelled labelled = {.verifier = column_view(row, 0), .verdicts = column_view(row, 1)};
        struct store_labelled *into = &labelled;
        int place = 2;
        COLUMNS_READ(LABELLED_COLUMNS)
        if (!visitor->take(visitor->arg, &labelled))
            return SQLITE_DONE;
    }
    return result;
}

enum store_status store_visit_labels(struct store_reader *reader, struct text run, struct text verifier,
                                     const struct store_label_visitor *visitor)
{
    int64_t run_seq;
    if (reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    int result = reader_find_seq(reader, SQL_RUN_SEQ, run, &run_seq);
    enum store_status status = result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    if (result == SQLITE_ROW) {
        sqlite3_stmt *rows =
            database_statement(&reader->database, verifier.data ? SQL_LIST_VERIFIER_LABELS : SQL_LIST_LABELS);
        bind_int(rows, 1, run_seq);
        if (verifier.data)
            bind_text(rows, 2, verifier);
        status = database_status(&reader->database, visit(rows, visitor));
    }
    reader_end(reader);
    return status;
}
