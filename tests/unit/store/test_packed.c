/* Large texts as the record keeps them; requests whole and in pieces, packed and plain. */
#include "server/store/packed.h"
#include "server/store/request.h"
#include "tests/unit/store/fixture.h"

#include <stdio.h>
#include <string.h>

static struct fixture *fixture;

static void use(void **state)
{
    fixture = *state;
}

/* Compressible, and without a period that a piece could hide. */
static struct text make_text(size_t length_bytes)
{
    char *bytes = malloc(length_bytes + 1);
    assert_non_null(bytes);
    uint32_t number = 1;
    for (size_t i = 0; i < length_bytes; i++) {
        number = number * 1664525 + 1013904223;
        bytes[i] = (char)('a' + (number >> 24) % 7);
    }
    return (struct text){bytes, length_bytes};
}

static void free_text(struct text text)
{
    free((char *)(uintptr_t)text.data);
}

static void test_a_packed_text_is_smaller_and_is_unpacked_unchanged(void **state)
{
    (void)state;
    struct text plain = make_text(100000);
    _cleanup_buffer_ struct buffer packed = {0};
    char *out = malloc(plain.length_bytes);
    buffer_init(&packed, SIZE_MAX);
    assert_int_equal(store_pack(plain, &packed), STORE_CODEC_ZSTD);
    assert_true(packed.length_bytes < plain.length_bytes / 2);
    assert_true(store_unpack(STORE_CODEC_ZSTD, buffer_text(&packed), out, plain.length_bytes));
    assert_memory_equal(out, plain.data, plain.length_bytes);
    assert_false(store_unpack(STORE_CODEC_ZSTD, buffer_text(&packed), out, plain.length_bytes - 1));
    assert_false(store_unpack(STORE_CODEC_ZSTD, plain, out, plain.length_bytes));
    free(out);
    free_text(plain);
}

static void test_a_text_that_packing_does_not_shrink_stays_plain(void **state)
{
    (void)state;
    uint8_t noise[4096];
    _cleanup_buffer_ struct buffer packed = {0};
    buffer_init(&packed, SIZE_MAX);
    buffer_append_string(&packed, "before");
    uint32_t number = 7;
    for (size_t i = 0; i < sizeof(noise); i++) {
        number = number * 1664525 + 1013904223;
        noise[i] = (uint8_t)(number >> 24);
    }
    assert_int_equal(store_pack((struct text){(const char *)noise, sizeof(noise)}, &packed), STORE_CODEC_PLAIN);
    assert_int_equal(store_pack(TEXT_LITERAL("short"), &packed), STORE_CODEC_PLAIN);
    assert_int_equal(store_pack(TEXT_LITERAL(""), &packed), STORE_CODEC_PLAIN);
    assert_true(text_equals(buffer_text(&packed), "before"));
}

static void test_damage_is_found_and_nothing_is_read_beyond_it(void **state)
{
    (void)state;
    struct text plain = make_text(5000);
    _cleanup_buffer_ struct buffer packed = {0};
    char out[5000];
    buffer_init(&packed, SIZE_MAX);
    assert_int_equal(store_pack(plain, &packed), STORE_CODEC_ZSTD);
    for (size_t cut = 0; cut < packed.length_bytes; cut += 7)
        assert_false(store_unpack(STORE_CODEC_ZSTD, (struct text){packed.data, cut}, out, sizeof(out)));
    const size_t wrong[] = {0, sizeof(out) - 1, sizeof(out) + 1, (size_t)1 << 60, SIZE_MAX - 1, SIZE_MAX};
    char *small = malloc(1);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(store_unpack(STORE_CODEC_ZSTD, buffer_text(&packed), small, wrong[i]));
    free(small);
    for (size_t i = 0; i < packed.length_bytes;
         i++) { /* another text is never read: some bits of a frame mean nothing */
        packed.data[i] ^= 0x10;
        assert_true(!store_unpack(STORE_CODEC_ZSTD, buffer_text(&packed), out, sizeof(out)) ||
                    memcmp(out, plain.data, sizeof(out)) == 0);
        packed.data[i] ^= 0x10;
    }
    packed.data[0] ^= 0x55;
    struct store_unpacking *unpacking = store_unpacking_create();
    struct text left = buffer_text(&packed);
    assert_int_equal(store_unpack_some(unpacking, &left, out, sizeof(out)), -1);
    store_unpacking_destroy(unpacking);
    free_text(plain);
}

static void test_a_text_says_its_length_and_is_not_believed_beyond_what_its_bytes_can_hold(void **state)
{
    (void)state;
    struct text plain = make_text(5000);
    static char zeros[1 << 20];
    _cleanup_buffer_ struct buffer packed = {0};
    size_t bytes = 0;
    buffer_init(&packed, SIZE_MAX);
    assert_true(store_pack_text(plain, &packed).data == packed.data);
    assert_true(store_unpacked_bytes(buffer_text(&packed), &bytes));
    assert_int_equal(bytes, 5000);
    assert_false(store_unpacked_bytes(plain, &bytes));
    buffer_clear(&packed);
    struct text of_zeros = store_pack_text((struct text){zeros, sizeof(zeros)}, &packed);
    assert_true(store_unpacked_bytes(of_zeros, &bytes));
    assert_int_equal(bytes, sizeof(zeros));
    /* Magic, a header with a length of 8 bytes, an empty last block. */
    static const char huge[] = "\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\0\4\0\1\0\0";
    assert_false(store_unpacked_bytes((struct text){huge, sizeof(huge) - 1}, &bytes));
    free_text(plain);
}

static void test_a_short_text_of_a_rollout_stays_plain(void **state)
{
    (void)state;
    struct text plain = make_text(511);
    _cleanup_buffer_ struct buffer packed = {0};
    buffer_init(&packed, SIZE_MAX);
    assert_null(store_pack_text(plain, &packed).data);
    assert_null(store_pack_text(TEXT_NONE, &packed).data);
    assert_int_equal(packed.length_bytes, 0);
    free_text(plain);
}

/* ---- rollouts
 * --------------------------------------------------------------------------------------------------------------- */

static void assert_read_text(const char *batch_id, int64_t sample_index, struct text text)
{
    char group_id[ID_BYTES];
    char rollout_id[ID_BYTES];
    struct store_rollouts found;
    id_of_group(batch_id, 0, group_id);
    id_of_rollout(group_id, sample_index, rollout_id);
    assert_int_equal(store_read_rollout(fixture->reader, text_of(rollout_id), STORE_WITH_TEXT, &found), STORE_OK);
    assert_true(text_same(found.rollouts[0].text, text));
    store_rollouts_finish(&found);
}

static void test_a_rollout_is_read_with_its_text_in_either_form(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    struct text texts[] = {make_text(3000), TEXT_LITERAL("a needle"), make_text(3000)};
    record_batch(fixture, 1, 3, batch_id);
    for (int i = 0; i < 3; i++) {
        _cleanup_buffer_ struct buffer packed = {0};
        struct store_rollout rollout = scored_rollout(i, 1);
        buffer_init(&packed, SIZE_MAX);
        rollout.text = texts[i];
        rollout.packed_text = store_pack_text(texts[i], &packed);
        rollout.completion_ids = NULL; /* the text decides on duplicates */
        rollout.logprobs = NULL;
        assert_int_equal(insert(fixture, batch_id, 0, &rollout), STORE_OK);
    }
    assert_int_equal(
        number_by_hand(fixture, "SELECT count(*) FROM rollout_texts WHERE text IS NULL AND packed NOT NULL"), 2);
    for (int i = 0; i < 3; i++)
        assert_read_text(batch_id, i, texts[i]);
    assert_int_equal(close_group(fixture, batch_id, 0, 3, (double[]){0, 0, 0}, 1, 0), STORE_OK);
    assert_int_equal(number_by_hand(fixture, "SELECT sum(sample_index * duplicate) FROM rollouts"), 2);
    free_text(texts[0]);
    free_text(texts[2]);
}

/* ---- requests
 * --------------------------------------------------------------------------------------------------------------- */

static void record_request(struct text body, bool pack, char ret_id[ID_BYTES])
{
    _cleanup_buffer_ struct buffer packed = {0};
    struct store_op op = batch_op(1, 1);
    buffer_init(&packed, SIZE_MAX);
    op.create_batch.request = body;
    op.create_batch.request_bytes = body.length_bytes;
    if (pack) {
        op.create_batch.request_codec = store_pack(body, &packed);
        assert_int_equal(op.create_batch.request_codec, STORE_CODEC_ZSTD);
        op.create_batch.request = buffer_text(&packed);
    }
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    memcpy(ret_id, op.create_batch.id, ID_BYTES);
}

static void assert_read(const char *id, struct text body, size_t piece_bytes)
{
    struct store_request whole;
    struct store_request_pieces pieces;
    char *out = malloc(body.length_bytes + 1);
    assert_int_equal(store_read_request(fixture->reader, text_of(id), &whole), STORE_OK);
    assert_true(text_same(whole.body, body));
    store_request_finish(&whole);
    assert_int_equal(store_find_request(fixture->reader, text_of(id), &pieces), STORE_OK);
    assert_int_equal(pieces.body_bytes, body.length_bytes);
    while (pieces.told_bytes < pieces.body_bytes) {
        size_t left_bytes = pieces.body_bytes - pieces.told_bytes;
        size_t bytes = left_bytes < piece_bytes ? left_bytes : piece_bytes;
        assert_int_equal(store_read_request_piece(fixture->reader, &pieces, bytes, out + pieces.told_bytes), STORE_OK);
    }
    assert_memory_equal(out, body.data, body.length_bytes);
    store_request_pieces_finish(&pieces);
    free(out);
}

static void test_a_request_is_read_as_posted_packed_or_plain_whole_or_in_pieces(void **state)
{
    use(state);
    struct text body = make_text(3 << 20);
    for (int pack = 0; pack < 2; pack++) {
        char id[ID_BYTES];
        record_request(body, pack, id);
        assert_read(id, body, body.length_bytes);
        assert_read(id, body, 65537);
        assert_read(id, body, 1 << 20);
    }
    assert_int_equal(number_by_hand(fixture, "SELECT count(DISTINCT codec) FROM requests"), 2);
    free_text(body);
}

static void test_a_request_of_a_database_from_before_is_plain(void **state)
{
    use(state);
    char id[ID_BYTES];
    record_request(TEXT_LITERAL("{\"x\": 1}"), false, id);
    assert_int_equal(by_hand(fixture, "UPDATE requests SET body_bytes = NULL"), 0);
    assert_read(id, TEXT_LITERAL("{\"x\": 1}"), 3);
}

static void test_a_damaged_request_is_not_returned(void **state)
{
    use(state);
    char id[ID_BYTES];
    char out[4096];
    struct text body = make_text(4096);
    struct store_request whole;
    struct store_request_pieces pieces;
    record_request(body, true, id);
    assert_int_equal(by_hand(fixture, "UPDATE requests SET body = substr(body, 1, length(body) - 9)"), 0);
    assert_int_equal(store_read_request(fixture->reader, text_of(id), &whole), STORE_UNAVAILABLE);
    store_request_finish(&whole);
    assert_int_equal(store_find_request(fixture->reader, text_of(id), &pieces), STORE_OK);
    assert_int_equal(store_read_request_piece(fixture->reader, &pieces, sizeof(out), out), STORE_UNAVAILABLE);
    store_request_pieces_finish(&pieces);
    free_text(body);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_packed_text_is_smaller_and_is_unpacked_unchanged),
        cmocka_unit_test(test_a_text_that_packing_does_not_shrink_stays_plain),
        cmocka_unit_test(test_damage_is_found_and_nothing_is_read_beyond_it),
        cmocka_unit_test(test_a_text_says_its_length_and_is_not_believed_beyond_what_its_bytes_can_hold),
        cmocka_unit_test(test_a_short_text_of_a_rollout_stays_plain),
        CLAIM(test_a_rollout_is_read_with_its_text_in_either_form),
        CLAIM(test_a_request_is_read_as_posted_packed_or_plain_whole_or_in_pieces),
        CLAIM(test_a_request_of_a_database_from_before_is_plain),
        CLAIM(test_a_damaged_request_is_not_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
