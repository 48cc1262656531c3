/* json_lift_numbers() against jansson: the same values, and every error at the same line and column. */
#include "server/base/json_scan.h"
#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <math.h>

static const char *const keys[] = {"mask", "logprobs", "m", NULL};

static void check_array(const json_t *before, const struct lifted_array *array)
{
    size_t index;
    const json_t *value;
    bool has_null = false;
    bool all_integer = true;

    FUZZ_CHECK(json_is_array(before) && array->count == json_array_size(before));
    json_array_foreach (before, index, value) {
        has_null |= json_is_null(value);
        all_integer &= json_is_null(value) || json_is_integer(value);
        if (json_is_null(value))
            FUZZ_CHECK(isnan(array->values[index]));
        else
            FUZZ_CHECK(array->values[index] == json_number_value(value));
    }
    FUZZ_CHECK(has_null == array->has_null && all_integer == array->all_integer);
}

static void check_same(const json_t *before, const json_t *after, const struct lifted *lifted)
{
    size_t index;
    const char *key;
    json_t *value;

    if (json_is_array(before) && json_is_string(after)) {
        struct text mark = {json_string_value(after), json_string_length(after)};
        const struct lifted_array *array = lifted_find(lifted, mark);
        FUZZ_CHECK(array);
        check_array(before, array);
        return;
    }
    FUZZ_CHECK(after && json_typeof(before) == json_typeof(after));
    if (json_is_array(before)) {
        FUZZ_CHECK(json_array_size(before) == json_array_size(after));
        json_array_foreach (before, index, value)
            check_same(value, json_array_get(after, index), lifted);
    } else if (json_is_object(before)) {
        FUZZ_CHECK(json_object_size(before) == json_object_size(after));
        json_object_foreach ((json_t *)(uintptr_t)before, key, value)
            check_same(value, json_object_get(after, key), lifted);
    } else {
        FUZZ_CHECK(json_equal(before, after));
    }
}

enum { FLAGS = JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES };

/* The text with strings instead of the arrays is the same JSON; a NUL is found wherever jansson may pass over it. */
static void check_reader(const char *text, size_t length_bytes, const json_t *before, const struct lifted *lifted)
{
    struct lifted_reader reader;
    json_error_t error;
    FUZZ_CHECK(lifted_find_nul(lifted, (struct text){text, length_bytes}) == memchr(text, '\0', length_bytes));
    lifted_reader_init(&reader, (struct text){text, length_bytes}, lifted);
    json_t *read = json_load_callback(lifted_read, &reader, FLAGS, &error);
    if (before)
        check_same(before, read, lifted);
    json_decref(read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct text rest = {data ? (const char *)data : "", size_bytes};
    json_error_t wrong_before = {.line = 0};
    json_error_t wrong_after = {.line = 0};
    struct lifted lifted;
    size_t length_bytes;

    _cleanup_free_ char *text = fuzz_take_part(&rest, &length_bytes);
    json_t *before = json_loadb(text, length_bytes, FLAGS, &wrong_before);
    json_lift_numbers((struct text){text, length_bytes}, keys, &lifted);
    check_reader(text, length_bytes, before, &lifted);
    lifted_overwrite(&lifted, text);
    json_t *after = json_loadb(text, length_bytes, FLAGS, &wrong_after);
    FUZZ_CHECK(!before == !after);
    if (before) {
        check_same(before, after, &lifted);
    } else {
        FUZZ_CHECK(wrong_after.line == wrong_before.line && wrong_after.column == wrong_before.column);
        FUZZ_CHECK(wrong_after.position == wrong_before.position);
        FUZZ_CHECK(json_error_code(&wrong_after) == json_error_code(&wrong_before));
    }
    json_decref(before);
    json_decref(after);
    lifted_finish(&lifted);
    return 0;
}
