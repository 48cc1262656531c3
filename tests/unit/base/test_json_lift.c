#include "server/base/json_scan.h"
#include "tests/unit/base/cmocka_all.h"
#include "tests/unit/base/random_json.h"

#include <jansson.h>
#include <math.h>

static const char *const keys[] = {"logprobs", "mask", NULL};

struct document {
    char *text;
    size_t length_bytes;
    struct lifted lifted;
};

static struct document lift(const char *text)
{
    struct document document = {xstrdup(text), strlen(text), {0}};
    json_lift_numbers(text_of(document.text), keys, &document.lifted);
    assert_string_equal(document.text, text);
    lifted_overwrite(&document.lifted, document.text);
    return document;
}

static void document_finish(struct document *document)
{
    free(document->text);
    lifted_finish(&document->lifted);
}

#define _cleanup_document_ _cleanup_(document_finish)

#define THIRTY_TWO_BYTES "[1.5, -2, null, 3e2, 5,    6,7,8]"

static void test_the_values_are_those_of_the_text(void **state)
{
    (void)state;
    _cleanup_document_ struct document document = lift("{\"logprobs\": " THIRTY_TWO_BYTES ", \"n\": 1}");
    static const double expected[] = {1.5, -2, NAN, 300, 5, 6, 7, 8};
    assert_int_equal(document.lifted.count, 1);
    const struct lifted_array *array = &document.lifted.arrays[0];
    assert_int_equal(array->count, 8);
    assert_true(array->has_null);
    assert_false(array->all_integer);
    for (size_t i = 0; i < 8; i++)
        assert_true(array->values[i] == expected[i] || (isnan(array->values[i]) && isnan(expected[i])));
}

static void test_the_string_in_its_place_leads_back_to_the_array(void **state)
{
    (void)state;
    _cleanup_document_ struct document document =
        lift("{\"a\": {\"mask\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}, \"logprobs\": " THIRTY_TWO_BYTES "}");
    json_t *root = json_loadb(document.text, document.length_bytes, 0, NULL);
    const json_t *mask = json_object_get(json_object_get(root, "a"), "mask");
    const json_t *logprobs = json_object_get(root, "logprobs");
    struct text mask_text = {json_string_value(mask), json_string_length(mask)};
    struct text logprobs_text = {json_string_value(logprobs), json_string_length(logprobs)};
    assert_ptr_equal(lifted_find(&document.lifted, mask_text), &document.lifted.arrays[0]);
    assert_true(document.lifted.arrays[0].all_integer);
    assert_int_equal(document.lifted.arrays[0].count, 17);
    assert_ptr_equal(lifted_find(&document.lifted, logprobs_text), &document.lifted.arrays[1]);
    json_decref(root);
}

static void test_the_text_is_read_with_strings_instead_of_arrays_whatever_the_buffer(void **state)
{
    (void)state;
    static const char text[] =
        "{\"logprobs\": " THIRTY_TWO_BYTES ", \"a b\" : 1, \"mask\":[1,1,1,1,1,1,1,1,\n\n1,1,1,1,1,1,1,1,1,1,1,1,1] }";
    _cleanup_document_ struct document document = lift(text);
    char mark[40];
    char expected[200];
    memcpy(mark, strchr(document.text, '@'), 18);
    mark[18] = '\0';
    snprintf(expected, sizeof(expected), "{\"logprobs\": \"%s0\", \"a b\" : 1, \"mask\":\"%s1\" }", mark, mark);
    assert_int_equal(document.lifted.count, 2);
    for (size_t buffer_bytes = 1; buffer_bytes < 100; buffer_bytes++) {
        struct lifted_reader reader;
        lifted_reader_init(&reader, text_of(text), &document.lifted);
        char got[400] = "";
        size_t length = 0;
        for (size_t read = 1; read > 0 && length < 200; length += read)
            read = lifted_read(got + length, buffer_bytes, &reader);
        assert_string_equal(got, expected);
    }
}

static void test_an_ordinary_string_stands_for_nothing(void **state)
{
    (void)state;
    _cleanup_document_ struct document document = lift("{\"logprobs\": " THIRTY_TWO_BYTES "}");
    static const char *const texts[] = {"", "@", "@0:0", "@0123456789abcdef:0", "x"};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        assert_null(lifted_find(&document.lifted, text_of(texts[i])));
    json_t *root = json_loadb(document.text, document.length_bytes, 0, NULL);
    char mark[64];
    strcpy(mark, json_string_value(json_object_get(root, "logprobs")));
    json_decref(root);
    assert_non_null(lifted_find(&document.lifted, text_of(mark)));
    mark[strlen(mark) - 1] = '1';
    assert_null(lifted_find(&document.lifted, text_of(mark)));
    mark[strlen(mark) - 1] = ':';
    assert_null(lifted_find(&document.lifted, text_of(mark)));
}

static void assert_untouched(const char *text)
{
    _cleanup_document_ struct document document = lift(text);
    assert_int_equal(document.lifted.count, 0);
    assert_string_equal(document.text, text);
}

static void test_arrays_that_are_not_for_lifting_are_left_alone(void **state)
{
    (void)state;
    assert_untouched("{\"other\": " THIRTY_TWO_BYTES "}");
    assert_untouched("{\"logprobs\": [1,2,3]}");
    assert_untouched("{\"logprobs\": [[1,2,3,4,5,6,7,8,9,10,11,12,13]]}");
    assert_untouched("{\"logprobs\": [1,2,3,4,5,6,7,8,9,10,11,12,\"13\"]}");
    assert_untouched("{\"logprobs\": [1,2,3,4,5,6,7,8,9,10,11,12,true]}");
    assert_untouched("{\"logprobs\": [1,2,3,4,5,6,7,8,9,10,11,12,1e400]}");
    assert_untouched("{\"logprobs\": [1,2,3,4,5,6,7,8,9,10,11,12,NaN]}");
    assert_untouched("{\"logprobs\": [1,2,3,4,5,6,7,8,9,10,11,12,,13]}");
    assert_untouched("{\"logprobs\": [1,2,3,4,5,6,7,8,9,10,11,12,13,]}");
    assert_untouched("{\"logprobs\": [1,2,3,4,5,6,7,8,9,10,11,12,013]}");
    assert_untouched("{\"logprobs\": [1,2,3,4,5,6,7,8,9,10,11,12,13 14]}");
    assert_untouched("{\"logprobs\": [1,2,3,4,5,6,7,8,9,10,11,12,nul]}");
    assert_untouched("[\"logprobs\", " THIRTY_TWO_BYTES "]");
    assert_untouched("{\"logprobs\" " THIRTY_TWO_BYTES "}");
    assert_untouched("{\"logprobs\": [1,2,3,4,5,6,7,8,9,10,11,12,13");
    assert_untouched(THIRTY_TWO_BYTES);
    assert_untouched("");
}

static void test_integers_that_double_would_change_are_left_for_jansson(void **state)
{
    (void)state;
    _cleanup_document_ struct document document = lift("{\"mask\": [1,2,3,4,5,6,9007199254740992,-9007199254740992]}");
    assert_int_equal(document.lifted.count, 1);
    assert_untouched("{\"mask\": [1,2,3,4,5,6,9007199254740993,1,1,1]}");
    assert_untouched("{\"mask\": [1,2,3,4,5,6,99999999999999999999999]}");
}

/* --- line and column --- */

static void random_numbers(struct buffer *out)
{
    static const char *const separators[] = {",", ", ", ",\n", ",\n      ", ",\r\n\t", " ,"};
    const char *separator = separators[random_below(ARRAY_LENGTH(separators))];
    buffer_append_byte(out, '[');
    buffer_append_string(out, random_below(3) ? "" : "\n        ");
    for (uint64_t i = 0, count = random_below(30); i < count; i++) {
        buffer_append_string(out, i == 0 ? "" : random_below(9) ? separator : ",\n\n\n");
        buffer_append_format(out, "%g", (double)(int64_t)random_below(20000) / 100 - 100);
    }
    buffer_append_string(out, random_below(3) ? "]" : "\n    ]");
}

static void random_request(struct buffer *out)
{
    buffer_append_string(out, "{\"a\": 1");
    for (uint64_t i = 0, count = random_below(6); i < count; i++) {
        buffer_append_format(out, ",\n \"o%d\": {\"%s\":", (int)i, keys[random_below(2)]);
        random_numbers(out);
        buffer_append_string(out, "}");
    }
    buffer_append_string(out, random_below(2) ? ", \"z\" 5}" : "} x");
}

static void test_errors_behind_lifted_arrays_keep_their_line_and_column(void **state)
{
    (void)state;
    size_t lifted_count = 0;
    for (int i = 0; i < 5000; i++) {
        _cleanup_buffer_ struct buffer text;
        json_error_t before;
        json_error_t after;
        buffer_init(&text, 1000000);
        random_request(&text);
        assert_null(json_loadb(text.data, text.length_bytes, 0, &before));
        _cleanup_document_ struct document document = lift(text.data);
        assert_null(json_loadb(document.text, document.length_bytes, 0, &after));
        assert_int_equal(after.line, before.line);
        assert_int_equal(after.column, before.column);
        assert_int_equal(after.position, before.position);
        assert_string_equal(after.text, before.text);
        lifted_count += document.lifted.count;
    }
    assert_true(lifted_count > 5000);
}

static void test_random_documents_keep_everything_else(void **state)
{
    (void)state;
    static const char *const all[] = {"k0", "k1", "k2", "k3", "k4", NULL};
    for (int i = 0; i < 3000; i++) {
        _cleanup_buffer_ struct buffer text;
        struct lifted lifted;
        buffer_init(&text, 1000000);
        random_container(&text, true, 6);
        json_t *before = json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL);
        json_lift_numbers((struct text){text.data, text.length_bytes}, all, &lifted);
        lifted_overwrite(&lifted, text.data);
        json_t *after = json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL);
        assert_non_null(after);
        if (lifted.count == 0)
            assert_true(json_equal(before, after));
        json_decref(before);
        json_decref(after);
        lifted_finish(&lifted);
    }
}

static void test_a_document_cut_anywhere_is_lifted_without_harm(void **state)
{
    (void)state;
    static const char document[] =
        "{\"mask\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15], \"x\": {\"logprobs\": " THIRTY_TWO_BYTES "}}";
    for (size_t length = 0; length < sizeof(document); length++) {
        struct lifted lifted;
        char *exact = malloc(length ? length : 1);
        memcpy(exact, document, length);
        json_lift_numbers((struct text){exact, length}, keys, &lifted);
        lifted_overwrite(&lifted, exact);
        lifted_finish(&lifted);
        free(exact);
    }
}

/* More than a chunk holds, in one array and in many: what was read before stays where it is. */
static void test_many_values_are_all_there(void **state)
{
    (void)state;
    enum { LARGE = 1200000, SMALL = 100, SMALLS = 9000 };
    _cleanup_buffer_ struct buffer text;
    struct lifted lifted;
    buffer_init(&text, SIZE_MAX);
    buffer_append_string(&text, "[{\"mask\":[0");
    for (int i = 1; i < LARGE; i++)
        buffer_append_format(&text, ",%d", i);
    for (int k = 0; k < SMALLS; k++) {
        buffer_append_format(&text, "]},{\"mask\":[%d", k);
        for (int i = 1; i < SMALL; i++)
            buffer_append_format(&text, ",%d", k + i);
    }
    buffer_append_string(&text, "]}]");
    json_lift_numbers(buffer_text(&text), keys, &lifted);
    assert_int_equal(lifted.count, 1 + SMALLS);
    assert_int_equal(lifted.arrays[0].count, LARGE);
    for (int i = 0; i < LARGE; i++)
        assert_true(lifted.arrays[0].values[i] == i);
    for (int k = 0; k < SMALLS; k++) {
        assert_int_equal(lifted.arrays[1 + k].count, SMALL);
        for (int i = 0; i < SMALL; i++)
            assert_true(lifted.arrays[1 + k].values[i] == k + i);
    }
    lifted_finish(&lifted);
}

static void test_a_nul_is_found_wherever_it_is_but_not_in_an_array(void **state)
{
    (void)state;
    char text[] = "{\"logprobs\": " THIRTY_TWO_BYTES ", \"mask\": " THIRTY_TWO_BYTES ", \"n\": 1}";
    struct text whole = {text, sizeof(text) - 1};
    struct lifted lifted;
    json_lift_numbers(whole, keys, &lifted);
    assert_int_equal(lifted.count, 2);
    assert_null(lifted_find_nul(&lifted, whole));
    for (size_t i = 0; i < whole.length_bytes; i++) {
        bool inside = false;
        for (size_t k = 0; k < lifted.count; k++)
            inside |= i >= lifted.arrays[k].begin && i < lifted.arrays[k].end;
        char byte = text[i];
        text[i] = '\0';
        assert_ptr_equal(lifted_find_nul(&lifted, whole), inside ? NULL : text + i);
        text[i] = byte;
    }
    lifted_finish(&lifted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_values_are_those_of_the_text),
        cmocka_unit_test(test_the_string_in_its_place_leads_back_to_the_array),
        cmocka_unit_test(test_the_text_is_read_with_strings_instead_of_arrays_whatever_the_buffer),
        cmocka_unit_test(test_an_ordinary_string_stands_for_nothing),
        cmocka_unit_test(test_arrays_that_are_not_for_lifting_are_left_alone),
        cmocka_unit_test(test_integers_that_double_would_change_are_left_for_jansson),
        cmocka_unit_test(test_errors_behind_lifted_arrays_keep_their_line_and_column),
        cmocka_unit_test(test_random_documents_keep_everything_else),
        cmocka_unit_test(test_many_values_are_all_there),
        cmocka_unit_test(test_a_nul_is_found_wherever_it_is_but_not_in_an_array),
        cmocka_unit_test(test_a_document_cut_anywhere_is_lifted_without_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
