/* exact: is the completion (or the answer extracted from it) this text, byte for byte? A number as reference is its
 * JSON text: 42, 0.5, the shortest that reads back as the same. */
#include <stdio.h>

#include "server/base/buffer.h"
#include "server/base/number.h"
#include "verifiers/rows.h"
#include "verifiers/text/extract.h"

static const struct verifier_option options[] = {
    {"strip", OPTION_BOOL, "true", NULL, 0, 0, "ignore white space at both ends"},
    {"ignore_case", OPTION_BOOL, "false", NULL, 0, 0, "ignore the case of ASCII letters"},
    {"extract", OPTION_CHOICE, "null", extract_rule_names, 0, 0,
     "take the answer by a rule of math; null: the whole completion"},
};

static bool is_legible(const json_t *value)
{
    return json_is_number(value) || text_trimmed(json_text_of(value)).length_bytes > 0;
}

static int check_reference(const json_t *reference, const json_t *filled, struct verifier_problem *ret_problem)
{
    size_t i;
    const json_t *element;

    (void)filled;
    if (is_legible(reference))
        return 0;
    if (json_is_string(reference))
        return verifier_refuse(ret_problem, "", "the reference is blank");
    if (!json_is_array(reference) || json_array_size(reference) == 0)
        return verifier_refuse(ret_problem, "", "the reference is neither a text, a number nor a list of them");
    json_array_foreach (reference, i, element)
        if (!is_legible(element))
            return verifier_refuse(ret_problem, "",
                                   "element %zu of the reference is neither a text nor a number, or blank", i);
    return 0;
}

static char lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte + 32) : byte;
}

static bool is_same(struct text left, struct text right, bool ignore_case)
{
    if (!ignore_case)
        return text_same(left, right);
    if (left.length_bytes != right.length_bytes)
        return false;
    for (size_t i = 0; i < left.length_bytes; i++)
        if (lower(left.data[i]) != lower(right.data[i]))
            return false;
    return true;
}

static struct text text_of_reference(const json_t *reference, char room[NUMBER_BYTES])
{
    if (json_is_string(reference))
        return json_text_of(reference);
    if (json_is_integer(reference))
        snprintf(room, NUMBER_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(reference));
    else
        room[number_format_double(json_real_value(reference), room)] = 0;
    return text_of(room);
}

static bool accepts(const struct verifier_input *input, struct text answer, const json_t *reference)
{
    char number[NUMBER_BYTES];
    struct text wanted = text_of_reference(reference, number);

    if (option_is_true(input->options, "strip"))
        wanted = text_trimmed(wanted);
    return is_same(answer, wanted, option_is_true(input->options, "ignore_case"));
}

static struct text answer_of(const struct verifier_input *input)
{
    struct text name = option_text(input->options, "extract");
    struct extracted extracted;

    if (!name.data)
        return input->completion;
    for (int rule = 0; rule < EXTRACT_RULES; rule++) {
        if (text_equals(name, extract_rule_names[rule])) {
            extract_answer(input->completion, (enum extract_rule)rule, &extracted);
            return extracted.answer;
        }
    }
    return TEXT_NONE;
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    struct text answer = answer_of(input);
    struct text bare;
    struct verifier_problem problem;
    bool correct = false;
    size_t i;
    const json_t *element;

    if (check_reference(input->reference, input->options, &problem) < 0) {
        verdict_fail(ret_verdict, "reference_unreadable", "%s", problem.message);
        return;
    }
    if (!answer.data) {
        verdict_set(ret_verdict, false, "no_answer");
        return;
    }
    bare = option_is_true(input->options, "strip") ? text_trimmed(answer) : answer;
    if (!json_is_array(input->reference))
        correct = accepts(input, bare, input->reference);
    json_array_foreach (input->reference, i, element)
        correct = correct || accepts(input, bare, element);
    verdict_set(ret_verdict, correct, correct ? "equal" : "different");
    if (option_text(input->options, "extract").data)
        verdict_note_extracted(ret_verdict, input->completion, answer);
}

const struct verifier verifier_exact = {
    .name = "exact",
    .version = "2",
    .help = "1 if the completion is the reference, or one of the list",
    .needs_reference = true,
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_reference = check_reference,
    .grade = grade,
};
