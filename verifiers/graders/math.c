/* math: is the final answer the reference's value? Exactly: decimals are rationals, nothing is rounded unless the
 * options say so; only what is proved equal is paid.
 *
 * Extract (extract.h), read both (math/parse.h), compare (math/compare.h), say how. A comparison that cannot be decided in
 * its limits is incorrect with the reason `undecided`. */
#include <stdio.h>

#include "server/base/buffer.h"
#include "verifiers/math/compare.h"
#include "verifiers/math/parse.h"
#include "verifiers/rows.h"
#include "verifiers/text/around.h"
#include "verifiers/text/extract.h"
#include "verifiers/text/sentence.h"

#define REFERENCES_MAX 256
#define ARENA_BYTES (8 * 1024 * 1024)
#define READ_BYTES 1024 /* of detail.read; a longer one ends with an ellipsis */

static const char *const percents[] = {"value", "unit", "both", NULL};
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
     "25% where the reference has no percent sign: value reads 1/4, unit reads 25; both: a sign may be missing on "
     "either "
     "side"},
    {"form", OPTION_CHOICE, "\"any\"", forms, 0, 0,
     "evaluated: nothing is left to work out; reduced: also no square under a root; factored: the reference's factors"},
    {"multiple", OPTION_CHOICE, "\"last\"", multiples, 0, 0,
     "several different boxes or tags: take the last or refuse"},
    {"fallback", OPTION_CHOICE, "\"none\"", fallbacks, 0, 0, "where extract finds nothing: nothing, or answer_is"},
    {"join_boxes", OPTION_BOOL, "false", NULL, 0, 0, "all boxes together are one list"},
    {"max_boxes", OPTION_INT, "null", NULL, 1, 64, "more different boxes than this are refused"},
    {"decimal_comma", OPTION_BOOL, "false", NULL, 0, 0, "1,5 is 1.5"},
    {"unicode_digits", OPTION_CHOICE, "\"nfkc\"", digit_rules, 0, 0, "nfkc: full-width digits count as digits"},
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
    json_array_foreach (reference, i, element)
        if (!has_type(element))
            return verifier_refuse(ret_problem, "", "element %zu of the reference is no text", i);
    return 0;
}

static struct math_reading reading_of(const json_t *filled, bool prose)
{
    return (struct math_reading){
        .max_depth = (int)option_number(filled, "max_depth", 256),
        .decimal_comma = option_is_true(filled, "decimal_comma"),
        .wide_digits = option_is(filled, "unicode_digits", "nfkc"),
        .prose = prose,
    };
}

/* One accepted answer. */
static int read_reference(struct math_arena *arena, const json_t *element, const json_t *filled,
                          struct math_node **ret_node, struct verifier_problem *ret_problem)
{
    struct math_reading reading = reading_of(filled, false);
    struct math_parse_error error = {0, NULL};
    struct text text = json_text_of(element);
    enum math_parse_status status;
    char number[32];

    reading.any_unit = true;
    if (json_is_integer(element)) {
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(element));
        text = text_of(number);
    }
    if (text_trimmed(text).length_bytes == 0)
        return verifier_refuse(ret_problem, "", "the reference is blank");
    if (text.length_bytes > MATH_ANSWER_BYTES)
        return verifier_refuse(ret_problem, "", "the reference is longer than %d bytes", MATH_ANSWER_BYTES);
    status = math_parse(arena, text, &reading, ret_node, &error);
    if (status == MATH_TOO_LARGE)
        return verifier_refuse(ret_problem, "", "the reference is too deep or has too many digits (byte %zu)",
                               error.at_bytes);
    if (status != MATH_PARSED)
        return verifier_refuse(ret_problem, "", "the reference cannot be read: %s expected at byte %zu",
                               error.expected ? error.expected : "mathematics or text", error.at_bytes);
    return 0;
}

struct references {
    size_t count;
    struct math_node *node[REFERENCES_MAX];
};

static int read_references(struct math_arena *arena, const json_t *reference, const json_t *filled,
                           struct references *ret_references, struct verifier_problem *ret_problem)
{
    size_t i;
    const json_t *element;

    ret_references->count = 0;
    if (check_types(reference, ret_problem) < 0)
        return -1;
    if (!json_is_array(reference))
        return read_reference(arena, reference, filled, &ret_references->node[ret_references->count++], ret_problem);
    json_array_foreach (reference, i, element)
        if (read_reference(arena, element, filled, &ret_references->node[ret_references->count++], ret_problem) < 0)
            return -1;
    return 0;
}

static int check_reference(const json_t *reference, const json_t *filled, struct verifier_problem *ret_problem)
{
    _cleanup_math_arena_ struct math_arena *arena = math_arena_create(ARENA_BYTES);
    struct references references = {.count = 0};

    return read_references(arena, reference, filled, &references, ret_problem);
}

/* 1/0, 42 = 43: with an allowance of its own, so that the answer's comparison has all of its. */
static int check_values(const struct references *references, const struct math_rules *rules,
                        struct verifier_problem *ret_problem)
{
    struct math_decider *decider = math_decider_create(rules->arena, MATH_DECIDER_WORK);
    bool undefined = false;

    for (size_t i = 0; i < references->count && !undefined; i++)
        undefined = math_compare(decider, references->node[i], references->node[i], rules) == MATH_UNDEFINED;
    math_decider_destroy(decider);
    return undefined ? verifier_refuse(ret_problem, "", "the reference has no value") : 0;
}

static int check_value(const json_t *reference, const json_t *filled, struct verifier_problem *ret_problem)
{
    _cleanup_math_arena_ struct math_arena *arena = math_arena_create(ARENA_BYTES);
    const struct math_rules rules = {.arena = arena, .percent_is_unit = !option_is(filled, "percent", "value")};
    struct references references = {.count = 0};

    if (read_references(arena, reference, filled, &references, ret_problem) < 0)
        return -1;
    return check_values(&references, &rules, ret_problem);
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
    bool empty;           /* there was a place for an answer, with nothing in it */
    struct buffer joined; /* holds the answer of join_boxes */
};

static enum extract_rule rule_of(const json_t *filled)
{
    for (int rule = 0; rule < EXTRACT_RULES; rule++)
        if (option_is(filled, "extract", extract_rule_names[rule]))
            return (enum extract_rule)rule;
    return EXTRACT_AUTO;
}

/* With a decimal comma a list is separated by semicolons. */
static void join_boxes(struct text completion, const char *separator, struct found *found)
{
    struct text text = extract_final_part(completion);
    struct boxes boxes = {.count = 0};

    if (text.data)
        extract_boxes(text, &boxes);
    if (boxes.truncated || boxes.distinct < 2 || boxes.distinct > EXTRACT_BOXES_MAX)
        return;
    for (size_t i = 0; i < boxes.distinct; i++) {
        buffer_append_string(&found->joined, i ? separator : "");
        buffer_append(&found->joined, boxes.box[i].data, boxes.box[i].length_bytes);
    }
    found->answer = found->joined.failed ? TEXT_NONE : buffer_text(&found->joined);
}

static void refuse_answer(struct found *found, const char *reason)
{
    found->answer = TEXT_NONE;
    found->reason = reason;
}

/* A value that a sign in front of it is of as a whole. */
static bool is_plain(struct text answer)
{
    for (size_t i = 0; i < answer.length_bytes; i++)
        if (answer.data[i] == 0 || strchr("+-=<>,;&", answer.data[i]))
            return false;
    return true;
}

/* \boxed{12}\% is 12\%, -\boxed{3} is -3. Any other continuation beside the box cannot be read. */
static void join_surroundings(struct text completion, struct text box, struct found *found)
{
    enum around around = text_around(completion, box);
    bool minus = around == AROUND_MINUS;

    if (around == AROUND_NOTHING || found->answer.length_bytes > MATH_ANSWER_BYTES)
        return;
    if (around == AROUND_MORE || (minus && !is_plain(found->answer))) {
        refuse_answer(found, "unparsed_answer");
        return;
    }
    buffer_append_string(&found->joined, minus ? "-" : "");
    buffer_append(&found->joined, found->answer.data, found->answer.length_bytes);
    buffer_append_string(&found->joined, minus ? "" : "\\%");
    found->answer = found->joined.failed ? TEXT_NONE : buffer_text(&found->joined);
}

static void find_answer(const struct verifier_input *input, struct found *found)
{
    double max_boxes = option_number(input->options, "max_boxes", 0);
    struct extracted extracted;

    extract_answer(input->completion, rule_of(input->options), &extracted);
    if (!extracted.answer.data && option_is(input->options, "fallback", "answer_is") && extracted.distinct == 0 &&
        !extracted.truncated)
        extract_answer(input->completion, EXTRACT_ANSWER_IS, &extracted);
    found->answer = extracted.answer;
    found->empty = !extracted.answer.data && extracted.distinct > 0 && !extracted.truncated;
    found->prose = extracted.prose;
    if (found->prose && found->answer.length_bytes <= MATH_ANSWER_BYTES)
        found->answer = sentence_value(found->answer);
    found->reason = "no_answer";
    if (found->answer.data && extracted.whole.data && !option_is_true(input->options, "join_boxes"))
        join_surroundings(extracted.text, extracted.whole, found);
    if (option_is_true(input->options, "join_boxes"))
        join_boxes(input->completion, option_is_true(input->options, "decimal_comma") ? "; " : ", ", found);
    if (max_boxes > 0 && (double)extracted.distinct > max_boxes)
        refuse_answer(found, "too_many_boxes");
    else if (extracted.distinct > 1 && option_is(input->options, "multiple", "refuse"))
        refuse_answer(found, "several_answers");
    else if (found->answer.length_bytes > MATH_ANSWER_BYTES)
        refuse_answer(found, "too_long");
}

/* --- rules --- */

#define MANTISSA_DIGITS 14 /* behind the point: what every double has */

/* As it was written: 0.05 is 1/20 here, not the nearest double. */
static void decimal_of(double value, fmpq_t ret_value)
{
    char text[48];
    char *exponent;
    fmpz_t ten;
    fmpz_t power;
    long places;

    snprintf(text, sizeof text, "%.*e", MANTISSA_DIGITS, value);
    exponent = strchr(text, 'e');
    *exponent = 0;
    places = strtol(exponent + 1, NULL, 10) - MANTISSA_DIGITS;
    memmove(text + 1, text + 2, strlen(text + 2) + 1); /* the point */
    fmpz_init_set_ui(ten, 10);
    fmpz_init(power);
    fmpz_pow_ui(power, ten, (ulong)labs(places));
    fmpz_set_str(fmpq_numref(ret_value), text, 10);
    fmpz_one(fmpq_denref(ret_value));
    if (places < 0)
        fmpq_div_fmpz(ret_value, ret_value, power);
    else
        fmpq_mul_fmpz(ret_value, ret_value, power);
    fmpz_clear(power);
    fmpz_clear(ten);
}

static const fmpq *tolerance_of(const json_t *filled, const char *name, fmpq_t value)
{
    double number = option_number(filled, name, 0);

    if (number <= 0)
        return NULL;
    decimal_of(number, value);
    return value;
}

static enum math_form form_of(const json_t *filled)
{
    for (int form = 0; form < MATH_FORMS; form++)
        if (option_is(filled, "form", forms[form]))
            return (enum math_form)form;
    return MATH_FORM_ANY;
}

/* --- the verdict --- */

static const char *const reasons[MATH_DECISIONS] = {
    [MATH_EQUAL] = "equal",         [MATH_DIFFERENT] = "different", [MATH_UNDEFINED] = "different",
    [MATH_UNDECIDED] = "undecided", [MATH_LIMIT] = "undecided",
};

static void note_decision(struct verdict *verdict, enum math_decision decision, const char *method)
{
    json_object_set_new(verdict->detail, "decision", json_string(math_decision_names[decision]));
    if (method)
        json_object_set_new(verdict->detail, "method", json_string(method));
}

static void note_read(struct verdict *verdict, const struct math_node *answer)
{
    static const char cut[] = "\xE2\x80\xA6";
    _cleanup_buffer_ struct buffer printed;
    _cleanup_buffer_ struct buffer shown;

    buffer_init(&printed, READ_BYTES);
    buffer_init(&shown, READ_BYTES + sizeof cut);
    math_print(answer, &printed);
    buffer_append(&shown, printed.data, printed.length_bytes);
    buffer_append_string(&shown, printed.failed ? cut : "");
    json_object_set_new(verdict->detail, "read", json_stringn(buffer_text(&shown).data, shown.length_bytes));
}

static void note_unparsed(struct verdict *verdict, const struct math_parse_error *error)
{
    if (error->expected)
        json_object_set_new(verdict->detail, "expected", json_string(error->expected));
    json_object_set_new(verdict->detail, "expected_at", json_integer((json_int_t)error->at_bytes));
}

struct grading {
    struct math_arena *arena;
    struct references references;
    struct math_decider *decider;
    struct math_rules rules;
    enum math_form form;
};

/* Of one reference. An earlier verdict stands unless this one decides or could have. */
static void grade_reference(const struct grading *grading, const struct math_node *reference,
                            const struct math_node *answer, struct verdict *ret_verdict)
{
    enum math_decision decision = math_compare(grading->decider, reference, answer, &grading->rules);
    const char *method = math_decider_method(grading->decider);
    bool formed =
        decision == MATH_EQUAL && math_has_form(grading->decider, reference, answer, grading->form, &grading->rules);
    bool open = decision == MATH_UNDECIDED || decision == MATH_LIMIT;

    if (ret_verdict->reason && !open && decision != MATH_EQUAL)
        return;
    verdict_set(ret_verdict, formed, decision == MATH_EQUAL && !formed ? "wrong_form" : reasons[decision]);
    note_decision(ret_verdict, decision, method);
}

static void grade_parsed(struct grading *grading, const struct math_node *answer, struct verdict *ret_verdict)
{
    const struct references *references = &grading->references;

    grading->decider = math_decider_create(grading->arena, MATH_DECIDER_WORK);
    for (size_t i = 0; i < references->count && ret_verdict->kind != VERDICT_CORRECT; i++)
        grade_reference(grading, references->node[i], answer, ret_verdict);
    math_decider_destroy(grading->decider);
}

/* Their words may stand beside the answer's value. */
static size_t collect_references(const json_t *reference, struct text ret_texts[REFERENCES_MAX])
{
    size_t count = 0;
    size_t i;
    const json_t *element;

    if (json_is_string(reference))
        ret_texts[count++] = json_text_of(reference);
    json_array_foreach (reference, i, element)
        if (json_is_string(element) && count < REFERENCES_MAX)
            ret_texts[count++] = json_text_of(element);
    return count;
}

static void grade_found(struct grading *grading, const struct verifier_input *input, const struct found *found,
                        struct verdict *ret_verdict)
{
    struct math_reading reading = reading_of(input->options, found->prose);
    struct math_parse_error error = {0, NULL};
    struct math_node *answer = NULL;
    enum math_parse_status status;
    struct text references[REFERENCES_MAX];

    reading.prompt = input->prompt;
    reading.references = references;
    reading.reference_count = collect_references(input->reference, references);
    status = math_parse(grading->arena, found->answer, &reading, &answer, &error);

    if (status == MATH_PARSED) {
        note_read(ret_verdict, answer);
        grade_parsed(grading, answer, ret_verdict);
        return;
    }
    verdict_set(ret_verdict, false, status == MATH_TOO_LARGE ? "undecided" : "unparsed_answer");
    note_unparsed(ret_verdict, &error);
}

static void grade_completion(struct grading *grading, const struct verifier_input *input, struct verdict *ret_verdict)
{
    struct found found = {.answer = TEXT_NONE};

    buffer_init(&found.joined, MATH_ANSWER_BYTES);
    find_answer(input, &found);
    if (found.answer.data) {
        verdict_note_extracted(ret_verdict, input->completion, found.answer);
        grade_found(grading, input, &found, ret_verdict);
    } else {
        verdict_set(ret_verdict, false, found.reason);
    }
    buffer_finish(&found.joined);
}

/* An empty box against an empty reference: the cases label it as wrong, lest nothing should ever match nothing. */
static bool is_nothing_against_nothing(const struct verifier_input *input)
{
    struct found found = {.answer = TEXT_NONE};

    if (!json_is_string(input->reference) || text_trimmed(json_text_of(input->reference)).length_bytes > 0)
        return false;
    buffer_init(&found.joined, MATH_ANSWER_BYTES);
    find_answer(input, &found);
    buffer_finish(&found.joined);
    return found.empty;
}

/* The reference first: one that is broken is so for every member of a group, whatever each of them says. */
static void grade_by_rules(struct grading *grading, const struct verifier_input *input, struct verdict *ret_verdict)
{
    struct verifier_problem problem;

    if (read_references(grading->arena, input->reference, input->options, &grading->references, &problem) == 0 &&
        check_values(&grading->references, &grading->rules, &problem) == 0)
        grade_completion(grading, input, ret_verdict);
    else if (is_nothing_against_nothing(input))
        verdict_set(ret_verdict, false, "no_answer");
    else
        verdict_fail(ret_verdict, "reference_unreadable", "%s", problem.message);
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    _cleanup_math_arena_ struct math_arena *arena = math_arena_create(ARENA_BYTES);
    struct grading grading = {.arena = arena, .form = form_of(input->options), .rules = {.arena = arena}};
    fmpq_t relative;
    fmpq_t absolute;

    fmpq_init(relative);
    fmpq_init(absolute);
    grading.rules.percent_is_unit = !option_is(input->options, "percent", "value");
    grading.rules.percent_may_be_missing = option_is(input->options, "percent", "both");
    grading.rules.prompt = input->prompt;
    grading.rules.relative = tolerance_of(input->options, "rel_tol", relative);
    grading.rules.absolute = tolerance_of(input->options, "abs_tol", absolute);
    grade_by_rules(&grading, input, ret_verdict);
    fmpq_clear(absolute);
    fmpq_clear(relative);
}

const struct verifier verifier_math = {
    .name = "math",
    .version = "7",
    .help = "1 if the final answer has the reference's value, exactly",
    .needs_reference = true,
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_options = check_options,
    .check_reference = check_reference,
    .check_value = check_value,
    .grade = grade,
};
