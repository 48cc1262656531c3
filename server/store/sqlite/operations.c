#include "server/store/sqlite/operations.h"

#include "server/base/clock.h"

/* A row that comes and goes; SQLite leaves out a write of what is there already. */
enum store_status operation_try_write(struct store *store, struct store_op *op)
{
    static const enum statement steps[] = {SQL_BUMP_OWNER, SQL_FORGET_OWNER};
    for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
        sqlite3_stmt *statement = database_statement(&store->writer, steps[i]);
        bind_text(statement, 1, TEXT_LITERAL(" "));
        int result = database_run(statement);
        if (result != SQLITE_OK)
            return operation_fail(store, op, result);
    }
    return STORE_OK;
}

static enum store_status (*const operations[])(struct store *store, struct store_op *op) = {
#define OPERATION_ROW(kind, type, member) [STORE_##kind] = operation_##member,
    STORE_OPERATIONS(OPERATION_ROW)
#undef OPERATION_ROW
};

enum store_status operation_run(struct store *store, struct store_op *op)
{
    return operations[op->kind](store, op);
}

static size_t content_bytes(const struct store_content *content)
{
    return content ? content->stored.length_bytes : 0;
}

static size_t new_group_bytes(const struct store_new_group *group)
{
    return group->task.length_bytes + group->sampling.length_bytes + group->verifiers.length_bytes +
           group->metadata.length_bytes + group->tags.length_bytes + group->prompt_id_count * sizeof(uint32_t) +
           content_bytes(group->prompt) + content_bytes(group->reference);
}

static size_t create_batch_bytes(const struct store_create_batch *batch)
{
    size_t bytes = batch->request.length_bytes + batch->sampling.length_bytes + batch->objective.length_bytes +
                   batch->verifiers.length_bytes + batch->metadata.length_bytes;
    for (size_t i = 0; i < batch->group_count; i++)
        bytes += new_group_bytes(&batch->groups[i]);
    return bytes;
}

static size_t insert_rollout_bytes(const struct store_insert_rollout *insert)
{
    const struct store_rollout *rollout = insert->rollout;
    return rollout->text.length_bytes + rollout->segments.length_bytes + rollout->verdicts.length_bytes +
           rollout->rewards.length_bytes + rollout->heldout.length_bytes +
           rollout->token_count * (sizeof(uint32_t) + sizeof(float) + 1) + insert->prompt_id_count * sizeof(uint32_t);
}

static size_t add_note_bytes(const struct store_note *note)
{
    return note->prediction.length_bytes + note->result.length_bytes + note->explanation.length_bytes +
           note->limitation.length_bytes;
}

static size_t put_labels_bytes(const struct store_put_labels *put)
{
    size_t bytes = put->count * sizeof(*put->labels);
    for (size_t i = 0; i < put->count; i++)
        bytes +=
            put->labels[i].rollout.length_bytes + put->labels[i].verifier.length_bytes + put->labels[i].by.length_bytes;
    return bytes;
}

static size_t add_tasks_bytes(const struct store_add_tasks *add)
{
    size_t bytes = add->count * sizeof(*add->tasks);
    for (size_t i = 0; i < add->count; i++)
        bytes += add->tasks[i].prompt.stored.length_bytes + add->tasks[i].reference.stored.length_bytes +
                 add->tasks[i].metadata.length_bytes;
    return bytes;
}

static size_t record_judged_bytes(const struct store_record_judged *record)
{
    size_t bytes = record->count * sizeof(*record->rows);
    for (size_t i = 0; i < record->count; i++)
        bytes += record->rows[i].verdicts.length_bytes + record->rows[i].flip_count * sizeof(*record->rows[i].flips);
    return bytes;
}

size_t operation_bytes(const struct store_op *op)
{
    if (op->kind == STORE_CREATE_BATCH)
        return sizeof(*op) + create_batch_bytes(&op->create_batch);
    if (op->kind == STORE_INSERT_ROLLOUT)
        return sizeof(*op) + insert_rollout_bytes(&op->insert_rollout);
    if (op->kind == STORE_CLOSE_GROUP)
        return sizeof(*op) + (op->close_group.draw ? new_group_bytes(op->close_group.draw) : 0);
    if (op->kind == STORE_CLOSE_BATCH)
        return sizeof(*op) + op->close_batch.notes.length_bytes + op->close_batch.summary.length_bytes;
    if (op->kind == STORE_PUT_MANIFEST)
        return sizeof(*op) + op->put_manifest.given.length_bytes + op->put_manifest.frozen.length_bytes;
    if (op->kind == STORE_RECORD_METRICS)
        return sizeof(*op) + op->record_metrics.numbers.length_bytes;
    if (op->kind == STORE_ADD_TASKS)
        return sizeof(*op) + add_tasks_bytes(&op->add_tasks);
    if (op->kind == STORE_CREATE_REVERIFICATION)
        return sizeof(*op) + op->create_reverification.request.length_bytes;
    if (op->kind == STORE_RECORD_JUDGED)
        return sizeof(*op) + record_judged_bytes(&op->record_judged);
    if (op->kind == STORE_ADD_NOTE)
        return sizeof(*op) + add_note_bytes(&op->add_note.note);
    if (op->kind == STORE_PUT_LABELS)
        return sizeof(*op) + put_labels_bytes(&op->put_labels);
    return sizeof(*op);
}
