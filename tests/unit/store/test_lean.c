/* Numbers as they were written, by their values; requests without their arrays; scores whose arrays are on record once. */
#include "server/store/digits.h"
#include "server/store/lean.h"
#include "server/store/request.h"
#include "tests/unit/store/fixture.h"

#include <stdio.h>
#include <string.h>

static struct fixture *fixture;

static void use(void **state)
{
    fixture = *state;
}

/* ---- digits ------------------------------------------------------------------------------------------------------ */

/* How many bytes the number takes beside its value; it comes out as it was. */
static size_t packed_bytes(const char *number, enum digits_kind kind, const void *bytes, bool predicted)
{
    struct digits_value value = {kind, bytes};
    _cleanup_buffer_ struct buffer packed;
    _cleanup_buffer_ struct buffer out;
    buffer_init(&packed, SIZE_MAX);
    buffer_init(&out, SIZE_MAX);
    assert_int_equal(digits_pack(text_of(number), &value, &packed), predicted);
    struct text left = buffer_text(&packed);
    assert_true(digits_unpack(&left, &value, &out));
    assert_int_equal(left.length_bytes, 0);
    if (!text_equals(buffer_text(&out), number))
        fail_msg("%s came out as %.*s", number, (int)out.length_bytes, out.data);
    for (size_t cut = 0; cut < packed.length_bytes; cut++) {
        left = (struct text){packed.data, cut};
        assert_false(digits_unpack(&left, &value, &out));
    }
    return packed.length_bytes;
}

static size_t of_f32(const char *number)
{
    float value = strtof(number, NULL);
    return packed_bytes(number, DIGITS_F32, &value, true);
}

static void test_a_number_that_its_value_predicts_takes_one_byte(void **state)
{
    (void)state;
    static const char *const numbers[] = {
        "0",
        "-0.0",
        "0.0",
        "-1",
        "-0.5",
        "-0.1234567",
        "-0.10",
        "-17.25",
        "-0.31326165795326233",    /* a float as Python writes it */
        "-1.1920928955078125e-07", /* likewise, with an exponent */
        "-1.1920928955078125e-7",  /* as JavaScript does */
        "-2.3841855067985307e-07",
        "-1e-05",
        "-0.00012345679",
        "-16777216",
        "-123456.789",
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        assert_int_equal(of_f32(numbers[i]), 1);
    const uint32_t id = 4294967295U;
    assert_int_equal(packed_bytes("4294967295", DIGITS_U32, &id, true), 1);
    const uint8_t one = 1;
    assert_int_equal(packed_bytes("1", DIGITS_U8, &one, true), 1);
}

static void test_last_digits_that_the_value_does_not_have_take_a_few_bytes_more(void **state)
{
    (void)state;
    assert_in_range(of_f32("-1.2345678"), 1, 2);
    assert_in_range(of_f32("-3.1415926535897931"), 5, 7); /* of 53 bits, 24 are on record */
    assert_in_range(of_f32("-0.30000000000000004"), 5, 7);
}

static void test_any_other_text_comes_out_too(void **state)
{
    (void)state;
    static const char *const numbers[] = {"null",  "1E-5",      "1e+05",   "1e5",
                                          "+1",    "01",        "1.",      ".5",
                                          "-",     "",          "0.5e-07", "123456789012345678901234567890",
                                          "1e-99", "-1.0e-007", "1.5e-00", "0x1p3"};
    const float half = 0.5F;
    const float zero = 0;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        packed_bytes(numbers[i], DIGITS_F32, &half, false);
        packed_bytes(numbers[i], DIGITS_F32, &zero, true);
    }
    packed_bytes("-0.25", DIGITS_F32, &half, false); /* another sign */
    const uint32_t id = 7;
    packed_bytes("99999", DIGITS_U32, &id, false);
    packed_bytes("7.0", DIGITS_U32, &id, true);
}

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

enum { TOKENS = 40 };
static uint32_t ids[TOKENS];
static float logprobs[TOKENS];
static uint8_t mask[TOKENS];

static void write_array(struct buffer *out, enum lean_array array, const char *separator)
{
    for (int i = 0; i < TOKENS; i++) {
        buffer_append_string(out, i ? separator : "");
        if (array == LEAN_LOGPROBS)
            buffer_append_format(out, "%.7g", (double)logprobs[i]);
        else
            buffer_append_format(out, "%u", array == LEAN_IDS ? ids[i] : mask[i]);
    }
}

static struct lean_member make_member(void)
{
    for (int i = 0; i < TOKENS; i++) {
        ids[i] = (uint32_t)(i * 2654435761U >> 15);
        logprobs[i] = -(float)i / 31.0F;
        mask[i] = i % 3 != 0;
    }
    return (struct lean_member){.group_index = 0, .sample_index = 1, .arrays = {ids, logprobs, mask}, .count = TOKENS};
}

static void write_completion(struct buffer *body, const char *separator)
{
    static const char *const names[] = {"completion_ids", "logprobs", "completion_mask"};
    buffer_append_string(body, "{\"text\": \"with \\\"logprobs\\\": [1, 2]\"");
    for (int array = 0; array < LEAN_ARRAYS; array++) {
        buffer_append_format(body, ", \"%s\" : [", names[array]);
        write_array(body, (enum lean_array)array, separator);
        buffer_append_string(body, "]");
    }
    buffer_append_string(body, "}");
}

static bool find_one(void *arg, const struct lean_part *part, struct text *ret_values)
{
    const struct lean_member *member = arg;
    if (part->first + part->count > member->count)
        return false;
    size_t width_bytes = lean_width_bytes[part->array];
    *ret_values =
        (struct text){(const char *)member->arrays[part->array] + part->first * width_bytes, part->count * width_bytes};
    return part->group_index == member->group_index && part->sample_index == member->sample_index;
}

/* Its length without arrays; 0: it has none. It comes out as it was. */
static size_t lean_bytes(const struct buffer *body, const struct lean_member *member)
{
    _cleanup_buffer_ struct buffer lean;
    _cleanup_buffer_ struct buffer out;
    buffer_init(&lean, SIZE_MAX);
    buffer_init(&out, SIZE_MAX);
    bool found = lean_pack(buffer_text(body), member, 1, &lean);
    assert_true(lean_unpack(buffer_text(&lean), find_one, (void *)(uintptr_t)member, &out));
    assert_true(text_same(buffer_text(&out), buffer_text(body)));
    return found ? lean.length_bytes : 0;
}

static void test_a_body_comes_out_as_posted_without_its_arrays_in_between(void **state)
{
    (void)state;
    static const char *const separators[] = {",", ", "};
    struct lean_member member = make_member();
    for (size_t i = 0; i < 2; i++) {
        _cleanup_buffer_ struct buffer body;
        buffer_init(&body, SIZE_MAX);
        write_completion(&body, separators[i]);
        assert_in_range(lean_bytes(&body, &member), 1, 3 * TOKENS + 200);
    }
}

static void test_arrays_as_base64_take_nothing(void **state)
{
    (void)state;
    struct lean_member member = make_member();
    _cleanup_buffer_ struct buffer body;
    buffer_init(&body, SIZE_MAX);
    buffer_append_string(&body, "{\"logprobs_f32\":\"");
    base64_encode(logprobs, sizeof(logprobs), &body);
    buffer_append_string(&body, "\",\"completion_ids_u32\":\"");
    base64_encode(ids, sizeof(ids), &body);
    buffer_append_string(&body, "\",\"completion_mask_u8\":\"");
    base64_encode(mask, sizeof(mask), &body);
    buffer_append_string(&body, "\"}");
    assert_in_range(lean_bytes(&body, &member), 1, 140);
}

static void test_a_text_that_only_looks_like_an_array_is_kept_and_spoils_nothing(void **state)
{
    (void)state;
    struct lean_member member = make_member();
    static const char *const others[] = {
        "\"logprobs\": [1, 2, 3]", "\"completion_ids\": []",     "\"completion_ids\": null", "\"logprobs\"",
        "\"logprobs\": [",         "\"logprobs_f32\": \"AAAA\"", "\"completion_mask\":[1,,", "\"logprobs\" 7",
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        _cleanup_buffer_ struct buffer body;
        buffer_init(&body, SIZE_MAX);
        buffer_append_string(&body, others[i]);
        assert_int_equal(lean_bytes(&body, &member), 0);
        buffer_append_string(&body, " and then ");
        write_completion(&body, ",");
        assert_in_range(lean_bytes(&body, &member), 1, 3 * TOKENS + 300);
    }
}

static void test_an_array_of_other_values_is_kept(void **state)
{
    (void)state;
    struct lean_member member = make_member();
    _cleanup_buffer_ struct buffer body;
    buffer_init(&body, SIZE_MAX);
    write_completion(&body, ", ");
    for (int i = 0; i < TOKENS; i++) {
        ids[i] += 100000;
        logprobs[i] = logprobs[i] * 2 - 1;
    }
    member.arrays[LEAN_MASK] = NULL;
    assert_int_equal(lean_bytes(&body, &member), 0);
}

static void test_a_damaged_lean_form_is_refused(void **state)
{
    (void)state;
    struct lean_member member = make_member();
    _cleanup_buffer_ struct buffer body;
    _cleanup_buffer_ struct buffer lean;
    _cleanup_buffer_ struct buffer out;
    buffer_init(&body, SIZE_MAX);
    buffer_init(&lean, SIZE_MAX);
    buffer_init(&out, 1 << 20);
    write_completion(&body, ", ");
    assert_true(lean_pack(buffer_text(&body), &member, 1, &lean));
    for (size_t i = 1; i < lean.length_bytes; i++) {
        bool whole = lean_unpack((struct text){lean.data, i}, find_one, &member, &out);
        assert_true(!whole || out.length_bytes < body.length_bytes);
        buffer_clear(&out);
    }
    for (size_t i = 0; i < lean.length_bytes; i++) { /* anything but reading beyond it */
        lean.data[i] ^= 0x55;
        (void)lean_unpack(buffer_text(&lean), find_one, &member, &out);
        lean.data[i] ^= 0x55;
        buffer_clear(&out);
    }
}

/* ---- on record --------------------------------------------------------------------------------------------------- */

static void record_score(struct lean_member *member, const struct buffer *body, char ret_id[ID_BYTES])
{
    _cleanup_buffer_ struct buffer lean;
    _cleanup_buffer_ struct buffer packed;
    buffer_init(&lean, SIZE_MAX);
    buffer_init(&packed, SIZE_MAX);
    assert_true(lean_pack(buffer_text(body), member, 1, &lean));
    assert_int_equal(store_pack(buffer_text(&lean), &packed), STORE_CODEC_ZSTD);
    struct store_op op = batch_op(1, 2);
    struct store_new_group group = op.create_batch.groups[0];
    group.given = member;
    group.given_count = 1;
    op.create_batch.groups = &group;
    op.create_batch.request = buffer_text(&packed);
    op.create_batch.request_codec = STORE_CODEC_LEAN;
    op.create_batch.request_bytes = body->length_bytes;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    memcpy(ret_id, op.create_batch.id, ID_BYTES);
}

static void assert_request(const char *id, const struct buffer *body, size_t piece_bytes)
{
    struct store_request_pieces pieces;
    char *out = malloc(body->length_bytes + 1);
    assert_non_null(out);
    assert_int_equal(store_find_request(fixture->reader, text_of(id), &pieces), STORE_OK);
    assert_int_equal(pieces.body_bytes, body->length_bytes);
    while (pieces.told_bytes < pieces.body_bytes) {
        size_t left_bytes = pieces.body_bytes - pieces.told_bytes;
        size_t bytes = left_bytes < piece_bytes ? left_bytes : piece_bytes;
        assert_int_equal(store_read_request_piece(fixture->reader, &pieces, bytes, out + pieces.told_bytes), STORE_OK);
    }
    assert_memory_equal(out, body->data, body->length_bytes);
    store_request_pieces_finish(&pieces);
    free(out);
}

static void test_arrays_that_came_with_a_request_are_on_record_once(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    char group_id[ID_BYTES];
    char rollout_id[ID_BYTES];
    struct lean_member member = make_member();
    struct store_rollouts found;
    _cleanup_buffer_ struct buffer body;
    buffer_init(&body, SIZE_MAX);
    for (int i = 0; i < 200; i++)
        buffer_append_string(&body, "{\"prompt\": \"what is it?\"} ");
    write_completion(&body, ",");
    record_score(&member, &body, batch_id);
    assert_request(batch_id, &body, body.length_bytes);
    assert_request(batch_id, &body, 7);

    struct store_rollout rollout = scored_rollout(1, 1);
    rollout.completion_ids = ids;
    rollout.logprobs = logprobs;
    rollout.completion_mask = mask;
    rollout.token_count = TOKENS;
    assert_int_equal(insert(fixture, batch_id, 0, &rollout), STORE_OK);
    rollout = failed_rollout(0);
    assert_int_equal(insert(fixture, batch_id, 0, &rollout), STORE_OK);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM rollout_arrays"), 0);
    id_of_group(batch_id, 0, group_id);
    id_of_rollout(group_id, 1, rollout_id);
    assert_int_equal(store_read_rollout(fixture->reader, text_of(rollout_id), STORE_WITH_ARRAYS, &found), STORE_OK);
    assert_int_equal(found.rollouts[0].token_count, TOKENS);
    assert_memory_equal(found.rollouts[0].completion_ids, ids, sizeof(ids));
    assert_memory_equal(found.rollouts[0].logprobs, logprobs, sizeof(logprobs));
    assert_memory_equal(found.rollouts[0].completion_mask, mask, sizeof(mask));
    store_rollouts_finish(&found);
}

static void test_a_request_whose_arrays_are_gone_is_not_returned(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    struct lean_member member = make_member();
    struct store_request whole;
    _cleanup_buffer_ struct buffer body;
    buffer_init(&body, SIZE_MAX);
    for (int i = 0; i < 4; i++)
        buffer_append_string(&body, "{\"prompt\": \"what is it? what is it? what is it? what is it?\"} ");
    write_completion(&body, ",");
    record_score(&member, &body, batch_id);
    assert_int_equal(by_hand(fixture, "UPDATE given_arrays SET completion_ids = substr(completion_ids, 5), logprobs = "
                                      "substr(logprobs, 5), completion_mask = substr(completion_mask, 2)"),
                     0);
    assert_int_equal(store_read_request(fixture->reader, text_of(batch_id), &whole), STORE_UNAVAILABLE);
    store_request_finish(&whole);
    assert_int_equal(by_hand(fixture, "DELETE FROM given_arrays"), 0);
    assert_int_equal(store_read_request(fixture->reader, text_of(batch_id), &whole), STORE_UNAVAILABLE);
    store_request_finish(&whole);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_number_that_its_value_predicts_takes_one_byte),
        cmocka_unit_test(test_last_digits_that_the_value_does_not_have_take_a_few_bytes_more),
        cmocka_unit_test(test_any_other_text_comes_out_too),
        cmocka_unit_test(test_a_body_comes_out_as_posted_without_its_arrays_in_between),
        cmocka_unit_test(test_arrays_as_base64_take_nothing),
        cmocka_unit_test(test_a_text_that_only_looks_like_an_array_is_kept_and_spoils_nothing),
        cmocka_unit_test(test_an_array_of_other_values_is_kept),
        cmocka_unit_test(test_a_damaged_lean_form_is_refused),
        CLAIM(test_arrays_that_came_with_a_request_are_on_record_once),
        CLAIM(test_a_request_whose_arrays_are_gone_is_not_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
