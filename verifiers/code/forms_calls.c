/* Forms whose tests call one function: arguments and values are JSON, and whole numbers of any size are exact. */
#include "server/base/json_big.h"
#include "verifiers/code/forms_private.h"
#include "verifiers/code/pickle_private.h"
#include "verifiers/code/value.h"

static bool is_json(struct text text)
{
    _cleanup_value_ struct value value = {.nodes = NULL};

    return value_read_json(text, &value) == 0;
}

static bool is_blank(struct text line)
{
    for (size_t i = 0; i < line.length_bytes; i++)
        if (!strchr(" \t\r", line.data[i]) || !line.data[i])
            return false;
    return true;
}

/* "[" and the values of the lines, with commas between them. */
static json_t *arguments_of_lines(struct text text)
{
    _cleanup_buffer_ struct buffer out;
    size_t at = 0;

    buffer_init(&out, text.length_bytes + 8);
    buffer_append_byte(&out, '[');
    while (at < text.length_bytes) {
        const char *feed = memchr(text.data + at, '\n', text.length_bytes - at);
        size_t end = feed ? (size_t)(feed - text.data) : text.length_bytes;
        struct text line = {text.data + at, end - at};
        at = end + 1;
        if (is_blank(line))
            continue;
        if (!is_json(line))
            return NULL;
        if (out.length_bytes > 1)
            buffer_append_byte(&out, ',');
        buffer_append(&out, line.data, line.length_bytes);
    }
    buffer_append_byte(&out, ']');
    return out.failed ? NULL : json_stringn(out.data, out.length_bytes);
}

/* No line feed is in it. */
static json_t *dumped(const json_t *value)
{
    _cleanup_free_ char *text = json_big_dump(value, JSON_COMPACT | JSON_ENCODE_ANY);

    return text ? json_string(text) : NULL;
}

static json_t *expected_of(const json_t *output, bool is_text)
{
    struct text text = json_text_of(output);

    return is_text && text.data && is_json(text) ? json_stringn(text.data, text.length_bytes) : dumped(output);
}

static int add_call(struct form *form, json_t *arguments, json_t *expected, bool wrapped)
{
    json_t *test = arguments && expected
                       ? json_pack("{s:O, s:O, s:b}", "args", arguments, "expect", expected, "wrapped", (int)wrapped)
                       : NULL;

    json_decref(arguments);
    json_decref(expected);
    if (test && form_add(form, test))
        return 0;
    return form_refuse(form, "the arguments of a call must be a list, or a text with one JSON value a line");
}

int form_add_call(struct form *form, const json_t *input, const json_t *output, bool wrapped)
{
    bool is_text = json_is_string(input);
    json_t *arguments = is_text ? arguments_of_lines(json_text_of(input)) : json_is_array(input) ? dumped(input) : NULL;

    if (!output)
        return add_call(form, arguments, NULL, wrapped);
    return add_call(form, arguments, expected_of(output, is_text), wrapped);
}

int form_read_calls(struct form *form, const json_t *row)
{
    const json_t *calls = json_object_get(row, "calls");
    struct text entry = json_text_of(json_object_get(row, "entry"));
    const json_t *call;
    size_t i;

    form->set->kind = TESTS_CALLS;
    form->set->entry = entry.data ? entry : form->entry;
    if (!form->set->entry.data || !json_is_array(calls))
        return form_refuse(form, "\"entry\" must be a name, and \"calls\" a list");
    json_array_foreach (calls, i, call) {
        const json_t *arguments = json_object_get(call, "args");
        const json_t *expected = json_object_get(call, "expect");
        if (!json_is_array(arguments) || !expected)
            return form_refuse(form, "each call must have a list \"args\", and \"expect\"");
        if (add_call(form, dumped(arguments), dumped(expected), false) < 0)
            return -1;
    }
    return 0;
}

/* --- LiveCodeBench --- */

static int add_live_test(struct form *form, const json_t *test)
{
    struct text type = json_text_of(json_object_get(test, "testtype"));
    const json_t *input = json_object_get(test, "input");
    const json_t *output = json_object_get(test, "output");
    bool call = text_equals(type, "functional");

    if (!json_is_string(input) || !json_is_string(output) || (!call && !text_equals(type, "stdin")))
        return form_refuse(form, "a test has texts \"input\" and \"output\", and a \"testtype\" stdin or functional");
    if (json_array_size(form->set->tests) && call != (form->set->kind == TESTS_CALLS))
        return form_refuse(form, "all tests must be of one testtype");
    form->set->kind = call ? TESTS_CALLS : TESTS_STDIN;
    if (!call)
        return form_add_stdin(form, input, output);
    if (!form->set->entry.data)
        return form_refuse(form, "functional tests need \"func_name\" in \"metadata\"");
    return form_add_call(form, input, output, false);
}

static int add_live_tests(struct form *form, const json_t *tests)
{
    const json_t *test;
    size_t i;

    if (!json_is_array(tests))
        return form_refuse(form, "its test cases must be JSON lists");
    json_array_foreach (tests, i, test)
        if (add_live_test(form, test) < 0)
            return -1;
    return 0;
}

static int add_packed(struct form *form, struct text packed)
{
    _cleanup_buffer_ struct buffer unpacked = {.data = NULL};
    struct text text;
    const char *problem;

    if (form->depth == FORMS_LOOK) {
        form->packed = true;
        return 0;
    }
    if (pickle_unpack(packed, &unpacked, &text, &problem) < 0)
        return verifier_refuse(form->problem, "", "\"private_test_cases\" %s", problem);
    return add_live_tests(form, form_load(form, text));
}

static int add_private(struct form *form, const json_t *value)
{
    const json_t *list = form_list(form, value);

    if (list)
        return add_live_tests(form, list);
    if (!json_is_string(value))
        return form_refuse(form, "\"private_test_cases\" must be a text");
    return add_packed(form, json_text_of(value));
}

int form_read_live_code_bench(struct form *form, const json_t *row)
{
    const json_t *metadata = json_object_get(row, "metadata");
    struct text name;

    if (json_is_string(metadata))
        metadata = form_load(form, json_text_of(metadata));
    name = json_text_of(json_object_get(metadata, "func_name"));
    form->set->entry = name.data ? name : form->entry;
    if (add_live_tests(form, form_list(form, json_object_get(row, "public_test_cases"))) < 0)
        return -1;
    return add_private(form, json_object_get(row, "private_test_cases"));
}
