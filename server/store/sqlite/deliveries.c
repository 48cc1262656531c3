#include "server/store/sqlite/deliveries.h"

static int changes(struct store *store)
{
    return sqlite3_changes(store->writer.handle);
}

/* ---- counters
 * ---------------------------------------------------------------------------------------------------------------- */

int deliveries_count(struct store *store, int64_t run_seq, enum store_delivery_state state, int64_t change)
{
    static const enum statement steps[] = {SQL_COUNT_DELIVERIES, SQL_INSERT_DELIVERY_COUNT};
    int result = SQLITE_OK;
    bool counted = change == 0;
    for (size_t i = 0; i < ARRAY_LENGTH(steps) && result == SQLITE_OK && !counted; i++) {
        sqlite3_stmt *count = database_statement(&store->writer, steps[i]);
        bind_int(count, 1, run_seq);
        bind_text(count, 2, text_of(store_delivery_state_names[state]));
        bind_int(count, 3, change);
        result = database_run(count);
        counted = changes(store) > 0;
    }
    return result;
}

int deliveries_move(struct store *store, int64_t run_seq, enum store_delivery_state from, enum store_delivery_state to,
                    int64_t groups)
{
    int result = deliveries_count(store, run_seq, from, -groups);
    return result == SQLITE_OK ? deliveries_count(store, run_seq, to, groups) : result;
}

/* One number from a statement, NULL as -1. */
static int find_number(sqlite3_stmt *find, int64_t *ret_number)
{
    int result = database_first(find);
    *ret_number = result == SQLITE_ROW ? column_int_or(find, 0, -1) : -1;
    sqlite3_reset(find);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

int deliveries_count_undelivered(struct store *store, int64_t run_seq, int64_t *ret_groups)
{
    sqlite3_stmt *count = database_statement(&store->writer, SQL_COUNT_UNDELIVERED);
    bind_int(count, 1, run_seq);
    return find_number(count, ret_groups);
}

/* ---- the life of a group
 * ---------------------------------------------------------------------------------------------------------------- */

int deliveries_add(struct store *store, int64_t run_seq, int64_t group_seq, int64_t max_staleness)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_DELIVERY);
    bind_int(insert, 1, group_seq);
    bind_int(insert, 2, run_seq);
    bind_int_or_null(insert, 3, max_staleness);
    return database_run(insert);
}

/* Of any token; where the engine counted none, of any member. */
static int find_oldest(struct store *store, int64_t group_seq, int64_t *ret_incarnation, int64_t *ret_revision)
{
    int result = SQLITE_OK;
    *ret_revision = -1;
    for (int any = 0; any < 2 && *ret_revision < 0 && result == SQLITE_OK; any++) {
        sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_OLDEST_TOKEN);
        bind_int(find, 1, group_seq);
        bind_int(find, 2, any);
        result = database_first(find);
        if (result != SQLITE_ROW)
            return result;
        *ret_incarnation = column_int_or(find, 0, -1);
        *ret_revision = column_int_or(find, 1, -1);
        result = sqlite3_reset(find);
    }
    return result;
}

int deliveries_close(struct store *store, const struct group_row *group, int64_t rewarded, bool drop, bool *ret_ready)
{
    enum store_delivery_state state = STORE_DELIVERY_READY;
    int64_t incarnation = -1;
    int64_t revision = -1;
    if (drop)
        state = STORE_DELIVERY_DROPPED;
    else if (rewarded == 0)
        state = STORE_DELIVERY_FAILED;
    *ret_ready = false;
    int result = find_oldest(store, group->seq, &incarnation, &revision);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *end = database_statement(&store->writer, SQL_END_WAITING);
    bind_int(end, 1, group->seq);
    bind_text(end, 2, text_of(store_delivery_state_names[state]));
    bind_int_or_null(end, 3, incarnation);
    bind_int_or_null(end, 4, revision);
    result = database_run(end);
    int moved = changes(store);
    *ret_ready = moved && state == STORE_DELIVERY_READY;
    return result == SQLITE_OK ? deliveries_move(store, group->run_seq, STORE_DELIVERY_WAITING, state, moved) : result;
}

int deliveries_fail_waiting(struct store *store, int64_t run_seq, int64_t batch_seq)
{
    sqlite3_stmt *fail = database_statement(&store->writer, SQL_FAIL_WAITING);
    bind_int(fail, 1, batch_seq);
    int result = database_run(fail);
    return result == SQLITE_OK
               ? deliveries_move(store, run_seq, STORE_DELIVERY_WAITING, STORE_DELIVERY_FAILED, changes(store))
               : result;
}

/* ---- leases
 * ---------------------------------------------------------------------------------------------------------------- */

int deliveries_let_go(struct store *store, const struct lease_row *lease, int64_t groups, enum store_lease_state how,
                      int64_t now_us)
{
    sqlite3_stmt *let_go = database_statement(&store->writer, SQL_LET_GO);
    bind_int(let_go, 1, lease->seq);
    bind_int(let_go, 2, groups);
    bind_text(let_go, 3, text_of(store_lease_state_names[how]));
    bind_int(let_go, 4, now_us);
    return database_run(let_go);
}

int deliveries_end_lease(struct store *store, const struct lease_row *lease, enum store_lease_state how, int64_t now_us)
{
    sqlite3_stmt *back = database_statement(&store->writer, SQL_RETURN_GROUPS);
    bind_int(back, 1, lease->seq);
    int result = database_run(back);
    if (result == SQLITE_OK)
        result = deliveries_move(store, lease->run_seq, STORE_DELIVERY_LEASED, STORE_DELIVERY_READY, changes(store));
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *outcome = database_statement(&store->writer, SQL_SET_OUTCOMES);
    bind_int(outcome, 1, lease->seq);
    bind_text(outcome, 2,
              how == STORE_LEASE_RELEASED ? TEXT_LITERAL(LEASE_OUTCOME_RELEASED) : TEXT_LITERAL(LEASE_OUTCOME_LOST));
    result = database_run(outcome);
    return result == SQLITE_OK ? deliveries_let_go(store, lease, lease->held, how, now_us) : result;
}

/* The next open lease that expires at a time or before. SQLITE_ROW, or SQLITE_DONE. */
static int find_due(struct store *store, int64_t run_seq, int64_t until_us, struct lease_row *ret_lease)
{
    sqlite3_stmt *find = database_statement(&store->writer, run_seq < 0 ? SQL_FIND_DUE_LEASE : SQL_FIND_DUE_RUN_LEASE);
    bind_int(find, 1, until_us);
    if (run_seq >= 0)
        bind_int(find, 2, run_seq);
    int result = database_first(find);
    if (result == SQLITE_ROW)
        *ret_lease = (struct lease_row){sqlite3_column_int64(find, 0), sqlite3_column_int64(find, 1),
                                        sqlite3_column_int64(find, 2)};
    sqlite3_reset(find);
    return result;
}

struct ending {
    enum store_lease_state how;
    int64_t until_us; /* open leases that expire at this time or before */
    int64_t now_us;
};

static int end_due(struct store *store, int64_t run_seq, const struct ending *ending, int64_t *ret_leases,
                   int64_t *ret_groups)
{
    struct lease_row lease = {0};
    int result;
    while ((result = find_due(store, run_seq, ending->until_us, &lease)) == SQLITE_ROW) {
        result = deliveries_end_lease(store, &lease, ending->how, ending->now_us);
        if (result != SQLITE_OK)
            return result;
        *ret_leases += 1;
        *ret_groups += lease.held;
    }
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

int deliveries_expire(struct store *store, int64_t run_seq, int64_t now_us, int64_t *ret_leases, int64_t *ret_groups)
{
    struct ending ending = {STORE_LEASE_EXPIRED, now_us, now_us};
    return end_due(store, run_seq, &ending, ret_leases, ret_groups);
}

int deliveries_end_leases(struct store *store, int64_t run_seq, enum store_lease_state how, int64_t now_us,
                          int64_t *ret_groups)
{
    struct ending ending = {how, INT64_MAX, now_us};
    int64_t leases = 0;
    return end_due(store, run_seq, &ending, &leases, ret_groups);
}

int deliveries_next_expiry(struct store *store, int64_t *ret_expiry_us)
{
    return find_number(database_statement(&store->writer, SQL_NEXT_EXPIRY), ret_expiry_us);
}

/* ---- rewinds
 * ---------------------------------------------------------------------------------------------------------------- */

int deliveries_find_acked_after(struct store *store, int64_t run_seq, int64_t optimizer_step, bool *ret_found)
{
    int64_t number;
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_ACKED_AFTER);
    bind_int(find, 1, run_seq);
    bind_int(find, 2, optimizer_step);
    int result = find_number(find, &number);
    *ret_found = number > 0;
    return result;
}

int deliveries_rewind(struct store *store, int64_t run_seq, int64_t optimizer_step, int64_t now_us, int64_t *ret_groups)
{
    int result = deliveries_end_leases(store, run_seq, STORE_LEASE_REWOUND, now_us, ret_groups);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *back = database_statement(&store->writer, SQL_RETURN_ACKED);
    bind_int(back, 1, run_seq);
    bind_int(back, 2, optimizer_step);
    result = database_run(back);
    int returned = changes(store);
    *ret_groups += returned;
    return result == SQLITE_OK ? deliveries_move(store, run_seq, STORE_DELIVERY_ACKED, STORE_DELIVERY_READY, returned)
                               : result;
}

/* ---- age
 * ---------------------------------------------------------------------------------------------------------------- */

/* Updates between weights of an incarnation and those of now, over the oldest checkpoint that the run went back to in
 * between, if that is below both. */
static int find_distance(struct store *store, const struct run_row *run, int64_t incarnation, int64_t revision,
                         int64_t *ret_distance)
{
    int64_t common = -1;
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_REWOUND_TO);
    bind_int(find, 1, run->seq);
    bind_int(find, 2, incarnation);
    int result = find_number(find, &common);
    if (common < 0 || common > revision)
        common = revision;
    int64_t since = run->policy_revision - common;
    *ret_distance = revision - common + (since > 0 ? since : 0);
    return result;
}

/* The worst of the members' distances. */
static int find_of_members(struct store *store, const struct run_row *run, int64_t group_seq, int64_t *ret_staleness)
{
    sqlite3_stmt *members = database_statement(&store->writer, SQL_LIST_MEMBER_REVISIONS);
    bind_int(members, 1, group_seq);
    int result;
    while ((result = sqlite3_step(members)) == SQLITE_ROW) {
        int64_t distance;
        result =
            find_distance(store, run, sqlite3_column_int64(members, 0), sqlite3_column_int64(members, 1), &distance);
        if (result != SQLITE_OK)
            break;
        *ret_staleness = distance > *ret_staleness ? distance : *ret_staleness;
    }
    sqlite3_reset(members);
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

int deliveries_find_staleness(struct store *store, const struct run_row *run, int64_t group_seq, int64_t incarnation,
                              int64_t revision, int64_t *ret_staleness)
{
    int64_t since = run->policy_revision - revision;
    *ret_staleness = since > 0 ? since : 0;
    if (incarnation >= run->incarnation)
        return SQLITE_OK;
    int result = find_distance(store, run, incarnation, revision, ret_staleness);
    return result == SQLITE_OK ? find_of_members(store, run, group_seq, ret_staleness) : result;
}
