/* Weights of a run: declared at once, or by an update in steps. */
#include "server/base/clock.h"
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/deliveries.h"
#include "server/store/sqlite/lease_rows.h"

int operation_has_open_update(struct store *store, int64_t run_seq, bool *ret_open)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_OPEN_UPDATE);
    bind_int(find, 1, run_seq);
    int result = database_first(find);
    *ret_open = result == SQLITE_ROW;
    sqlite3_reset(find);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

/* The run's newest update, which alone may be open; revision -1: there is none. */
static int find_newest(struct store *store, int64_t run_seq, struct store_policy_update *ret_update, int64_t *ret_seq)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_UPDATE);
    bind_int(find, 1, run_seq);
    int result = database_first(find);
    *ret_update = (struct store_policy_update){.revision = -1, .state = STORE_UPDATE_COMMITTED};
    *ret_seq = -1;
    if (result == SQLITE_ROW) {
        *ret_seq = sqlite3_column_int64(find, 0);
        database_read_update(find, 1, ret_update);
    }
    sqlite3_reset(find);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

static int insert_update(struct store *store, int64_t run_seq, const struct store_policy_update *from)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_UPDATE);
    int place = 2;
    bind_int(insert, 1, run_seq);
    COLUMNS_WRITTEN(UPDATE_COLUMNS)
    return database_run(insert);
}

/* The open update ends. */
static int write_end(struct store *store, int64_t run_seq, const struct store_policy_update *update)
{
    sqlite3_stmt *end = database_statement(&store->writer, SQL_END_UPDATE);
    bind_int(end, 1, run_seq);
    bind_text(end, 2, text_of(store_update_state_names[update->state]));
    bind_int(end, 3, update->ended_at_us);
    bind_int(end, 4, update->incarnation);
    bind_int_or_null(end, 5, update->previous_revision);
    return database_run(end);
}

/* ---- at once
 * ---------------------------------------------------------------------------------------------------------------- */

/* A retried request must not open another incarnation: true if the current one was opened by this very rewind and has
 * seen nothing else since. */
static int is_same_rewind(struct store *store, const struct run_row *run, const struct store_declare_policy *declare,
                          bool *ret_same)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_INCARNATION);
    bind_int(find, 1, run->seq);
    bind_int(find, 2, run->incarnation);
    int result = database_first(find);
    if (result != SQLITE_ROW)
        return result;
    *ret_same = column_int_or(find, 0, -1) == declare->rewind_to_step && sqlite3_column_int64(find, 1) == 1 &&
                run->policy_revision == declare->revision;
    sqlite3_reset(find);
    bool acked = false;
    result = deliveries_find_acked_after(store, run->seq, declare->rewind_to_step, &acked);
    *ret_same = *ret_same && !acked;
    return result;
}

static int rewind_run(struct store *store, struct run_row *run, struct store_declare_policy *declare, int64_t now_us)
{
    bool same = false;
    int result = is_same_rewind(store, run, declare, &same);
    if (result != SQLITE_OK || same)
        return result;
    run->incarnation++;
    result = operation_insert_incarnation(store, run, now_us, declare->rewind_to_step);
    if (result == SQLITE_OK)
        result = deliveries_rewind(store, run->seq, declare->rewind_to_step, now_us, &declare->returned);
    return result == SQLITE_OK ? operation_set_revision(store, run, declare->revision, now_us) : result;
}

static int is_rewind(struct store *store, const struct run_row *run, const struct store_declare_policy *declare,
                     bool *ret_rewind)
{
    *ret_rewind =
        declare->rewind_to_step >= 0 && (!declare->rewind_if_below || declare->revision < run->policy_revision);
    if (*ret_rewind || declare->rewind_to_step < 0)
        return SQLITE_OK;
    return deliveries_find_acked_after(store, run->seq, declare->rewind_to_step, ret_rewind);
}

/* A revision below the run's changes nothing. */
static int declare_revision(struct store *store, struct run_row *run, struct store_declare_policy *declare,
                            int64_t now_us)
{
    bool rewinds = false;
    int result = is_rewind(store, run, declare, &rewinds);
    if (result != SQLITE_OK)
        return result;
    declare->previous_revision = run->policy_revision;
    if (rewinds)
        result = rewind_run(store, run, declare, now_us);
    else if (declare->revision > run->policy_revision)
        result = operation_set_revision(store, run, declare->revision, now_us);
    declare->incarnation = run->incarnation;
    declare->current_revision = run->policy_revision;
    return result;
}

/* An open update is in the way of a declaration, unless it is to be cancelled. *ret_seq: the one that was; -1: none. */
static enum store_status clear_the_way(struct store *store, struct store_op *op, const struct run_row *run,
                                       int64_t now_us, int64_t *ret_seq)
{
    struct store_declare_policy *declare = &op->declare_policy;
    struct store_policy_update *newest = &declare->update;
    int result = find_newest(store, run->seq, newest, ret_seq);
    if (result != SQLITE_OK)
        return operation_fail(store, op, result);
    if (newest->revision < 0 || newest->state != STORE_UPDATE_OPEN) {
        newest->revision = -1;
        *ret_seq = -1;
        return STORE_OK;
    }
    if (!declare->cancel_open)
        return operation_decline(op, STORE_STATE_CONFLICT, "a weight update of the run is open");
    newest->state = STORE_UPDATE_CANCELLED;
    newest->ended_at_us = now_us;
    result = write_end(store, run->seq, newest);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

/* Those that the step ended, also if it is repeated. */
static int list_ended(struct store *store, const struct run_row *run, struct store_declare_policy *declare)
{
    sqlite3_stmt *rows = database_statement(&store->writer, SQL_LIST_ENDED_LEASES);
    bind_int(rows, 1, run->seq);
    bind_int(rows, 2, declare->taken_at_us);
    int result = lease_read_rows(rows, &declare->ended_leases);
    sqlite3_reset(rows);
    return result;
}

static int end_leases(struct store *store, const struct run_row *run, struct store_declare_policy *declare)
{
    int result = deliveries_end_leases(store, run->seq, STORE_LEASE_ATTACHED, declare->taken_at_us, &declare->returned);
    return result == SQLITE_OK ? list_ended(store, run, declare) : result;
}

static enum store_status answer_again(struct store *store, struct store_op *op, const struct run_row *run)
{
    int result = op->declare_policy.end_leases ? list_ended(store, run, &op->declare_policy) : SQLITE_OK;
    return result == SQLITE_OK ? STORE_EXISTS : operation_fail(store, op, result);
}

enum store_status operation_declare_policy(struct store *store, struct store_op *op)
{
    struct store_declare_policy *declare = &op->declare_policy;
    int64_t now_us = clock_utc_us();
    struct run_row run = {0};
    int result = operation_enter_run(store, declare->run, now_us, &run);
    if (result != SQLITE_OK)
        return operation_fail(store, op, result);
    int64_t update_seq = -1;
    declare->taken_at_us = now_us;
    declare->returned = 0;
    store_leases_finish(&declare->ended_leases); /* of an attempt before */
    enum store_status status = operation_check_step_key(store, op, &run);
    if (status == STORE_EXISTS)
        return answer_again(store, op, &run);
    if (status == STORE_OK)
        status = clear_the_way(store, op, &run, now_us, &update_seq);
    if (status != STORE_OK)
        return status;
    result = declare->end_leases ? end_leases(store, &run, declare) : SQLITE_OK;
    if (result == SQLITE_OK)
        result = declare_revision(store, &run, declare, now_us);
    if (result == SQLITE_OK && declare->revision < run.policy_revision)
        return operation_decline(op, STORE_REVISION_CONFLICT, "a smaller revision needs rewind_to_step");
    if (result == SQLITE_OK)
        result = operation_keep_step_key(store, op, &run, update_seq);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

/* ---- in steps
 * ---------------------------------------------------------------------------------------------------------------- */

/* Working state of an operation. */
struct stepping {
    struct store *store;
    struct store_update_policy *step;
    struct run_row run;
    struct store_policy_update newest; /* of the run; revision -1: there is none */
    int64_t seq;                       /* its row, after a BEGIN the one that was begun */
};

static enum store_status conflict(struct stepping *stepping, struct store_op *op, const char *why)
{
    stepping->step->update = stepping->newest;
    return operation_decline(op, STORE_STATE_CONFLICT, why);
}

static enum store_status known(struct stepping *stepping, struct store_op *op)
{
    stepping->step->update = stepping->newest;
    return operation_decline(op, STORE_EXISTS, "this step was taken before");
}

static enum store_status begin(struct stepping *stepping, struct store_op *op)
{
    struct store_policy_update *update = &stepping->step->update;
    const struct store_policy_update *newest = &stepping->newest;
    const struct run_row *run = &stepping->run;
    if (newest->state == STORE_UPDATE_OPEN)
        return newest->revision == update->revision && newest->mode == update->mode &&
                       newest->rewind_to_step == update->rewind_to_step
                   ? known(stepping, op)
                   : conflict(stepping, op, "another weight update of the run is open");
    if (update->rewind_to_step < 0 && update->revision < run->policy_revision)
        return operation_decline(op, STORE_REVISION_CONFLICT, "a smaller revision needs rewind_to_step");
    update->state = STORE_UPDATE_OPEN;
    update->ended_at_us = -1;
    update->incarnation = run->incarnation;
    update->previous_revision = run->policy_revision;
    int result = insert_update(stepping->store, run->seq, update);
    stepping->seq = sqlite3_last_insert_rowid(stepping->store->writer.handle);
    return result == SQLITE_OK ? STORE_OK : operation_fail(stepping->store, op, result);
}

/* The update as it is in `newest`, ended. */
static int end_update(struct stepping *stepping, enum store_update_state state)
{
    struct store_policy_update *update = &stepping->newest;
    update->state = state;
    update->ended_at_us = stepping->step->now_us;
    stepping->step->update = *update;
    return write_end(stepping->store, stepping->run.seq, update);
}

static int move_batches(struct stepping *stepping)
{
    const struct store_policy_update *update = &stepping->newest;
    if (update->mode != STORE_UPDATE_ABORT)
        return SQLITE_OK;
    sqlite3_stmt *move = database_statement(&stepping->store->writer, SQL_MOVE_BATCHES);
    bind_int(move, 1, stepping->run.seq);
    bind_int(move, 2, update->revision);
    bind_int(move, 3, update->previous_revision < 0 ? 0 : update->previous_revision);
    return database_run(move);
}

static int commit(struct stepping *stepping)
{
    struct store_policy_update *update = &stepping->newest;
    struct store_declare_policy declare = {.revision = update->revision, .rewind_to_step = update->rewind_to_step};
    int result = declare_revision(stepping->store, &stepping->run, &declare, stepping->step->now_us);
    if (result != SQLITE_OK)
        return result;
    update->incarnation = declare.incarnation;
    update->previous_revision = declare.previous_revision;
    stepping->step->returned = declare.returned;
    result = move_batches(stepping);
    return result == SQLITE_OK ? end_update(stepping, STORE_UPDATE_COMMITTED) : result;
}

static bool is_meant(const struct stepping *stepping)
{
    const struct store_policy_update *asked = &stepping->step->update;
    const struct store_policy_update *newest = &stepping->newest;
    if (stepping->step->step == STORE_STEP_EXPIRE)
        return asked->revision == newest->revision && asked->begun_at_us == newest->begun_at_us;
    return asked->revision < 0 || asked->revision == newest->revision;
}

static enum store_status end(struct stepping *stepping, struct store_op *op)
{
    static const enum store_update_state ends[] = {[STORE_STEP_COMMIT] = STORE_UPDATE_COMMITTED,
                                                   [STORE_STEP_CANCEL] = STORE_UPDATE_CANCELLED,
                                                   [STORE_STEP_EXPIRE] = STORE_UPDATE_EXPIRED};
    enum store_update_state state = ends[stepping->step->step];
    const struct store_policy_update *newest = &stepping->newest;
    if (newest->revision < 0)
        return conflict(stepping, op, "no weight update of the run was begun");
    if (newest->state == state && is_meant(stepping))
        return known(stepping, op);
    if (newest->state != STORE_UPDATE_OPEN)
        return conflict(stepping, op, "no weight update of the run is open");
    if (!is_meant(stepping))
        return conflict(stepping, op, "the open weight update is another one");
    int result = state == STORE_UPDATE_COMMITTED ? commit(stepping) : end_update(stepping, state);
    return result == SQLITE_OK ? STORE_OK : operation_fail(stepping->store, op, result);
}

/* A step that was taken before gives its result to the key, too: then the operation is OK, so that the key is kept. */
static enum store_status take_step(struct stepping *stepping, struct store_op *op)
{
    enum store_status status = stepping->step->step == STORE_STEP_BEGIN ? begin(stepping, op) : end(stepping, op);
    if (!stepping->step->key.key.data || (status != STORE_OK && status != STORE_EXISTS))
        return status;
    stepping->step->repeated = status == STORE_EXISTS;
    int result = operation_keep_step_key(stepping->store, op, &stepping->run, stepping->seq);
    return result == SQLITE_OK ? STORE_OK : operation_fail(stepping->store, op, result);
}

enum store_status operation_update_policy(struct store *store, struct store_op *op)
{
    struct store_update_policy *step = &op->update_policy;
    struct stepping stepping = {.store = store, .step = step};
    step->now_us = clock_utc_us();
    int result = operation_enter_run(store, step->run, step->now_us, &stepping.run);
    if (result == SQLITE_OK)
        result = find_newest(store, stepping.run.seq, &stepping.newest, &stepping.seq);
    if (result != SQLITE_OK)
        return operation_fail(store, op, result);
    enum store_status status = operation_check_step_key(store, op, &stepping.run);
    if (status == STORE_OK)
        status = take_step(&stepping, op);
    step->incarnation = stepping.run.incarnation;
    step->current_revision = stepping.run.policy_revision;
    return status;
}
