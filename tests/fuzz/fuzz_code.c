/* Replies of a sandbox, read by the verifier of programs: output, records of calls, asserts and checkers, ends of every kind. Input: a byte
 * for the kind of the reference, then for each run a byte each for outcome, exit code and signal, its output and its
 * records, each ended by the separator. Nothing is run: sandbox_run() is this file's. */
#include "tests/fuzz/fuzz.h"
#include "verifiers/registry.h"
#include "verifiers/sandbox/sandbox.h"

#include <math.h>
#include <string.h>

#define SECRET "expected-4f1c"

static struct text script; /* what is left of the input */

const char *const sandbox_language_names[SANDBOX_LANGUAGES + 1] = {
#define LANGUAGE(constant, name, ...) [SANDBOX_##constant] = name,
#include "verifiers/sandbox/languages.def"
#undef LANGUAGE
};

/* As the wire lets it through (wire_check_result). */
static void play(const struct sandbox_program *program, struct sandbox_result *result)
{
    size_t output_bytes, records_bytes;

    *result = (struct sandbox_result){
        .outcome = (enum sandbox_outcome)(fuzz_take_byte(&script) % (SANDBOX_BROKEN + 1)), .began = true, .cpu_us = 10};
    result->exit_code = (int)fuzz_take_byte(&script) - 1;
    result->signal = fuzz_take_byte(&script) % 128;
    _cleanup_free_ char *output = fuzz_take_part(&script, &output_bytes);
    _cleanup_free_ char *records = fuzz_take_part(&script, &records_bytes);
    if (!program->records)
        records_bytes = 0;
    buffer_init(&result->bytes, SIZE_MAX);
    buffer_append(&result->bytes, output, output_bytes);
    buffer_append(&result->bytes, records, records_bytes);
    result->standard_output = (struct text){result->bytes.data, output_bytes};
    result->records = (struct text){result->bytes.data + output_bytes, records_bytes};
    result->standard_error = result->standard_output;
}

int sandbox_run(int fd, const struct sandbox_program *programs, size_t count, struct sandbox_result *ret_results)
{
    bool over = script.length_bytes == 0;

    (void)fd;
    for (size_t i = 0; i < count; i++)
        play(&programs[i], &ret_results[i]);
    return over ? -1 : 0;
}

void sandbox_result_finish(struct sandbox_result *result)
{
    buffer_finish(&result->bytes);
    result->standard_output = result->standard_error = result->records = TEXT_NONE;
}

static const char *const references[] = {
    "{\"tests\":[{\"stdin\":\"1\",\"stdout\":\"" SECRET " 2\"},{\"stdin\":\"\",\"stdout\":\"3\"}]}",
    "{\"entry\":\"f\",\"calls\":[{\"args\":[1],\"expect\":2},{\"args\":[\"a\"],\"expect\":[1.5,null,{\"a\":\"" SECRET
    "\"}]},{\"args\":[],\"expect\":-7}]}",
    "{\"asserts\":[\"assert f(1) == 2\",\"assert f(2) == '" SECRET "'\",\"assert f(3)\"]}",
    "{\"tests\":[{\"stdin\":\"1\",\"stdout\":\"" SECRET
    "\"}],\"checker\":{\"source\":\"x\",\"language\":\"cpp\",\"protocol\":\"testlib\"}}",
    "{\"tests\":[{\"stdin\":\"1\",\"stdout\":\"" SECRET
    "\"}],\"checker\":{\"source\":\"x\",\"language\":\"python\",\"protocol\":\"openr1\"}}",
};
static const char *const option_texts[] = {
    "{\"language\":\"python\"}",
    "{\"language\":\"python\",\"score\":\"fraction\",\"compare\":{\"mode\":\"float\",\"abs\":0.1}}",
    "{\"language\":\"python\",\"compare\":{\"mode\":\"json\"}}",
    "{\"language\":\"python\",\"compare\":{\"mode\":\"tokens\"}}",
};

static const struct verifier *find_code(void)
{
    for (size_t i = 0; i < verifier_count; i++)
        if (strcmp(verifiers[i]->name, "code") == 0)
            return verifiers[i];
    abort();
}

static void check_detail(const json_t *detail, struct text data)
{
    char *shown = json_dumps(detail, JSON_COMPACT);

    FUZZ_CHECK(shown);
    if (!memmem(data.data, data.length_bytes, "expected", 8))
        FUZZ_CHECK(!strstr(shown, SECRET));
    free(shown);
}

static void check_verdict(const struct verdict *verdict, struct text data)
{
    bool unscored = verdict->kind == VERDICT_UNSCORED;

    FUZZ_CHECK((unsigned)verdict->kind < VERDICT_KINDS && verdict->reason);
    FUZZ_CHECK(unscored == (verdict->failure_code != NULL));
    FUZZ_CHECK(unscored || (verdict->score >= 0 && verdict->score <= 1));
    FUZZ_CHECK(verdict->kind != VERDICT_CORRECT || (verdict->score == 1 && strcmp(verdict->reason, "pass") == 0));
    if (verdict->detail)
        check_detail(verdict->detail, data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    const struct text all = {data ? (const char *)data : "", size_bytes};
    struct verifier_problem problem = {"", ""};
    struct verdict verdict;

    script = all;
    uint8_t kind = fuzz_take_byte(&script);
    json_t *given = json_loads(option_texts[kind / 8 % ARRAY_LENGTH(option_texts)], 0, NULL);
    json_t *reference = json_loads(references[kind % 8 % ARRAY_LENGTH(references)], 0, NULL);
    json_t *options = registry_fill_options(find_code(), given, &problem);
    FUZZ_CHECK(given && reference && options);
    struct verifier_input input = {.completion = TEXT_LITERAL("```python\ndef f(x): return x\n```"),
                                   .reference = reference,
                                   .options = options,
                                   .completion_tokens = -1};
    registry_grade(find_code(), &input, &verdict);
    check_verdict(&verdict, all);
    verdict_finish(&verdict);
    json_decref(given);
    json_decref(reference);
    json_decref(options);
    return 0;
}
