/* Forms whose tests are code of the reference. */
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

/* What is blank is true of every program. */
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
