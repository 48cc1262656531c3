/* Calls of one function. As many as fit share a sandbox; where the program ended or was ended before it had answered all of
 * them, the first one without an answer gets a sandbox of its own, with the limits of one test. */
#include <stdio.h>

#include "server/base/json_write.h"
#include "verifiers/code/harness_private.h"
#include "verifiers/code/trial_private.h"

/* One record of calls.py: a letter, the index, the length, the data. */
struct record {
    char kind; /* 'v' value, 'e' exception, 'c' it does not compile, 'l' it raised while it was loaded */
    size_t index;
    struct text data;
};

static bool take_number(struct text *rest, size_t *ret_number)
{
    size_t number = 0;
    size_t at = 0;

    for (; at < rest->length_bytes && at < 10 && rest->data[at] >= '0' && rest->data[at] <= '9'; at++)
        number = number * 10 + (size_t)(rest->data[at] - '0');
    if (!at || at == rest->length_bytes || rest->data[at] != ':')
        return false;
    *rest = (struct text){rest->data + at + 1, rest->length_bytes - at - 1};
    *ret_number = number;
    return true;
}

static bool take_record(struct text *rest, struct record *ret_record)
{
    size_t size_bytes;

    if (rest->length_bytes == 0 || rest->data[0] == 0 || !strchr("vecl", rest->data[0]))
        return false;
    ret_record->kind = rest->data[0];
    *rest = (struct text){rest->data + 1, rest->length_bytes - 1};
    if (!take_number(rest, &ret_record->index) || !take_number(rest, &size_bytes) || size_bytes >= rest->length_bytes ||
        rest->data[size_bytes] != '\n')
        return false;
    ret_record->data = (struct text){rest->data, size_bytes};
    *rest = (struct text){rest->data + size_bytes + 1, rest->length_bytes - size_bytes - 1};
    return true;
}

static bool value_is_expected(const struct trial *trial, const json_t *test, struct text tagged)
{
    _cleanup_value_ struct value got = {.nodes = NULL};
    _cleanup_value_ struct value expected = {.nodes = NULL};

    if (value_read_tagged(tagged, &got) < 0 ||
        value_read_json(json_text_of(json_object_get(test, "expect")), &expected) < 0)
        return false;
    return value_equal(&got, &expected, &trial->rule.tolerance) ||
           (json_is_true(json_object_get(test, "wrapped")) &&
            value_equal_only(&got, &expected, &trial->rule.tolerance));
}

/* NULL if the record is what is expected of the call. */
static const char *record_reason(const struct trial *trial, size_t test, const struct record *record)
{
    if (record->kind == 'c')
        return REASON_COMPILE;
    if (record->kind != 'v')
        return REASON_RUNTIME;
    return value_is_expected(trial, json_array_get(trial->set->tests, test), record->data) ? NULL : REASON_WRONG;
}

static void write_calls(const struct trial *trial, size_t from, struct buffer *out)
{
    struct json_write json;

    json_write_init(&json, out);
    json_array_begin(&json);
    json_text(&json, trial->set->entry);
    json_text(&json, trial->prelude);
    json_array_end(&json);
    for (size_t i = from; i < trial->chosen_count; i++) {
        struct text arguments =
            json_text_of(json_object_get(json_array_get(trial->set->tests, trial->chosen[i]), "args"));
        buffer_append_byte(out, '\n');
        buffer_append(out, arguments.data, arguments.length_bytes);
    }
}

/* How many calls from the first on have their record. *ret_forged: records that the harness would not write. */
static size_t count_answers(const struct sandbox_result *result, size_t wanted, bool *ret_forged)
{
    struct text rest = result->records;
    struct record record;
    size_t count = 0;

    for (struct text next = rest; count < wanted && take_record(&next, &record) && record.index == count; rest = next)
        count++;
    /* A program that was killed may leave a part of a record. */
    *ret_forged = rest.length_bytes > 0 && (result->outcome == SANDBOX_ENDED || count == wanted);
    return count;
}

/* None of them has an answer. */
static bool fail_rest(struct trial *trial, size_t from, const char *reason, const struct sandbox_result *result)
{
    for (size_t i = from; i < trial->chosen_count; i++)
        if (!trial_count(trial, trial->chosen[i], 0, reason, result))
            break;
    return false;
}

static bool count_call(struct trial *trial, size_t test, const struct record *record,
                       const struct sandbox_result *result)
{
    const char *reason = record_reason(trial, test, record);

    return trial_count(trial, test, reason ? 0 : 1, reason, result);
}

/* The calls from chosen[*from] on that one sandbox answered; *from moves on. False: the trial is over. */
static bool count_run(struct trial *trial, size_t *from, const struct sandbox_result *result)
{
    size_t wanted = trial->chosen_count - *from;
    struct text rest = result->records;
    struct record record = {.kind = 0};
    bool forged;
    size_t count = count_answers(result, wanted, &forged);

    if (result->outcome != SANDBOX_ENDED && count == wanted)
        count--;
    if (forged || count == 0) {
        const char *reason = trial_reason(result);
        return trial_count(trial, trial->chosen[(*from)++], 0,
                           forged   ? REASON_WRONG
                           : reason ? reason
                                    : REASON_RUNTIME,
                           result);
    }
    for (size_t i = 0; i < count; i++) {
        take_record(&rest, &record);
        if (record.kind == 'c' || record.kind == 'l')
            return fail_rest(trial, *from, record.kind == 'c' ? REASON_COMPILE : REASON_RUNTIME, result);
        if (!count_call(trial, trial->chosen[(*from)++], &record, result))
            return false;
    }
    return true;
}

static bool run_from(struct trial *trial, size_t *from)
{
    _cleanup_buffer_ struct buffer calls;
    _cleanup_(sandbox_result_finish) struct sandbox_result result = {.exit_code = -1};
    struct sandbox_program program = trial_program(trial, harness_calls(), TEXT_LITERAL(""));

    buffer_init(&calls, SIZE_MAX);
    write_calls(trial, *from, &calls);
    if (calls.failed) {
        trial_fail(trial, FAILURE_MEMORY, "there is no memory for the calls");
        return false;
    }
    program.records = true;
    program.file_count = 2;
    program.files[0] = (struct sandbox_file){"program.py", trial->source};
    program.files[1] = (struct sandbox_file){"calls", buffer_text(&calls)};
    return trial_sandbox(trial, &program, 1, &result) && count_run(trial, from, &result);
}

void trial_run_calls(struct trial *trial)
{
    for (size_t from = 0; from < trial->chosen_count;)
        if (trial_is_late(trial, from) || !run_from(trial, &from))
            return;
}
