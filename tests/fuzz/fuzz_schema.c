/* A schema and an instance, both as JSON text, ended by the separator: both are read, the instance is validated. And the parts alone: the
 * reader beside jansson, patterns, and the pointer of every value. */
#include "server/base/json_big.h"
#include "tests/fuzz/fuzz.h"
#include "verifiers/schema/ecma.h"
#include "verifiers/schema/schema.h"
#include "verifiers/text/pattern.h"

/* A text that this reader accepts, jansson accepts, too, except for numbers that it cannot hold, keys with NUL, and depth. */
static void check_beside_jansson(const struct document *document, enum document_status status)
{
    json_error_t error;
    struct text text = document->text;
    json_t *root =
        json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    bool unfit = !root && (json_error_code(&error) == json_error_numeric_overflow ||
                           json_error_code(&error) == json_error_null_byte_in_key ||
                           json_error_code(&error) == json_error_stack_overflow);

    FUZZ_CHECK(status != DOCUMENT_READ || root || unfit);
    FUZZ_CHECK(status != DOCUMENT_NOT_JSON || !root || memchr(text.data, '\0', text.length_bytes));
    json_decref(root);
}

static void check_paths(const struct document *document)
{
    for (uint32_t i = 0; i < document->count && i < 64; i++) {
        _cleanup_buffer_ struct buffer path;
        buffer_init(&path, document->text.length_bytes * 2 + 64);
        value_path(document, i, 64, &path);
        FUZZ_CHECK(!path.failed && (path.length_bytes > 0) == (i > 0));
    }
}

static void check_order(const struct document *document)
{
    for (uint32_t i = 0; i < document->count && i < 16; i++) {
        for (uint32_t k = 0; k < document->count && k < 16; k++) {
            uint64_t units = 0;
            int order = value_compare(document, i, document, k, &units, UINT64_MAX);
            int back = value_compare(document, k, document, i, &units, UINT64_MAX);
            FUZZ_CHECK((order < 0) == (back > 0) && (order == 0) == (back == 0) && (i != k || order == 0));
        }
    }
}

/* A pattern that is none is told; any other is run. */
static void check_pattern(struct text source)
{
    _cleanup_buffer_ struct buffer out;
    char problem[PATTERN_PROBLEM_BYTES] = "";

    buffer_init(&out, ECMA_PATTERN_BYTES);
    if (ecma_translate(source, &out))
        return;
    _cleanup_(pattern_destroyp) struct pattern *pattern = pattern_create(buffer_text(&out), problem);
    FUZZ_CHECK(pattern || problem[0]);
    if (pattern)
        pattern_match(pattern, source, 0, false);
}

static void check_validation(struct schema *schema, const struct document *instance)
{
    struct schema_violation first;
    struct schema_violation second;
    enum schema_result result = schema_validate(schema, instance, &first);

    FUZZ_CHECK(result != SCHEMA_INVALID || (first.keyword && first.value < instance->count));
    FUZZ_CHECK(result != SCHEMA_VALID || !first.keyword);
    FUZZ_CHECK(schema_validate(schema, instance, &second) == result);
    FUZZ_CHECK(result != SCHEMA_INVALID || (second.keyword == first.keyword && second.value == first.value));
}

static void validate(struct text text, const struct document *instance)
{
    json_t *json = json_big_load(text, JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    char problem[SCHEMA_PROBLEM_BYTES];
    struct schema *schema;

    if (!json)
        return;
    schema = schema_create(json, problem);
    json_decref(json);
    FUZZ_CHECK(schema || problem[0]);
    if (schema)
        check_validation(schema, instance);
    schema_destroy(schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct text rest = {(const char *)data, size_bytes};
    size_t schema_bytes;
    _cleanup_free_ char *schema = fuzz_take_part(&rest, &schema_bytes);
    _cleanup_free_ char *text = xrealloc(NULL, rest.length_bytes + 1);
    struct document document;
    enum document_status status;

    if (rest.length_bytes > 0)
        memcpy(text, rest.data, rest.length_bytes);
    status = document_read((struct text){text, rest.length_bytes}, &document);
    FUZZ_CHECK((status == DOCUMENT_READ) == !document.problem && document.stopped_at <= rest.length_bytes);
    check_beside_jansson(&document, status);
    check_pattern((struct text){schema, schema_bytes});
    if (status == DOCUMENT_READ) {
        check_paths(&document);
        check_order(&document);
        validate((struct text){schema, schema_bytes}, &document);
    }
    document_finish(&document);
    return 0;
}
