/* Operations on a lease after it was taken; the pacing of a run. */
#include "server/base/clock.h"
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/deliveries.h"
#include "server/store/sqlite/lease_rows.h"

/* Working state of an operation. */
struct holding {
    struct store *store;
    const struct store_lease_choice *choice;
    struct store_lease *lease; /* the operation's */
    struct lease_row row;
    int64_t now_us;
    int64_t optimizer_step; /* of an acknowledgement */
    int64_t returned;       /* groups that are ready, because the lease turned out to be expired */
};

static int read_lease(struct holding *holding)
{
    sqlite3_stmt *find = database_statement(&holding->store->writer, SQL_FIND_LEASE);
    bind_text(find, 1, holding->choice->lease);
    bind_int(find, 2, holding->row.run_seq);
    int result = database_first(find);
    if (result == SQLITE_ROW)
        holding->row.seq = lease_read_row(find, holding->lease);
    sqlite3_reset(find);
    holding->row.held = holding->lease->held;
    return result;
}

/* Finds the lease; one whose time has passed ends. */
static enum store_status find_lease(struct holding *holding, struct store_op *op)
{
    struct run_row run = {0};
    holding->now_us = clock_utc_us();
    int result = operation_find_run(holding->store, holding->choice->run, &run);
    holding->row.run_seq = run.seq;
    if (result == SQLITE_ROW)
        result = read_lease(holding);
    if (result == SQLITE_DONE)
        return operation_decline(op, STORE_NOT_FOUND, "the run has no such lease");
    if (result == SQLITE_ROW && holding->lease->state == STORE_LEASE_OPEN &&
        holding->lease->expires_at_us <= holding->now_us) {
        holding->returned = holding->row.held;
        result = deliveries_end_lease(holding->store, &holding->row, STORE_LEASE_EXPIRED, holding->now_us);
        if (result == SQLITE_OK)
            result = read_lease(holding);
    }
    return result == SQLITE_ROW ? STORE_OK : operation_fail(holding->store, op, result);
}

/* As the lease is on record now. */
static enum store_status end_with(struct holding *holding, struct store_op *op, int result)
{
    if (result == SQLITE_OK)
        result = read_lease(holding);
    return result == SQLITE_ROW ? STORE_OK : operation_fail(holding->store, op, result);
}

/* ---- the groups that a request means
 * ---------------------------------------------------------------------------------------------------------------- */

/* An id that is no group's, or not one of the run, gives a row that says so. */
static int find_named(struct holding *holding, struct text id, struct lease_group_row *ret_row)
{
    char batch_id[ID_BYTES];
    int64_t index = 0;
    *ret_row = (struct lease_group_row){0};
    memcpy(ret_row->group.id, id.data, id.length_bytes < ID_BYTES ? id.length_bytes : ID_BYTES - 1);
    if (!id_split_group(id, batch_id, &index))
        return SQLITE_OK;
    sqlite3_stmt *find = database_statement(&holding->store->writer, SQL_FIND_LEASE_GROUP);
    bind_int(find, 1, holding->row.seq);
    bind_text(find, 2, text_of(batch_id));
    bind_int(find, 3, index);
    bind_int(find, 4, holding->row.run_seq);
    int result = database_first(find);
    if (result == SQLITE_ROW)
        lease_read_group_row(find, holding->row.seq, ret_row);
    sqlite3_reset(find);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

struct chosen {
    struct lease_group_row *rows; /* xrealloc */
    size_t count;
};

static void chosen_finish(struct chosen *chosen)
{
    free(chosen->rows);
}

static int choose_named(struct holding *holding, struct chosen *chosen)
{
    const struct store_lease_choice *choice = holding->choice;
    int result = SQLITE_OK;
    chosen->rows = xcalloc(choice->count, sizeof(*chosen->rows));
    for (; chosen->count < choice->count && result == SQLITE_OK; chosen->count++)
        result = find_named(holding, choice->groups[chosen->count], &chosen->rows[chosen->count]);
    return result;
}

static int choose_all(struct holding *holding, struct chosen *chosen)
{
    chosen->rows = xcalloc((size_t)holding->lease->group_count, sizeof(*chosen->rows));
    sqlite3_stmt *rows = database_statement(&holding->store->writer, SQL_LIST_LEASE_GROUPS);
    bind_int(rows, 1, holding->row.seq);
    int result;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW && chosen->count < (size_t)holding->lease->group_count)
        lease_read_group_row(rows, holding->row.seq, &chosen->rows[chosen->count++]);
    sqlite3_reset(rows);
    return result == SQLITE_DONE || result == SQLITE_ROW ? SQLITE_OK : result;
}

static int choose(struct holding *holding, struct chosen *chosen)
{
    return holding->choice->count ? choose_named(holding, chosen) : choose_all(holding, chosen);
}

/* Behind the statement that moved a group: what became of it in this lease. As the moves below. */
static int end_move(struct holding *holding, int64_t group_seq, int result, struct text outcome)
{
    if (result != SQLITE_OK)
        return -result;
    if (sqlite3_changes(holding->store->writer.handle) == 0)
        return 0;
    sqlite3_stmt *set = database_statement(&holding->store->writer, SQL_SET_OUTCOME);
    bind_int(set, 1, holding->row.seq);
    bind_text(set, 2, outcome);
    bind_int(set, 3, group_seq);
    result = database_run(set);
    return result == SQLITE_OK ? 1 : -result;
}

/* ---- extend, release
 * ---------------------------------------------------------------------------------------------------------------- */

enum store_status operation_extend_lease(struct store *store, struct store_op *op)
{
    struct store_extend_lease *extend = &op->extend_lease;
    struct holding holding = {.store = store, .choice = &extend->of, .lease = &extend->lease};
    enum store_status status = find_lease(&holding, op);
    if (status != STORE_OK)
        return status;
    if (extend->lease.state != STORE_LEASE_OPEN)
        return operation_decline(op, STORE_STATE_CONFLICT, "the lease has ended");
    sqlite3_stmt *set = database_statement(&store->writer, SQL_EXTEND_LEASE);
    bind_int(set, 1, holding.row.seq);
    bind_int(set, 2, holding.now_us + extend->lease_us);
    int result = database_run(set);
    if (result == SQLITE_OK)
        result = deliveries_next_expiry(store, &extend->next_expiry_us);
    return end_with(&holding, op, result);
}

/* 1: done; 0: a group that is named twice has been moved before; negative: an SQLite result code. */
static int release_group(struct holding *holding, int64_t group_seq)
{
    sqlite3_stmt *back = database_statement(&holding->store->writer, SQL_RETURN_GROUP);
    bind_int(back, 1, group_seq);
    return end_move(holding, group_seq, database_run(back), TEXT_LITERAL(LEASE_OUTCOME_RELEASED));
}

/* Does it with each group of the choice that is held. */
static int for_held(struct holding *holding, const struct chosen *chosen,
                    int (*move)(struct holding *holding, int64_t group_seq), int64_t *ret_moved)
{
    for (size_t i = 0; i < chosen->count; i++) {
        int moved = chosen->rows[i].group.is_held ? move(holding, chosen->rows[i].group_seq) : 0;
        if (moved < 0)
            return -moved;
        *ret_moved += moved;
    }
    return SQLITE_OK;
}

static int let_go(struct holding *holding, int64_t groups, enum store_delivery_state to, enum store_lease_state how)
{
    if (groups == 0)
        return SQLITE_OK;
    int result = deliveries_move(holding->store, holding->row.run_seq, STORE_DELIVERY_LEASED, to, groups);
    return result == SQLITE_OK ? deliveries_let_go(holding->store, &holding->row, groups, how, holding->now_us)
                               : result;
}

enum store_status operation_release_lease(struct store *store, struct store_op *op)
{
    struct store_release_lease *release = &op->release_lease;
    struct holding holding = {.store = store, .choice = &release->of, .lease = &release->lease};
    _cleanup_(chosen_finish) struct chosen chosen = {0};
    enum store_status status = find_lease(&holding, op);
    if (status != STORE_OK)
        return status;
    release->released = 0;
    int result = choose(&holding, &chosen);
    if (result == SQLITE_OK)
        result = for_held(&holding, &chosen, release_group, &release->released);
    if (result == SQLITE_OK)
        result = let_go(&holding, release->released, STORE_DELIVERY_READY, STORE_LEASE_RELEASED);
    release->released += holding.returned;
    return end_with(&holding, op, result);
}

/* ---- acknowledge
 * ---------------------------------------------------------------------------------------------------------------- */

/* A row that was not held, and not acknowledged by this lease before. */
static bool is_in_the_way(const struct lease_group_row *row)
{
    return !row->group.is_held && !row->was_acked;
}

/* Those that a lease released itself are no part of an acknowledgement without a list. */
static bool is_meant(const struct holding *holding, const struct lease_group_row *row)
{
    return holding->choice->count || !row->was_released;
}

static enum store_status check_ack(struct holding *holding, struct store_op *op, const struct chosen *chosen)
{
    struct store_lease_groups *conflict = &op->ack_lease.conflict;
    size_t meant = 0;
    for (size_t i = 0; i < chosen->count; i++) {
        const struct lease_group_row *row = &chosen->rows[i];
        meant += is_meant(holding, row);
        if (is_meant(holding, row) && is_in_the_way(row))
            lease_add_group(conflict, &row->group);
    }
    for (size_t i = 0; !meant && i < chosen->count; i++)
        lease_add_group(conflict, &chosen->rows[i].group);
    return conflict->count ? operation_decline(op, STORE_STATE_CONFLICT, "the lease does not hold all of these groups")
                           : STORE_OK;
}

static int ack_group(struct holding *holding, int64_t group_seq)
{
    sqlite3_stmt *set = database_statement(&holding->store->writer, SQL_ACK_GROUP);
    bind_int(set, 1, group_seq);
    bind_int(set, 2, holding->optimizer_step);
    return end_move(holding, group_seq, database_run(set), TEXT_LITERAL(LEASE_OUTCOME_ACKED));
}

enum store_status operation_ack_lease(struct store *store, struct store_op *op)
{
    struct store_ack_lease *ack = &op->ack_lease;
    struct holding holding = {
        .store = store, .choice = &ack->of, .lease = &ack->lease, .optimizer_step = ack->optimizer_step};
    _cleanup_(chosen_finish) struct chosen chosen = {0};
    store_lease_groups_finish(&ack->conflict); /* of an attempt before */
    enum store_status status = find_lease(&holding, op);
    if (status != STORE_OK)
        return status;
    ack->acked = 0;
    int result = choose(&holding, &chosen);
    if (result != SQLITE_OK)
        return operation_fail(store, op, result);
    status = check_ack(&holding, op, &chosen);
    if (status != STORE_OK)
        return status;
    result = for_held(&holding, &chosen, ack_group, &ack->acked);
    if (result == SQLITE_OK)
        result = let_go(&holding, ack->acked, STORE_DELIVERY_ACKED, STORE_LEASE_ACKED);
    return end_with(&holding, op, result);
}

/* ---- all leases; pacing
 * ---------------------------------------------------------------------------------------------------------------- */

enum store_status operation_expire_leases(struct store *store, struct store_op *op)
{
    struct store_expire_leases *expire = &op->expire_leases;
    expire->leases = 0;
    expire->returned = 0;
    int result = deliveries_expire(store, -1, clock_utc_us(), &expire->leases, &expire->returned);
    if (result == SQLITE_OK)
        result = deliveries_next_expiry(store, &expire->next_expiry_us);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

enum store_status operation_put_pacing(struct store *store, struct store_op *op)
{
    const struct store_pacing *from = &op->put_pacing.pacing;
    struct run_row run = {0};
    int result = operation_enter_run(store, op->put_pacing.run, clock_utc_us(), &run);
    if (result != SQLITE_OK)
        return operation_fail(store, op, result);
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_PUT_PACING);
    int place = 2;
    bind_int(insert, 1, run.seq);
    COLUMNS_WRITTEN(PACING_COLUMNS)
    result = database_run(insert);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}
