#include "server/base/hash.h"
#include "server/base/json_scan.h"
#include "server/base/json_write.h"
#include "tests/unit/base/cmocka_all.h"
#include "tests/unit/base/random.h"

#include <jansson.h>
#include <math.h>

struct written {
    struct buffer out;
    struct json_write json;
};

static void written_init(struct written *written)
{
    buffer_init(&written->out, 10000000);
    json_write_init(&written->json, &written->out);
}

static void written_finish(struct written *written)
{
    buffer_finish(&written->out);
}

#define _cleanup_written_ _cleanup_(written_finish)

static void test_commas_and_nesting_are_kept(void **state)
{
    (void)state;
    _cleanup_written_ struct written w;
    written_init(&w);
    json_object_begin(&w.json);
    json_put_int(&w.json, "a", -1);
    json_key(&w.json, "b");
    json_array_begin(&w.json);
    json_object_begin(&w.json);
    json_object_end(&w.json);
    json_bool(&w.json, true);
    json_write_null(&w.json);
    json_array_end(&w.json);
    json_put_double(&w.json, "c", 1);
    json_put_raw(&w.json, "d", TEXT_LITERAL("{\"e\": 1}"));
    json_put_text(&w.json, "f", TEXT_NONE);
    json_put_string(&w.json, "g", NULL);
    json_put_time(&w.json, "h", 0);
    json_put_time(&w.json, "i", -1);
    json_put_double(&w.json, "j", NAN);
    json_object_end(&w.json);
    assert_string_equal(w.out.data, "{\"a\":-1,\"b\":[{},true,null],\"c\":1.0,\"d\":{\"e\": 1},\"f\":null,\"g\":null,"
                                    "\"h\":\"1970-01-01T00:00:00.000000Z\",\"i\":null,\"j\":null}");
}

static void test_strings_are_escaped_and_mended(void **state)
{
    (void)state;
    _cleanup_written_ struct written w;
    written_init(&w);
    json_text(&w.json, TEXT_LITERAL("a\"\\\n\t\x01\0\x7f/\xc3\xa9\xff"));
    assert_string_equal(w.out.data, "\"a\\\"\\\\\\n\\t\\u0001\\u0000\x7f/\xc3\xa9\xef\xbf\xbd\"");
}

static void test_random_strings_read_back_through_jansson(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        _cleanup_written_ struct written w;
        char bytes[64];
        size_t length = random_below(sizeof(bytes));
        written_init(&w);
        for (size_t j = 0; j < length; j++)
            bytes[j] = (char)(random_u64() & 0x7F);
        json_text(&w.json, (struct text){bytes, length});
        json_t *value = json_loadb(w.out.data, w.out.length_bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        assert_int_equal(json_string_length(value), length);
        assert_memory_equal(json_string_value(value), bytes, length);
        json_decref(value);
    }
}

enum { COUNT = 5000 };

static void test_random_floats_read_back_through_the_scanner(void **state)
{
    (void)state;
    static float values[COUNT];
    static float back[COUNT];
    _cleanup_written_ struct written w;
    struct json_scan scan;
    struct text key;
    written_init(&w);
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits = (uint32_t)random_u64();
        memcpy(&values[i], &bits, sizeof(bits));
        if (!isfinite(values[i]))
            values[i] = NAN;
    }
    json_object_begin(&w.json);
    json_put_f32s(&w.json, "x", values, COUNT, JSON_ARRAYS_PLAIN);
    json_object_end(&w.json);
    json_scan_init(&scan, buffer_text(&w.out));
    assert_true(json_scan_object(&scan) && json_scan_member(&scan, &key));
    assert_int_equal(json_scan_floats(&scan, back, COUNT), COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_true(isnan(values[i]) ? isnan(back[i]) : memcmp(&values[i], &back[i], sizeof(float)) == 0);
}

static void test_random_doubles_read_back_through_jansson(void **state)
{
    (void)state;
    static double values[COUNT];
    _cleanup_written_ struct written w;
    written_init(&w);
    for (int i = 0; i < COUNT; i++) {
        uint64_t bits = random_u64();
        memcpy(&values[i], &bits, sizeof(bits));
        if (i % 2)
            values[i] = ldexp((double)(bits >> 11), -60);
    }
    json_object_begin(&w.json);
    json_put_f64s(&w.json, "x", values, COUNT, JSON_ARRAYS_PLAIN);
    json_object_end(&w.json);
    json_t *root = json_loadb(w.out.data, w.out.length_bytes, 0, NULL);
    const json_t *array = json_object_get(root, "x");
    assert_int_equal(json_array_size(array), COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        const json_t *element = json_array_get(array, i);
        double back = json_real_value(element);
        assert_true(isfinite(values[i]) ? json_is_real(element) && memcmp(&back, &values[i], sizeof(back)) == 0
                                        : json_is_null(element));
    }
    json_decref(root);
}

static void test_integers_are_written_exactly(void **state)
{
    (void)state;
    static const uint32_t ids[] = {0, 7, 10, 99, 100, 32000, 4294967295};
    static const uint8_t bytes[] = {0, 1, 255};
    static const int8_t signs[] = {-1, 0, 127, -128};
    _cleanup_written_ struct written w;
    written_init(&w);
    json_object_begin(&w.json);
    json_put_u32s(&w.json, "ids", ids, 7, JSON_ARRAYS_PLAIN);
    json_put_u8s(&w.json, "mask", bytes, 3, JSON_ARRAYS_PLAIN);
    json_put_i8s(&w.json, "clipped", signs, 4, JSON_ARRAYS_PLAIN);
    json_put_u32s(&w.json, "none", ids, 7, JSON_ARRAYS_NONE);
    json_put_u32s(&w.json, "empty", NULL, 0, JSON_ARRAYS_PLAIN);
    json_object_end(&w.json);
    assert_string_equal(w.out.data,
                        "{\"ids\":[0,7,10,99,100,32000,4294967295],\"mask\":[0,1,255],\"clipped\":[-1,0,127,-128],"
                        "\"empty\":[]}");
}

static void test_packed_arrays_carry_their_suffix(void **state)
{
    (void)state;
    static const float floats[] = {1.0f};
    static const uint32_t ids[] = {1, 2};
    _cleanup_written_ struct written w;
    written_init(&w);
    json_object_begin(&w.json);
    json_put_f32s(&w.json, "logprobs", floats, 1, JSON_ARRAYS_BASE64);
    json_put_u32s(&w.json, "ids", ids, 2, JSON_ARRAYS_BASE64);
    json_object_end(&w.json);
    /* 00 00 80 3f and 01 00 00 00 02 00 00 00, little-endian */
    assert_string_equal(w.out.data, "{\"logprobs_f32\":\"AACAPw==\",\"ids_u32\":\"AQAAAAIAAAA=\"}");
}

static void test_too_deep_nesting_marks_the_buffer(void **state)
{
    (void)state;
    _cleanup_written_ struct written w;
    written_init(&w);
    for (int i = 0; i < 32; i++)
        json_array_begin(&w.json);
    assert_false(w.out.failed);
    json_array_begin(&w.json);
    assert_true(w.out.failed);
    for (int i = 0; i < 100; i++)
        json_array_end(&w.json);
}

static void test_the_maximum_of_the_buffer_counts_what_is_written(void **state)
{
    (void)state;
    static const uint32_t ids[40];
    struct buffer out;
    struct json_write json;
    buffer_init(&out, 81); /* 40 digits, 39 commas, 2 brackets */
    json_write_init(&json, &out);
    json.after_key = true;
    buffer_clear(&out);
    json_array_begin(&json);
    for (int i = 0; i < 40; i++)
        json_int(&json, ids[i]);
    json_array_end(&json);
    assert_false(out.failed);
    json_write_null(&json);
    assert_true(out.failed);
    buffer_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commas_and_nesting_are_kept),
        cmocka_unit_test(test_strings_are_escaped_and_mended),
        cmocka_unit_test(test_random_strings_read_back_through_jansson),
        cmocka_unit_test(test_random_floats_read_back_through_the_scanner),
        cmocka_unit_test(test_random_doubles_read_back_through_jansson),
        cmocka_unit_test(test_integers_are_written_exactly),
        cmocka_unit_test(test_packed_arrays_carry_their_suffix),
        cmocka_unit_test(test_too_deep_nesting_marks_the_buffer),
        cmocka_unit_test(test_the_maximum_of_the_buffer_counts_what_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
