/* The trainer's own numbers of a run, and notes on it. */
#include "tests/unit/store/fixture.h"

static struct store_op metrics_op(int64_t step, int64_t revision, const char *numbers)
{
    return (struct store_op){
        .kind = STORE_RECORD_METRICS,
        .record_metrics = {
            .run = TEXT_LITERAL("arith"), .optimizer_step = step, .revision = revision, .numbers = text_of(numbers)}};
}

static struct store_op note_op(const char *prediction, const char *result)
{
    return (struct store_op){.kind = STORE_ADD_NOTE,
                             .add_note = {.run = TEXT_LITERAL("arith"),
                                          .note = {.prediction = text_of(prediction), .result = text_of(result)}}};
}

static int run_on_record(void **state)
{
    char batch_id[ID_BYTES];
    if (fixture_open(state) != 0)
        return -1;
    record_batch(*state, 1, 1, batch_id);
    return 0;
}

static void rewind_run(struct fixture *fixture)
{
    struct store_op op = {.kind = STORE_DECLARE_POLICY,
                          .declare_policy = {.run = TEXT_LITERAL("arith"), .revision = 3, .rewind_to_step = 3}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
}

static void list_metrics(struct fixture *fixture, int64_t step, struct store_trainer_metrics *ret_metrics)
{
    assert_int_equal(store_list_metrics(fixture->reader, TEXT_LITERAL("arith"), step, TEXT_NONE, 100, ret_metrics),
                     STORE_OK);
}

static void test_the_same_step_again_replaces_its_numbers_and_keeps_its_place(void **state)
{
    struct fixture *fixture = *state;
    struct store_trainer_metrics metrics;
    struct store_op op = metrics_op(1, 12, "{\"loss\":0.5,\"kl\":1}");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_false(op.record_metrics.replaced);
    op = metrics_op(2, 12, "{\"loss\":0.25}");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    op = metrics_op(1, 13, "{\"loss\":0.125}");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_true(op.record_metrics.replaced);
    list_metrics(fixture, -1, &metrics);
    assert_int_equal(metrics.count, 2);
    assert_int_equal(metrics.metrics[0].optimizer_step, 1);
    assert_int_equal(metrics.metrics[0].revision, 13);
    assert_true(text_equals(metrics.metrics[0].numbers, "{\"loss\":0.125}"));
    assert_int_equal(metrics.metrics[1].optimizer_step, 2);
    store_trainer_metrics_finish(&metrics);
}

static void test_a_step_after_a_rewind_is_another_one(void **state)
{
    struct fixture *fixture = *state;
    struct store_trainer_metrics metrics;
    struct store_op op = metrics_op(7, 12, "{\"loss\":1}");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    rewind_run(fixture);
    op = metrics_op(7, 3, "{\"loss\":2}");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_false(op.record_metrics.replaced);
    list_metrics(fixture, 7, &metrics);
    assert_int_equal(metrics.count, 2);
    assert_int_equal(metrics.metrics[0].incarnation, 0);
    assert_int_equal(metrics.metrics[1].incarnation, 1);
    assert_true(text_equals(metrics.metrics[1].numbers, "{\"loss\":2}"));
    store_trainer_metrics_finish(&metrics);
}

static void test_a_page_begins_at_the_end_of_the_page_before(void **state)
{
    struct fixture *fixture = *state;
    struct store_trainer_metrics metrics;
    struct text cursor = TEXT_NONE;
    char next[64];
    for (int64_t step = 0; step < 5; step++) {
        struct store_op op = metrics_op(step, 12, "{\"loss\":1}");
        assert_int_equal(carry_out(fixture, &op), STORE_OK);
    }
    for (int64_t step = 0; step < 5; step += 2) {
        assert_int_equal(store_list_metrics(fixture->reader, TEXT_LITERAL("arith"), -1, cursor, 2, &metrics), STORE_OK);
        assert_int_equal(metrics.count, step < 4 ? 2 : 1);
        assert_int_equal(metrics.metrics[0].optimizer_step, step);
        memcpy(next, metrics.next, sizeof(next));
        cursor = text_of(next);
        assert_int_equal(*next == '\0', step == 4);
        store_trainer_metrics_finish(&metrics);
    }
}

static void test_a_cursor_of_another_list_is_none(void **state)
{
    struct fixture *fixture = *state;
    struct store_trainer_metrics metrics;
    struct store_notes notes;
    char next[64];
    for (int64_t step = 0; step < 2; step++) {
        struct store_op op = metrics_op(step, 12, "{\"loss\":1}");
        assert_int_equal(carry_out(fixture, &op), STORE_OK);
    }
    assert_int_equal(store_list_metrics(fixture->reader, TEXT_LITERAL("arith"), -1, TEXT_NONE, 1, &metrics), STORE_OK);
    memcpy(next, metrics.next, sizeof(next));
    store_trainer_metrics_finish(&metrics);
    assert_int_equal(store_list_metrics(fixture->reader, TEXT_LITERAL("arith"), 1, text_of(next), 1, &metrics),
                     STORE_INVALID_CURSOR);
    store_trainer_metrics_finish(&metrics);
    assert_int_equal(store_list_notes(fixture->reader, TEXT_LITERAL("arith"), text_of(next), 1, &notes),
                     STORE_INVALID_CURSOR);
    store_notes_finish(&notes);
}

static void test_numbers_and_notes_of_an_unknown_run_are_not_found(void **state)
{
    struct fixture *fixture = *state;
    struct store_trainer_metrics metrics;
    struct store_notes notes;
    struct store_op op = metrics_op(1, 1, "{\"loss\":1}");
    op.record_metrics.run = TEXT_LITERAL("nobody");
    assert_int_equal(carry_out(fixture, &op), STORE_NOT_FOUND);
    op = note_op("up", NULL);
    op.add_note.run = TEXT_LITERAL("nobody");
    assert_int_equal(carry_out(fixture, &op), STORE_NOT_FOUND);
    assert_int_equal(store_list_metrics(fixture->reader, TEXT_LITERAL("nobody"), -1, TEXT_NONE, 1, &metrics),
                     STORE_NOT_FOUND);
    store_trainer_metrics_finish(&metrics);
    assert_int_equal(store_list_notes(fixture->reader, TEXT_LITERAL("nobody"), TEXT_NONE, 1, &notes), STORE_NOT_FOUND);
    store_notes_finish(&notes);
}

static void test_earlier_notes_are_kept_and_only_a_repetition_adds_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct store_notes notes;
    struct store_op op = note_op("up", NULL);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    int64_t at_us = op.add_note.note.at_us;
    op = note_op("up", NULL);
    assert_int_equal(carry_out(fixture, &op), STORE_EXISTS);
    assert_int_equal(op.add_note.note.at_us, at_us);
    op = note_op(NULL, "up");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    op = note_op("up", NULL);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_int_equal(store_list_notes(fixture->reader, TEXT_LITERAL("arith"), TEXT_NONE, 10, &notes), STORE_OK);
    assert_int_equal(notes.count, 3);
    assert_true(text_equals(notes.notes[0].prediction, "up"));
    assert_null(notes.notes[0].result.data);
    assert_null(notes.notes[1].prediction.data);
    assert_true(text_equals(notes.notes[1].result, "up"));
    store_notes_finish(&notes);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, run_on_record, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_the_same_step_again_replaces_its_numbers_and_keeps_its_place),
        CLAIM(test_a_step_after_a_rewind_is_another_one),
        CLAIM(test_a_page_begins_at_the_end_of_the_page_before),
        CLAIM(test_a_cursor_of_another_list_is_none),
        CLAIM(test_numbers_and_notes_of_an_unknown_run_are_not_found),
        CLAIM(test_earlier_notes_are_kept_and_only_a_repetition_adds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
