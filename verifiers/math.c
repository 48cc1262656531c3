/* math: is the final answer the reference's value? Exact: decimals are rationals, nothing is rounded unless the options
 * say so.
 *
 * Decided here: integers, decimals, fractions and what is rational by arithmetic, lists and sets and tuples of them,
 * bases. Other mathematics is correct only in the reference's own notation, and otherwise incorrect with the reason
 * `undecided`. The rules of equality stand in math_answer.h, those of extraction in extract.h. */
#include <ctype.h>
#include <stdio.h>

#include "server/base/buffer.h"
#include "verifiers/extract.h"
#include "verifiers/math_answer.h"
#include "verifiers/math_clean.h"
#include "verifiers/rows.h"

#define CLEAN_BYTES (16 * 1024)
#define REFERENCES_MAX 256

static const char *const percents[] = {"value", "unit", NULL};
static const char *const forms[] = {"any", "evaluated", "reduced", "factored", NULL};
static const char *const multiples[] = {"last", "refuse", NULL};
static const char *const fallbacks[] = {"none", "answer_is", NULL};
static const char *const digit_rules[] = {"reject", "nfkc", NULL};

static const struct verifier_option options[] = {
    {"extract", OPTION_CHOICE, "\"auto\"", extract_rule_names, 0, 0,
     "where the answer stands; auto: the last box, or without any box the last answer tag"},
    {"rel_tol", OPTION_NUMBER, "0", NULL, 0, 1, "allowed difference, relative to the reference"},
    {"abs_tol", OPTION_NUMBER, "0", NULL, 0, 1e300, "allowed difference; the larger of both counts"},
    {"percent", OPTION_CHOICE, "\"value\"", percents, 0, 0,
     "25% where the reference has no percent sign: value reads 1/4, unit reads 25"},
    {"form", OPTION_CHOICE, "\"any\"", forms, 0, 0,
     "evaluated, reduced: one number or one fraction in lowest terms; factored: the reference's notation"},
    {"multiple", OPTION_CHOICE, "\"last\"", multiples, 0, 0,
     "several different boxes or tags: take the last or refuse"},
    {"fallback", OPTION_CHOICE, "\"none\"", fallbacks, 0, 0, "where extract finds nothing: nothing, or answer_is"},
    {"join_boxes", OPTION_BOOL, "false", NULL, 0, 0, "all boxes together are one list"},
    {"max_boxes", OPTION_INT, "null", NULL, 1, 64, "more different boxes than this are refused"},
    {"decimal_comma", OPTION_BOOL, "false", NULL, 0, 0, "1,5 is 1.5"},
    {"unicode_digits", OPTION_CHOICE, "\"reject\"", digit_rules, 0, 0, "nfkc: full-width digits count as digits"},
    {"max_depth", OPTION_INT, "256", NULL, 1, 1024, "deeper nesting is not worked out"},
};

/* --- references --- */

static bool has_type(const json_t *reference)
{
    return json_is_string(reference) || json_is_integer(reference);
}

static int check_types(const json_t *reference, struct verifier_problem *ret_problem)
{
    size_t i;
    const json_t *element;

    if (has_type(reference))
        return 0;
    if (json_is_real(reference))
        return verifier_refuse(ret_problem, "", "a decimal must be written as a text: \"0.1\", not 0.1");
    if (!json_is_array(reference) || json_array_size(reference) == 0 || json_array_size(reference) > REFERENCES_MAX)
        return verifier_refuse(ret_problem, "", "the reference is neither a text nor a list of 1 to %d texts",
                               REFERENCES_MAX);
    json_array_foreach(reference, i, element) if (!has_type(element)) return verifier_refuse(
        ret_problem, "", "element %zu of the reference is no text", i);
    return 0;
}

static bool clean(struct text text, const json_t *filled, struct buffer *out)
{
    return math_clean(text, option_is(filled, "unicode_digits", "nfkc"), out);
}

static bool is_balanced(struct text cleaned)
{
    long depth = 0;

    for (size_t i = 0; i < cleaned.length_bytes && depth >= 0; i++) {
        if (cleaned.data[i] == '\\')
            i++;
        else
            depth += cleaned.data[i] == '{' ? 1 : cleaned.data[i] == '}' ? -1 : 0;
    }
    return depth == 0;
}

/* One accepted answer, cleaned. */
static bool clean_reference(const json_t *element, const json_t *filled, struct buffer *out)
{
    char number[32];
    struct text text = json_text_of(element);

    if (json_is_integer(element)) {
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(element));
        text = text_of(number);
    }
    return clean(text, filled, out) && out->length_bytes && is_balanced(buffer_text(out));
}

static int check_element(const json_t *element, const json_t *filled, struct verifier_problem *ret_problem)
{
    _cleanup_buffer_ struct buffer cleaned;

    buffer_init(&cleaned, CLEAN_BYTES);
    return clean_reference(element, filled, &cleaned)
               ? 0
               : verifier_refuse(ret_problem, "",
                                 "the reference is blank, too long, or no mathematics or text in LaTeX");
}

static int check_reference(const json_t *reference, const json_t *filled, struct verifier_problem *ret_problem)
{
    size_t i;
    const json_t *element;

    if (check_types(reference, ret_problem) < 0)
        return -1;
    if (!json_is_array(reference))
        return check_element(reference, filled, ret_problem);
    json_array_foreach(reference, i, element) if (check_element(element, filled, ret_problem) < 0) return -1;
    return 0;
}

static int check_options(const json_t *filled, struct verifier_problem *ret_problem)
{
    if (option_is_true(filled, "join_boxes") && option_is(filled, "multiple", "refuse"))
        return verifier_refuse(ret_problem, "join_boxes", "contradicts multiple: refuse");
    return 0;
}

/* --- the answer's text --- */

struct found {
    struct text answer; /* TEXT_NONE: reason says why */
    const char *reason;
    bool prose;
    struct buffer joined; /* holds the answer of join_boxes */
};

static enum extract_rule rule_of(const json_t *filled)
{
    for (int rule = 0; rule < EXTRACT_RULES; rule++)
        if (option_is(filled, "extract", extract_rule_names[rule]))
            return (enum extract_rule)rule;
    return EXTRACT_AUTO;
}

static void join_boxes(struct text completion, struct found *found)
{
    struct text text = extract_final_part(completion);
    struct boxes boxes = {.count = 0};

    if (text.data)
        extract_boxes(text, &boxes);
    if (boxes.truncated || boxes.distinct < 2 || boxes.distinct > EXTRACT_BOXES_MAX)
        return;
    for (size_t i = 0; i < boxes.distinct; i++) {
        buffer_append_string(&found->joined, i ? ", " : "");
        buffer_append(&found->joined, boxes.box[i].data, boxes.box[i].length_bytes);
    }
    found->answer = found->joined.failed ? TEXT_NONE : buffer_text(&found->joined);
}

static void refuse_answer(struct found *found, const char *reason)
{
    found->answer = TEXT_NONE;
    found->reason = reason;
}

static void find_answer(const struct verifier_input *input, struct found *found)
{
    double max_boxes = option_number(input->options, "max_boxes", 0);
    struct extracted extracted;

    extract_answer(input->completion, rule_of(input->options), &extracted);
    if (!extracted.answer.data && option_is(input->options, "fallback", "answer_is") && extracted.distinct == 0)
        extract_answer(input->completion, EXTRACT_ANSWER_IS, &extracted);
    found->answer = extracted.answer;
    found->prose = extracted.prose;
    found->reason = "no_answer";
    if (option_is_true(input->options, "join_boxes"))
        join_boxes(input->completion, found);
    if (max_boxes > 0 && (double)extracted.distinct > max_boxes)
        refuse_answer(found, "too_many_boxes");
    else if (extracted.distinct > 1 && option_is(input->options, "multiple", "refuse"))
        refuse_answer(found, "several_answers");
    else if (found->answer.length_bytes > MATH_ANSWER_BYTES)
        refuse_answer(found, "too_long");
}

/* --- equality of notation --- */

static struct text without_outer_braces(struct text text)
{
    while (text.length_bytes >= 2 && text.data[0] == '{' && text.data[text.length_bytes - 1] == '}') {
        struct text inner = {text.data + 1, text.length_bytes - 2};
        if (!is_balanced(inner))
            break;
        text = inner;
    }
    return text_trimmed(text);
}

static bool is_words(struct text text)
{
    if (text.length_bytes < 2)
        return false;
    for (size_t i = 0; i < text.length_bytes; i++)
        if (!isalpha((unsigned char)text.data[i]) && !strchr(" -',", text.data[i]))
            return false;
    return true;
}

static bool same_fold(struct text left, struct text right)
{
    if (left.length_bytes != right.length_bytes)
        return false;
    for (size_t i = 0; i < left.length_bytes; i++)
        if (tolower((unsigned char)left.data[i]) != tolower((unsigned char)right.data[i]))
            return false;
    return true;
}

/* Words, not a product of variables: in \text, or one of a few that nobody writes as a product. */
static bool is_prose(struct text cleaned, struct text identity)
{
    static const char *const words[] = {"yes", "no", "true", "false", "even", "odd", "none", "undefined"};

    if (!is_words(identity))
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        if (same_fold(identity, text_of(words[i])))
            return true;
    return cleaned.length_bytes > 6 && memcmp(cleaned.data, "\\text{", 6) == 0;
}

static struct text identity_of(struct text cleaned, struct buffer *out)
{
    struct text text;

    math_identity(cleaned, out);
    text = without_outer_braces(buffer_text(out));
    if (text.length_bytes > 1 && text.data[text.length_bytes - 1] == '.')
        text.length_bytes--;
    return text;
}

/* Returns the reason, and whether the notation is the same. */
static const char *compare_notation(struct text reference, struct text answer, bool *ret_same)
{
    _cleanup_buffer_ struct buffer left;
    _cleanup_buffer_ struct buffer right;
    struct text wanted;
    struct text given;
    bool prose;

    buffer_init(&left, 3 * CLEAN_BYTES);
    buffer_init(&right, 3 * CLEAN_BYTES);
    wanted = identity_of(reference, &left);
    given = identity_of(answer, &right);
    prose = is_prose(reference, wanted);
    *ret_same = wanted.length_bytes > 0 && (prose ? same_fold(wanted, given) : text_same(wanted, given));
    if (*ret_same)
        return "identical";
    return prose ? "different" : "undecided";
}

/* --- equality of value --- */

static void set_tolerance(const json_t *filled, const char *name, mpq_t ret_value)
{
    char decimal[40];

    /* As it was written: 0.05 is 1/20 here, not the nearest double. */
    snprintf(decimal, sizeof decimal, "%.15G", option_number(filled, name, 0));
    if (!number_read_decimal(text_of(decimal), ret_value))
        mpq_set_ui(ret_value, 0, 1);
}

static bool same_value(const struct math_answer *reference, const struct math_answer *answer, const json_t *filled)
{
    struct math_tolerance tolerance = {.percent_is_unit = option_is(filled, "percent", "unit")};
    bool same;

    mpq_inits(tolerance.relative, tolerance.absolute, NULL);
    set_tolerance(filled, "rel_tol", tolerance.relative);
    set_tolerance(filled, "abs_tol", tolerance.absolute);
    same = math_answer_same(reference, answer, &tolerance);
    mpq_clears(tolerance.relative, tolerance.absolute, NULL);
    return same;
}

static bool has_form(const struct math_answer *answer, const json_t *filled)
{
    if (option_is(filled, "form", "any"))
        return true;
    return !option_is(filled, "form", "factored") && !answer->operations && !answer->unreduced;
}

static const char *const status_reasons[] = {
    [NUMBER_OK] = "different",
    [NUMBER_NONE] = "unparsed_answer",
    [NUMBER_OUTSIDE] = "undecided",
    [NUMBER_LIMIT] = "undecided",
};

static const char *compare_values(const struct math_answer *reference, struct text answer, bool prose,
                                  const json_t *filled, bool *ret_same)
{
    struct math_reading reading = {(int)option_number(filled, "max_depth", 256),
                                   option_is_true(filled, "decimal_comma"), prose};
    struct math_answer read;
    enum number_status status = math_answer_read(answer, &reading, &read);
    const char *reason = status_reasons[status];

    if (status == NUMBER_OK && same_value(reference, &read, filled)) {
        *ret_same = has_form(&read, filled);
        reason = *ret_same ? "equal" : "wrong_form";
    }
    math_answer_finish(&read);
    return reason;
}

static const char *compare(struct text reference, struct text answer, bool prose, const json_t *filled, bool *ret_same)
{
    struct math_reading reading = {(int)option_number(filled, "max_depth", 256),
                                   option_is_true(filled, "decimal_comma"), false};
    struct math_answer wanted;
    const char *reason;

    *ret_same = false;
    if (math_answer_read(reference, &reading, &wanted) == NUMBER_OK)
        reason = compare_values(&wanted, answer, prose, filled, ret_same);
    else
        reason = compare_notation(reference, answer, ret_same);
    math_answer_finish(&wanted);
    return reason;
}

/* --- the verdict --- */

static void judge_one(const json_t *element, const struct verifier_input *input, const struct found *found,
                      struct text answer, struct verdict *ret_verdict)
{
    _cleanup_buffer_ struct buffer cleaned;
    const char *reason;
    bool same;

    buffer_init(&cleaned, CLEAN_BYTES);
    if (!clean_reference(element, input->options, &cleaned))
        return;
    reason = compare(buffer_text(&cleaned), answer, found->prose, input->options, &same);
    /* The first reason stands, unless another reference decides or could have. */
    if (same || !ret_verdict->reason || strcmp(reason, "undecided") == 0)
        verdict_set(ret_verdict, same, reason);
}

static void judge_answer(const struct verifier_input *input, const struct found *found, struct verdict *ret_verdict)
{
    _cleanup_buffer_ struct buffer cleaned;
    size_t i;
    const json_t *element;

    buffer_init(&cleaned, CLEAN_BYTES);
    if (!clean(found->answer, input->options, &cleaned) || cleaned.length_bytes == 0) {
        verdict_set(ret_verdict, false, "unparsed_answer");
        return;
    }
    if (!json_is_array(input->reference))
        judge_one(input->reference, input, found, buffer_text(&cleaned), ret_verdict);
    json_array_foreach(input->reference, i, element) if (ret_verdict->kind != VERDICT_CORRECT)
        judge_one(element, input, found, buffer_text(&cleaned), ret_verdict);
}

static void judge(const struct verifier_input *input, struct verdict *ret_verdict)
{
    struct found found = {.answer = TEXT_NONE};
    struct verifier_problem problem;

    if (check_types(input->reference, &problem) < 0) {
        verdict_fail(ret_verdict, "reference_unreadable", "%s", problem.message);
        return;
    }
    buffer_init(&found.joined, MATH_ANSWER_BYTES);
    find_answer(input, &found);
    /* No answer is wrong whatever the reference says; an answer to a broken reference cannot be judged. */
    if (!found.answer.data)
        verdict_set(ret_verdict, false, found.reason);
    else if (check_reference(input->reference, input->options, &problem) < 0)
        verdict_fail(ret_verdict, "reference_unreadable", "%s", problem.message);
    else
        judge_answer(input, &found, ret_verdict);
    if (found.answer.data)
        verdict_note_extracted(ret_verdict, input->completion, found.answer);
    buffer_finish(&found.joined);
}

const struct verifier verifier_math = {
    .name = "math",
    .version = "1",
    .help = "1 if the final answer has the reference's value, exactly",
    .needs_reference = true,
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_options = check_options,
    .check_reference = check_reference,
    .judge = judge,
};
