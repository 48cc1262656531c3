/* Engines that were named at run time. */
#include "tests/unit/store/fixture.h"

#include <stdio.h>

static struct store_op engine_op(const char *name, const char *url)
{
    return (struct store_op){.kind = STORE_PUT_ENGINE,
                             .put_engine = {.name = text_of(name), .url = text_of(url), .in_flight = -1}};
}

static void test_an_engine_is_read_back_with_every_column(void **state)
{
    struct fixture *fixture = *state;
    struct store_op op = engine_op("b", "http://h:1");
    struct store_engines engines;
    op.put_engine.kind = TEXT_LITERAL("vllm");
    op.put_engine.model = TEXT_LITERAL("demo-1b");
    op.put_engine.pool = TEXT_LITERAL("judges");
    op.put_engine.in_flight = 7;
    op.put_engine.shared = op.put_engine.draining = true;
    op.put_engine.token_name = TEXT_LITERAL("judge_key");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    op = engine_op("a", NULL);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_int_equal(store_list_engines(fixture->reader, &engines), STORE_OK);
    assert_int_equal(engines.count, 2);
    assert_true(text_equals(engines.engines[0].name, "a"));
    assert_null(engines.engines[0].url.data);
    assert_null(engines.engines[0].token_name.data);
    assert_int_equal(engines.engines[0].in_flight, -1);
    assert_false(engines.engines[0].shared || engines.engines[0].draining);
    const struct store_engine *read = &engines.engines[1];
    assert_true(text_equals(read->url, "http://h:1") && text_equals(read->kind, "vllm"));
    assert_true(text_equals(read->model, "demo-1b") && text_equals(read->pool, "judges"));
    assert_true(text_equals(read->token_name, "judge_key"));
    assert_true(read->in_flight == 7 && read->shared && read->draining);
    store_engines_finish(&engines);
}

static void test_an_engine_written_again_is_replaced_whole(void **state)
{
    struct fixture *fixture = *state;
    struct store_op op = engine_op("a", "http://h:1");
    struct store_engines engines;
    op.put_engine.model = TEXT_LITERAL("old");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    op = engine_op("a", "http://h:2");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_int_equal(store_list_engines(fixture->reader, &engines), STORE_OK);
    assert_int_equal(engines.count, 1);
    assert_true(text_equals(engines.engines[0].url, "http://h:2"));
    assert_null(engines.engines[0].model.data);
    store_engines_finish(&engines);
}

static void test_an_engine_that_was_deleted_is_not_there_after_a_start(void **state)
{
    struct fixture *fixture = *state;
    struct store_engines engines;
    struct store_op op = engine_op("kept", "http://h:1");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    op = engine_op("gone", "http://h:2");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    for (int again = 0; again < 2; again++) { /* the second finds none */
        op = (struct store_op){.kind = STORE_DELETE_ENGINE, .delete_engine = TEXT_LITERAL("gone")};
        assert_int_equal(carry_out(fixture, &op), STORE_OK);
    }
    stop_store(fixture);
    start_store(fixture);
    assert_int_equal(store_list_engines(fixture->reader, &engines), STORE_OK);
    assert_int_equal(engines.count, 1);
    assert_true(text_equals(engines.engines[0].name, "kept"));
    store_engines_finish(&engines);
}

static void test_more_engines_than_the_first_array_holds_are_listed_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct store_engines engines;
    char name[16];
    for (int i = 99; i >= 0; i--) {
        snprintf(name, sizeof(name), "e%02d", i);
        struct store_op op = engine_op(name, "http://h:1");
        assert_int_equal(carry_out(fixture, &op), STORE_OK);
    }
    assert_int_equal(store_list_engines(fixture->reader, &engines), STORE_OK);
    assert_int_equal(engines.count, 100);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "e%02d", i);
        assert_true(text_equals(engines.engines[i].name, name));
    }
    store_engines_finish(&engines);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_an_engine_is_read_back_with_every_column),
        CLAIM(test_an_engine_written_again_is_replaced_whole),
        CLAIM(test_an_engine_that_was_deleted_is_not_there_after_a_start),
        CLAIM(test_more_engines_than_the_first_array_holds_are_listed_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
