/* A text against one instruction of the verifier ifeval, strict and loose, and its parts. Input: the instruction, a number for
 * its kwargs, and the text. */
#include <jansson.h>

#include "server/base/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "verifiers/ifeval/instruction.h"
#include "verifiers/ifeval/rules_private.h"
#include "verifiers/registry.h"

static json_t *value_of(enum kwarg_kind kind, uint8_t number)
{
    static const char *const languages[] = {"en", "hi", "ja", "zh", "hr"};

    if (kind == KWARG_RELATION)
        return json_string(number & 1 ? "at least" : "less than");
    if (kind == KWARG_LANGUAGE)
        return json_string(languages[number % ARRAY_LENGTH(languages)]);
    if (kind == KWARG_WORDS)
        return json_pack("[s, s]", "a", "b.c");
    if (kind == KWARG_LETTER)
        return json_string("\xc3\xa9");
    if (kind == KWARG_COUNT || kind == KWARG_PLACE || kind == KWARG_PERCENT)
        return json_integer(1 + number % 8);
    return json_string(number & 2 ? "a b a" : "\xc3\xa9.");
}

static json_t *reference_of(const struct instruction *instruction, uint8_t number)
{
    json_t *kwargs = json_object();

    for (const struct kwarg_rule *rule = instruction->kwargs; rule->name; rule++)
        json_object_set_new(kwargs, rule->name, value_of(rule->kind, number));
    return json_pack("{s:[s], s:[o]}", "instruction_id_list", instruction->id, "kwargs", kwargs);
}

/* The score; -1: none. */
static double score_of(const json_t *reference, struct text completion, const char *mode)
{
    const struct verifier *verifier = registry_find(TEXT_LITERAL("ifeval"));
    json_t *given = json_pack("{s:s}", "mode", mode);
    struct verifier_problem problem = {"", ""};
    json_t *options = registry_fill_options(verifier, given, &problem);
    struct verifier_input input = {completion, TEXT_NONE, reference, options, -1, -1};
    struct verdict verdict;
    double score;

    registry_grade(verifier, &input, &verdict);
    FUZZ_CHECK(verdict.kind != VERDICT_UNSCORED || strcmp(verdict.failure_code, "unsupported") == 0 ||
               strcmp(verdict.failure_code, "reference_unreadable") == 0);
    score = verdict.kind == VERDICT_UNSCORED ? -1 : verdict.score;
    verdict_finish(&verdict);
    json_decref(options);
    json_decref(given);
    return score;
}

/* Sentences are parts of the text, in order, and none is empty. */
static void check_sentences(struct text text)
{
    struct spans sentences = {0};
    const char *end = text.data;

    split_sentences(text, &sentences);
    for (size_t i = 0; i < sentences.count; i++) {
        FUZZ_CHECK(sentences.span[i].data >= end && sentences.span[i].length_bytes > 0);
        end = sentences.span[i].data + sentences.span[i].length_bytes;
    }
    FUZZ_CHECK(end <= text.data + text.length_bytes);
    spans_finish(&sentences);
}

/* A text that jansson reads is JSON; jansson takes a NUL for the end. */
static void check_json(struct text text)
{
    json_t *value = memchr(text.data, 0, text.length_bytes)
                        ? NULL
                        : json_loadb(text.data, text.length_bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

    FUZZ_CHECK(!value || is_json_text(text));
    json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct text rest = {(const char *)data, size_bytes};
    const struct instruction *instruction = &instructions[fuzz_take_byte(&rest) % instruction_count];
    json_t *reference = reference_of(instruction, fuzz_take_byte(&rest));
    _cleanup_buffer_ struct buffer mended;
    double strict = score_of(reference, rest, "strict");

    FUZZ_CHECK(strict < 1 || score_of(reference, rest, "loose") == 1);
    buffer_init(&mended, 3 * rest.length_bytes + 1);
    utf8_append_mended(&mended, rest);
    check_sentences(buffer_text(&mended));
    check_json(buffer_text(&mended));
    json_decref(reference);
    return 0;
}
