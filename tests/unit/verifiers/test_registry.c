#include "tests/unit/verifiers/grade.h"
#include "verifiers/rows.h"

static void refused(const char *name, const char *options, const char *where)
{
    json_t *given = json_loads(options, JSON_DECODE_ANY, NULL);
    struct verifier_problem problem;
    json_t *filled = registry_fill_options(registry_find(text_of(name)), given, &problem);

    assert_non_null(given);
    assert_null(filled);
    assert_string_equal(problem.name, where);
    assert_true(problem.message[0] != 0);
    json_decref(given);
}

static void test_a_wrong_option_is_refused_with_its_name(void **state)
{
    (void)state;
    refused("math", "{\"eps\":1}", "eps");
    refused("math", "{\"rel_tol\":\"x\"}", "rel_tol");
    refused("math", "{\"rel_tol\":-0.1}", "rel_tol");
    refused("math", "{\"max_depth\":1.5}", "max_depth");
    refused("math", "{\"max_depth\":0}", "max_depth");
    refused("math", "{\"extract\":\"box\"}", "extract");
    refused("math", "{\"extract\":null}", "extract");
    refused("regex", "{}", "pattern");
    refused("regex", "{\"pattern\":\"(\"}", "pattern");
    refused("regex", "{\"pattern\":\"\"}", "pattern");
    refused("format", "{}", "template");
    refused("format", "{\"template\":\"xml_fields\"}", "fields");
    refused("format", "{\"template\":\"xml_fields\",\"fields\":[\"a b\"]}", "fields");
    refused("format", "{\"template\":\"think_only\",\"fields\":[\"a\"]}", "fields");
    refused("format", "{\"template\":\"xml_fields\",\"fields\":[\"a\",\"b\",\"A\"]}", "fields");
    refused("exact", "[]", "");
}

static void test_absent_options_get_their_defaults(void **state)
{
    struct verifier_problem problem;
    const struct verifier *verifier = registry_find(text_of("math"));
    json_t *filled = registry_fill_options(verifier, NULL, &problem);

    (void)state;
    assert_int_equal(json_object_size(filled), verifier->option_count);
    assert_true(option_is(filled, "extract", "auto"));
    assert_true(json_is_null(json_object_get(filled, "max_boxes")));
    json_decref(filled);
}

static void test_every_row_is_found_by_its_name_and_lists_its_options(void **state)
{
    (void)state;
    for (size_t i = 0; i < verifier_count; i++) {
        assert_ptr_equal(registry_find(text_of(verifiers[i]->name)), verifiers[i]);
        assert_true(verifiers[i]->version[0] && verifiers[i]->help[0] && verifiers[i]->grade);
        assert_true(verifiers[i]->option_count == 0 || verifiers[i]->options);
    }
    assert_null(registry_find(TEXT_LITERAL("math\0")));
    assert_null(registry_find(TEXT_NONE));
}

static void test_every_verifier_has_the_name_of_its_row(void **state)
{
    (void)state;
#define VERIFIER(row)                                                                                                  \
    if (strcmp(verifier_##row.name, #row) != 0)                                                                        \
        fail_msg("verifiers/graders/%s.c: .name is \"%s\", its row in verifiers/rows.def is %s", #row,                 \
                 verifier_##row.name, #row);
#include "verifiers/rows.def"
#undef VERIFIER
}

static void test_exact_compares_the_whole_completion(void **state)
{
    (void)state;
    expect("exact", NULL, "\"yes\"", " yes\n", 1, "equal");
    expect("exact", "{\"strip\":false}", "\"yes\"", " yes\n", 0, "different");
    expect("exact", NULL, "\"yes\"", "Yes", 0, "different");
    expect("exact", "{\"ignore_case\":true}", "\"yes\"", "Yes", 1, "equal");
    expect("exact", NULL, "[\"no\",\"yes\"]", "yes", 1, "equal");
    expect("exact", NULL, "\"yes\"", "", 0, "different");
    expect("exact", "{\"extract\":\"boxed\"}", "\"x+1\"", "so \\boxed{x+1}", 1, "equal");
    expect("exact", "{\"extract\":\"boxed\"}", "\"x+1\"", "so x+1", 0, "no_answer");
}

static void test_exact_keeps_nul_as_an_ordinary_byte(void **state)
{
    (void)state;
    struct verdict verdict = grade_text("exact", NULL, "\"a\\u0000b\"", TEXT_LITERAL("a\0b"));
    assert_int_equal(verdict.kind, VERDICT_CORRECT);
    verdict_finish(&verdict);
    verdict = grade_text("exact", NULL, "\"a\"", TEXT_LITERAL("a\0b"));
    assert_int_equal(verdict.kind, VERDICT_INCORRECT);
    verdict_finish(&verdict);
}

static void test_a_blank_reference_of_exact_is_a_failure(void **state)
{
    (void)state;
    struct verdict verdict = grade("exact", NULL, "\" \"", "");
    assert_int_equal(verdict.kind, VERDICT_UNSCORED);
    assert_string_equal(verdict.failure_code, "reference_unreadable");
    verdict_finish(&verdict);
}

static void test_regex_searches_matches_fully_or_asks_for_absence(void **state)
{
    (void)state;
    expect("regex", "{\"pattern\":\"b+\"}", NULL, "abba", 1, "match");
    expect("regex", "{\"pattern\":\"b+\",\"mode\":\"fullmatch\"}", NULL, "abba", 0, "no_match");
    expect("regex", "{\"pattern\":\"a|abba\",\"mode\":\"fullmatch\"}", NULL, "abba", 1, "match");
    expect("regex", "{\"pattern\":\"c\",\"mode\":\"absent\"}", NULL, "abba", 1, "absent");
    expect("regex", "{\"pattern\":\"b\",\"mode\":\"absent\"}", NULL, "abba", 0, "present");
}

/* F13. Each would take from seconds to years; the whole of the work counts, from every start, in every mode. */
static void test_a_pattern_that_a_text_makes_slow_is_not_paid(void **state)
{
    static const struct {
        const char *pattern, *unit, *end;
    } slow[] = {
        {"\\\\s+$", " ", "x"},
        {"^(a+)+$", "a", "!"},
        {"^(a+)+\\\\1$", "a", "!"},
        {"(.*)*[xy]", "a", ""},
        {"a.*b.*c.*[dx]y?", "abc", ""},
        {"\\\\d+\\\\s", "1", ""},
        {"(?<=.{30000})\\\\D\\\\d", "a", ""},
        {"\\\\X{2}\\\\d", "\xcc\x81", ""},
        {"\\\\X+\\\\d", "{", ""},
        {"[\\\\p{Lu}\\\\p{Ll}]+\\\\d", "\xc3\xa9", ""},
        {"(\\\\((?1)*\\\\)?)\\\\d", "(", ""},
        {"<think>.*</think>", "<think>", ""},
        {"(?:a|aa)+[^a]x?", "a", ""},
    };
    static const char *const modes[] = {"search", "absent"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(slow); i++) {
        _cleanup_buffer_ struct buffer text;
        buffer_init(&text, 2 << 20);
        while (text.length_bytes < 1 << 20)
            buffer_append_string(&text, slow[i].unit);
        buffer_append_string(&text, slow[i].end);
        for (size_t mode = 0; mode < ARRAY_LENGTH(modes); mode++) {
            _cleanup_free_ char *options =
                xasprintf("{\"pattern\":\"%s\",\"mode\":\"%s\"}", slow[i].pattern, modes[mode]);
            struct verdict verdict = grade_text("regex", options, NULL, buffer_text(&text));
            if (verdict.kind != VERDICT_INCORRECT || strcmp(verdict.reason, "work_limit") != 0)
                fail_msg("%s: %s", options, verdict.reason);
            verdict_finish(&verdict);
        }
    }
}

static void test_an_ordinary_pattern_is_decided_on_a_long_text(void **state)
{
    _cleanup_buffer_ struct buffer text;

    (void)state;
    buffer_init(&text, 2 << 20);
    while (text.length_bytes < 200000)
        buffer_append_string(&text, "Then we add 17 to both sides, which gives us nothing.\n");
    buffer_append_string(&text, "The answer is 42.\n");
    expect("regex", "{\"pattern\":\"answer is (\\\\d+)\\\\.\\\\s*$\"}", NULL, buffer_text(&text).data, 1, "match");
    expect("regex", "{\"pattern\":\"\\\\b\\\\w+ings\\\\b\",\"mode\":\"absent\"}", NULL, buffer_text(&text).data, 1,
           "absent");
    expect("regex", "{\"pattern\":\"(?s)^.{1000,}$\"}", NULL, buffer_text(&text).data, 1, "match");
    expect("regex", "{\"pattern\":\"(?m)^(?:\\\\w|[ ,.])+$\"}", NULL, buffer_text(&text).data, 1, "match");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wrong_option_is_refused_with_its_name),
        cmocka_unit_test(test_absent_options_get_their_defaults),
        cmocka_unit_test(test_every_row_is_found_by_its_name_and_lists_its_options),
        cmocka_unit_test(test_every_verifier_has_the_name_of_its_row),
        cmocka_unit_test(test_exact_compares_the_whole_completion),
        cmocka_unit_test(test_exact_keeps_nul_as_an_ordinary_byte),
        cmocka_unit_test(test_a_blank_reference_of_exact_is_a_failure),
        cmocka_unit_test(test_regex_searches_matches_fully_or_asks_for_absence),
        cmocka_unit_test(test_a_pattern_that_a_text_makes_slow_is_not_paid),
        cmocka_unit_test(test_an_ordinary_pattern_is_decided_on_a_long_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
