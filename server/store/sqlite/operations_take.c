/* TAKE_LEASE: which ready groups a lease gets. */
#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/store/sqlite/deliveries.h"
#include "server/store/sqlite/lease_rows.h"

enum { LOOKED_AT_ONCE = 4096 }; /* ready groups beyond those that are taken, in one transaction */

/* ---- the lease of a key
 * ---------------------------------------------------------------------------------------------------------------- */

static int read_lease(struct store *store, int64_t seq, struct store_lease *ret_lease)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_KEY_LEASE);
    bind_int(find, 1, seq);
    int result = database_first(find);
    if (result != SQLITE_ROW)
        return result;
    lease_read_row(find, ret_lease);
    return sqlite3_reset(find);
}

/* STORE_OK: there is no key, or it is new. */
static enum store_status check_key(struct store *store, struct store_op *op, const struct run_row *run)
{
    struct store_take_lease *take = &op->take_lease;
    if (!take->key.key.data)
        return STORE_OK;
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_LEASE_KEY);
    bind_int(find, 1, run->seq);
    bind_int(find, 2, run->incarnation);
    bind_text(find, 3, text_of(store_route_names[take->key.route]));
    bind_text(find, 4, take->key.key);
    int result = database_first(find);
    if (result == SQLITE_DONE)
        return STORE_OK;
    if (result != SQLITE_ROW)
        return operation_fail(store, op, result);
    bool same = operation_is_same_body(find, 0, take->key.request_sha256);
    int64_t lease_seq = column_int_or(find, 1, -1);
    sqlite3_reset(find);
    if (!same)
        return operation_decline(op, STORE_IDEMPOTENCY_CONFLICT, "the key was used with another body");
    result = read_lease(store, lease_seq, &take->lease);
    if (result != SQLITE_OK)
        return operation_fail(store, op, result);
    memcpy(take->id, take->lease.id, ID_BYTES);
    return operation_decline(op, STORE_EXISTS, "the key has taken this lease");
}

static int keep_key(struct store *store, const struct store_take_lease *take, const struct run_row *run,
                    int64_t lease_seq)
{
    struct key_row row = {.run_seq = run->seq,
                          .incarnation = run->incarnation,
                          .route = take->key.route,
                          .key = take->key.key,
                          .request_sha256 = take->key.request_sha256,
                          .batch_seq = -1,
                          .update_seq = -1,
                          .revision = -1,
                          .led_to_incarnation = -1,
                          .previous_revision = -1,
                          .lease_seq = lease_seq,
                          .taken_at_us = take->lease.taken_at_us};
    return take->key.key.data ? operation_insert_key(store, &row) : SQLITE_OK;
}

/* ---- which groups
 * ---------------------------------------------------------------------------------------------------------------- */

struct candidate {
    int64_t group_seq;
    int64_t staleness;
};

struct candidates {
    struct candidate *fit; /* [wanted] */
    size_t fit_count;
    struct candidate *stale; /* [LOOKED_AT_ONCE] */
    size_t stale_count;
};

static void candidates_finish(struct candidates *candidates)
{
    free(candidates->fit);
    free(candidates->stale);
}

static bool is_too_old(const struct store_take_lease *take, int64_t batch_limit, int64_t staleness)
{
    return (take->max_staleness >= 0 && staleness > take->max_staleness) ||
           (batch_limit >= 0 && staleness > batch_limit);
}

/* Sorts ready groups, oldest first, into those that fit and those that are too old, until enough fit. */
static int look(struct store *store, struct store_take_lease *take, const struct run_row *run,
                struct candidates *candidates)
{
    sqlite3_stmt *rows = database_statement(&store->writer, SQL_LIST_READY);
    bind_int(rows, 1, run->seq);
    bind_int(rows, 2, take->wanted + LOOKED_AT_ONCE);
    int result = SQLITE_ROW;
    while (result == SQLITE_ROW && candidates->fit_count < (size_t)take->wanted &&
           candidates->stale_count < LOOKED_AT_ONCE && (result = sqlite3_step(rows)) == SQLITE_ROW) {
        struct candidate candidate = {.group_seq = sqlite3_column_int64(rows, 0)};
        int found = deliveries_find_staleness(store, run, candidate.group_seq, sqlite3_column_int64(rows, 1),
                                              sqlite3_column_int64(rows, 2), &candidate.staleness);
        if (found != SQLITE_OK)
            result = found;
        else if (is_too_old(take, column_int_or(rows, 3, -1), candidate.staleness))
            candidates->stale[candidates->stale_count++] = candidate;
        else
            candidates->fit[candidates->fit_count++] = candidate;
    }
    take->again = candidates->fit_count < (size_t)take->wanted && candidates->stale_count == LOOKED_AT_ONCE;
    sqlite3_reset(rows);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

/* ---- the moves
 * ---------------------------------------------------------------------------------------------------------------- */

static int mark_stale(struct store *store, struct store_take_lease *take, const struct run_row *run,
                      const struct candidates *candidates)
{
    int result = SQLITE_OK;
    for (size_t i = 0; i < candidates->stale_count && result == SQLITE_OK; i++) {
        sqlite3_stmt *mark = database_statement(&store->writer, SQL_MARK_STALE);
        bind_int(mark, 1, candidates->stale[i].group_seq);
        bind_int(mark, 2, candidates->stale[i].staleness);
        result = database_run(mark);
    }
    take->marked_stale = (int64_t)candidates->stale_count;
    return result == SQLITE_OK
               ? deliveries_move(store, run->seq, STORE_DELIVERY_READY, STORE_DELIVERY_STALE, take->marked_stale)
               : result;
}

static int insert_lease(struct store *store, const struct store_lease *lease, const struct run_row *run)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_LEASE);
    bind_text(insert, 1, text_of(lease->id));
    bind_int(insert, 2, run->seq);
    bind_int(insert, 3, lease->taken_at_us);
    bind_int(insert, 4, lease->expires_at_us);
    bind_int(insert, 5, lease->incarnation);
    bind_int_or_null(insert, 6, lease->policy_revision);
    bind_int_or_null(insert, 7, lease->max_staleness);
    bind_int(insert, 8, lease->group_count);
    return database_run(insert);
}

static int lease_group(struct store *store, int64_t lease_seq, int64_t place, const struct candidate *candidate)
{
    sqlite3_stmt *take = database_statement(&store->writer, SQL_LEASE_GROUP);
    bind_int(take, 1, candidate->group_seq);
    bind_int(take, 2, lease_seq);
    bind_int(take, 3, candidate->staleness);
    int result = database_run(take);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_LEASE_GROUP);
    bind_int(insert, 1, lease_seq);
    bind_int(insert, 2, place);
    bind_int(insert, 3, candidate->group_seq);
    return database_run(insert);
}

static int make_lease(struct store *store, struct store_take_lease *take, const struct run_row *run,
                      const struct candidates *candidates, int64_t now_us)
{
    struct store_lease *lease = &take->lease;
    int64_t count = (int64_t)candidates->fit_count;
    *lease = (struct store_lease){.state = STORE_LEASE_OPEN,
                                  .taken_at_us = now_us,
                                  .expires_at_us = now_us + take->lease_us,
                                  .ended_at_us = -1,
                                  .incarnation = run->incarnation,
                                  .policy_revision = run->policy_revision,
                                  .max_staleness = take->max_staleness,
                                  .group_count = count,
                                  .held = count};
    id_new_lease(lease->id);
    memcpy(take->id, lease->id, ID_BYTES);
    int result = insert_lease(store, lease, run);
    int64_t lease_seq = sqlite3_last_insert_rowid(store->writer.handle);
    for (int64_t i = 0; i < count && result == SQLITE_OK; i++)
        result = lease_group(store, lease_seq, i, &candidates->fit[i]);
    if (result == SQLITE_OK)
        result = deliveries_move(store, run->seq, STORE_DELIVERY_READY, STORE_DELIVERY_LEASED, count);
    take->taken = true;
    return result == SQLITE_OK ? keep_key(store, take, run, lease_seq) : result;
}

static int take_groups(struct store *store, struct store_take_lease *take, const struct run_row *run, int64_t now_us)
{
    _cleanup_(candidates_finish) struct candidates candidates = {
        .fit = xcalloc((size_t)take->wanted, sizeof(*candidates.fit)),
        .stale = xcalloc(LOOKED_AT_ONCE, sizeof(*candidates.stale)),
    };
    int result = look(store, take, run, &candidates);
    if (result == SQLITE_OK)
        result = mark_stale(store, take, run, &candidates);
    take->eligible = (int64_t)candidates.fit_count;
    bool enough = take->partly ? take->eligible > 0 && !take->again : take->eligible == take->wanted;
    if (result == SQLITE_OK && enough)
        result = make_lease(store, take, run, &candidates, now_us);
    return result;
}

enum store_status operation_take_lease(struct store *store, struct store_op *op)
{
    struct store_take_lease *take = &op->take_lease;
    int64_t now_us = clock_utc_us();
    int64_t expired = 0;
    struct run_row run = {0};
    int result = operation_find_run(store, take->run, &run);
    if (result == SQLITE_DONE)
        return operation_decline(op, STORE_NOT_FOUND, "no such run");
    if (result != SQLITE_ROW)
        return operation_fail(store, op, result);
    take->taken = false;
    take->again = false;
    take->returned = 0;
    enum store_status status = check_key(store, op, &run);
    if (status != STORE_OK)
        return status;
    result = deliveries_expire(store, run.seq, now_us, &expired, &take->returned);
    if (result == SQLITE_OK)
        result = take_groups(store, take, &run, now_us);
    if (result == SQLITE_OK)
        result = deliveries_next_expiry(store, &take->next_expiry_us);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}
