/* Groups on their way to a trainer: leases, acknowledgements, expiry, rewinds. */
#include "tests/unit/store/fixture.h"

#include "server/base/clock.h"
#include "server/store/sqlite/reader.h"

#include <stdio.h>
#include <string.h>

#define HOUR_US (INT64_C(3600) * US_PER_S)

static struct fixture *fixture;

/* ---- how a group becomes ready ----------------------------------------------------------------------------------- */

static void make_batch(size_t groups, int64_t n, int64_t revision, int64_t max_staleness, char ret_id[ID_BYTES])
{
    struct store_op op = batch_op(groups, n);
    op.create_batch.deliver = STORE_LEASE;
    op.create_batch.policy_revision = revision;
    op.create_batch.max_staleness = max_staleness;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    memcpy(ret_id, op.create_batch.id, ID_BYTES);
}

static void add_member(const char *batch_id, int64_t group, int64_t index, int64_t revision, int64_t incarnation)
{
    struct store_rollout rollout = scored_rollout(index, 1.0);
    rollout.policy_revision = revision;
    rollout.incarnation = incarnation;
    assert_int_equal(insert(fixture, batch_id, group, &rollout), STORE_OK);
}

static bool close_ready(const char *batch_id, int64_t group, size_t n)
{
    char group_id[ID_BYTES];
    id_of_group(batch_id, group, group_id);
    struct store_op op = {.kind = STORE_CLOSE_GROUP, .close_group = {.group_id = group_id, .n = n, .reward_mean = 1.0}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    return op.close_group.is_ready;
}

/* A batch of groups of one member, all ready. */
static void make_ready(size_t groups, int64_t revision, int64_t max_staleness, char ret_id[ID_BYTES])
{
    make_batch(groups, 1, revision, max_staleness, ret_id);
    for (size_t i = 0; i < groups; i++) {
        add_member(ret_id, (int64_t)i, 0, revision, -1);
        assert_true(close_ready(ret_id, (int64_t)i, 1));
    }
    assert_int_equal(close_batch(fixture, ret_id, STORE_BATCH_COMPLETE), STORE_OK);
}

static void declare(int64_t revision, int64_t rewind_to_step)
{
    struct store_op op = {
        .kind = STORE_DECLARE_POLICY,
        .declare_policy = {.run = TEXT_LITERAL("arith"), .revision = revision, .rewind_to_step = rewind_to_step}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
}

/* ---- what is done with leases ------------------------------------------------------------------------------------ */

static struct store_take_lease taken;

static enum store_status take(struct store_take_lease how)
{
    struct store_op op = {.kind = STORE_TAKE_LEASE, .take_lease = how};
    op.take_lease.run = TEXT_LITERAL("arith");
    op.take_lease.lease_us = how.lease_us ? how.lease_us : HOUR_US;
    enum store_status status = carry_out(fixture, &op);
    taken = op.take_lease;
    return status;
}

/* Takes up to so many groups, of any age; the lease's id. */
static void take_some(int64_t wanted, int64_t expected, char ret_id[ID_BYTES])
{
    assert_int_equal(take((struct store_take_lease){.wanted = wanted, .max_staleness = -1, .partly = true}), STORE_OK);
    assert_true(taken.taken);
    assert_int_equal(taken.lease.group_count, expected);
    memcpy(ret_id, taken.id, ID_BYTES);
}

static void assert_nothing_to_take(void)
{
    assert_int_equal(take((struct store_take_lease){.wanted = 1, .max_staleness = -1, .partly = true}), STORE_OK);
    assert_false(taken.taken);
}

static struct store_lease_choice choice_of(const char *lease, const struct text *groups, size_t count)
{
    return (struct store_lease_choice){TEXT_LITERAL("arith"), text_of(lease), groups, count};
}

static struct store_ack_lease acked;

static enum store_status ack(const char *lease, int64_t step, const struct text *groups, size_t count)
{
    store_lease_groups_finish(&acked.conflict);
    struct store_op op = {.kind = STORE_ACK_LEASE,
                          .ack_lease = {.of = choice_of(lease, groups, count), .optimizer_step = step}};
    enum store_status status = carry_out(fixture, &op);
    acked = op.ack_lease;
    return status;
}

static int64_t release_some(const char *lease, const struct text *groups, size_t count)
{
    struct store_op op = {.kind = STORE_RELEASE_LEASE, .release_lease = {.of = choice_of(lease, groups, count)}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    return op.release_lease.released;
}

static enum store_status extend(const char *lease, int64_t lease_us)
{
    struct store_op op = {.kind = STORE_EXTEND_LEASE,
                          .extend_lease = {.of = choice_of(lease, NULL, 0), .lease_us = lease_us}};
    return carry_out(fixture, &op);
}

static struct store_expire_leases expire(void)
{
    struct store_op op = {.kind = STORE_EXPIRE_LEASES};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    return op.expire_leases;
}

/* Its time has passed, as if the service had slept. */
static void let_expire(const char *lease)
{
    char sql[160];
    snprintf(sql, sizeof(sql), "UPDATE leases SET expires_at_us = 1 WHERE id = '%s'", lease);
    assert_int_equal(by_hand(fixture, sql), 0);
}

static struct store_declare_policy attached;

static enum store_status attach(int64_t step, int64_t revision, const char *key)
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

static void assert_counts(int64_t waiting, int64_t ready, int64_t leased, int64_t acks, int64_t stale, int64_t failed,
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

static struct store_delivery delivery_of(const char *batch_id, int64_t group)
{
    char group_id[ID_BYTES];
    struct store_delivery delivery;
    id_of_group(batch_id, group, group_id);
    assert_int_equal(store_read_delivery(fixture->reader, text_of(group_id), &delivery), STORE_OK);
    return delivery;
}

static void assert_group(const struct store_lease_groups *groups, size_t place, const char *batch_id, int64_t index)
{
    char group_id[ID_BYTES];
    id_of_group(batch_id, index, group_id);
    assert_true(place < groups->count);
    assert_string_equal(groups->groups[place].id, group_id);
}

static void read_lease(const char *lease, struct store_lease *ret_lease, struct store_lease_groups *ret_groups)
{
    assert_int_equal(store_read_lease(fixture->reader, TEXT_LITERAL("arith"), text_of(lease), ret_lease, ret_groups),
                     STORE_OK);
}

static void assert_lease_state(const char *lease, enum store_lease_state state)
{
    struct store_lease row;
    struct store_lease_groups groups;
    read_lease(lease, &row, &groups);
    assert_int_equal(row.state, state);
    store_lease_groups_finish(&groups);
}

static void assert_sound(void)
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

/* ---- waiting, ready, failed -------------------------------------------------------------------------------------- */

static void test_a_group_is_ready_when_it_is_closed_with_a_reward(void **state)
{
    char batch[ID_BYTES];
    fixture = *state;
    make_batch(2, 2, 3, -1, batch);
    assert_counts(2, 0, 0, 0, 0, 0, 0);
    add_member(batch, 0, 0, 3, -1);
    struct store_rollout failed = failed_rollout(1);
    assert_int_equal(insert(fixture, batch, 0, &failed), STORE_OK);
    assert_counts(2, 0, 0, 0, 0, 0, 0);
    assert_true(close_ready(batch, 0, 2));
    assert_counts(1, 1, 0, 0, 0, 0, 0);
    for (int i = 0; i < 2; i++) {
        failed = failed_rollout(i);
        assert_int_equal(insert(fixture, batch, 1, &failed), STORE_OK);
    }
    assert_int_equal(close_group(fixture, batch, 1, 2, NULL, (double)NAN, (double)NAN), STORE_OK);
    assert_counts(0, 1, 0, 0, 0, 1, 0);
    assert_int_equal(delivery_of(batch, 1).state, STORE_DELIVERY_FAILED);
    assert_sound();
}

static void test_a_cancelled_batch_keeps_its_finished_groups_ready(void **state)
{
    char batch[ID_BYTES];
    fixture = *state;
    make_batch(3, 1, 3, -1, batch);
    add_member(batch, 1, 0, 3, -1);
    assert_true(close_ready(batch, 1, 1));
    assert_int_equal(close_batch(fixture, batch, STORE_BATCH_CANCELLED), STORE_OK);
    assert_counts(0, 1, 0, 0, 0, 2, 0);
    assert_int_equal(delivery_of(batch, 1).state, STORE_DELIVERY_READY);
    assert_sound();
}

static void test_a_group_that_is_dropped_is_never_delivered(void **state)
{
    char batch[ID_BYTES];
    char group_id[ID_BYTES];
    double advantage = 0;
    fixture = *state;
    make_batch(1, 1, 3, -1, batch);
    add_member(batch, 0, 0, 3, -1);
    id_of_group(batch, 0, group_id);
    struct store_op op = {
        .kind = STORE_CLOSE_GROUP,
        .close_group = {.group_id = group_id, .n = 1, .advantage = &advantage, .reward_mean = 1.0, .drop = true}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_false(op.close_group.is_ready);
    assert_counts(0, 0, 0, 0, 0, 0, 1);
    assert_nothing_to_take();
}

static void test_groups_of_a_reply_and_of_an_evaluation_are_never_leased(void **state)
{
    char batch[ID_BYTES];
    char group_id[ID_BYTES];
    struct store_delivery delivery;
    fixture = *state;
    record_batch(fixture, 1, 1, batch);
    id_of_group(batch, 0, group_id);
    assert_int_equal(store_read_delivery(fixture->reader, text_of(group_id), &delivery), STORE_NOT_FOUND);
    struct store_op op = batch_op(1, 1);
    op.create_batch.deliver = STORE_LEASE;
    op.create_batch.purpose = STORE_EVAL;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    id_of_group(op.create_batch.id, 0, group_id);
    assert_int_equal(store_read_delivery(fixture->reader, text_of(group_id), &delivery), STORE_NOT_FOUND);
    assert_counts(0, 0, 0, 0, 0, 0, 0);
}

static void test_groups_on_their_way_count_towards_the_ready_limit(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    make_ready(2, 1, -1, batch);
    take_some(1, 1, lease);
    struct store_op op = batch_op(2, 1);
    op.create_batch.deliver = STORE_LEASE;
    op.create_batch.ready_limit = 3;
    assert_int_equal(carry_out(fixture, &op), STORE_OVER_READY_LIMIT);
    assert_int_equal(op.create_batch.undelivered, 2);
    assert_int_equal(ack(lease, 1, NULL, 0), STORE_OK);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_counts(2, 1, 0, 1, 0, 0, 0);
}

/* ---- leases ------------------------------------------------------------------------------------------------------ */

static void test_a_lease_takes_the_oldest_revision_first_then_the_oldest_group(void **state)
{
    char late[ID_BYTES];
    char early[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    declare(5, -1);
    make_ready(2, 5, -1, late);
    make_ready(2, 4, -1, early);
    take_some(3, 3, lease);
    struct store_lease row;
    struct store_lease_groups groups;
    read_lease(lease, &row, &groups);
    assert_int_equal(groups.count, 3);
    assert_group(&groups, 0, early, 0);
    assert_group(&groups, 1, early, 1);
    assert_group(&groups, 2, late, 0);
    assert_int_equal(groups.groups[0].staleness, 1);
    assert_int_equal(groups.groups[2].staleness, 0);
    assert_int_equal(groups.groups[2].delivery, 1);
    assert_true(groups.groups[2].is_held);
    assert_int_equal(row.policy_revision, 5);
    assert_int_equal(row.held, 3);
    store_lease_groups_finish(&groups);
    assert_counts(0, 1, 3, 0, 0, 0, 0);
    assert_string_equal(delivery_of(early, 0).lease, lease);
    assert_sound();
}

static void test_a_lease_of_all_or_nothing_says_how_many_there_are(void **state)
{
    char batch[ID_BYTES];
    fixture = *state;
    make_ready(2, 1, -1, batch);
    assert_int_equal(take((struct store_take_lease){.wanted = 3, .max_staleness = -1}), STORE_OK);
    assert_false(taken.taken);
    assert_int_equal(taken.eligible, 2);
    assert_int_equal(taken.next_expiry_us, -1);
    assert_counts(0, 2, 0, 0, 0, 0, 0);
    assert_int_equal(take((struct store_take_lease){.wanted = 2, .max_staleness = -1}), STORE_OK);
    assert_true(taken.taken);
    assert_int_equal(taken.next_expiry_us, taken.lease.expires_at_us);
    assert_nothing_to_take();
    struct store_op op = {.kind = STORE_TAKE_LEASE, .take_lease = {.run = TEXT_LITERAL("none"), .wanted = 1}};
    assert_int_equal(carry_out(fixture, &op), STORE_NOT_FOUND);
}

static void test_a_group_too_old_for_the_lease_or_for_its_batch_is_stale_for_good(void **state)
{
    char strict[ID_BYTES];
    char loose[ID_BYTES];
    fixture = *state;
    make_ready(1, 4, 1, strict);
    make_ready(2, 5, -1, loose);
    declare(7, -1);
    assert_int_equal(take((struct store_take_lease){.wanted = 1, .max_staleness = 2}), STORE_OK);
    assert_true(taken.taken);
    assert_int_equal(taken.marked_stale, 1);
    struct store_delivery delivery = delivery_of(strict, 0);
    assert_int_equal(delivery.state, STORE_DELIVERY_STALE);
    assert_int_equal(delivery.staleness, 3);
    assert_int_equal(delivery.deliveries, 0);
    assert_int_equal(delivery_of(loose, 0).staleness, 2);
    assert_int_equal(take((struct store_take_lease){.wanted = 1, .max_staleness = 1, .partly = true}), STORE_OK);
    assert_false(taken.taken);
    assert_counts(0, 0, 1, 0, 2, 0, 0);
    assert_nothing_to_take();
    assert_sound();
}

static void test_staleness_counts_from_the_oldest_token_of_the_group(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    make_batch(1, 3, 3, -1, batch);
    declare(5, -1);
    struct store_rollout failed = failed_rollout(0); /* without tokens: at revision 1 it makes nothing older */
    failed.policy_revision = 1;
    assert_int_equal(insert(fixture, batch, 0, &failed), STORE_OK);
    add_member(batch, 0, 1, 5, -1);
    add_member(batch, 0, 2, 4, -1);
    assert_true(close_ready(batch, 0, 3));
    declare(6, -1);
    take_some(1, 1, lease);
    assert_int_equal(delivery_of(batch, 0).staleness, 2);
}

static void test_a_group_that_is_held_does_not_go_stale(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    make_ready(1, 1, 0, batch);
    take_some(1, 1, lease);
    declare(9, -1);
    assert_int_equal(ack(lease, 1, NULL, 0), STORE_OK);
    assert_counts(0, 0, 0, 1, 0, 0, 0);
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static enum store_status take_by_key(const char *key, uint8_t body)
{
    struct store_take_lease how = {.wanted = 1, .max_staleness = -1, .partly = true};
    how.key = (struct store_step_key){.key = text_of(key), .route = STORE_ROUTE_LEASES};
    how.key.request_sha256[0] = body;
    return take(how);
}

static void test_a_key_gives_the_same_lease_again_also_after_a_restart(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    make_ready(2, 1, -1, batch);
    assert_int_equal(take_by_key("a", 1), STORE_OK);
    memcpy(lease, taken.id, ID_BYTES);
    assert_int_equal(take_by_key("a", 2), STORE_IDEMPOTENCY_CONFLICT);
    let_expire(lease);
    stop_store(fixture);
    start_store(fixture);
    assert_int_equal(take_by_key("a", 1), STORE_EXISTS);
    assert_string_equal(taken.id, lease);
    assert_int_equal(taken.lease.state, STORE_LEASE_EXPIRED);
    declare(1, 0); /* the next incarnation: the key is new */
    assert_int_equal(take_by_key("a", 1), STORE_OK);
    assert_string_not_equal(taken.id, lease);
    assert_sound();
}

static void test_a_key_that_got_nothing_is_not_remembered(void **state)
{
    char batch[ID_BYTES];
    fixture = *state;
    make_batch(1, 1, 1, -1, batch);
    assert_int_equal(take_by_key("a", 1), STORE_OK);
    assert_false(taken.taken);
    add_member(batch, 0, 0, 1, -1);
    assert_true(close_ready(batch, 0, 1));
    assert_int_equal(take_by_key("a", 1), STORE_OK);
    assert_true(taken.taken);
}

/* ---- acknowledgements -------------------------------------------------------------------------------------------- */

static void test_an_acknowledgement_is_repeated_without_effect_and_the_first_step_stays(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    char first[ID_BYTES];
    fixture = *state;
    make_ready(2, 1, -1, batch);
    take_some(2, 2, lease);
    id_of_group(batch, 0, first);
    const struct text twice[] = {text_of(first), text_of(first)};
    assert_int_equal(ack(lease, 40, twice, 2), STORE_OK);
    assert_int_equal(acked.acked, 1);
    assert_int_equal(acked.lease.state, STORE_LEASE_OPEN);
    assert_int_equal(ack(lease, 41, NULL, 0), STORE_OK);
    assert_int_equal(acked.acked, 1);
    assert_int_equal(acked.lease.state, STORE_LEASE_ACKED);
    let_expire(lease);
    assert_int_equal(ack(lease, 42, NULL, 0), STORE_OK);
    assert_int_equal(acked.acked, 0);
    assert_int_equal(delivery_of(batch, 0).optimizer_step, 40);
    assert_int_equal(delivery_of(batch, 1).optimizer_step, 41);
    assert_counts(0, 0, 0, 2, 0, 0, 0);
    assert_int_equal(release_some(lease, NULL, 0), 0);
    assert_int_equal(extend(lease, HOUR_US), STORE_STATE_CONFLICT);
    assert_sound();
}

static void test_an_acknowledgement_of_what_is_not_held_changes_nothing_and_names_it(void **state)
{
    char batch[ID_BYTES];
    char mine[ID_BYTES];
    char other[ID_BYTES];
    char ids[2][ID_BYTES];
    fixture = *state;
    make_ready(2, 1, -1, batch);
    take_some(1, 1, mine);
    take_some(1, 1, other);
    for (int i = 0; i < 2; i++)
        id_of_group(batch, i, ids[i]);
    const struct text groups[] = {text_of(ids[0]), text_of(ids[1]), TEXT_LITERAL("g_nonsense")};
    assert_int_equal(ack(mine, 1, groups, 3), STORE_STATE_CONFLICT);
    assert_int_equal(acked.conflict.count, 2);
    assert_group(&acked.conflict, 0, batch, 1);
    assert_int_equal(acked.conflict.groups[0].on_record.state, STORE_DELIVERY_LEASED);
    assert_string_equal(acked.conflict.groups[0].on_record.lease, other);
    assert_string_equal(acked.conflict.groups[1].id, "g_nonsense");
    assert_false(acked.conflict.groups[1].is_known);
    assert_counts(0, 0, 2, 0, 0, 0, 0);
    assert_int_equal(ack("l_none", 1, NULL, 0), STORE_NOT_FOUND);
}

static void test_an_acknowledgement_after_expiry_says_what_happened_to_each_group(void **state)
{
    char batch[ID_BYTES];
    char late[ID_BYTES];
    char next[ID_BYTES];
    fixture = *state;
    make_ready(3, 1, -1, batch);
    take_some(3, 3, late);
    let_expire(late);
    assert_int_equal(ack(late, 7, NULL, 0), STORE_STATE_CONFLICT);
    assert_int_equal(acked.conflict.count, 3);
    assert_int_equal(acked.conflict.groups[0].on_record.state, STORE_DELIVERY_READY);
    take_some(1, 1, next);
    assert_int_equal(ack(next, 8, NULL, 0), STORE_OK);
    take_some(1, 1, next);
    assert_int_equal(ack(late, 9, NULL, 0), STORE_STATE_CONFLICT);
    assert_int_equal(acked.conflict.count, 3);
    assert_int_equal(acked.conflict.groups[0].on_record.state, STORE_DELIVERY_ACKED);
    assert_int_equal(acked.conflict.groups[0].on_record.optimizer_step, 8);
    assert_int_equal(acked.conflict.groups[1].on_record.state, STORE_DELIVERY_LEASED);
    assert_int_equal(acked.conflict.groups[2].on_record.state, STORE_DELIVERY_READY);
    assert_lease_state(late, STORE_LEASE_EXPIRED);
    assert_counts(0, 1, 1, 1, 0, 0, 0);
    assert_sound();
}

/* ---- release, extend, expiry ------------------------------------------------------------------------------------- */

static void test_a_released_group_is_delivered_again(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    char again[ID_BYTES];
    char first[ID_BYTES];
    fixture = *state;
    make_ready(2, 1, -1, batch);
    take_some(2, 2, lease);
    id_of_group(batch, 0, first);
    const struct text twice[] = {text_of(first), text_of(first), TEXT_LITERAL("g_nonsense")};
    assert_int_equal(release_some(lease, twice, 3), 1);
    assert_int_equal(release_some(lease, twice, 3), 0);
    assert_counts(0, 1, 1, 0, 0, 0, 0);
    take_some(1, 1, again);
    assert_int_equal(delivery_of(batch, 0).deliveries, 2);
    assert_int_equal(ack(lease, 3, NULL, 0), STORE_OK); /* all but what it released itself */
    assert_int_equal(acked.acked, 1);
    assert_int_equal(release_some(again, NULL, 0), 1);
    assert_lease_state(again, STORE_LEASE_RELEASED);
    assert_int_equal(ack(again, 3, NULL, 0), STORE_STATE_CONFLICT);
    assert_int_equal(acked.conflict.count, 1);
    assert_counts(0, 1, 0, 1, 0, 0, 0);
    assert_sound();
}

static void test_leases_expire_by_the_time_on_record(void **state)
{
    char batch[ID_BYTES];
    char short_lease[ID_BYTES];
    char long_lease[ID_BYTES];
    fixture = *state;
    make_ready(3, 1, -1, batch);
    take_some(2, 2, short_lease);
    take_some(1, 1, long_lease);
    assert_int_equal(expire().leases, 0);
    assert_int_equal(extend(short_lease, 2 * HOUR_US), STORE_OK);
    let_expire(short_lease);
    assert_int_equal(extend(short_lease, HOUR_US), STORE_STATE_CONFLICT);
    struct store_expire_leases expired = expire();
    assert_int_equal(expired.leases, 1);
    assert_int_equal(expired.returned, 2);
    assert_true(expired.next_expiry_us > clock_utc_us());
    assert_counts(0, 2, 1, 0, 0, 0, 0);
    let_expire(long_lease);
    stop_store(fixture);
    start_store(fixture); /* what passed while the service was down */
    assert_counts(0, 3, 0, 0, 0, 0, 0);
    assert_int_equal(expire().next_expiry_us, -1);
    assert_sound();
}

static void test_a_lease_takes_what_an_expired_one_held_without_a_sweep(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    make_ready(1, 1, -1, batch);
    take_some(1, 1, lease);
    let_expire(lease);
    take_some(1, 1, lease);
    assert_int_equal(taken.returned, 1);
    assert_int_equal(delivery_of(batch, 0).deliveries, 2);
}

static void test_a_crash_between_lease_and_acknowledgement_loses_nothing(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    make_ready(4, 1, -1, batch);
    take_some(3, 3, lease);
    stop_store(fixture);
    start_store(fixture);
    assert_counts(0, 1, 3, 0, 0, 0, 0);
    struct store_leases open;
    assert_int_equal(store_list_open_leases(fixture->reader, TEXT_LITERAL("arith"), 10, &open), STORE_OK);
    assert_int_equal(open.count, 1);
    assert_string_equal(open.leases[0].id, lease);
    store_leases_finish(&open);
    assert_int_equal(ack(lease, 1, NULL, 0), STORE_OK);
    assert_counts(0, 1, 0, 3, 0, 0, 0);
    assert_sound();
}

/* ---- rewind, attach ---------------------------------------------------------------------------------------------- */

static void test_a_rewind_brings_back_what_was_acknowledged_after_its_step(void **state)
{
    char batch[ID_BYTES];
    char lease[3][ID_BYTES];
    fixture = *state;
    make_ready(3, 1, -1, batch);
    for (int i = 0; i < 3; i++)
        take_some(1, 1, lease[i]);
    assert_int_equal(ack(lease[0], 10, NULL, 0), STORE_OK);
    assert_int_equal(ack(lease[1], 11, NULL, 0), STORE_OK);
    declare(2, -1);
    declare(1, 10);
    assert_counts(0, 2, 0, 1, 0, 0, 0);
    assert_lease_state(lease[2], STORE_LEASE_REWOUND);
    assert_int_equal(ack(lease[1], 11, NULL, 0), STORE_STATE_CONFLICT); /* that step was taken back */
    take_some(2, 2, lease[0]);
    assert_int_equal(ack(lease[0], 11, NULL, 0), STORE_OK);
    assert_sound();
}

static void test_the_same_rewind_is_another_one_if_something_was_acknowledged_since(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    make_ready(1, 1, -1, batch);
    declare(1, 5);
    declare(1, 5);
    assert_int_equal(number_by_hand(fixture, "SELECT incarnation FROM runs"), 1);
    take_some(1, 1, lease);
    assert_int_equal(ack(lease, 6, NULL, 0), STORE_OK);
    declare(1, 5);
    assert_int_equal(number_by_hand(fixture, "SELECT incarnation FROM runs"), 2);
    assert_counts(0, 1, 0, 0, 0, 0, 0);
    declare(1, 5);
    assert_int_equal(number_by_hand(fixture, "SELECT incarnation FROM runs"), 2);
}

static void test_staleness_after_a_rewind_counts_the_updates_over_the_checkpoint(void **state)
{
    char old[ID_BYTES];
    char mixed[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    make_batch(1, 2, 12, -1, mixed);
    make_ready(1, 12, -1, old);
    add_member(mixed, 0, 0, 12, -1);
    declare(9, 9); /* 12 is three updates beyond the checkpoint */
    declare(10, -1);
    add_member(mixed, 0, 1, 10, 1);
    assert_true(close_ready(mixed, 0, 2));
    declare(11, -1);
    take_some(2, 2, lease);
    assert_int_equal(delivery_of(old, 0).staleness, 5);
    assert_int_equal(delivery_of(mixed, 0).staleness, 5); /* of its worst member */
    assert_int_equal(release_some(lease, NULL, 0), 2);
    declare(8, 8); /* below the first checkpoint */
    take_some(2, 2, lease);
    assert_int_equal(delivery_of(old, 0).staleness, 4);
    assert_int_equal(delivery_of(mixed, 0).staleness, 4);
}

static void test_attach_ends_open_leases_and_says_them_again_if_it_is_repeated(void **state)
{
    char batch[ID_BYTES];
    char lease[2][ID_BYTES];
    fixture = *state;
    make_ready(3, 1, -1, batch);
    take_some(1, 1, lease[0]);
    take_some(2, 2, lease[1]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(attach(1, 1, "start"), i ? STORE_EXISTS : STORE_OK);
        assert_int_equal(attached.ended_leases.count, 2);
        assert_string_equal(attached.ended_leases.leases[0].id, lease[0]);
        assert_int_equal(attached.ended_leases.leases[1].group_count, 2);
        assert_int_equal(attached.incarnation, 0);
    }
    assert_counts(0, 3, 0, 0, 0, 0, 0);
    assert_lease_state(lease[0], STORE_LEASE_ATTACHED);
    take_some(1, 1, lease[0]);
    assert_int_equal(ack(lease[0], 2, NULL, 0), STORE_OK);
    assert_int_equal(attach(2, 1, NULL), STORE_OK);
    assert_int_equal(attached.incarnation, 0);
    assert_int_equal(attach(1, 1, NULL), STORE_OK); /* below what was acknowledged */
    assert_int_equal(attached.incarnation, 1);
    assert_int_equal(attached.returned, 1);
    assert_counts(0, 3, 0, 0, 0, 0, 0);
    assert_int_equal(attach(1, 1, NULL), STORE_OK);
    assert_int_equal(attached.incarnation, 1);
    store_leases_finish(&attached.ended_leases);
    assert_sound();
}

static void test_an_update_that_rewinds_ends_leases_at_its_commit(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    make_ready(1, 3, -1, batch);
    take_some(1, 1, lease);
    struct store_op op = {.kind = STORE_UPDATE_POLICY,
                          .update_policy = {.step = STORE_STEP_BEGIN,
                                            .run = TEXT_LITERAL("arith"),
                                            .update = {.revision = 2, .rewind_to_step = 2, .deadline_us = INT64_MAX}}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_counts(0, 0, 1, 0, 0, 0, 0);
    op.update_policy.step = STORE_STEP_COMMIT;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_int_equal(op.update_policy.returned, 1);
    assert_counts(0, 1, 0, 0, 0, 0, 0);
    assert_lease_state(lease, STORE_LEASE_REWOUND);
}

/* ---- pacing, deletion -------------------------------------------------------------------------------------------- */

static void test_a_pacing_is_kept_and_replaced(void **state)
{
    fixture = *state;
    struct store_pacing pacing;
    struct text run = TEXT_LITERAL("arith");
    assert_int_equal(store_read_pacing(fixture->reader, run, &pacing), STORE_NOT_FOUND);
    struct store_op op = {.kind = STORE_PUT_PACING,
                          .put_pacing = {.run = run, .pacing = {4, 1, -1, STORE_ON_STALE_DROP}}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    op.put_pacing.pacing = (struct store_pacing){8, 2, 30, STORE_ON_STALE_RESAMPLE};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_int_equal(store_read_pacing(fixture->reader, run, &pacing), STORE_OK);
    assert_int_equal(pacing.groups_per_step, 8);
    assert_int_equal(pacing.max_staleness, 2);
    assert_int_equal(pacing.max_in_flight, 30);
    assert_int_equal(pacing.on_stale, STORE_ON_STALE_RESAMPLE);
}

static void test_a_run_with_an_open_lease_is_not_deleted_and_then_goes_with_all_of_its_deliveries(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    make_ready(3, 1, -1, batch);
    take_some(1, 1, lease);
    assert_int_equal(take_by_key("a", 1), STORE_OK);
    struct store_op pace = {.kind = STORE_PUT_PACING,
                            .put_pacing = {TEXT_LITERAL("arith"), {4, 1, -1, STORE_ON_STALE_DROP}}};
    assert_int_equal(carry_out(fixture, &pace), STORE_OK);
    struct store_op op = {.kind = STORE_DELETE_RUN, .delete_run = {.run = TEXT_LITERAL("arith")}};
    assert_int_equal(carry_out(fixture, &op), STORE_STATE_CONFLICT);
    assert_non_null(strstr(op.message, "2 leases are open"));
    assert_int_equal(ack(lease, 1, NULL, 0), STORE_OK);
    let_expire(taken.id);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    while (number_by_hand(fixture, "SELECT count(*) FROM runs") > 0)
        continue;
    assert_int_equal(number_by_hand(fixture, "SELECT (SELECT count(*) FROM deliveries) + (SELECT count(*) FROM leases)"
                                             " + (SELECT count(*) FROM lease_groups) + (SELECT count(*) FROM pacings)"
                                             " + (SELECT count(*) FROM delivery_counts)"
                                             " + (SELECT count(*) FROM idempotency_keys)"),
                     0);
    assert_sound();
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static void assert_plan(enum statement which, const char *expected)
{
    char sql[4096];
    char plan[4096] = "";
    sqlite3_stmt *rows = NULL;
    snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", statement_rows[which].sql);
    assert_int_equal(sqlite3_prepare_v2(fixture->reader->database.handle, sql, -1, &rows, NULL), SQLITE_OK);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        size_t length = strlen(plan);
        snprintf(plan + length, sizeof(plan) - length, "%s; ", sqlite3_column_text(rows, 3));
    }
    sqlite3_finalize(rows);
    if (!strstr(plan, expected) || strstr(plan, "SCAN") || strstr(plan, "TEMP B-TREE FOR ORDER"))
        fail_msg("%s: %s, not by %s", statement_rows[which].name, plan, expected);
}

static void test_statements_of_leases_walk_an_index(void **state)
{
    fixture = *state;
    assert_plan(SQL_LIST_READY, "deliveries_by_state (run_seq=? AND state=?)");
    assert_plan(SQL_FIND_DUE_RUN_LEASE, "leases_by_end (run_seq=? AND ended_at_us=? AND expires_at_us<?)");
    assert_plan(SQL_RETURN_GROUPS, "deliveries_by_lease (lease_seq=?)");
    assert_plan(SQL_RETURN_ACKED, "deliveries_by_step (run_seq=? AND optimizer_step>?)");
    assert_plan(SQL_FIND_ACKED_AFTER, "deliveries_by_step (run_seq=? AND optimizer_step>?)");
    assert_plan(SQL_COUNT_UNDELIVERED, "PRIMARY KEY (run_seq=? AND state=?)");
    assert_plan(SQL_READ_LEASE_GROUPS, "PRIMARY KEY (lease_seq=?)");
    assert_plan(SQL_FIND_LEASE_GROUP, "lease_groups_by_group (group_seq=? AND lease_seq=?)");
    assert_plan(SQL_READ_DELIVERY, "SEARCH d USING INTEGER PRIMARY KEY");
    assert_plan(SQL_FIND_REWOUND_TO, "PRIMARY KEY (run_seq=? AND incarnation>?)");
    assert_plan(SQL_LIST_MEMBER_REVISIONS, "(group_seq=?)");
}

static void test_a_full_queue_of_stale_groups_is_worked_off_in_parts(void **state)
{
    char batch[ID_BYTES];
    fixture = *state;
    make_ready(1, 1, -1, batch);
    declare(9, -1);
    assert_int_equal(by_hand(fixture,
                             "INSERT INTO groups (batch_seq, group_index, task_seq, draw, first_sample_index, n, state,"
                             " closed_at_us, rewarded, reward_mean, zero_variance) WITH RECURSIVE i (n) AS (SELECT 1 "
                             "UNION ALL SELECT n + 1 FROM i WHERE n < 5000)"
                             " SELECT batch_seq, i.n, task_seq, i.n, 0, 1, 'complete', 1, 1, 1.0, 0 FROM groups JOIN i;"
                             "INSERT INTO deliveries (group_seq, run_seq, state, incarnation, revision)"
                             " SELECT seq, 1, 'ready', 0, 1 FROM groups WHERE group_index > 0;"
                             "UPDATE delivery_counts SET group_count = 5001 WHERE state = 'ready'"),
                     0);
    assert_int_equal(take((struct store_take_lease){.wanted = 1, .max_staleness = 2, .partly = true}), STORE_OK);
    assert_true(taken.again);
    assert_false(taken.taken);
    int64_t first = taken.marked_stale;
    assert_int_equal(take((struct store_take_lease){.wanted = 1, .max_staleness = 2, .partly = true}), STORE_OK);
    assert_false(taken.again);
    assert_int_equal(first + taken.marked_stale, 5001);
    assert_counts(0, 0, 0, 0, 5001, 0, 0);
}

/* No test here is about power loss: without a sync for each commit they are quick. */
static int open_fast(void **state)
{
    if (fixture_directory(state) < 0)
        return -1;
    ((struct fixture *)*state)->options.durability_normal = true;
    start_store(*state);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fast, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_group_is_ready_when_it_is_closed_with_a_reward),
        TEST(test_a_cancelled_batch_keeps_its_finished_groups_ready),
        TEST(test_a_group_that_is_dropped_is_never_delivered),
        TEST(test_groups_of_a_reply_and_of_an_evaluation_are_never_leased),
        TEST(test_groups_on_their_way_count_towards_the_ready_limit),
        TEST(test_a_lease_takes_the_oldest_revision_first_then_the_oldest_group),
        TEST(test_a_lease_of_all_or_nothing_says_how_many_there_are),
        TEST(test_a_group_too_old_for_the_lease_or_for_its_batch_is_stale_for_good),
        TEST(test_staleness_counts_from_the_oldest_token_of_the_group),
        TEST(test_a_group_that_is_held_does_not_go_stale),
        TEST(test_a_key_gives_the_same_lease_again_also_after_a_restart),
        TEST(test_a_key_that_got_nothing_is_not_remembered),
        TEST(test_an_acknowledgement_is_repeated_without_effect_and_the_first_step_stays),
        TEST(test_an_acknowledgement_of_what_is_not_held_changes_nothing_and_names_it),
        TEST(test_an_acknowledgement_after_expiry_says_what_happened_to_each_group),
        TEST(test_a_released_group_is_delivered_again),
        TEST(test_leases_expire_by_the_time_on_record),
        TEST(test_a_lease_takes_what_an_expired_one_held_without_a_sweep),
        TEST(test_a_crash_between_lease_and_acknowledgement_loses_nothing),
        TEST(test_a_rewind_brings_back_what_was_acknowledged_after_its_step),
        TEST(test_the_same_rewind_is_another_one_if_something_was_acknowledged_since),
        TEST(test_staleness_after_a_rewind_counts_the_updates_over_the_checkpoint),
        TEST(test_attach_ends_open_leases_and_says_them_again_if_it_is_repeated),
        TEST(test_an_update_that_rewinds_ends_leases_at_its_commit),
        TEST(test_a_pacing_is_kept_and_replaced),
        TEST(test_a_run_with_an_open_lease_is_not_deleted_and_then_goes_with_all_of_its_deliveries),
        TEST(test_statements_of_leases_walk_an_index),
        TEST(test_a_full_queue_of_stale_groups_is_worked_off_in_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
