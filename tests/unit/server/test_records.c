/* The record as JSON, through the handlers, from a real store. Expected numbers are the contract's (section 3) or on
 * paper. */
#include "tests/unit/store/fixture.h"

#include "server/api/routes.h"
#include "server/render/render.h"
#include "server/settings/settings.h"
#include "server/spec/objective.h"
#include "server/spec/returns.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static struct fixture *fixture;
static char batch_id[ID_BYTES];
static char group_id[ID_BYTES];
static struct settings settings = {.scan_budget = 100000};

static struct buffer objective_text(void)
{
    struct objective_knobs knobs;
    struct json_write json;
    struct buffer text;
    buffer_init(&text, 1 << 16);
    assert_true(objective_preset_find("grpo", 4, &knobs));
    assert_int_equal(objective_settle(&knobs, &(struct objective_contradiction){.path = ""}), 0);
    json_write_init(&json, &text);
    objective_json_write(&json, &knobs);
    return text;
}

/* One group of three: reward 1, a failure, reward 0; three tokens each. Advantages 1 and -1. */
static int with_batch(void **state)
{
    if (fixture_open(state) < 0)
        return -1;
    fixture = *state;
    struct buffer objective = objective_text();
    struct store_op op = batch_op(1, 3);
    op.create_batch.objective = buffer_text(&objective);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    buffer_finish(&objective);
    memcpy(batch_id, op.create_batch.id, ID_BYTES);
    id_of_group(batch_id, 0, group_id);
    struct store_rollout rollouts[] = {scored_rollout(0, 1.0), failed_rollout(1)};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(insert(fixture, batch_id, 0, &rollouts[i]), STORE_OK);
    return 0;
}

static void finish_batch(void)
{
    struct store_rollout last = scored_rollout(2, 0.0);
    assert_int_equal(insert(fixture, batch_id, 0, &last), STORE_OK);
    assert_int_equal(close_group(fixture, batch_id, 0, 3, (double[]){1.0, NAN, -1.0}, 0.5, 0.5), STORE_OK);
    struct store_op op = {.kind = STORE_CLOSE_BATCH,
                          .close_batch = {.batch_id = batch_id,
                                          .state = STORE_BATCH_COMPLETE,
                                          .loss = 0.0,
                                          .total_tokens = 6,
                                          .total_sequences = 2,
                                          .total_groups = 1,
                                          .notes = TEXT_LITERAL("[]"),
                                          .summary = TEXT_LITERAL("{\"scored\":2}")}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
}

/* Calls a handler with one {argument} and a query like "limit=1&order=desc"; returns the reply's JSON. */
static size_t parts_of_reply;

static size_t append_parts(struct call *call, size_t room_bytes, struct buffer *body)
{
    size_t count = 0;
    int more = call->reply.stream ? STREAM_MORE : STREAM_LAST;
    for (; more == STREAM_MORE; count++) {
        struct buffer part;
        buffer_init(&part, 1 << 28);
        call->reply.stream->room_bytes = room_bytes;
        more = call->reply.stream->produce(call->reply.stream, fixture->reader, &part);
        buffer_append(body, part.data, part.length_bytes);
        buffer_finish(&part);
    }
    assert_int_equal(more, STREAM_LAST);
    return count;
}

static void ask_with_room(void (*handler)(struct call *call), const char *argument, const char *query, int status,
                          size_t room_bytes, struct buffer *ret_body)
{
    char pieces[512];
    struct call call;
    call_init(&call);
    call.reader = fixture->reader;
    call.settings = &settings;
    if (argument)
        call.args[call.arg_count++] = text_of(argument);
    snprintf(pieces, sizeof(pieces), "%s", query);
    for (char *piece = strtok(pieces, "&"); piece; piece = strtok(NULL, "&")) {
        char *value = strchr(piece, '=');
        *value++ = '\0';
        call.query[call.query_count++] = (struct query_parameter){text_of(piece), text_of(value)};
    }
    handler(&call);
    buffer_init(ret_body, 1 << 28);
    buffer_append(ret_body, call.reply.body.data, call.reply.body.length_bytes);
    parts_of_reply = append_parts(&call, room_bytes, ret_body);
    if (call.reply.status != status)
        fail_msg("status %d: %s", call.reply.status, ret_body->data);
    call_finish(&call);
}

static json_t *ask(void (*handler)(struct call *call), const char *argument, const char *query, int status)
{
    struct buffer body;
    json_error_t error;
    ask_with_room(handler, argument, query, status, 1 << 20, &body);
    json_t *reply = json_loadb(body.data, body.length_bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    if (!reply)
        fail_msg("%s: %s", error.text, body.data);
    buffer_finish(&body);
    return reply;
}

static void answer(struct call *call)
{
    render_answer_batch(call, call->args[0]);
}

static void assert_refused(void (*handler)(struct call *call), const char *argument, const char *query, int status,
                           const char *path)
{
    json_t *reply = ask(handler, argument, query, status);
    assert_string_equal(json_string_value(json_object_get(json_object_get(reply, "error"), "path")), path);
    json_decref(reply);
}

static json_t *rollout_at(json_t *batch, size_t group, size_t index)
{
    json_t *groups = json_object_get(batch, "groups");
    return json_array_get(json_object_get(json_array_get(groups, group), "rollouts"), index);
}

/* ---- a batch
 * ---------------------------------------------------------------------------------------------------------------- */

static void test_a_finished_batch_shows_terms_that_sum_to_its_loss(void **state)
{
    (void)state;
    finish_batch();
    json_t *batch = ask(answer, batch_id, "", 200);
    assert_string_equal(json_string_value(json_object_get(batch, "state")), "complete");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(batch, "totals"), "tokens")), 6);
    double sum = 0;
    for (size_t r = 0; r < 3; r += 2) {
        json_t *rollout = rollout_at(batch, 0, r);
        double advantage = r ? -1.0 : 1.0;
        assert_true(json_number_value(json_object_get(rollout, "advantage")) == advantage);
        for (size_t t = 0; t < 3; t++) {
            double surrogate = json_number_value(json_array_get(json_object_get(rollout, "surrogates"), t));
            double contribution = json_number_value(json_array_get(json_object_get(rollout, "contributions"), t));
            assert_true(surrogate == advantage);                           /* ratio 1 */
            assert_true(fabs(contribution + advantage / (3 * 2)) < 1e-15); /* 3 tokens, 2 sequences */
            sum += contribution;
        }
        assert_int_equal(json_array_size(json_object_get(rollout, "completion_mask")), 3);
    }
    assert_true(fabs(sum - json_number_value(json_object_get(batch, "loss"))) < 1e-15);
    json_decref(batch);
}

static void test_a_failure_has_null_in_every_number_and_says_why(void **state)
{
    (void)state;
    finish_batch();
    json_t *batch = ask(answer, batch_id, "", 200);
    json_t *rollout = rollout_at(batch, 0, 1);
    static const char *const nulls[] = {"reward",         "shaped_reward", "advantage", "surrogates",   "contributions",
                                        "completion_ids", "logprobs",      "text",      "finish_reason"};
    for (size_t i = 0; i < ARRAY_LENGTH(nulls); i++)
        assert_true(json_is_null(json_object_get(rollout, nulls[i])));
    assert_string_equal(json_string_value(json_object_get(rollout, "state")), "failed");
    json_t *failure = json_object_get(rollout, "failure");
    assert_string_equal(json_string_value(json_object_get(failure, "code")), "engine_timeout");
    assert_string_equal(json_string_value(json_object_get(failure, "stage")), "sample");
    assert_true(json_is_true(json_object_get(failure, "retryable")));
    json_decref(batch);
}

static void test_a_running_batch_shows_counts_and_no_groups(void **state)
{
    (void)state;
    json_t *batch = ask(answer, batch_id, "", 200);
    assert_string_equal(json_string_value(json_object_get(batch, "state")), "running");
    assert_null(json_object_get(batch, "groups"));
    assert_null(json_object_get(batch, "loss"));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(batch, "counts"), "done")), 2);
    json_decref(batch);
}

static void test_arrays_can_be_packed_or_left_out(void **state)
{
    (void)state;
    finish_batch();
    json_t *batch = ask(answer, batch_id, "arrays=base64", 200);
    json_t *rollout = rollout_at(batch, 0, 0);
    assert_string_equal(json_string_value(json_object_get(rollout, "completion_ids_u32")),
                        "CgAAAAsAAAACAAAA"); /* 10, 11, 2 */
    assert_non_null(json_object_get(rollout, "contributions_f64"));
    json_decref(batch);
    batch = ask(answer, batch_id, "arrays=none", 200);
    assert_null(json_object_get(rollout_at(batch, 0, 0), "completion_ids"));
    assert_null(json_object_get(rollout_at(batch, 0, 0), "surrogates"));
    assert_int_equal(json_string_length(json_object_get(rollout_at(batch, 0, 0), "text")), 9);
    json_decref(batch);
}

static void test_a_large_batch_goes_out_in_parts_and_is_one_json_text(void **state)
{
    (void)state;
    enum { GROUPS = 40 };
    static char text[20000];
    char id[ID_BYTES];
    memset(text, 't', sizeof(text));
    record_batch(fixture, GROUPS, 1, id);
    struct store_rollout rollout = scored_rollout(0, 1.0);
    rollout.text = (struct text){text, sizeof(text)};
    for (int64_t g = 0; g < GROUPS; g++) {
        assert_int_equal(insert(fixture, id, g, &rollout), STORE_OK);
        assert_int_equal(close_group(fixture, id, g, 1, (double[]){0.0}, 1.0, 0.0), STORE_OK);
    }
    assert_int_equal(close_batch(fixture, id, STORE_BATCH_COMPLETE), STORE_OK);
    json_t *batch = ask(answer, id, "", 200);
    assert_int_equal(json_array_size(json_object_get(batch, "groups")), GROUPS);
    assert_int_equal(json_string_length(json_object_get(rollout_at(batch, GROUPS - 1, 0), "text")), sizeof(text));
    json_decref(batch);
}

static void test_only_the_arrays_that_were_asked_for_are_returned(void **state)
{
    (void)state;
    struct store_op op = batch_op(1, 1);
    op.create_batch.returns = TEXT_LITERAL("[\"completion_ids\"]");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    struct store_rollout rollout = scored_rollout(0, 1.0);
    assert_int_equal(insert(fixture, op.create_batch.id, 0, &rollout), STORE_OK);
    assert_int_equal(close_batch(fixture, op.create_batch.id, STORE_BATCH_CANCELLED), STORE_OK);
    json_t *batch = ask(answer, op.create_batch.id, "", 200);
    assert_non_null(json_object_get(rollout_at(batch, 0, 0), "completion_ids"));
    assert_null(json_object_get(rollout_at(batch, 0, 0), "logprobs"));
    assert_non_null(json_object_get(rollout_at(batch, 0, 0), "text"));
    json_decref(batch);
}

/* ---- groups and rollouts
 * ---------------------------------------------------------------------------------------------------- */

static void test_a_member_without_a_row_is_pending_and_lost_when_its_batch_is(void **state)
{
    (void)state;
    json_t *group = ask(get_group, group_id, "", 200);
    json_t *member = json_array_get(json_object_get(group, "rollouts"), 2);
    assert_string_equal(json_string_value(json_object_get(member, "state")), "pending");
    assert_true(json_is_null(json_object_get(member, "reward")));
    assert_string_equal(json_string_value(json_object_get(group, "batch")), batch_id);
    assert_null(
        json_object_get(json_array_get(json_object_get(group, "rollouts"), 0), "contributions")); /* not known yet */
    json_decref(group);
    assert_int_equal(close_batch(fixture, batch_id, STORE_BATCH_EXPIRED), STORE_OK);
    group = ask(get_group, group_id, "", 200);
    assert_string_equal(json_string_value(json_object_get(group, "state")), "expired");
    member = json_array_get(json_object_get(group, "rollouts"), 2);
    assert_string_equal(json_string_value(json_object_get(member, "state")), "failed");
    assert_string_equal(json_string_value(json_object_get(json_object_get(member, "failure"), "code")), "deadline");
    json_decref(group);
}

static void test_one_rollout_says_where_it_belongs(void **state)
{
    (void)state;
    char id[ID_BYTES];
    id_of_rollout(group_id, 0, id);
    json_t *rollout = ask(get_rollout, id, "", 200);
    assert_string_equal(json_string_value(json_object_get(rollout, "id")), id);
    assert_string_equal(json_string_value(json_object_get(rollout, "group")), group_id);
    assert_string_equal(json_string_value(json_object_get(rollout, "batch")), batch_id);
    assert_string_equal(json_string_value(json_object_get(rollout, "task")), "task-0");
    assert_true(json_integer_value(json_object_get(rollout, "seed")) == INT64_C(3068566343491767147));
    json_decref(rollout);
    id_of_rollout(group_id, 2, id);
    assert_refused(get_rollout, id, "", 404, "id");
    assert_refused(get_rollout, "r_x", "", 404, "id");
}

static void test_a_list_has_no_arrays_unless_they_are_asked_for(void **state)
{
    (void)state;
    json_t *reply = ask(list_rollouts, NULL, "run=arith&state=scored", 200);
    json_t *items = json_object_get(reply, "items");
    assert_int_equal(json_array_size(items), 1);
    assert_null(json_object_get(json_array_get(items, 0), "logprobs"));
    assert_true(json_is_null(json_object_get(reply, "next")));
    json_decref(reply);
    reply = ask(list_rollouts, NULL, "fields=id,logprobs,reward&limit=1", 200);
    json_t *item = json_array_get(json_object_get(reply, "items"), 0);
    assert_int_equal(json_object_size(item), 3);
    assert_true(json_number_value(json_array_get(json_object_get(item, "logprobs"), 1)) == -1.25);
    assert_true(json_is_string(json_object_get(reply, "next")));
    json_decref(reply);
}

static void test_bad_parameters_are_named(void **state)
{
    (void)state;
    assert_refused(list_rollouts, NULL, "colour=red", 400, "colour");
    assert_refused(list_rollouts, NULL, "fields=id,rewards,nothing", 400, "fields");
    assert_refused(list_rollouts, NULL, "fields=", 400, "fields");
    assert_refused(list_rollouts, NULL, "state=done", 400, "state");
    assert_refused(list_rollouts, NULL, "state=pending", 400, "state");
    assert_refused(list_rollouts, NULL, "order=up", 400, "order");
    assert_refused(list_rollouts, NULL, "limit=0", 400, "limit");
    assert_refused(list_rollouts, NULL, "limit=1001", 400, "limit");
    assert_refused(list_rollouts, NULL, "revision=x", 400, "revision");
    assert_refused(list_rollouts, NULL, "revision=1&revision_min=1", 400, "revision");
    assert_refused(list_rollouts, NULL, "reward_min=nan", 400, "reward_min");
    assert_refused(list_rollouts, NULL, "since=yesterday", 400, "since");
    assert_refused(list_rollouts, NULL, "cursor=abc", 400, "cursor");
    assert_refused(list_rollouts, NULL, "arrays=all", 400, "arrays");
    assert_refused(list_batches, NULL, "state=pending", 400, "state");
    assert_refused(list_batches, NULL, "cursor=x", 400, "cursor");
    assert_refused(list_runs, NULL, "cursor=x", 400, "cursor");
    assert_refused(get_run, "nobody", "", 404, "run");
    assert_refused(list_batch_groups, batch_id, "cursor=g_x", 400, "cursor");
    assert_refused(list_batch_groups, "b_none", "", 404, "id");
    assert_refused(get_batch_request, "b_none", "", 404, "id");
    assert_refused(answer, "b_none", "", 404, "id");
}

/* ---- lists
 * ------------------------------------------------------------------------------------------------------------------ */

static void test_the_groups_of_a_batch_are_paged(void **state)
{
    (void)state;
    char id[ID_BYTES];
    char query[96];
    record_batch(fixture, 5, 2, id);
    json_t *reply = ask(list_batch_groups, id, "limit=3", 200);
    assert_int_equal(json_array_size(json_object_get(reply, "items")), 3);
    snprintf(query, sizeof(query), "limit=3&cursor=%s", json_string_value(json_object_get(reply, "next")));
    json_decref(reply);
    assert_refused(list_batch_groups, batch_id, query, 400, "cursor"); /* of another batch */
    reply = ask(list_batch_groups, id, query, 200);
    assert_int_equal(json_array_size(json_object_get(reply, "items")), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(reply, "items"), 1), "task")),
                        "task-4");
    assert_true(json_is_null(json_object_get(reply, "next")));
    json_decref(reply);
}

static void test_batches_and_runs_are_listed(void **state)
{
    (void)state;
    json_t *reply = ask(list_batches, NULL, "run=arith&state=running", 200);
    json_t *batch = json_array_get(json_object_get(reply, "items"), 0);
    assert_string_equal(json_string_value(json_object_get(batch, "id")), batch_id);
    json_decref(reply);
    reply = ask(list_runs, NULL, "", 200);
    json_t *run = json_array_get(json_object_get(reply, "items"), 0);
    assert_string_equal(json_string_value(json_object_get(run, "run")), "arith");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(run, "counts"), "failed")), 1);
    json_decref(reply);
    reply = ask(get_run, "arith", "", 200);
    assert_int_equal(json_integer_value(json_object_get(reply, "policy_revision")), 12);
    json_t *objective = json_array_get(json_object_get(reply, "objectives"), 0);
    assert_string_equal(json_string_value(json_object_get(objective, "first_batch")), batch_id);
    assert_int_equal(json_array_size(json_object_get(reply, "incarnations")), 1);
    json_decref(reply);
}

/* F11 */
static void test_parts_are_byte_for_byte_the_whole(void **state)
{
    (void)state;
    const struct {
        void (*handler)(struct call *call);
        const char *argument;
        const char *query;
    } rows[] = {{list_rollouts, NULL, "fields=id,text,verdicts,logprobs,completion_ids,contributions"},
                {list_rollouts, NULL, "limit=3&order=desc"},
                {list_rollouts, NULL, "reward_min=100"},
                {list_batch_groups, batch_id, "limit=2"},
                {get_group, group_id, ""},
                {answer, batch_id, ""},
                {get_batch_request, batch_id, ""},
                {list_batches, NULL, ""},
                {list_runs, NULL, ""}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct buffer whole;
        struct buffer parts;
        ask_with_room(rows[i].handler, rows[i].argument, rows[i].query, 200, 1 << 20, &whole);
        assert_int_equal(parts_of_reply, 1);
        ask_with_room(rows[i].handler, rows[i].argument, rows[i].query, 200, 1, &parts);
        assert_int_equal(parts.length_bytes, whole.length_bytes);
        assert_memory_equal(parts.data, whole.data, whole.length_bytes);
        if (whole.length_bytes > 4096)
            assert_true(parts_of_reply > 1);
        buffer_finish(&whole);
        buffer_finish(&parts);
    }
}

static void test_a_request_is_given_back_as_posted(void **state)
{
    (void)state;
    json_t *request = ask(get_batch_request, batch_id, "", 200);
    assert_string_equal(json_string_value(json_object_get(request, "run")), "arith");
    json_decref(request);
}

static void test_without_a_database_connection_every_read_is_refused(void **state)
{
    (void)state;
    static void (*const handlers[])(struct call * call) = {list_rollouts, get_rollout,       get_group,
                                                           list_batches,  list_batch_groups, get_batch_request,
                                                           list_runs,     get_run,           answer};
    for (size_t i = 0; i < ARRAY_LENGTH(handlers); i++) {
        struct call call;
        call_init(&call);
        call.settings = &settings;
        call.args[0] = text_of(batch_id);
        handlers[i](&call);
        assert_int_equal(call.reply.status, 503);
        call_finish(&call);
    }
}

static void test_each_array_of_return_is_a_member_and_needs_the_arrays_of_the_record(void **state)
{
    (void)state;
    for (size_t i = 0; i < RETURNS_COUNT; i++) {
        render_fields field = render_field(text_of(returns_names[i]));
        assert_true(field != 0 && (render_arrays() & field) == field);
        assert_int_equal(render_with(field, JSON_ARRAYS_PLAIN), STORE_WITH_ARRAYS);
    }
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, with_batch, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_a_finished_batch_shows_terms_that_sum_to_its_loss),
        CLAIM(test_a_failure_has_null_in_every_number_and_says_why),
        CLAIM(test_a_running_batch_shows_counts_and_no_groups),
        CLAIM(test_arrays_can_be_packed_or_left_out),
        CLAIM(test_a_large_batch_goes_out_in_parts_and_is_one_json_text),
        CLAIM(test_only_the_arrays_that_were_asked_for_are_returned),
        cmocka_unit_test(test_each_array_of_return_is_a_member_and_needs_the_arrays_of_the_record),
        CLAIM(test_a_member_without_a_row_is_pending_and_lost_when_its_batch_is),
        CLAIM(test_one_rollout_says_where_it_belongs),
        CLAIM(test_a_list_has_no_arrays_unless_they_are_asked_for),
        CLAIM(test_bad_parameters_are_named),
        CLAIM(test_the_groups_of_a_batch_are_paged),
        CLAIM(test_batches_and_runs_are_listed),
        CLAIM(test_parts_are_byte_for_byte_the_whole),
        CLAIM(test_a_request_is_given_back_as_posted),
        CLAIM(test_without_a_database_connection_every_read_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
