#include "tests/unit/store/deliveries_fixture.h"

struct fixture *fixture;
struct store_take_lease taken;
struct store_ack_lease acked;
struct store_declare_policy attached;

/* ---- how a group becomes ready ----------------------------------------------------------------------------------- */

void make_batch(size_t groups, int64_t n, int64_t revision, int64_t max_staleness, char ret_id[ID_BYTES])
{
    struct store_op op = batch_op(groups, n);
    op.create_batch.deliver = STORE_LEASE;
    op.create_batch.policy_revision = revision;
    op.create_batch.max_staleness = max_staleness;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    memcpy(ret_id, op.create_batch.id, ID_BYTES);
}

void add_member(const char *batch_id, int64_t group, int64_t index, int64_t revision, int64_t incarnation)
{
    struct store_rollout rollout = scored_rollout(index, 1.0);
    rollout.policy_revision = revision;
    rollout.incarnation = incarnation;
    assert_int_equal(insert(fixture, batch_id, group, &rollout), STORE_OK);
}

bool close_ready(const char *batch_id, int64_t group, size_t n)
{
    char group_id[ID_BYTES];
    id_of_group(batch_id, group, group_id);
    struct store_op op = {.kind = STORE_CLOSE_GROUP, .close_group = {.group_id = group_id, .n = n, .reward_mean = 1.0}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    return op.close_group.is_ready;
}

void make_ready(size_t groups, int64_t revision, int64_t max_staleness, char ret_id[ID_BYTES])
{
    make_batch(groups, 1, revision, max_staleness, ret_id);
    for (size_t i = 0; i < groups; i++) {
        add_member(ret_id, (int64_t)i, 0, revision, -1);
        assert_true(close_ready(ret_id, (int64_t)i, 1));
    }
    assert_int_equal(close_batch(fixture, ret_id, STORE_BATCH_COMPLETE), STORE_OK);
}

void declare(int64_t revision, int64_t rewind_to_step)
{
    struct store_op op = {
        .kind = STORE_DECLARE_POLICY,
        .declare_policy = {.run = TEXT_LITERAL("arith"), .revision = revision, .rewind_to_step = rewind_to_step}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
}

/* ---- what is done with leases ------------------------------------------------------------------------------------ */

enum store_status take(struct store_take_lease how)
{
    struct store_op op = {.kind = STORE_TAKE_LEASE, .take_lease = how};
    op.take_lease.run = TEXT_LITERAL("arith");
    op.take_lease.lease_us = how.lease_us ? how.lease_us : HOUR_US;
    enum store_status status = carry_out(fixture, &op);
    taken = op.take_lease;
    return status;
}

void take_some(int64_t wanted, int64_t expected, char ret_id[ID_BYTES])
{
    assert_int_equal(take((struct store_take_lease){.wanted = wanted, .max_staleness = -1, .partly = true}), STORE_OK);
    assert_true(taken.taken);
    assert_int_equal(taken.lease.group_count, expected);
    memcpy(ret_id, taken.id, ID_BYTES);
}

enum store_status take_by_key(const char *key, uint8_t body)
{
    struct store_take_lease how = {.wanted = 1, .max_staleness = -1, .partly = true};
    how.key = (struct store_step_key){.key = text_of(key), .route = STORE_ROUTE_LEASES};
    how.key.request_sha256[0] = body;
    return take(how);
}

void assert_nothing_to_take(void)
{
    assert_int_equal(take((struct store_take_lease){.wanted = 1, .max_staleness = -1, .partly = true}), STORE_OK);
    assert_false(taken.taken);
}

struct store_lease_choice choice_of(const char *lease, const struct text *groups, size_t count)
{
    return (struct store_lease_choice){TEXT_LITERAL("arith"), text_of(lease), groups, count};
}

enum store_status ack(const char *lease, int64_t step, const struct text *groups, size_t count)
{
    store_lease_groups_finish(&acked.conflict);
    struct store_op op = {.kind = STORE_ACK_LEASE,
                          .ack_lease = {.of = choice_of(lease, groups, count), .optimizer_step = step}};
    enum store_status status = carry_out(fixture, &op);
    acked = op.ack_lease;
    return status;
}

int64_t release_some(const char *lease, const struct text *groups, size_t count)
{
    struct store_op op = {.kind = STORE_RELEASE_LEASE, .release_lease = {.of = choice_of(lease, groups, count)}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    return op.release_lease.released;
}

enum store_status extend(const char *lease, int64_t lease_us)
{
    struct store_op op = {.kind = STORE_EXTEND_LEASE,
                          .extend_lease = {.of = choice_of(lease, NULL, 0), .lease_us = lease_us}};
    return carry_out(fixture, &op);
}

struct store_expire_leases expire(void)
{
    struct store_op op = {.kind = STORE_EXPIRE_LEASES};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    return op.expire_leases;
}

void let_expire(const char *lease)
{
    char sql[160];
    snprintf(sql, sizeof(sql), "UPDATE leases SET expires_at_us = 1 WHERE id = '%s'", lease);
    assert_int_equal(by_hand(fixture, sql), 0);
}

enum store_status attach(int64_t step, int64_t revision, const char *key)
{
    store_leases_finish(&attached.ended_leases);
    struct store_op op = {
        .kind = STORE_DECLARE_POLICY,
        .declare_policy = {.run = TEXT_LITERAL("arith"),
                           .revision = revision,
                           .rewind_to_step = step,
                           .cancel_open = true,
                           .rewind_if_below = true,
                           .end_leases = true,
                           .key = {.key = key ? text_of(key) : TEXT_NONE, .route = STORE_ROUTE_ATTACH}}};
    enum store_status status = carry_out(fixture, &op);
    attached = op.declare_policy;
    return status;
}

/* ---- what is on record ------------------------------------------------------------------------------------------- */

void assert_counts(int64_t waiting, int64_t ready, int64_t leased, int64_t acks, int64_t stale, int64_t failed,
                   int64_t dropped)
{
    const int64_t expected[] = {waiting, ready, leased, acks, stale, failed, dropped};
    struct store_delivery_counts counts;
    assert_int_equal(store_count_deliveries(fixture->reader, TEXT_LITERAL("arith"), &counts), STORE_OK);
    for (size_t i = 0; i < STORE_DELIVERY_STATES; i++)
        if (counts.groups[i] != expected[i])
            fail_msg("%s: %lld, not %lld", store_delivery_state_names[i], (long long)counts.groups[i],
                     (long long)expected[i]);
}

struct store_delivery delivery_of(const char *batch_id, int64_t group)
{
    char group_id[ID_BYTES];
    struct store_delivery delivery;
    id_of_group(batch_id, group, group_id);
    assert_int_equal(store_read_delivery(fixture->reader, text_of(group_id), &delivery), STORE_OK);
    return delivery;
}

void assert_group(const struct store_lease_groups *groups, size_t place, const char *batch_id, int64_t index)
{
    char group_id[ID_BYTES];
    id_of_group(batch_id, index, group_id);
    assert_true(place < groups->count);
    assert_string_equal(groups->groups[place].id, group_id);
}

void read_lease(const char *lease, struct store_lease *ret_lease, struct store_lease_groups *ret_groups)
{
    assert_int_equal(store_read_lease(fixture->reader, TEXT_LITERAL("arith"), text_of(lease), ret_lease, ret_groups),
                     STORE_OK);
}

void assert_lease_state(const char *lease, enum store_lease_state state)
{
    struct store_lease row;
    struct store_lease_groups groups;
    read_lease(lease, &row, &groups);
    assert_int_equal(row.state, state);
    store_lease_groups_finish(&groups);
}

void assert_sound(void)
{
    struct buffer problems;
    struct store_verify_report report;
    char message[STORE_MESSAGE_BYTES];
    buffer_init(&problems, SIZE_MAX);
    assert_int_equal(store_verify(fixture->path, &problems, &report, message), 0);
    if (report.problems)
        fail_msg("%.*s", (int)problems.length_bytes, problems.data);
    buffer_finish(&problems);
}

int open_deliveries(void **state)
{
    if (fixture_directory(state) < 0)
        return -1;
    ((struct fixture *)*state)->options.durability_normal = true;
    start_store(*state);
    return 0;
}
