/* Headers from outside: whatever they say, nothing beyond the body is touched. */
#include "server/objective_call/safetensors.h"
#include "tests/unit/base/cmocka_all.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#define HEADER_LIMIT 4096

/* A file in memory of its own size, so that a sanitizer sees the first byte behind it. */
struct bytes {
    char *data;
    size_t length_bytes;
};

static void free_bytes(struct bytes *bytes)
{
    free(bytes->data);
}

#define _cleanup_bytes_ _cleanup_(free_bytes)
#define _cleanup_file_ _cleanup_(safetensors_finish)

static struct bytes make(const char *header, const void *data, size_t data_bytes)
{
    size_t header_bytes = strlen(header);
    struct bytes bytes = {malloc(8 + header_bytes + data_bytes), 8 + header_bytes + data_bytes};
    uint64_t length = htole64(header_bytes);
    memcpy(bytes.data, &length, 8);
    memcpy(bytes.data + 8, header, header_bytes);
    if (data_bytes)
        memcpy(bytes.data + 8 + header_bytes, data, data_bytes);
    return bytes;
}

static int read_file(const struct bytes *bytes, struct safetensors *file, const char **name, char *message)
{
    return safetensors_read((struct text){bytes->data, bytes->length_bytes}, HEADER_LIMIT, file, name, message);
}

static void assert_refused(const char *header, size_t data_bytes, const char *of, const char *because)
{
    _cleanup_free_ char *data = calloc(1, data_bytes + 1);
    _cleanup_bytes_ struct bytes bytes = make(header, data, data_bytes);
    _cleanup_file_ struct safetensors file;
    char message[SAFETENSORS_MESSAGE_BYTES];
    const char *name = NULL;
    assert_int_equal(read_file(&bytes, &file, &name, message), -1);
    assert_string_equal(name, of);
    if (!strstr(message, because))
        fail_msg("\"%s\" does not say \"%s\"", message, because);
}

#define TENSOR(name, dtype, shape, begin, end)                                                                         \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end "]}"

static void test_tensors_are_found_by_name_with_their_values(void **state)
{
    (void)state;
    struct __attribute__((packed)) {
        double f64[2];
        float f32[2];
        int32_t i32;
        uint8_t u8[4];
    } data = {{-0.5, 1e300}, {0.25F, -2}, -7, {1, 0, 255, 1}};
    _cleanup_bytes_ struct bytes bytes =
        make("{\"__metadata__\":{\"request\":\"{}\"}," TENSOR("a", "F64", "2", "0", "16") "," TENSOR(
                 "b", "F32", "2", "16", "24") "," TENSOR("c", "I32", "", "24", "28") "," TENSOR("d", "U8", "2,2", "28",
                                                                                                "32") "}   ",
             &data, sizeof data);
    _cleanup_file_ struct safetensors file;
    char message[SAFETENSORS_MESSAGE_BYTES];
    const char *name;
    assert_int_equal(read_file(&bytes, &file, &name, message), 0);
    assert_int_equal(file.count, 4);
    assert_true(safetensor_value(safetensors_find(&file, "a"), 1) == 1e300);
    assert_true(safetensor_value(safetensors_find(&file, "b"), 0) == 0.25);
    assert_int_equal(safetensors_find(&file, "c")->count, 1);
    assert_true(safetensor_value(safetensors_find(&file, "c"), 0) == -7);
    assert_int_equal(safetensors_find(&file, "d")->rank, 2);
    assert_true(safetensor_value(safetensors_find(&file, "d"), 2) == 255);
    assert_null(safetensors_find(&file, "e"));
    assert_true(text_equals(safetensors_metadata(&file, "request"), "{}"));
    assert_null(safetensors_metadata(&file, "reply").data);
}

static void test_tensors_may_stand_in_any_order_and_be_empty(void **state)
{
    (void)state;
    _cleanup_bytes_ struct bytes bytes = make("{" TENSOR("z", "U8", "1", "4", "5") "," TENSOR(
                                                  "e", "F32", "0", "4", "4") "," TENSOR("a", "F32", "1", "0", "4") "}",
                                              "\0\0\x80\x3f\x07", 5);
    _cleanup_file_ struct safetensors file;
    char message[SAFETENSORS_MESSAGE_BYTES];
    const char *name;
    assert_int_equal(read_file(&bytes, &file, &name, message), 0);
    assert_true(safetensor_value(safetensors_find(&file, "a"), 0) == 1.0);
    assert_true(safetensor_value(safetensors_find(&file, "z"), 0) == 7.0);
    assert_int_equal(safetensors_find(&file, "e")->count, 0);
}

static void test_a_file_that_is_cut_is_refused_wherever_it_is_cut(void **state)
{
    (void)state;
    _cleanup_bytes_ struct bytes whole = make("{" TENSOR("a", "F32", "2", "0", "8") "}", "12345678", 8);
    for (size_t length = 0; length < whole.length_bytes; length++) {
        _cleanup_free_ char *exact = malloc(length ? length : 1);
        memcpy(exact, whole.data, length);
        _cleanup_file_ struct safetensors file;
        char message[SAFETENSORS_MESSAGE_BYTES];
        const char *name;
        assert_int_equal(safetensors_read((struct text){exact, length}, HEADER_LIMIT, &file, &name, message), -1);
    }
}

static void test_a_header_length_that_lies_is_refused(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {HEADER_LIMIT + 1, UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63, 200, 0};
    for (size_t i = 0; i < ARRAY_LENGTH(lengths); i++) {
        _cleanup_bytes_ struct bytes bytes = make("{}", "", 0);
        uint64_t length = htole64(lengths[i]);
        memcpy(bytes.data, &length, 8);
        _cleanup_file_ struct safetensors file;
        char message[SAFETENSORS_MESSAGE_BYTES];
        const char *name;
        assert_int_equal(read_file(&bytes, &file, &name, message), -1);
    }
}

static void test_offsets_outside_the_data_are_refused(void **state)
{
    (void)state;
    assert_refused("{" TENSOR("a", "F32", "2", "0", "8") "}", 7, "a", "not within the 7 bytes");
    assert_refused("{" TENSOR("a", "F32", "1", "8", "4") "}", 8, "a", "not within");
    assert_refused("{" TENSOR("a", "F32", "1", "-4", "0") "}", 8, "a", "not within");
    assert_refused("{" TENSOR("a", "F32", "1", "9223372036854775804", "9223372036854775807") "}", 8, "a", "not within");
    assert_refused("{" TENSOR("a", "F32", "1", "0", "4.0") "}", 8, "a", "two integers");
    assert_refused("{" TENSOR("a", "F32", "1", "0,2", "4") "}", 8, "a", "two integers");
}

static void test_a_shape_that_does_not_fit_its_bytes_is_refused(void **state)
{
    (void)state;
    assert_refused("{" TENSOR("a", "F32", "2", "0", "4") "}", 4, "a", "another number of bytes");
    assert_refused("{" TENSOR("a", "F64", "1", "0", "4") "}", 4, "a", "another number of bytes");
    assert_refused("{" TENSOR("a", "F32", "4611686018427387905", "0", "4") "}", 4, "a", "another number of bytes");
    assert_refused("{" TENSOR("a", "U8", "4294967296,4294967296", "0", "4") "}", 4, "a", "beyond any memory");
    assert_refused("{" TENSOR("a", "U8", "-1", "0", "4") "}", 4, "a", "at least 0");
    assert_refused("{" TENSOR("a", "U8", "1,1,1,1,1,1,1,1,4", "0", "4") "}", 4, "a", "at most 8");
}

static void test_overlaps_holes_and_rests_are_refused(void **state)
{
    (void)state;
    assert_refused("{" TENSOR("a", "U8", "4", "0", "4") "," TENSOR("b", "U8", "4", "2", "6") "}", 6, "b", "overlap");
    assert_refused("{" TENSOR("a", "U8", "4", "0", "4") "," TENSOR("b", "U8", "4", "0", "4") "}", 4, "b", "overlap");
    assert_refused("{" TENSOR("a", "U8", "2", "0", "2") "," TENSOR("b", "U8", "2", "4", "6") "}", 6, "b", "hole");
    assert_refused("{" TENSOR("a", "U8", "2", "0", "2") "}", 3, "", "1 bytes at the end");
}

static void test_a_header_of_another_form_is_refused(void **state)
{
    (void)state;
    assert_refused("", 0, "", "no JSON");
    assert_refused("[]", 0, "", "no JSON object");
    assert_refused("{\"a\":1", 0, "", "no JSON");
    assert_refused("{\"a\":1}", 0, "a", "dtype, shape and data_offsets");
    assert_refused("{" TENSOR("a", "F8_E5M2", "2", "0", "2") "}", 2, "a", "none of");
    assert_refused("{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1, "a", "list");
    assert_refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1}}", 1, "a", "nothing else");
    assert_refused("{" TENSOR("a", "U8", "1", "0", "1") "," TENSOR("a", "U8", "1", "0", "1") "}", 1, "", "no JSON");
    assert_refused("{\"__metadata__\":{\"request\":1}}", 0, "__metadata__", "object of texts");
    assert_refused("{\"__metadata__\":[]}", 0, "__metadata__", "object of texts");
    assert_refused("{\"__metadata__\":{\"r\":\"\xff\"}}", 0, "", "no JSON");
}

static void test_more_tensors_than_are_read_are_refused(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer header;
    buffer_init(&header, 1 << 20);
    buffer_append_byte(&header, '{');
    for (int i = 0; i <= SAFETENSORS_MAX; i++)
        buffer_append_format(&header, "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i ? "," : "",
                             i);
    buffer_append_byte(&header, '}');
    _cleanup_bytes_ struct bytes bytes = make(header.data, "", 0);
    _cleanup_file_ struct safetensors file;
    char message[SAFETENSORS_MESSAGE_BYTES];
    const char *name;
    assert_int_equal(safetensors_read((struct text){bytes.data, bytes.length_bytes}, 1 << 20, &file, &name, message),
                     -1);
    assert_non_null(strstr(message, "64"));
}

/* By the definition of the format, IEEE 754: 2^(e-15) times the fraction, 2^-14 for what is subnormal. */
static double f16_by_definition(uint32_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    double fraction = (bits & 1023) / 1024.0;
    double magnitude = exponent ? ldexp(1 + fraction, exponent - 15) : ldexp(fraction, -14);
    if (exponent == 31)
        magnitude = fraction > 0 ? NAN : INFINITY;
    return bits & 0x8000 ? -magnitude : magnitude;
}

static void assert_same_number(double value, double expected)
{
    if (isnan(expected) ? !isnan(value) : !(value == expected && signbit(value) == signbit(expected)))
        fail_msg("%a is not %a", value, expected);
}

/* F21 */
static void test_every_half_is_widened_exactly(void **state)
{
    enum { ALL = 65536 };
    static uint16_t bits[2 * ALL];
    static float widened[ALL];
    (void)state;
    for (size_t i = 0; i < ALL; i++)
        bits[i] = bits[ALL + i] = (uint16_t)i;
    _cleanup_bytes_ struct bytes bytes =
        make("{" TENSOR("h", "F16", "65536", "0", "131072") "," TENSOR("b", "BF16", "65536", "131072", "262144") "} ",
             bits, sizeof bits);
    _cleanup_file_ struct safetensors file;
    char message[SAFETENSORS_MESSAGE_BYTES];
    const char *name;
    assert_int_equal(read_file(&bytes, &file, &name, message), 0);
    safetensor_widen(safetensors_find(&file, "h"), widened);
    for (uint32_t i = 0; i < ALL; i++) {
        assert_same_number(widened[i], f16_by_definition(i));
        assert_same_number(safetensor_value(safetensors_find(&file, "h"), i), f16_by_definition(i));
    }
    safetensor_widen(safetensors_find(&file, "b"), widened);
    for (uint32_t i = 0; i < ALL; i++) {
        uint32_t expected_bits = i << 16;
        float expected;
        memcpy(&expected, &expected_bits, sizeof expected);
        assert_same_number(widened[i], expected);
        assert_same_number(safetensor_value(safetensors_find(&file, "b"), i), expected);
    }
}

static void test_tensors_that_are_not_aligned_are_noted_and_read(void **state)
{
    (void)state;
    _cleanup_bytes_ struct bytes bytes =
        make("{" TENSOR("a", "U8", "1", "0", "1") "," TENSOR("b", "F32", "1", "1", "5") "}", "\x01\0\0\x80\x3f", 5);
    _cleanup_file_ struct safetensors file;
    char message[SAFETENSORS_MESSAGE_BYTES];
    const char *name;
    assert_int_equal(read_file(&bytes, &file, &name, message), 0);
    const struct safetensor *tensor = safetensors_find(&file, "b");
    assert_int_equal(tensor->aligned, (uintptr_t)tensor->data % 4 == 0);
    assert_true(safetensor_value(tensor, 0) == 1.0);
}

static void test_a_written_file_can_be_read_again(void **state)
{
    (void)state;
    static const struct safetensors_column columns[] = {
        {"x", TENSOR_F64, 2}, {"cu_seqlens", TENSOR_I64, 1}, {"m", TENSOR_U8, 3}};
    double x[2] = {0.1, -3};
    int64_t cu = 5;
    _cleanup_buffer_ struct buffer out;
    buffer_init(&out, 1 << 16);
    safetensors_write_header(&out, columns, 3, "reply", TEXT_LITERAL("{\"loss\":1.0,\"note\":\"\\u0000\"}"));
    assert_int_equal(out.length_bytes % 8, 0);
    buffer_append(&out, x, sizeof x);
    buffer_append(&out, &cu, sizeof cu);
    buffer_append(&out, "\1\0\1", 3);
    _cleanup_file_ struct safetensors file;
    char message[SAFETENSORS_MESSAGE_BYTES];
    const char *name;
    assert_int_equal(safetensors_read(buffer_text(&out), HEADER_LIMIT, &file, &name, message), 0);
    assert_true(safetensors_find(&file, "x")->aligned && safetensors_find(&file, "cu_seqlens")->aligned);
    assert_true(safetensor_value(safetensors_find(&file, "x"), 0) == 0.1);
    assert_true(safetensor_value(safetensors_find(&file, "cu_seqlens"), 0) == 5);
    assert_true(safetensor_value(safetensors_find(&file, "m"), 2) == 1);
    assert_true(text_equals(safetensors_metadata(&file, "reply"), "{\"loss\":1.0,\"note\":\"\\u0000\"}"));
}

/* Texts of 1,024 bytes and more go another way than short ones; nobody is to see which. */
static char *header_with(const char *before, const char *text)
{
    char *header = NULL;
    char x[2001] = "";
    memset(x, 'x', sizeof x - 1);
    assert_true(
        asprintf(&header, "{%s\"__metadata__\":{\"a\":\"b\",\"request\":\"%s%s\",\"z\":\"\"}}", before, x, text) > 0);
    return header;
}

static void test_a_long_text_of_the_metadata_is_read_as_a_short_one(void **state)
{
    (void)state;
    static const char end[] = "\"\\/\n\xF0\x9F\x98\x80\xC3\xA9\0x";
    _cleanup_free_ char *header =
        header_with(TENSOR("t", "U8", "1", "0", "1") ",", "\\\"\\\\\\/\\n\\ud83d\\ude00\xC3\xA9\\u0000x");
    _cleanup_bytes_ struct bytes bytes = make(header, "\1", 1);
    _cleanup_file_ struct safetensors file;
    char message[SAFETENSORS_MESSAGE_BYTES];
    const char *name;
    assert_int_equal(read_file(&bytes, &file, &name, message), 0);
    struct text text = safetensors_metadata(&file, "request");
    assert_int_equal(text.length_bytes, 2000 + sizeof end - 1);
    assert_memory_equal(text.data, "xxxx", 4);
    assert_memory_equal(text.data + 2000, end, sizeof end - 1);
    assert_true(text_equals(safetensors_metadata(&file, "a"), "b"));
    assert_true(text_equals(safetensors_metadata(&file, "z"), ""));
    assert_true(safetensor_value(safetensors_find(&file, "t"), 0) == 1);
}

static void test_a_long_text_under_a_name_with_escapes_is_found_by_its_name(void **state)
{
    (void)state;
    _cleanup_free_ char *header = header_with("", "");
    char *name_at = strstr(header, "\"request\"");
    _cleanup_free_ char *escaped = NULL;
    *name_at = '\0';
    assert_true(asprintf(&escaped, "%s\"\\u0072equest\"%s", header, name_at + strlen("\"request\"")) > 0);
    _cleanup_bytes_ struct bytes bytes = make(escaped, "", 0);
    _cleanup_file_ struct safetensors file;
    char message[SAFETENSORS_MESSAGE_BYTES];
    const char *name;
    assert_int_equal(read_file(&bytes, &file, &name, message), 0);
    assert_int_equal(safetensors_metadata(&file, "request").length_bytes, 2000);
}

static void test_faults_in_or_beside_a_long_text_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"\\ud800",
                                        "\\udc00x",
                                        "\\x",
                                        "\n",
                                        "\xff",
                                        "\xED\xA0\x80",
                                        "\xC0\x80",
                                        "\",\"request\":\"",
                                        "\",\"\\u0072equest\":\""};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        _cleanup_free_ char *header = header_with("", texts[i]);
        assert_refused(header, 0, "", "no JSON");
    }
    _cleanup_free_ char *number = header_with("", "\",\"n\":1,\"m\":\"");
    assert_refused(number, 0, "__metadata__", "object of texts");
    _cleanup_free_ char *tensor = header_with("\"t\":1,", "");
    assert_refused(tensor, 0, "t", "dtype, shape and data_offsets");
    _cleanup_free_ char *twice = header_with("\"__metadata__\":{},", "");
    assert_refused(twice, 0, "", "no JSON");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors_are_found_by_name_with_their_values),
        cmocka_unit_test(test_tensors_may_stand_in_any_order_and_be_empty),
        cmocka_unit_test(test_a_file_that_is_cut_is_refused_wherever_it_is_cut),
        cmocka_unit_test(test_a_header_length_that_lies_is_refused),
        cmocka_unit_test(test_offsets_outside_the_data_are_refused),
        cmocka_unit_test(test_a_shape_that_does_not_fit_its_bytes_is_refused),
        cmocka_unit_test(test_overlaps_holes_and_rests_are_refused),
        cmocka_unit_test(test_a_header_of_another_form_is_refused),
        cmocka_unit_test(test_more_tensors_than_are_read_are_refused),
        cmocka_unit_test(test_every_half_is_widened_exactly),
        cmocka_unit_test(test_tensors_that_are_not_aligned_are_noted_and_read),
        cmocka_unit_test(test_a_written_file_can_be_read_again),
        cmocka_unit_test(test_a_long_text_of_the_metadata_is_read_as_a_short_one),
        cmocka_unit_test(test_a_long_text_under_a_name_with_escapes_is_found_by_its_name),
        cmocka_unit_test(test_faults_in_or_beside_a_long_text_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
