/* json_schema: the parts beneath it, what a verdict says, and limits. Its verdicts are in tests/cases/own. */
#include "server/base/json_big.h"
#include "tests/unit/verifiers/grade.h"
#include "verifiers/schema/decimal.h"
#include "verifiers/schema/ecma.h"
#include "verifiers/schema/schema_private.h"

#include <stdio.h>

/* --- documents --- */

static struct document read_text(const char *text)
{
    struct document document;

    if (document_read(text_of(text), &document) != DOCUMENT_READ)
        fail_msg("%s: %s at %zu", text, document.problem, document.stopped_at);
    return document;
}

static void expect_unread(struct text text, enum document_status status, size_t stopped_at)
{
    struct document document;
    enum document_status found = document_read(text, &document);

    if (found != status || document.stopped_at != stopped_at || !document.problem)
        fail_msg("%s: status %d at %zu, expected %d at %zu", text.data, found, document.stopped_at, status, stopped_at);
    document_finish(&document);
}

static void test_values_stand_in_the_order_of_the_text(void **state)
{
    struct document document = read_text(" {\"a\": [1, \"\\u0062\"], \"c\": null} ");

    (void)state;
    assert_int_equal(document.count, 7);
    assert_int_equal(value_at(&document, 0)->kind, VALUE_OBJECT);
    assert_int_equal(value_at(&document, 0)->count, 2);
    assert_int_equal(value_at(&document, 0)->next, 7);
    assert_int_equal(value_at(&document, 2)->count, 2);
    assert_int_equal(value_at(&document, 2)->next, 5);
    assert_true(text_equals(value_text(&document, 4), "b"));
    assert_true(text_equals(value_written(&document, 4), "\"\\u0062\""));
    assert_int_equal(value_member(&document, 0, TEXT_LITERAL("c")), 6);
    assert_int_equal(value_member(&document, 0, TEXT_LITERAL("d")), NO_VALUE);
    assert_int_equal(value_element(&document, 2, 1), 4);
    assert_int_equal(value_element(&document, 2, 2), NO_VALUE);
    document_finish(&document);
}

static void test_text_that_is_no_json_is_refused_with_its_place(void **state)
{
    (void)state;
    expect_unread(TEXT_LITERAL(""), DOCUMENT_NOT_JSON, 0);
    expect_unread(TEXT_LITERAL("[1,]"), DOCUMENT_NOT_JSON, 3);
    expect_unread(TEXT_LITERAL("[1 2]"), DOCUMENT_NOT_JSON, 3);
    expect_unread(TEXT_LITERAL("1 x"), DOCUMENT_NOT_JSON, 2);
    expect_unread(TEXT_LITERAL("\"a\xff\""), DOCUMENT_NOT_JSON, 2);
    expect_unread(TEXT_LITERAL("\"a\0\""), DOCUMENT_NOT_JSON, 2);
    expect_unread(TEXT_LITERAL("\"\\ud83d\""), DOCUMENT_NOT_JSON, 7);
    expect_unread(TEXT_LITERAL("{\"a\":1,\"\\u0061\":2}"), DOCUMENT_DUPLICATE_KEY, 18);
}

static void test_keys_of_large_objects_are_found_and_told_apart(void **state)
{
    _cleanup_buffer_ struct buffer out;
    struct document document;
    char key[16];

    (void)state;
    buffer_init(&out, 1 << 20);
    for (int i = 0; i < 1000; i++)
        buffer_append_format(&out, "%s\"k%d\":%d", i ? "," : "{", i, i);
    buffer_append_string(&out, "}");
    document = read_text(out.data);
    for (int i = 0; i < 1000; i++) {
        uint32_t value = value_member(&document, 0, (struct text){key, (size_t)snprintf(key, sizeof key, "k%d", i)});
        assert_int_equal(value, 2 * i + 2);
    }
    assert_int_equal(value_member(&document, 0, TEXT_LITERAL("k1000")), NO_VALUE);
    document_finish(&document);
    out.length_bytes--;
    buffer_append_string(&out, ",\"k7\":0}");
    expect_unread(buffer_text(&out), DOCUMENT_DUPLICATE_KEY, out.length_bytes);
}

static void test_a_path_is_a_json_pointer_and_is_cut(void **state)
{
    struct document document = read_text("{\"a/b\":[0,{\"~\":[1]}]}");
    _cleanup_buffer_ struct buffer out;

    (void)state;
    buffer_init(&out, 100);
    value_path(&document, 0, 100, &out);
    assert_int_equal(out.length_bytes, 0);
    value_path(&document, document.count - 1, 100, &out);
    assert_string_equal(out.data, "/a~1b/1/~0/0");
    buffer_clear(&out);
    value_path(&document, document.count - 1, 8, &out);
    assert_string_equal(out.data, "/a~1b/1/…");
    buffer_clear(&out);
    value_path(&document, 1, 100, &out);
    assert_string_equal(out.data, "/a~1b");
    document_finish(&document);
}

static void test_the_order_of_values_is_total_and_ignores_how_they_are_written(void **state)
{
    static const char *const rising[] = {"null",
                                         "false",
                                         "true",
                                         "-1e99",
                                         "-1.5",
                                         "-0.0",
                                         "1e-400",
                                         "0.5",
                                         "1e0",
                                         "2",
                                         "1e99",
                                         "\"\"",
                                         "\"b\"",
                                         "\"aa\"",
                                         "[]",
                                         "[9]",
                                         "[10]",
                                         "[0,0]",
                                         "{}",
                                         "{\"a\":2}",
                                         "{\"b\":1}",
                                         "{\"a\":1,\"b\":2}",
                                         "{\"b\":3,\"a\":1}"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rising); i++) {
        for (size_t k = 0; k < ARRAY_LENGTH(rising); k++) {
            struct document left = read_text(rising[i]);
            struct document right = read_text(rising[k]);
            uint64_t units = 0;
            int order = value_compare(&left, 0, &right, 0, &units, UINT64_MAX);
            if ((order > 0) != (i > k) || (order < 0) != (i < k))
                fail_msg("%s against %s: %d", rising[i], rising[k], order);
            document_finish(&left);
            document_finish(&right);
        }
    }
}

/* --- decimals --- */

static struct decimal decimal(const char *text)
{
    struct decimal decimal;

    decimal_read(text_of(text), &decimal);
    return decimal;
}

static void test_decimals_are_the_same_however_they_are_written(void **state)
{
    static const char *const same[][2] = {{"1", "1.0"},         {"100", "1e2"},   {"0.001", "1e-3"},
                                          {"12.50", "125e-1"},  {"-0", "0.0e99"}, {"1.0e400", "1e400"},
                                          {"10.01", "1001E-2"}, {"-7e+1", "-70"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(same); i++) {
        struct decimal left = decimal(same[i][0]);
        struct decimal right = decimal(same[i][1]);
        if (decimal_compare(&left, &right) != 0 || decimal_compare(&right, &left) != 0)
            fail_msg("%s is not %s", same[i][0], same[i][1]);
    }
}

static void test_counts_are_saturated(void **state)
{
    struct decimal numbers[] = {decimal("0"), decimal("12e2"), decimal("1.5e1"), decimal("1e18"),
                                decimal("1e999999999999999999999")};

    (void)state;
    assert_int_equal(decimal_count(&numbers[0]), 0);
    assert_int_equal(decimal_count(&numbers[1]), 1200);
    assert_int_equal(decimal_count(&numbers[2]), 15);
    assert_true(decimal_count(&numbers[3]) == UINT64_MAX);
    assert_true(decimal_count(&numbers[4]) == UINT64_MAX);
}

static uint32_t seed = 1;

static unsigned draw(unsigned below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* Against whole numbers: value·10^-places is a multiple of step·10^-places if value is one of step. */
static void test_multiples_agree_with_whole_numbers(void **state)
{
    (void)state;
    for (int turn = 0; turn < 20000; turn++) {
        unsigned step = 1 + draw(500);
        unsigned value = draw(4) ? step * draw(5000) : draw(100000);
        int places = (int)draw(30);
        char texts[2][64];
        snprintf(texts[0], sizeof texts[0], "%s%ue-%d", draw(2) ? "-" : "", value, places);
        snprintf(texts[1], sizeof texts[1], "%u.000e-%d", step, places);
        struct decimal number = decimal(texts[0]);
        struct decimal divisor = decimal(texts[1]);
        if (decimal_is_multiple(&number, &divisor) != (value % step == 0))
            fail_msg("%s of %s", texts[0], texts[1]);
    }
}

static void test_long_divisors_divide_as_short_ones_do(void **state)
{
    char zeros[64], one[64];
    struct decimal divisor = decimal("1000000000000000000000000000000000000003"); /* 10^39 + 3 */
    struct decimal multiple = decimal("7000000000000000000000000000000000000021e5");
    struct decimal other = decimal("7000000000000000000000000000000000000022e5");

    (void)state;
    snprintf(zeros, sizeof zeros, "%s", "0.000e7");
    snprintf(one, sizeof one, "%s", "1e-1");
    struct decimal zero = decimal(zeros), tenth = decimal(one);
    assert_true(decimal_is_multiple(&multiple, &divisor));
    assert_false(decimal_is_multiple(&other, &divisor));
    assert_true(decimal_is_multiple(&zero, &divisor));
    assert_false(decimal_is_multiple(&tenth, &divisor));
}

/* --- patterns, references, keywords --- */

static void test_patterns_are_translated(void **state)
{
    static const char *const rows[][2] = {
        {"^a$", "^a\\z"},
        {"a.b", "a[^\\n\\r\u2028\u2029]b"},
        {"\\s\\d", "[\\s\\p{Z}\ufeff]\\d"},
        {"[\\s\\S]", "(?:[\\s\\p{Z}\ufeff]|[^\\s\\p{Z}\ufeff])"},
        {"[^a\\S]", "(?:(?![a])[\\s\\p{Z}\ufeff])"},
        {"[]|[^]", "(?!)|(?s:.)"},
        {"\\u{1F432}\\u0041\\x2a\\/", "🐲A\\*\\/"},
        {"\\p{Letter}\\P{Script=Greek}", "\\p{L}\\P{sc:Greek}"},
        {"(?<n>a)\\k<n>\\1", "(?<n>a)(?(<n>)\\k<n>)(?(1)\\g{1})"},
        {"a{2}b{,2}{", "a{2}b\\{,2\\}\\{"},
        {"[a[]", "[a\\[]"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        _cleanup_buffer_ struct buffer out;
        buffer_init(&out, ECMA_PATTERN_BYTES);
        const char *problem = ecma_translate(text_of(rows[i][0]), &out);
        assert_null(problem);
        assert_string_equal(out.data, rows[i][1]);
    }
}

/* RFC 3986, section 5.4. */
static void test_references_are_made_absolute(void **state)
{
    static const char *const rows[][2] = {
        {"g:h", "g:h"},
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {";x", "http://a/b/c/;x"},
        {"", "http://a/b/c/d;p?q"},
        {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"},
        {"..", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../..", "http://a/"},
        {"../../g", "http://a/g"},
        {"../../../g", "http://a/g"},
        {"/./g", "http://a/g"},
        {"/../g", "http://a/g"},
        {"g.", "http://a/b/c/g."},
        {"..g", "http://a/b/c/..g"},
        {"./../g", "http://a/b/g"},
        {"./g/.", "http://a/b/c/g/"},
        {"g/./h", "http://a/b/c/g/h"},
        {"g/../h", "http://a/b/c/h"},
        {"g;x=1/../y", "http://a/b/c/y"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        _cleanup_buffer_ struct buffer out;
        buffer_init(&out, 1000);
        uri_resolve(TEXT_LITERAL("http://a/b/c/d;p?q"), text_of(rows[i][0]), &out);
        assert_string_equal(out.data, rows[i][1]);
    }
}

static void test_every_keyword_is_found_by_its_name(void **state)
{
    (void)state;
    for (int i = 0; i < KEYWORDS; i++)
        assert_int_equal(keyword_find(text_of(keyword_rows[i].name)), i);
    assert_int_equal(keyword_find(TEXT_LITERAL("typ")), KEYWORDS);
    assert_int_equal(keyword_find(TEXT_LITERAL("types")), KEYWORDS);
    assert_int_equal(keyword_find(TEXT_LITERAL("")), KEYWORDS);
}

/* --- schemas --- */

static void expect_refused(const char *text, const char *with)
{
    json_t *json = json_big_load(text_of(text), JSON_DECODE_ANY, NULL);
    char problem[SCHEMA_PROBLEM_BYTES];

    assert_non_null(json);
    assert_null(schema_create(json, problem));
    if (!strstr(problem, with))
        fail_msg("%s: %s; expected %s", text, problem, with);
    json_decref(json);
}

static void test_a_refusal_names_the_place_and_the_keyword_that_was_meant(void **state)
{
    (void)state;
    expect_refused("{\"properties\":{\"a\":{\"requried\":[]}}}", "at /properties/a: \"requried\"");
    expect_refused("{\"requried\":[]}", "did you mean \"required\"?");
    expect_refused("{\"items\":{\"$ref\":\"#/nope\"}}", "at /items/$ref: points to no schema");
    expect_refused("{\"$ref\":\"x.json\"}", "nothing is fetched");
    expect_refused("{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/a\"}}}", "at /$defs/a: references loop");
    expect_refused("{\"pattern\":\"(?i)a\"}", "at /pattern: a pattern that is none: a group of a kind");
    expect_refused("{\"type\":\"int\"}", "at /type: must be null, boolean");
}

static void test_limits_of_a_schema_are_named(void **state)
{
    _cleanup_buffer_ struct buffer out;

    (void)state;
    buffer_init(&out, 1 << 20);
    for (int i = 0; i < 30; i++)
        buffer_append_format(&out, "%s\"a%d\":{\"allOf\":[{\"$ref\":\"#/$defs/a%d\"},{\"$ref\":\"#/$defs/a%d\"}]}",
                             i ? "," : "{\"$defs\":{", i, i + 1, i + 1);
    buffer_append_string(&out, ",\"a30\":true}}");
    expect_refused(out.data, "more than 100000 schemas");
    buffer_clear(&out);
    for (int i = 0; i < 300; i++)
        buffer_append_format(&out, "%s\"a%d\":{\"$ref\":\"#/$defs/a%d\"}", i ? "," : "{\"$defs\":{", i, i + 1);
    buffer_append_string(&out, ",\"a300\":true}}");
    expect_refused(out.data, "more than 200 schemas in each other");
    buffer_clear(&out);
    for (int i = 0; i < 257; i++)
        buffer_append_format(&out, "%s\"a%d\":true", i ? "," : "{\"patternProperties\":{", i);
    buffer_append_string(&out, "}}");
    expect_refused(out.data, "more than 256 patterns");
}

/* --- verdicts --- */

static void expect_detail(const char *schema, const char *completion, const char *path, const char *keyword,
                          const char *extracted)
{
    _cleanup_free_ char *options = xasprintf("{\"schema\": %s}", schema);
    struct verdict verdict = grade("json_schema", options, NULL, completion);

    assert_string_equal(verdict.reason, "invalid");
    if (strcmp(json_string_value(json_object_get(verdict.detail, "path")), path) != 0 ||
        strcmp(json_string_value(json_object_get(verdict.detail, "keyword")), keyword) != 0 ||
        strcmp(json_string_value(json_object_get(verdict.detail, "extracted")), extracted) != 0)
        fail_msg("%s by %s: %s", completion, schema, json_dumps(verdict.detail, 0));
    verdict_finish(&verdict);
}

static void test_the_detail_is_the_first_violation(void **state)
{
    (void)state;
    expect_detail("{\"items\":{\"type\":\"integer\"}}", "[1, \"x\", null]", "/1", "type", "\"x\"");
    expect_detail("{\"properties\":{\"a\":{\"$ref\":\"#/$defs/p\"}},\"$defs\":{\"p\":{\"minimum\":1}}}", "{\"a\":0}",
                  "/a", "minimum", "0");
    expect_detail("{\"additionalProperties\":false}", "{\"b\":[1]}", "/b", "additionalProperties", "[1]");
    expect_detail("{\"required\":[\"a\"]}", "{}", "", "required", "{}");
    expect_detail("{\"anyOf\":[{\"type\":\"null\"},{\"minimum\":5}]}", "3", "", "anyOf", "3");
    expect_detail("{\"not\":{\"type\":\"integer\"}}", "3", "", "not", "3");
    expect_detail("{\"propertyNames\":{\"maxLength\":1}}", "{\"a\":1,\"bc\":2}", "/bc", "propertyNames", "\"bc\"");
    expect_detail("{\"uniqueItems\":true}", "[3,1,2,1,3]", "/3", "uniqueItems", "1");
    expect_detail("{\"contains\":{\"const\":1}}", "[2]", "", "contains", "[2]");
    expect_detail("{\"if\":true,\"then\":{\"properties\":{\"a\":{\"maxLength\":1}}}}", "{\"a\":\"xy\"}", "/a",
                  "maxLength", "\"xy\"");
    expect_detail("false", "1", "", "false", "1");
}

static void test_the_place_of_a_value_is_that_in_the_completion(void **state)
{
    struct verdict verdict =
        grade("json_schema", "{\"schema\":{\"items\":{\"type\":\"integer\"}},\"allow_fence\":true}", NULL,
              "\n```json\n[1, \"x\"]\n```\n");

    (void)state;
    assert_int_equal(json_integer_value(json_object_get(verdict.detail, "start")), 13);
    assert_int_equal(json_integer_value(json_object_get(verdict.detail, "end")), 16);
    verdict_finish(&verdict);
    verdict = grade("json_schema", "{\"schema\":true,\"allow_fence\":true}", NULL, "```\n[1,]\n```");
    assert_string_equal(verdict.reason, "not_json");
    assert_int_equal(json_integer_value(json_object_get(verdict.detail, "at")), 7);
    assert_string_equal(json_string_value(json_object_get(verdict.detail, "problem")), "no value");
    verdict_finish(&verdict);
}

static void expect_unscored(const char *options, const char *reference, const char *code)
{
    struct verdict verdict = grade("json_schema", options, reference, "1");

    assert_int_equal(verdict.kind, VERDICT_UNSCORED);
    assert_string_equal(verdict.failure_code, code);
    verdict_finish(&verdict);
}

static void test_without_a_schema_that_can_be_used_there_is_no_score(void **state)
{
    (void)state;
    expect_unscored(NULL, NULL, "reference_unreadable");
    expect_unscored(NULL, "null", "reference_unreadable");
    expect_unscored(NULL, "\"integer\"", "reference_unreadable");
    expect_unscored("{\"schema\":null}", "{\"typ\":1}", "reference_unreadable");
}

/* Each resource that is entered leads to the next: back at the first, nothing was eaten. */
static void test_a_dynamic_reference_that_loops_is_the_schemas_fault(void **state)
{
    static const char schema[] =
        "{\"$id\":\"a\",\"$dynamicAnchor\":\"n\",\"allOf\":[{\"$ref\":\"b\"}],\"$defs\":{\"b\":{\"$id\":\"b\","
        "\"allOf\":[{\"$dynamicRef\":\"#n\"}],\"$defs\":{\"n\":{\"$dynamicAnchor\":\"n\"}}}}}";

    (void)state;
    expect_unscored(NULL, schema, "reference_unreadable");
}

static void test_kept_schemas_change_no_verdict(void **state)
{
    (void)state;
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 10; i++) {
            _cleanup_free_ char *reference = xasprintf("{\"const\": %d, \"pattern\": \"^x{%d}$\"}", i, i);
            _cleanup_free_ char *right = xasprintf("%d.0", i);
            expect("json_schema", NULL, reference, right, 1, "valid");
            expect("json_schema", NULL, reference, "11", 0, "invalid");
        }
    }
}

static void test_a_text_is_that_of_its_value_alone(void **state)
{
    static const char *const values[] = {
        "{}",
        "[]",
        "[[],{}]",
        "\"a\"",
        "[\"a\",\"b\"]",
        "[\"a\\\",\\\"b\"]",
        "\"\\\\\"",
        "\"\\u0001\"",
        "0.01",
        "1.0",
        "1",
        "123456789012345678901234567890",
        "null",
        "true",
        "{\"a\":1,\"b\":[2]}",
        "{\"b\":[2],\"a\":1}",
        "{\"a\":1}",
        "{\"a\\\":1,\\\"b\":[2]}",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
        for (size_t k = 0; k < ARRAY_LENGTH(values); k++) {
            json_t *json = json_big_load(text_of(values[i]), JSON_DECODE_ANY, NULL);
            json_t *other = json_big_load(text_of(values[k]), JSON_DECODE_ANY, NULL);
            _cleanup_buffer_ struct buffer out;
            buffer_init(&out, 1000);
            schema_text(other, &out);
            struct text rest = buffer_text(&out);
            bool same = schema_text_is(json, &rest) && rest.length_bytes == 0;
            if (same != (i == k) && !(i == k && strstr(values[i], "\\\":")))
                fail_msg("%s against %s: %d", values[i], out.data, same);
            json_decref(json);
            json_decref(other);
        }
    }
}

static void test_the_work_is_bounded_and_the_same_each_time(void **state)
{
    _cleanup_buffer_ struct buffer out;

    (void)state;
    buffer_init(&out, 2 << 20);
    buffer_append_string(&out, "[0");
    while (out.length_bytes < 1 << 20)
        buffer_append_string(&out, ",0");
    buffer_append_string(&out, "]");
    for (int turn = 0; turn < 3; turn++) {
        expect("json_schema", NULL, "{\"items\":{\"type\":\"integer\"}}", out.data, 1, "valid");
        expect("json_schema", NULL,
               "{\"items\":{\"anyOf\":[{\"const\":1},{\"const\":2},{\"const\":3},{\"const\":4},{\"const\":5},{"
               "\"const\":6}]}}",
               out.data, 0, "invalid");
        expect("json_schema", NULL,
               "{\"items\":{\"$ref\":\"#/$defs/a\"},\"$defs\":{\"a\":{\"oneOf\":[{\"const\":0},{\"const\":2},"
               "{\"const\":3},{\"const\":4},{\"const\":5},{\"const\":6},{\"const\":7},{\"const\":8}]}}}",
               out.data, 0, "work_limit");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_stand_in_the_order_of_the_text),
        cmocka_unit_test(test_text_that_is_no_json_is_refused_with_its_place),
        cmocka_unit_test(test_keys_of_large_objects_are_found_and_told_apart),
        cmocka_unit_test(test_a_path_is_a_json_pointer_and_is_cut),
        cmocka_unit_test(test_the_order_of_values_is_total_and_ignores_how_they_are_written),
        cmocka_unit_test(test_decimals_are_the_same_however_they_are_written),
        cmocka_unit_test(test_counts_are_saturated),
        cmocka_unit_test(test_multiples_agree_with_whole_numbers),
        cmocka_unit_test(test_long_divisors_divide_as_short_ones_do),
        cmocka_unit_test(test_patterns_are_translated),
        cmocka_unit_test(test_references_are_made_absolute),
        cmocka_unit_test(test_every_keyword_is_found_by_its_name),
        cmocka_unit_test(test_a_refusal_names_the_place_and_the_keyword_that_was_meant),
        cmocka_unit_test(test_limits_of_a_schema_are_named),
        cmocka_unit_test(test_the_detail_is_the_first_violation),
        cmocka_unit_test(test_the_place_of_a_value_is_that_in_the_completion),
        cmocka_unit_test(test_without_a_schema_that_can_be_used_there_is_no_score),
        cmocka_unit_test(test_a_dynamic_reference_that_loops_is_the_schemas_fault),
        cmocka_unit_test(test_kept_schemas_change_no_verdict),
        cmocka_unit_test(test_a_text_is_that_of_its_value_alone),
        cmocka_unit_test(test_the_work_is_bounded_and_the_same_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
