/* Weight updates and who waits for their begins. The test stands for the store, the dispatcher and live.c; the machine
 * of the batch and the registry of runs are the real ones. */
#include "server/batches/weight_update.h"

#include "server/base/clock.h"
#include "server/batches/live.h"
#include "server/batches/runs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define RUN "arith"
#define MEMBERS 2
#define BEGUN_US 1000
#define HOUR_US (3600 * US_PER_S)

static struct loop *loop;
static struct batches batches;
static struct run_state run;
static struct batch_spec spec;
static struct live_batch live;
static int64_t group_revisions[1];
static int dispatches;
static int expiries;
static bool store_is_full;
static struct store_update_policy expiry; /* the last that the store was given; its run is gone */

/* A waiter for a begin, and the answer that it got. */
struct told {
    struct begin_waiter waiter;
    int times;
    enum begin_end end;
    struct store_policy_update record;
};

/* --- what the test stands for ------------------------------------------------------------------------------- */

bool store_submit(struct store *store, struct store_op *op)
{
    (void)store;
    if (store_is_full)
        return false;
    expiries++;
    expiry = op->update_policy;
    op->status = STORE_OK;
    op->done(op);
    return true;
}

void batches_wake(struct batches *of)
{
    assert_ptr_equal(of, &batches);
    dispatches++;
}

void live_post(struct live_batch *of, const struct batch_event *event)
{
    batch_step(&of->batch, event, clock_monotonic_us(), &of->actions);
    of->actions.count = 0;
    update_look(of->run);
}

/* --- a run with a batch of one group ------------------------------------------------------------------------ */

static int set_up(void **state)
{
    static const uint32_t members[] = {MEMBERS};
    static char name[] = RUN;
    (void)state;
    loop = loop_create();
    batches = (struct batches){.uses.loop = loop, .resumed = true, .first = &live};
    run = (struct run_state){.name = name, .revision = 1, .batches = 1};
    spec = (struct batch_spec){.origin = BATCH_SAMPLED, .purpose = STORE_TRAIN};
    live = (struct live_batch){.spec = &spec, .run = &run, .sampled_revision = 1, .group_revisions = group_revisions};
    group_revisions[0] = 1;
    dispatches = 0;
    expiries = 0;
    store_is_full = false;
    HASH_ADD_KEYPTR(hh, batches.runs, run.name, strlen(run.name), &run);
    batch_init(&live.batch,
               &(struct batch_rules){.deadline_us = NEVER_US, .rollout_timeout_us = HOUR_US, .attempts_max = 1},
               members, 1);
    live_post(&live, &(struct batch_event){.kind = EVENT_STARTED});
    return loop ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    updates_finish(&batches);
    HASH_CLEAR(hh, batches.runs);
    actions_finish(&live.actions);
    batch_finish(&live.batch);
    loop_destroy(loop);
    return 0;
}

static uint32_t send_sample(void)
{
    uint32_t rollout = (uint32_t)batch_peek_queued(&live.batch);
    live_post(&live, &(struct batch_event){.kind = EVENT_DISPATCHED, .index = rollout, .sent = 1});
    return rollout;
}

static void end_sample(uint32_t rollout)
{
    live_post(&live, &(struct batch_event){.kind = EVENT_SAMPLED, .index = rollout, .nothing_to_verify = true});
}

static void tell(void *arg, enum begin_end end, const struct store_policy_update *record)
{
    struct told *told = arg;
    told->times++;
    told->end = end;
    told->record = *record;
    loop_stop(loop);
}

static struct store_policy_update to_revision_2(enum store_update_mode mode)
{
    return (struct store_policy_update){.revision = 2,
                                        .rewind_to_step = -1,
                                        .mode = mode,
                                        .begun_at_us = BEGUN_US,
                                        .deadline_us = clock_utc_us() + HOUR_US,
                                        .ended_at_us = -1,
                                        .previous_revision = 1};
}

/* The store says OK to a begin that is new, EXISTS to one that it knows. */
static void begin(const struct store_policy_update *record, enum store_status status, struct told *told)
{
    struct store_op op = {.kind = STORE_UPDATE_POLICY, .status = status};
    op.update_policy = (struct store_update_policy){.step = STORE_STEP_BEGIN, .run = text_of(RUN), .update = *record};
    if (told)
        told->waiter = (struct begin_waiter){.done = tell, .arg = told};
    update_begun(&batches, &op, told ? &told->waiter : NULL);
}

static void end(const struct store_policy_update *begun, enum store_update_state how)
{
    struct store_op op = {.kind = STORE_UPDATE_POLICY, .status = STORE_OK};
    op.update_policy = (struct store_update_policy){
        .step = how == STORE_UPDATE_COMMITTED ? STORE_STEP_COMMIT : STORE_STEP_CANCEL,
        .run = text_of(RUN),
        .update = *begun,
        .current_revision = how == STORE_UPDATE_COMMITTED ? begun->revision : begun->previous_revision};
    op.update_policy.update.state = how;
    update_ended(&batches, &op);
}

static void assert_told(const struct told *told, enum begin_end how, enum store_update_state state)
{
    assert_int_equal(told->times, 1);
    assert_int_equal(told->end, how);
    assert_int_equal(told->record.state, state);
    assert_int_equal(told->record.revision, 2);
}

static bool next_is_held(void)
{
    bool held;
    return update_next_rollout(&live, &held) < 0 && held;
}

/* --- a begin that comes true --------------------------------------------------------------------------------- */

static void test_a_begin_with_nothing_in_flight_is_answered_at_once(void **state)
{
    (void)state;
    struct told told = {0};
    struct store_policy_update record = to_revision_2(STORE_UPDATE_WAIT);
    begin(&record, STORE_OK, &told);
    assert_told(&told, BEGIN_HOLDS, STORE_UPDATE_OPEN);
    assert_true(next_is_held());
}

static void test_a_begin_waits_for_the_rest_of_a_group_that_was_begun_and_is_answered_once(void **state)
{
    (void)state;
    struct told told = {0};
    struct store_policy_update record = to_revision_2(STORE_UPDATE_WAIT);
    size_t left;
    uint32_t first = send_sample();
    begin(&record, STORE_OK, &told);
    end_sample(first);
    assert_int_equal(told.times, 0); /* its sibling is owed */
    assert_false(update_may_be_committed(&batches, text_of(RUN), &left));
    assert_int_equal(left, 1);
    assert_false(next_is_held());
    uint32_t second = send_sample();
    assert_int_equal(told.times, 0);
    end_sample(second);
    assert_told(&told, BEGIN_HOLDS, STORE_UPDATE_OPEN);
    assert_true(update_may_be_committed(&batches, text_of(RUN), &left));
    update_look(&run);
    end(&record, STORE_UPDATE_COMMITTED);
    assert_int_equal(told.times, 1);
}

static void test_a_begin_in_mode_straddle_does_not_wait_for_samples(void **state)
{
    (void)state;
    struct told told = {0};
    struct store_policy_update record = to_revision_2(STORE_UPDATE_STRADDLE);
    send_sample();
    begin(&record, STORE_OK, &told);
    assert_told(&told, BEGIN_HOLDS, STORE_UPDATE_OPEN);
    assert_int_equal(update_mixed_revision(&run), 2);
    end(&record, STORE_UPDATE_COMMITTED);
    assert_int_equal(update_mixed_revision(&run), -1);
}

static void test_a_begin_in_mode_abort_takes_samples_back_and_is_answered_at_once(void **state)
{
    (void)state;
    struct told told = {0};
    struct store_policy_update record = to_revision_2(STORE_UPDATE_ABORT);
    send_sample();
    begin(&record, STORE_OK, &told);
    assert_told(&told, BEGIN_HOLDS, STORE_UPDATE_OPEN);
    assert_int_equal(live.batch.in_phase[PHASE_QUEUED], MEMBERS);
    assert_true(next_is_held());
}

/* --- two begins ------------------------------------------------------------------------------------------------ */

static void test_the_same_begin_again_waits_beside_the_first(void **state)
{
    (void)state;
    struct told first = {0};
    struct told second = {0};
    struct store_policy_update record = to_revision_2(STORE_UPDATE_WAIT);
    uint32_t sent[MEMBERS] = {send_sample(), send_sample()};
    begin(&record, STORE_OK, &first);
    begin(&record, STORE_EXISTS, &second);
    end_sample(sent[0]);
    assert_int_equal(first.times + second.times, 0);
    end_sample(sent[1]);
    assert_told(&first, BEGIN_HOLDS, STORE_UPDATE_OPEN);
    assert_told(&second, BEGIN_HOLDS, STORE_UPDATE_OPEN);
}

static void test_the_same_begin_again_is_answered_at_once_when_the_first_was(void **state)
{
    (void)state;
    struct told told = {0};
    struct store_policy_update record = to_revision_2(STORE_UPDATE_WAIT);
    begin(&record, STORE_OK, NULL);
    begin(&record, STORE_EXISTS, &told);
    assert_told(&told, BEGIN_HOLDS, STORE_UPDATE_OPEN);
}

/* A key of an update that was committed long ago: what was answered then, whatever is open now. */
static void test_the_key_of_an_older_update_does_not_wait_for_the_open_one(void **state)
{
    (void)state;
    struct told open = {0};
    struct told old = {0};
    struct store_policy_update record = to_revision_2(STORE_UPDATE_WAIT);
    struct store_policy_update older = record;
    older.begun_at_us = BEGUN_US - 500;
    older.state = STORE_UPDATE_COMMITTED;
    send_sample();
    begin(&record, STORE_OK, &open);
    begin(&older, STORE_EXISTS, &old);
    assert_told(&old, BEGIN_HOLDS, STORE_UPDATE_COMMITTED);
    assert_int_equal(old.record.begun_at_us, BEGUN_US - 500);
    assert_int_equal(open.times, 0);
}

static void test_a_waiter_that_hangs_up_is_not_told_and_the_others_are(void **state)
{
    (void)state;
    struct told waiters[3] = {0};
    struct store_policy_update record = to_revision_2(STORE_UPDATE_WAIT);
    uint32_t sent[MEMBERS] = {send_sample(), send_sample()};
    begin(&record, STORE_OK, &waiters[0]);
    begin(&record, STORE_EXISTS, &waiters[1]);
    begin(&record, STORE_EXISTS, &waiters[2]);
    update_leave(&waiters[1].waiter);
    end_sample(sent[0]);
    end_sample(sent[1]);
    assert_int_equal(waiters[1].times, 0);
    assert_told(&waiters[0], BEGIN_HOLDS, STORE_UPDATE_OPEN);
    assert_told(&waiters[2], BEGIN_HOLDS, STORE_UPDATE_OPEN);
}

static void test_an_update_goes_on_when_nobody_waits_for_it(void **state)
{
    (void)state;
    struct told told = {0};
    struct store_policy_update record = to_revision_2(STORE_UPDATE_WAIT);
    send_sample();
    begin(&record, STORE_OK, &told);
    update_leave(&told.waiter);
    assert_non_null(update_find(&batches, text_of(RUN)));
    assert_false(next_is_held()); /* the sibling of what is in flight */
    end(&record, STORE_UPDATE_CANCELLED);
    assert_int_equal(told.times, 0);
}

/* --- an update that ends before its begin came true ----------------------------------------------------------- */

static void test_a_cancellation_tells_who_waits_and_lets_the_run_go_on(void **state)
{
    (void)state;
    struct told told = {0};
    struct store_policy_update record = to_revision_2(STORE_UPDATE_WAIT);
    send_sample();
    begin(&record, STORE_OK, &told);
    end(&record, STORE_UPDATE_CANCELLED);
    assert_told(&told, BEGIN_CUT_SHORT, STORE_UPDATE_CANCELLED);
    assert_null(update_find(&batches, text_of(RUN)));
    assert_false(update_holds(&live));
    assert_int_equal(run.revision, 1);
    assert_int_equal(dispatches, 1);
}

/* "cancel_open" of a declaration, and attach. */
static void test_a_declaration_that_cancels_what_is_open_tells_who_waits(void **state)
{
    (void)state;
    struct told first = {0};
    struct told second = {0};
    struct store_policy_update record = to_revision_2(STORE_UPDATE_WAIT);
    send_sample();
    begin(&record, STORE_OK, &first);
    begin(&record, STORE_EXISTS, &second);
    record.state = STORE_UPDATE_CANCELLED;
    update_cancelled(&batches, text_of(RUN), &record);
    assert_told(&first, BEGIN_CUT_SHORT, STORE_UPDATE_CANCELLED);
    assert_told(&second, BEGIN_CUT_SHORT, STORE_UPDATE_CANCELLED);
    assert_false(update_holds(&live));
    assert_int_equal(dispatches, 1);
}

static void test_a_begin_whose_update_was_cancelled_meanwhile_does_not_begin_it(void **state)
{
    (void)state;
    struct told told = {0};
    struct store_policy_update record = to_revision_2(STORE_UPDATE_WAIT);
    record.state = STORE_UPDATE_CANCELLED;
    begin(&record, STORE_EXISTS, &told);
    assert_told(&told, BEGIN_OVER, STORE_UPDATE_CANCELLED);
    assert_null(update_find(&batches, text_of(RUN)));
}

/* Its deadline has passed by the time the loop looks. */
static struct store_policy_update let_expire(struct told *told)
{
    struct store_policy_update record = to_revision_2(STORE_UPDATE_WAIT);
    record.deadline_us = clock_utc_us();
    send_sample();
    begin(&record, STORE_OK, told);
    loop_run(loop, NULL, NULL);
    return record;
}

static void test_a_deadline_tells_who_waits_goes_on_record_and_lets_the_run_go_on(void **state)
{
    (void)state;
    struct told told = {0};
    let_expire(&told);
    assert_told(&told, BEGIN_CUT_SHORT, STORE_UPDATE_EXPIRED);
    assert_int_equal(expiries, 1);
    assert_int_equal(expiry.step, STORE_STEP_EXPIRE);
    assert_int_equal(expiry.update.revision, 2);
    assert_false(update_holds(&live));
    assert_null(batches.expiries);
    assert_int_equal(dispatches, 1);
}

static void test_an_end_that_is_not_on_record_yet_goes_with_the_service(void **state)
{
    (void)state;
    struct told told = {0};
    store_is_full = true;
    let_expire(&told);
    assert_non_null(batches.expiries);
    updates_finish(&batches);
    assert_null(batches.expiries);
    assert_int_equal(expiries, 0);
}

static void test_the_same_begin_again_after_the_deadline_is_told_of_it(void **state)
{
    (void)state;
    struct told first = {0};
    struct told again = {0};
    struct store_policy_update record = let_expire(&first);
    begin(&record, STORE_EXISTS, &again); /* the record still has it as open */
    assert_told(&again, BEGIN_OVER, STORE_UPDATE_EXPIRED);
    assert_int_equal(first.times, 1);
}

static void test_a_new_begin_takes_the_place_of_one_that_expired(void **state)
{
    (void)state;
    struct told first = {0};
    struct told next = {0};
    struct update_view view;
    struct store_policy_update record = let_expire(&first);
    const struct weight_update *warning = updates_next(&batches, NULL, &view);
    assert_int_equal(view.phase, HOLD_ENDED);
    assert_null(updates_next(&batches, warning, &view));
    record.begun_at_us = BEGUN_US + 500;
    record.deadline_us = clock_utc_us() + HOUR_US;
    begin(&record, STORE_OK, &next);
    assert_int_equal(next.times, 0);
    const struct weight_update *open = updates_next(&batches, NULL, &view);
    assert_string_equal(view.run, RUN);
    assert_int_equal(view.phase, HOLD_STOPPING);
    assert_int_equal(view.in_flight, 1);
    assert_null(updates_next(&batches, open, &view));
}

/* --- the end ----------------------------------------------------------------------------------------------------- */

static void test_a_commit_in_mode_abort_moves_training_to_the_new_revision(void **state)
{
    (void)state;
    struct store_policy_update record = to_revision_2(STORE_UPDATE_ABORT);
    begin(&record, STORE_OK, NULL);
    end(&record, STORE_UPDATE_COMMITTED);
    assert_int_equal(run.revision, 2);
    assert_true(live.moved);
    assert_int_equal(live.sampled_revision, 2);
    assert_int_equal(group_revisions[0], -1);
    assert_int_equal(dispatches, 1);
}

static void test_a_commit_in_mode_abort_leaves_an_evaluation_of_older_weights_where_it_is(void **state)
{
    (void)state;
    struct store_policy_update record = to_revision_2(STORE_UPDATE_ABORT);
    spec.purpose = STORE_EVAL;
    live.sampled_revision = 0;
    begin(&record, STORE_OK, NULL);
    end(&record, STORE_UPDATE_COMMITTED);
    assert_false(live.moved);
    assert_int_equal(live.sampled_revision, 0);
}

static void test_a_step_that_the_store_refused_or_had_taken_before_changes_nothing(void **state)
{
    (void)state;
    struct told told = {0};
    struct store_policy_update record = to_revision_2(STORE_UPDATE_WAIT);
    struct store_op op = {.kind = STORE_UPDATE_POLICY, .status = STORE_STATE_CONFLICT};
    op.update_policy =
        (struct store_update_policy){.step = STORE_STEP_COMMIT, .run = text_of(RUN), .current_revision = 9};
    send_sample();
    begin(&record, STORE_OK, &told);
    update_ended(&batches, &op);
    op.status = STORE_OK;
    op.update_policy.repeated = true;
    update_ended(&batches, &op);
    assert_int_equal(told.times, 0);
    assert_non_null(update_find(&batches, text_of(RUN)));
    assert_int_equal(run.revision, 1);
}

static void test_an_update_that_is_read_back_after_a_start_lets_nothing_go_and_may_be_committed(void **state)
{
    (void)state;
    struct store_policy_update record = to_revision_2(STORE_UPDATE_WAIT);
    struct told told = {0};
    size_t left;
    update_restore(&batches, text_of(RUN), &record);
    assert_true(next_is_held());
    assert_true(update_may_be_committed(&batches, text_of(RUN), &left));
    begin(&record, STORE_EXISTS, &told);
    assert_told(&told, BEGIN_HOLDS, STORE_UPDATE_OPEN);
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CLAIM(test_a_begin_with_nothing_in_flight_is_answered_at_once),
        CLAIM(test_a_begin_waits_for_the_rest_of_a_group_that_was_begun_and_is_answered_once),
        CLAIM(test_a_begin_in_mode_straddle_does_not_wait_for_samples),
        CLAIM(test_a_begin_in_mode_abort_takes_samples_back_and_is_answered_at_once),
        CLAIM(test_the_same_begin_again_waits_beside_the_first),
        CLAIM(test_the_same_begin_again_is_answered_at_once_when_the_first_was),
        CLAIM(test_the_key_of_an_older_update_does_not_wait_for_the_open_one),
        CLAIM(test_a_waiter_that_hangs_up_is_not_told_and_the_others_are),
        CLAIM(test_an_update_goes_on_when_nobody_waits_for_it),
        CLAIM(test_a_cancellation_tells_who_waits_and_lets_the_run_go_on),
        CLAIM(test_a_declaration_that_cancels_what_is_open_tells_who_waits),
        CLAIM(test_a_begin_whose_update_was_cancelled_meanwhile_does_not_begin_it),
        CLAIM(test_a_deadline_tells_who_waits_goes_on_record_and_lets_the_run_go_on),
        CLAIM(test_an_end_that_is_not_on_record_yet_goes_with_the_service),
        CLAIM(test_the_same_begin_again_after_the_deadline_is_told_of_it),
        CLAIM(test_a_new_begin_takes_the_place_of_one_that_expired),
        CLAIM(test_a_commit_in_mode_abort_moves_training_to_the_new_revision),
        CLAIM(test_a_commit_in_mode_abort_leaves_an_evaluation_of_older_weights_where_it_is),
        CLAIM(test_a_step_that_the_store_refused_or_had_taken_before_changes_nothing),
        CLAIM(test_an_update_that_is_read_back_after_a_start_lets_nothing_go_and_may_be_committed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
