/* The ways in which a lease ends: acknowledged, released, expired, rewound, attached; pacing and deletion. */
#include "tests/unit/store/deliveries_fixture.h"

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_deliveries, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
