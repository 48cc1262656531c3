/* Tests that are code of the reference: a pair of programs, tests.py and candidate.py. Only the first one's records count; its
 * output is never shown, for it may tell what is expected. */
#include <stdio.h>

#include "server/base/json_write.h"
#include "verifiers/code/harness_private.h"
#include "verifiers/code/trial_private.h"

enum { PROGRAM_TESTS, PROGRAM_CANDIDATE, PROGRAMS };

/* Letters of tests.py. */
static const struct letter {
    char letter;
    const char *reason;
    bool ends; /* it speaks for all tests behind it, too */
} letters[] = {
    {'p', NULL, false},           {'w', REASON_WRONG, false},  {'e', REASON_RUNTIME, false},
    {'m', REASON_RUNTIME, false}, {'c', REASON_COMPILE, true}, {'l', REASON_RUNTIME, true},
    {'g', REASON_RUNTIME, false}, {'r', NULL, true},
};

static const struct letter *find_letter(char letter)
{
    for (size_t i = 0; i < ARRAY_LENGTH(letters); i++)
        if (letters[i].letter == letter)
            return &letters[i];
    return NULL;
}

/* "12p\n" */
static bool take_record(struct text *rest, size_t *ret_index, char *ret_letter)
{
    size_t at = 0;
    size_t index = 0;

    for (; at < rest->length_bytes && at < 10 && rest->data[at] >= '0' && rest->data[at] <= '9'; at++)
        index = index * 10 + (size_t)(rest->data[at] - '0');
    if (at == 0 || at + 2 > rest->length_bytes || rest->data[at + 1] != '\n')
        return false;
    *ret_letter = rest->data[at];
    *ret_index = index;
    *rest = (struct text){rest->data + at + 2, rest->length_bytes - at - 2};
    return true;
}

static void write_before(struct json_write *json, const struct trial *trial)
{
    const json_t *text;
    size_t i;

    json_key(json, "before");
    json_array_begin(json);
    json_array_foreach (trial->set->before, i, text)
        json_text(json, json_text_of(text));
    json_array_end(json);
}

static void write_tests(const struct trial *trial, size_t from, struct buffer *out)
{
    struct json_write json;

    json_write_init(&json, out);
    json_object_begin(&json);
    write_before(&json, trial);
    json_key(&json, "tests");
    json_array_begin(&json);
    for (size_t i = 0; i < trial->chosen_count; i++)
        json_text(&json, json_text_of(json_array_get(trial->set->tests, trial->chosen[i])));
    json_array_end(&json);
    json_put_text(&json, "prompt", trial->set->prompt);
    json_put_text(&json, "entry", trial->set->entry);
    json_put_bool(&json, "functions", trial->set->functions);
    json_put_int(&json, "first", (int64_t)from);
    json_object_end(&json);
}

static void write_given(const struct trial *trial, struct buffer *out)
{
    struct json_write json;

    json_write_init(&json, out);
    json_object_begin(&json);
    write_before(&json, trial);
    json_put_text(&json, "prelude", trial->prelude);
    json_put_text(&json, "entry", trial->set->entry);
    json_put_int(&json, "prompt_bytes", (int64_t)trial->prompt_bytes);
    json_object_end(&json);
}

/* The program's end, where the test's side says that it has ended. */
static const char *gone_reason(const struct sandbox_result results[PROGRAMS])
{
    const char *reason = trial_reason(&results[PROGRAM_CANDIDATE]);

    return reason ? reason : REASON_RUNTIME;
}

static bool count_letter(struct trial *trial, size_t *from, const struct letter *letter,
                         const struct sandbox_result results[PROGRAMS])
{
    const struct sandbox_result *candidate = &results[PROGRAM_CANDIDATE];
    const char *reason = letter->letter == 'g' ? gone_reason(results) : letter->reason;

    if (letter->letter == 'r') {
        trial_fail(trial, FAILURE_REFERENCE,
                   "a test of the reference fails by itself, or cannot be run apart from the program");
        return false;
    }
    do {
        if (!trial_count(trial, trial->chosen[(*from)++], reason ? 0 : 1, reason, candidate))
            return false;
    } while (letter->ends && *from < trial->chosen_count);
    return true;
}

/* The first test without a record: it, or the program in it, used up a limit or ended the test's side. */
static bool count_unanswered(struct trial *trial, size_t *from, const struct sandbox_result results[PROGRAMS])
{
    const char *reason = trial_reason(&results[PROGRAM_CANDIDATE]);

    if (!reason)
        reason = trial_reason(&results[PROGRAM_TESTS]);
    return trial_count(trial, trial->chosen[(*from)++], 0, reason ? reason : REASON_RUNTIME,
                       &results[PROGRAM_CANDIDATE]);
}

static bool count_pair(struct trial *trial, size_t *from, const struct sandbox_result results[PROGRAMS])
{
    struct text rest = results[PROGRAM_TESTS].records;
    size_t begun = *from;
    size_t index;
    char letter;

    while (*from < trial->chosen_count && take_record(&rest, &index, &letter)) {
        const struct letter *found = find_letter(letter);
        if (index != *from || !found)
            break;
        if (!count_letter(trial, from, found, results))
            return false;
    }
    return *from > begun || count_unanswered(trial, from, results);
}

static bool run_pair(struct trial *trial, size_t *from, struct text tests, struct text given)
{
    struct sandbox_result results[PROGRAMS] = {{.exit_code = -1}, {.exit_code = -1}};
    struct sandbox_program programs[PROGRAMS] = {
        [PROGRAM_TESTS] = trial_program(trial, harness_tests(), tests),
        [PROGRAM_CANDIDATE] = trial_program(trial, harness_candidate(), TEXT_LITERAL("")),
    };
    struct sandbox_program *candidate = &programs[PROGRAM_CANDIDATE];

    programs[PROGRAM_TESTS].records = true;
    candidate->file_count = 2;
    candidate->files[0] = (struct sandbox_file){"program.py", trial->source};
    candidate->files[1] = (struct sandbox_file){"given", given};
    bool more = trial_sandbox(trial, programs, PROGRAMS, results) && count_pair(trial, from, results);
    sandbox_result_finish(&results[PROGRAM_TESTS]);
    sandbox_result_finish(&results[PROGRAM_CANDIDATE]);
    return more;
}

void trial_run_asserts(struct trial *trial)
{
    _cleanup_buffer_ struct buffer given;
    bool more = true;

    buffer_init(&given, SIZE_MAX);
    write_given(trial, &given);
    for (size_t from = 0; more && from < trial->chosen_count;) {
        _cleanup_buffer_ struct buffer tests;
        if (trial_is_late(trial, from))
            return;
        buffer_init(&tests, SIZE_MAX);
        write_tests(trial, from, &tests);
        if (tests.failed || given.failed) {
            trial_fail(trial, FAILURE_MEMORY, "there is no memory for the tests");
            return;
        }
        more = run_pair(trial, &from, buffer_text(&tests), buffer_text(&given));
    }
}
