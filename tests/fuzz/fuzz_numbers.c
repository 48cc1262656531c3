/* Numbers as text: number_parse() against strtod, the array readers and json_scan_skip() against jansson, the
 * formatters against the reader. */
#include "server/base/json_scan.h"
#include "server/base/number.h"
#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <math.h>
#include <strings.h>

enum { VALUES_MAX = 4096, SCAN_DEPTH = 64 };

/* --- one number --- */

static bool same_bits(double left, double right)
{
    return memcmp(&left, &right, sizeof(left)) == 0;
}

static void check_format(double value)
{
    char shown[NUMBER_BYTES];
    struct number again;
    size_t length = number_format_double(value, shown);

    FUZZ_CHECK(number_parse(shown, shown + length, &again) == shown + length && same_bits(again.value, value));
    FUZZ_CHECK(again.has_fraction);
    float narrow = (float)value;
    if (!isfinite(narrow))
        return;
    length = number_format_float(narrow, shown);
    FUZZ_CHECK(number_parse(shown, shown + length, &again) == shown + length);
    FUZZ_CHECK((float)again.value == narrow && !signbit((float)again.value) == !signbit(narrow));
}

static void check_one(const char *text, size_t length_bytes)
{
    struct number number;
    const char *behind = number_parse(text, text + length_bytes, &number);
    char *end;

    if (!behind)
        return;
    FUZZ_CHECK(behind > text && behind <= text + length_bytes);
    _cleanup_free_ char *alone = xstrndup(text, (size_t)(behind - text));
    FUZZ_CHECK(same_bits(number.value, strtod(alone, &end)) && !*end);
    json_t *value = json_loads(alone, JSON_DECODE_ANY, NULL);
    FUZZ_CHECK(value || isinf(number.value) || (!number.has_fraction && !number.is_integer) || number.value == 0);
    if (json_is_integer(value))
        FUZZ_CHECK(number.is_integer && !number.has_fraction && number.integer == json_integer_value(value));
    if (json_is_real(value))
        FUZZ_CHECK(number.has_fraction && !number.is_integer && same_bits(number.value, json_real_value(value)));
    json_decref(value);
    if (isfinite(number.value))
        check_format(number.value);
}

/* --- whole texts --- */

/* Of a text that is JSON. Not of jansson's tree: of a repeated key that keeps the last value only. */
static size_t nesting_of(struct text text)
{
    size_t depth = 0;
    size_t deepest = 0;
    bool in_string = false;

    for (size_t i = 0; i < text.length_bytes; i++) {
        char byte = text.data[i];
        if (in_string && byte == '\\')
            i++;
        else if (byte == '"')
            in_string = !in_string;
        else if (!in_string && (byte == '[' || byte == '{'))
            deepest = ++depth > deepest ? depth : deepest;
        else if (!in_string && (byte == ']' || byte == '}'))
            depth--;
    }
    return deepest;
}

static bool is_jansson_limit(enum json_error_code code)
{
    return code == json_error_numeric_overflow || code == json_error_null_byte_in_key;
}

/* Both accept the same texts, except those that either declares unread. */
static void check_acceptance(struct text text, const json_t *root, const json_error_t *error)
{
    struct json_scan scan;

    json_scan_init(&scan, text);
    struct text raw = json_scan_raw(&scan);
    bool accepted = raw.data && json_scan_end(&scan);
    if (root && nesting_of(text) <= SCAN_DEPTH)
        FUZZ_CHECK(accepted);
    if (accepted)
        FUZZ_CHECK(root || is_jansson_limit(json_error_code(error)));
    json_scan_init(&scan, text);
    if (accepted && root)
        FUZZ_CHECK(json_scan_skip(&scan) && json_scan_end(&scan));
}

static bool is_plain_array(const json_t *root, bool integers)
{
    size_t index;
    const json_t *value;

    if (!json_is_array(root) || json_array_size(root) > VALUES_MAX)
        return false;
    json_array_foreach (root, index, value) {
        if (integers
                ? !json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > UINT32_MAX
                : !json_is_number(value) && !json_is_null(value))
            return false;
    }
    return true;
}

static void check_floats(struct text text, const json_t *root)
{
    static float values[VALUES_MAX];
    struct json_scan scan;
    size_t index;
    const json_t *value;

    json_scan_init(&scan, text);
    ssize_t count = json_scan_floats(&scan, values, VALUES_MAX);
    if (!root)
        return;
    FUZZ_CHECK((count >= 0 && json_scan_end(&scan)) == is_plain_array(root, false));
    if (count < 0)
        return;
    FUZZ_CHECK((size_t)count == json_array_size(root));
    json_array_foreach (root, index, value) {
        if (json_is_null(value))
            FUZZ_CHECK(isnan(values[index]));
        else
            FUZZ_CHECK(values[index] == (float)json_number_value(value));
    }
}

static void check_u32(struct text text, const json_t *root)
{
    static uint32_t values[VALUES_MAX];
    struct json_scan scan;
    size_t index;
    const json_t *value;

    json_scan_init(&scan, text);
    ssize_t count = json_scan_u32(&scan, values, VALUES_MAX);
    bool read = count >= 0 && json_scan_end(&scan);
    FUZZ_CHECK(read == is_plain_array(root, true));
    if (!read)
        return;
    json_array_foreach (root, index, value)
        FUZZ_CHECK(values[index] == (uint64_t)json_integer_value(value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct text text = {data ? (const char *)data : "", size_bytes};
    json_error_t error = {.line = -1};
    json_t *root = json_loadb(text.data, size_bytes, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);

    check_one(text.data, size_bytes);
    if (memchr(text.data, '\0', size_bytes)) { /* jansson passes over one behind a number */
        json_decref(root);
        return 0;
    }
    check_acceptance(text, root, &error);
    check_floats(text, root);
    check_u32(text, root);
    json_decref(root);
    return 0;
}
