#include "verifiers/code/forms.h"

#include <math.h>

#include "server/base/json_big.h"
#include "verifiers/code/forms_private.h"

#define LARGE_BYTES ((size_t)4 << 20)
#define SPARE_BYTES ((size_t)16 << 20)
#define WRAPPERS_MAX 4 /* a form in a text in a form */

/* Is there no room for so many bytes? Then the reason that a failure seems to have is none. */
static bool is_memory_short(size_t bytes)
{
    void *volatile room = malloc(bytes);
    bool is_short = !room;

    free(room);
    return is_short;
}

/* --- JSON in texts --- */

json_t *form_load(struct form *form, struct text json)
{
    json_t *value = json_big_load(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

    if (value && json_array_append_new(form->set->kept, value) < 0)
        value = NULL;
    if (!value && json.length_bytes > LARGE_BYTES)
        form->large_text = true;
    return value;
}

/* A list, or a text of one. */
const json_t *form_list(struct form *form, const json_t *value)
{
    if (json_is_string(value))
        value = form_load(form, json_text_of(value));
    return json_is_array(value) ? value : NULL;
}

int form_refuse(struct form *form, const char *why)
{
    return verifier_refuse(form->problem, "", "%s", why);
}

bool form_add(struct form *form, json_t *test)
{
    bool added = json_array_append_new(form->set->tests, test) == 0;

    form->no_memory = form->no_memory || !added;
    return added;
}

/* --- stdin tests --- */

/* Lines of a list are joined; what is no text is taken as it would be written. */
static json_t *joined(const json_t *value)
{
    _cleanup_buffer_ struct buffer lines;
    const json_t *line;
    size_t i;

    buffer_init(&lines, SIZE_MAX);
    json_array_foreach (value, i, line) {
        _cleanup_free_ char *written = json_is_string(line) ? NULL : json_big_dump(line, JSON_ENCODE_ANY);
        struct text text = json_is_string(line) ? json_text_of(line) : text_of(written);
        if (i)
            buffer_append_byte(&lines, '\n');
        buffer_append(&lines, text.data, text.length_bytes);
    }
    return lines.failed ? NULL : json_stringn_nocheck(buffer_text(&lines).data, lines.length_bytes);
}

/* A new reference to the text that a value stands for; NULL: it stands for none. */
static json_t *stream_text(const json_t *value)
{
    if (json_is_string(value))
        return json_incref((json_t *)(uintptr_t)value);
    if (json_is_array(value))
        return joined(value);
    if (!json_is_number(value))
        return NULL;
    _cleanup_free_ char *written = json_big_dump(value, JSON_ENCODE_ANY);
    return json_string(written);
}

int form_add_stdin(struct form *form, const json_t *input, const json_t *output)
{
    json_t *stdin_text = stream_text(input);
    json_t *stdout_text = stream_text(output);

    if (stdin_text && stdout_text &&
        form_add(form, json_pack("{s:o, s:o}", "stdin", json_incref(stdin_text), "stdout", json_incref(stdout_text)))) {
        json_decref(stdin_text);
        json_decref(stdout_text);
        return 0;
    }
    json_decref(stdin_text);
    json_decref(stdout_text);
    return form_refuse(form, "a test's input and output must be texts, or lists of lines");
}

static int read_native(struct form *form, const json_t *row)
{
    const json_t *tests = json_object_get(row, "tests");
    const json_t *test;
    size_t i;

    form->set->kind = TESTS_STDIN;
    form->set->checker = json_object_get(row, "checker");
    if (json_is_null(form->set->checker))
        form->set->checker = NULL;
    if (!json_is_array(tests))
        return form_refuse(form, "\"tests\" must be a list");
    json_array_foreach (tests, i, test) {
        const json_t *input = json_object_get(test, "stdin");
        const json_t *output = json_object_get(test, "stdout");
        json_t *empty = json_string("");
        bool lacks = !json_is_object(test) || (!output && !form->set->checker);
        int result = lacks ? form_refuse(form, "each test must have \"stdin\" and \"stdout\"")
                           : form_add_stdin(form, input ? input : empty, output ? output : empty);
        json_decref(empty);
        if (result < 0)
            return -1;
    }
    return 0;
}

/* --- APPS, TACO --- */

static int read_pairs(struct form *form, const json_t *row)
{
    const json_t *inputs = json_object_get(row, "inputs");
    const json_t *outputs = json_object_get(row, "outputs");
    struct text name = json_text_of(json_object_get(row, "fn_name"));

    if (!json_is_array(inputs) || !json_is_array(outputs) || json_array_size(inputs) != json_array_size(outputs))
        return form_refuse(form, "\"inputs\" and \"outputs\" must be lists of the same length");
    form->set->entry = name.data ? name : form->entry;
    form->set->kind = form->set->entry.data ? TESTS_CALLS : TESTS_STDIN;
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        const json_t *input = json_array_get(inputs, i);
        const json_t *output = json_array_get(outputs, i);
        int result = form->set->kind == TESTS_CALLS ? form_add_call(form, input, output, true)
                                                    : form_add_stdin(form, input, output);
        if (result < 0)
            return -1;
    }
    return 0;
}

/* --- open-r1 --- */

static int read_test_case(struct form *form, const json_t *test)
{
    const json_t *input = json_object_get(test, "input");
    const json_t *output = json_object_get(test, "output");
    struct text name = json_text_of(json_object_get(test, "fn_name"));
    struct text type = json_text_of(json_object_get(test, "type"));
    bool call = text_equals(type, "function_call");

    if (!input || !output || (type.data && !call && !text_equals(type, "stdin_stdout")))
        return form_refuse(form, "a test case has \"input\", \"output\" and a \"type\" stdin_stdout or function_call");
    if (!call && form->set->entry.data)
        return form_refuse(form, "all test cases must be of one type");
    if (!call)
        return form_add_stdin(form, input, output);
    if (!name.data)
        name = form->entry;
    if (!name.data || (json_array_size(form->set->tests) && !text_same(name, form->set->entry)))
        return form_refuse(form, "all test cases must call one function, named by \"fn_name\"");
    form->set->kind = TESTS_CALLS;
    form->set->entry = name;
    return form_add_call(form, input, output, true);
}

static int read_open_r1(struct form *form, const json_t *row)
{
    const json_t *cases = form_list(form, json_object_get(row, "test_cases"));
    const json_t *test;
    size_t i;

    if (!cases)
        return form_refuse(form, "\"test_cases\" must be a list");
    if (json_is_string(json_array_get(cases, 0))) /* AceCode */
        return form_read_test_list(form, cases);
    json_array_foreach (cases, i, test)
        if (read_test_case(form, test) < 0)
            return -1;
    return 0;
}

/* --- which one --- */

static const struct {
    const char *key;
    const char *second; /* that must be there, too; NULL: none */
    int (*read)(struct form *form, const json_t *row);
} readers[] = {
    {"tests", NULL, read_native},
    {"asserts", NULL, form_read_asserts},
    {"calls", NULL, form_read_calls},
    {"inputs", "outputs", read_pairs},
    {"private_test_cases", "public_test_cases", form_read_live_code_bench},
    {"entry_point", "test", form_read_human_eval},
    {"test_list", NULL, form_read_mbpp},
    {"test", NULL, form_read_functions},
    {"test_cases", NULL, read_open_r1},
};

static const char *const wrappers[] = {"input_output", "ground_truth", "verification_info", "reward_model"};

static const json_t *unwrapped(const json_t *row)
{
    const json_t *inner = NULL;

    for (size_t i = 0; i < ARRAY_LENGTH(wrappers) && !inner; i++)
        inner = json_object_get(row, wrappers[i]);
    return inner;
}

static double positive(const json_t *value, double before)
{
    return json_is_number(value) && json_number_value(value) > 0 ? json_number_value(value) : before;
}

/* Keys that may stand beside any form. */
static void read_beside(struct test_set *set, const json_t *row)
{
    const char *language = json_string_value(json_object_get(row, "language"));
    double seconds = positive(json_object_get(row, "time_limit"), NAN);

    if (language)
        set->language = language;
    if (isfinite(seconds))
        set->wall_ms = seconds * 1000;
    set->memory_mb = positive(json_object_get(row, "memory_limit"), set->memory_mb);
}

static int read_row(struct form *form, const json_t *row)
{
    for (size_t i = 0; i < ARRAY_LENGTH(readers); i++)
        if (json_object_get(row, readers[i].key) && (!readers[i].second || json_object_get(row, readers[i].second)))
            return readers[i].read(form, row);
    return form_refuse(form,
                       "has none of the forms that code reads: tests, asserts, calls, or a row of a known data set");
}

static const json_t *find_row(struct form *form, const json_t *reference)
{
    for (int i = 0; i < WRAPPERS_MAX && reference; i++) {
        const json_t *inner;
        if (json_is_string(reference))
            reference = form_load(form, json_text_of(reference));
        if (!json_is_object(reference))
            return NULL;
        read_beside(form->set, reference);
        inner = unwrapped(reference);
        if (!inner)
            return reference;
        reference = inner;
    }
    return NULL;
}

static int read_reference(struct form *form, const json_t *reference)
{
    const json_t *row = find_row(form, reference);

    if (!row)
        return form_refuse(form, "must be an object, or a text that is one in JSON");
    if (read_row(form, row) < 0)
        return -1;
    if (json_array_size(form->set->tests) == 0 && !form->packed)
        return form_refuse(form, "has no tests");
    return 0;
}

int forms_read(const json_t *reference, struct text entry, enum forms_depth depth, struct test_set *ret_set,
               struct verifier_problem *ret_problem)
{
    struct form form = {.set = ret_set, .problem = ret_problem, .entry = entry, .depth = depth};

    *ret_set = (struct test_set){
        .tests = json_array(), .before = json_array(), .kept = json_array(), .wall_ms = NAN, .memory_mb = NAN};
    if (read_reference(&form, reference) == 0)
        return 0;
    if (depth == FORMS_UNPACK && (form.no_memory || is_memory_short(SPARE_BYTES)))
        form_refuse(&form, "takes more memory than a worker has");
    else if (form.large_text)
        form_refuse(&form, "takes more memory than a worker has, or a text of several MiB in it is no JSON");
    return -1;
}

void test_set_finish(struct test_set *set)
{
    json_decref(set->tests);
    json_decref(set->before);
    json_decref(set->kept);
    *set = (struct test_set){.tests = NULL};
}
