/* Forms whose tests are code of the reference. */
#include <ctype.h>

#include "verifiers/code/forms_private.h"
#include "verifiers/text/extract.h"

/* Appends the texts of a list (or one text) to `out`. */
static int add_texts(struct form *form, const json_t *value, json_t *out)
{
    json_t *text;
    size_t i;

    if (!value || json_is_null(value))
        return 0;
    if (json_is_string(value))
        return json_array_append(out, (json_t *)(uintptr_t)value);
    if (!json_is_array(value))
        return form_refuse(form, "tests that are code must be texts");
    json_array_foreach (value, i, text) {
        if (!json_is_string(text))
            return form_refuse(form, "tests that are code must be texts");
        json_array_append(out, text);
    }
    return 0;
}

/* A blank assert is true of every program. */
static int add_tests(struct form *form, const json_t *value)
{
    json_t *test;
    size_t i;

    if (add_texts(form, value, form->set->tests) < 0)
        return -1;
    json_array_foreach (form->set->tests, i, test)
        if (!text_trimmed(json_text_of(test)).length_bytes)
            return form_refuse(form, "a test must not be blank");
    return 0;
}

int form_read_asserts(struct form *form, const json_t *row)
{
    form->set->kind = TESTS_ASSERTS;
    if (add_texts(form, json_object_get(row, "setup"), form->set->before) < 0)
        return -1;
    return add_tests(form, json_object_get(row, "asserts"));
}

int form_read_mbpp(struct form *form, const json_t *row)
{
    form->set->kind = TESTS_ASSERTS;
    if (add_texts(form, json_object_get(row, "test_imports"), form->set->before) < 0 ||
        add_texts(form, json_object_get(row, "test_setup_code"), form->set->before) < 0)
        return -1;
    return add_tests(form, json_object_get(row, "test_list"));
}

int form_read_test_list(struct form *form, const json_t *list)
{
    form->set->kind = TESTS_ASSERTS;
    return add_tests(form, list);
}

/* --- test functions --- */

/* The name of a test function that the line begins with: "def test_add(". TEXT_NONE: none. */
static struct text test_name(struct text line)
{
    static const char head[] = "def test";
    size_t end = sizeof head - 1;

    if (line.length_bytes < end || memcmp(line.data, head, end) != 0)
        return TEXT_NONE;
    while (end < line.length_bytes && (isalnum((unsigned char)line.data[end]) || line.data[end] == '_'))
        end++;
    return end < line.length_bytes && line.data[end] == '(' ? (struct text){line.data + 4, end - 4} : TEXT_NONE;
}

/* A test is the whole text, and then a call of the one function: so each has what the others may have changed anew. */
static int add_function(struct form *form, struct text all, struct text name)
{
    _cleanup_buffer_ struct buffer code;

    buffer_init(&code, all.length_bytes + name.length_bytes + 32);
    buffer_append(&code, all.data, all.length_bytes);
    buffer_append_string(&code, "\n\nrun_test(");
    buffer_append(&code, name.data, name.length_bytes);
    buffer_append_string(&code, ")\n");
    return code.failed || !form_add(form, json_stringn(code.data, code.length_bytes)) ? -1 : 0;
}

/* KodCode: functions of pytest that import what they call from the module `solution`. */
int form_read_functions(struct form *form, const json_t *row)
{
    struct text all = json_text_of(json_object_get(row, "test"));
    size_t at = 0;

    form->set->kind = TESTS_ASSERTS;
    form->set->functions = true;
    while (at < all.length_bytes) {
        const char *end = memchr(all.data + at, '\n', all.length_bytes - at);
        struct text line = {all.data + at, end ? (size_t)(end - all.data) - at : all.length_bytes - at};
        struct text name = test_name(line);
        if (name.data && add_function(form, all, name) < 0)
            return form_refuse(form, "its test functions are too many for the memory of a worker");
        at += line.length_bytes + 1;
    }
    return json_array_size(form->set->tests)
               ? 0
               : form_refuse(form, "\"test\" must be a text with functions test_… (classes of tests are not read)");
}

/* --- HumanEval --- */

/* "Solution" of "Solution().solve": what the program has to define. */
static struct text first_name(struct text expression)
{
    size_t end = 0;

    while (end < expression.length_bytes && !strchr("(.[ \t\n", expression.data[end]))
        end++;
    return (struct text){expression.data, end};
}

int form_read_human_eval(struct form *form, const json_t *row)
{
    struct text prompt = json_text_of(json_object_get(row, "prompt"));
    struct text entry = json_text_of(json_object_get(row, "entry_point"));
    struct text test = json_text_of(json_object_get(row, "test"));
    _cleanup_buffer_ struct buffer code = {.data = NULL};

    form->set->kind = TESTS_ASSERTS;
    if (!entry.data || !test.data)
        return form_refuse(form, "\"entry_point\" and \"test\" must be texts");
    if (memmem(test.data, test.length_bytes, "unittest.TestCase", strlen("unittest.TestCase")))
        return form_refuse(form, "its tests are classes of unittest (BigCodeBench), which are not read");
    form->set->prompt = prompt.data ? prompt : TEXT_LITERAL("");
    form->set->entry = first_name(entry);
    if (!form->set->entry.length_bytes)
        return form_refuse(form, "\"entry_point\" must begin with a name");
    buffer_init(&code, test.length_bytes + entry.length_bytes + 32);
    buffer_append(&code, test.data, test.length_bytes);
    buffer_append_string(&code, "\n\ncheck(");
    buffer_append(&code, entry.data, entry.length_bytes);
    buffer_append_string(&code, ")\n");
    return code.failed || !form_add(form, json_stringn(code.data, code.length_bytes)) ? -1 : 0;
}
