/* Completions through the verifiers. Input: a byte for the verifier, then its options as JSON, the reference as JSON
 * and the completion, each ended by the separator. */
#include "tests/fuzz/fuzz.h"
#include "verifiers/registry.h"

#include <math.h>

static void check_verdict(const struct verdict *verdict)
{
    bool unscored = verdict->kind == VERDICT_UNSCORED;

    FUZZ_CHECK((unsigned)verdict->kind < VERDICT_KINDS && verdict->reason);
    FUZZ_CHECK(unscored == (verdict->failure_code != NULL));
    FUZZ_CHECK(unscored || isfinite(verdict->score));
    FUZZ_CHECK(verdict->kind != VERDICT_CORRECT || verdict->score == 1);
    FUZZ_CHECK(verdict->kind != VERDICT_INCORRECT || verdict->score == 0);
    FUZZ_CHECK(!verdict->detail || json_is_object(verdict->detail));
    if (verdict->detail) {
        char *shown = json_dumps(verdict->detail, JSON_COMPACT);
        FUZZ_CHECK(shown);
        free(shown);
    }
}

/* The second stage of a score, whatever the other verifier said. */
static void check_settled(const struct verifier *verifier, const json_t *options, const struct verdict *verdict)
{
    static const double others[] = {-1e9, 0, 1e-300, 1};

    if (!verifier->settle || verdict->kind == VERDICT_UNSCORED)
        return;
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        FUZZ_CHECK(isfinite(verifier->settle(options, verdict->score, others[i]).score));
}

static void grade(const struct verifier *verifier, const json_t *options, const json_t *reference,
                  struct text completion)
{
    struct verifier_input input = {completion, TEXT_NONE, reference, options, (int64_t)completion.length_bytes - 1, -1};
    struct verifier_problem problem = {"", ""};
    struct verdict verdict;
    bool readable =
        !verifier->check_reference || !reference || verifier->check_reference(reference, options, &problem) == 0;

    FUZZ_CHECK(readable || problem.message[0]);
    registry_grade(verifier, &input, &verdict);
    check_verdict(&verdict);
    check_settled(verifier, options, &verdict);
    verdict_finish(&verdict);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct text rest = {(const char *)data, size_bytes};
    const struct verifier *verifier = verifiers[fuzz_take_byte(&rest) % verifier_count];
    struct verifier_problem problem = {"", ""};
    size_t options_bytes, reference_bytes;

    _cleanup_free_ char *options_text = fuzz_take_part(&rest, &options_bytes);
    _cleanup_free_ char *reference_text = fuzz_take_part(&rest, &reference_bytes);
    json_t *given = json_loadb(options_text, options_bytes, JSON_ALLOW_NUL, NULL);
    json_t *reference = json_loadb(reference_text, reference_bytes, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    json_t *options = registry_fill_options(verifier, given, &problem);
    _cleanup_free_ char *completion = xrealloc(NULL, rest.length_bytes + 1);
    if (rest.length_bytes > 0)
        memcpy(completion, rest.data, rest.length_bytes);

    FUZZ_CHECK(options || problem.message[0]);
    if (options)
        grade(verifier, options, reference, (struct text){completion, rest.length_bytes});
    json_decref(given);
    json_decref(reference);
    json_decref(options);
    return 0;
}
