/* Prompts and references: each distinct one once, read with its rollouts and its group. */
#include "tests/unit/store/fixture.h"

#include <string.h>

static struct fixture *fixture;

static void use(void **state)
{
    fixture = *state;
}

static struct store_content plain_content(const char *json)
{
    struct buffer unused = {0};
    struct store_content content;
    store_content_make(text_of(json), &unused, &content);
    return content;
}

/* Two groups of one member, with these contents. */
static void record_groups(const struct store_content *const contents[2][2], char ret_id[ID_BYTES])
{
    struct store_op op = batch_op(2, 1);
    struct store_new_group groups[2] = {op.create_batch.groups[0], op.create_batch.groups[1]};
    struct store_rollout rollout = scored_rollout(0, 1.0);
    for (size_t g = 0; g < 2; g++) {
        groups[g].prompt = contents[g][0];
        groups[g].reference = contents[g][1];
    }
    op.create_batch.groups = groups;
    op.create_batch.request =
        TEXT_LITERAL("{\"run\": \"arith\", \"groups\": [{\"reference\": [1, \"]\"]}, {\"messages\": "
                     "[{\"role\": \"user\"}], \"task\": {\"prompt\": 1}}]}");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    memcpy(ret_id, op.create_batch.id, ID_BYTES);
    for (int64_t g = 0; g < 2; g++)
        assert_int_equal(insert(fixture, ret_id, g, &rollout), STORE_OK);
}

/* NULL: it must not be known. */
static void assert_text(struct text got, const char *want)
{
    if (want)
        assert_true(text_equals(got, want));
    else
        assert_null(got.data);
}

static void assert_task(const char *batch_id, int64_t group, const char *prompt, const char *reference)
{
    char group_id[ID_BYTES];
    char rollout_id[ID_BYTES];
    struct store_group read;
    struct store_rollouts rollout;
    id_of_group(batch_id, group, group_id);
    id_of_rollout(group_id, 0, rollout_id);
    assert_int_equal(store_read_group(fixture->reader, text_of(group_id), STORE_WITH_TASK, &read), STORE_OK);
    assert_text(read.prompt, prompt);
    assert_text(read.reference, reference);
    store_group_finish(&read);
    assert_int_equal(store_read_rollout(fixture->reader, text_of(rollout_id), STORE_WITH_TASK, &rollout), STORE_OK);
    assert_text(rollout.rollouts[0].prompt, prompt);
    assert_text(rollout.rollouts[0].reference, reference);
    store_rollouts_finish(&rollout);
    assert_int_equal(store_read_rollout(fixture->reader, text_of(rollout_id), STORE_WITH_ALL, &rollout), STORE_OK);
    assert_null(rollout.rollouts[0].prompt.data);
    store_rollouts_finish(&rollout);
}

static void test_equal_contents_are_one_row_for_prompts_and_references(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    const struct store_content one = plain_content("\"one\"");
    const struct store_content again = plain_content("\"one\"");
    const struct store_content none = plain_content("null");
    record_groups((const struct store_content *const[2][2]){{&one, &none}, {&none, &again}}, batch_id);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM contents"), 2);
    assert_task(batch_id, 0, "\"one\"", "null");
    assert_task(batch_id, 1, "null", "\"one\"");
}

static void test_a_group_from_before_is_read_from_its_request(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_groups((const struct store_content *const[2][2]){{NULL, NULL}, {NULL, NULL}}, batch_id);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM contents"), 0);
    assert_task(batch_id, 0, NULL, "[1, \"]\"]");
    assert_task(batch_id, 1, "[{\"role\": \"user\"}]", NULL);
}

static void test_a_request_that_is_no_json_tells_nothing_and_fails_nothing(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_groups((const struct store_content *const[2][2]){{NULL, NULL}, {NULL, NULL}}, batch_id);
    assert_int_equal(by_hand(fixture, "UPDATE requests SET body = CAST('{\"groups\": [' AS BLOB), body_bytes = NULL"),
                     0);
    assert_task(batch_id, 0, NULL, NULL);
    assert_task(batch_id, 1, NULL, NULL);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_equal_contents_are_one_row_for_prompts_and_references),
        CLAIM(test_a_group_from_before_is_read_from_its_request),
        CLAIM(test_a_request_that_is_no_json_tells_nothing_and_fails_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
