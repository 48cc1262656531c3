/* countdown: does the expression use each given number exactly once and give the target?
 *
 *   reference  {"numbers": [25, 3, 7, 4], "target": 86}: whole numbers from 0; the target also as a text: "-3", "7/2"
 *   answer     the last <answer>…</answer>; without any such tag the last box
 *
 * One expression on one line of + - * / and brackets, in ASCII or as \times \cdot \div \frac{…}{…} × ÷ − ·. Nothing
 * else: no power, no joined or other digits, no product without its sign, no two signs in a row, no // and no **.
 * Values are exact rationals. Reasons, a closed set: equal, different, no_answer, too_long, unparsed_answer,
 * implied_product, unary_minus, equals_sign, wrong_numbers, wrong_claim, division_by_zero.
 *
 * The signs are looked at twice: a scan of the text refuses what the parser of mathematics would forgive, then the
 * parser makes the tree that is worked out. */
#include <flint/fmpq.h>

#include "verifiers/math/parse.h"
#include "verifiers/rows.h"
#include "verifiers/text/extract.h"

#define NUMBERS_MAX 100
#define TARGET_BYTES 100
#define ARENA_BYTES ((size_t)1 << 20)
#define DEPTH_MAX 1024

static const struct verifier_option options[] = {
    {"allow_equals", OPTION_BOOL, "false", NULL, 0, 0, "\"= value\" may follow the expression; it must be its value"},
    {"unary_minus", OPTION_BOOL, "false", NULL, 0, 0, "a minus sign may begin the expression or a bracket"},
    {"max_depth", OPTION_INT, "256", NULL, 1, DEPTH_MAX, "deeper brackets are refused"},
};

/* --- the scan: only what is allowed, in an order that is allowed --- */

enum part {
    PART_NONE, /* a space or a decoration */
    PART_NUMBER,
    PART_OPEN,
    PART_BOX, /* and its brace */
    PART_CLOSE,
    PART_OPERATOR,
    PART_MINUS,
    PART_EQUALS,
    PART_FRACTION,
    PART_UNKNOWN
};

static const struct {
    const char *text;
    enum part part;
} parts[] = {
    {" ", PART_NONE},
    {"\t", PART_NONE},
    {"$", PART_NONE},
    {"\\(", PART_NONE},
    {"\\)", PART_NONE},
    {"\\[", PART_NONE},
    {"\\]", PART_NONE},
    {"\\,", PART_NONE},
    {"\\;", PART_NONE},
    {"\\!", PART_NONE},
    {"\\ ", PART_NONE},
    {"(", PART_OPEN},
    {"{", PART_OPEN},
    {"\\left(", PART_OPEN},
    {"\\left (", PART_OPEN},
    {"\\boxed{", PART_BOX},
    {"\\boxed {", PART_BOX},
    {")", PART_CLOSE},
    {"}", PART_CLOSE},
    {"\\right)", PART_CLOSE},
    {"\\right )", PART_CLOSE},
    {"+", PART_OPERATOR},
    {"*", PART_OPERATOR},
    {"/", PART_OPERATOR},
    {"-", PART_MINUS},
    {"=", PART_EQUALS},
    {"\\times", PART_OPERATOR},
    {"\\cdot", PART_OPERATOR},
    {"\\div", PART_OPERATOR},
    {"\\frac", PART_FRACTION},
    {"\\dfrac", PART_FRACTION},
    {"\\tfrac", PART_FRACTION},
    {"\xc3\x97", PART_OPERATOR} /* × */,
    {"\xc3\xb7", PART_OPERATOR} /* ÷ */,
    {"\xe2\x88\x92", PART_MINUS} /* − */,
    {"\xc2\xb7", PART_OPERATOR} /* · */,
    {"\xe2\x8b\x85", PART_OPERATOR} /* ⋅ */,
};

struct scan {
    struct text text;
    size_t at;
    bool unary_minus;
    bool allow_equals;
    bool behind_value;          /* the last part was a number or closed a bracket */
    bool behind_operator;       /* the last part was an operator */
    bool behind_equals;         /* there was an equals sign */
    unsigned fractions_to_open; /* braces that must open now, for the arguments of a fraction */
    size_t depth;
    unsigned char opened[DEPTH_MAX]; /* '(' or a box's '{', or 1 for a fraction's first argument, 2 for its second */
};

static size_t digits_bytes(struct text text, size_t at)
{
    size_t end = at;

    while (end < text.length_bytes && text.data[end] >= '0' && text.data[end] <= '9')
        end++;
    return end - at;
}

/* With a fraction behind a point: "2.5". */
static size_t number_bytes(struct text text, size_t at)
{
    size_t whole = digits_bytes(text, at);
    size_t point = at + whole;

    if (!whole || point >= text.length_bytes || text.data[point] != '.' || !digits_bytes(text, point + 1))
        return whole;
    return whole + 1 + digits_bytes(text, point + 1);
}

static enum part take_part(struct scan *scan)
{
    size_t number = number_bytes(scan->text, scan->at);
    size_t best = 0;
    enum part part = PART_UNKNOWN;

    if (number) {
        scan->at += number;
        return PART_NUMBER;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
        size_t length = strlen(parts[i].text);
        if (length > best && length <= scan->text.length_bytes - scan->at &&
            memcmp(scan->text.data + scan->at, parts[i].text, length) == 0) {
            best = length;
            part = parts[i].part;
        }
    }
    scan->at += best;
    return part;
}

/* Each gives NULL, or the reason why the part may not stand here. */

static const char *scan_value(struct scan *scan)
{
    if (scan->behind_value)
        return "implied_product";
    return scan->fractions_to_open ? "unparsed_answer" : NULL;
}

static const char *scan_number(struct scan *scan)
{
    const char *reason = scan_value(scan);

    scan->behind_value = true;
    scan->behind_operator = false;
    return reason;
}

static const char *open_as(struct scan *scan, unsigned char what)
{
    if (scan->depth == DEPTH_MAX)
        return "unparsed_answer";
    scan->opened[scan->depth++] = what;
    scan->fractions_to_open = 0;
    scan->behind_value = scan->behind_operator = false;
    return NULL;
}

/* Nobody would see a brace that is no argument's: {2+3}*4 is set as 2+3*4. */
static const char *scan_open(struct scan *scan)
{
    char sign = scan->text.data[scan->at - 1];
    unsigned argument = scan->fractions_to_open;

    if (!argument && scan->behind_value)
        return "implied_product";
    if ((argument != 0) != (sign == '{'))
        return "unparsed_answer";
    return open_as(scan, argument ? (unsigned char)(3 - argument) : '(');
}

static const char *scan_box(struct scan *scan)
{
    const char *reason = scan_value(scan);

    return reason ? reason : open_as(scan, '{');
}

static const char *scan_close(struct scan *scan)
{
    char sign = scan->text.data[scan->at - 1];
    unsigned char opened = scan->depth ? scan->opened[--scan->depth] : 0;

    if (!opened || !scan->behind_value || (opened == '(') != (sign == ')'))
        return "unparsed_answer";
    scan->fractions_to_open = opened == 1;
    scan->behind_value = opened != 1;
    return NULL;
}

static const char *scan_operator(struct scan *scan)
{
    if (!scan->behind_value || scan->fractions_to_open)
        return "unparsed_answer";
    scan->behind_value = false;
    scan->behind_operator = true;
    return NULL;
}

static const char *scan_minus(struct scan *scan)
{
    if (scan->behind_value)
        return scan_operator(scan);
    if (scan->behind_operator || scan->fractions_to_open)
        return "unparsed_answer";
    scan->behind_operator = true;
    return scan->unary_minus || (scan->behind_equals && !scan->depth) ? NULL : "unary_minus";
}

static const char *scan_equals(struct scan *scan)
{
    if (!scan->allow_equals || scan->behind_equals || scan->depth || !scan->behind_value)
        return "equals_sign";
    scan->behind_equals = true;
    scan->behind_value = scan->behind_operator = false;
    return NULL;
}

static const char *scan_fraction(struct scan *scan)
{
    const char *reason = scan_value(scan);

    scan->fractions_to_open = 2;
    scan->behind_operator = false;
    return reason;
}

static const char *scan_none(struct scan *scan)
{
    (void)scan;
    return NULL;
}

static const char *scan_unknown(struct scan *scan)
{
    (void)scan;
    return "unparsed_answer";
}

static const char *(*const scans[])(struct scan *scan) = {
    [PART_NONE] = scan_none,       [PART_NUMBER] = scan_number, [PART_OPEN] = scan_open,
    [PART_BOX] = scan_box,         [PART_CLOSE] = scan_close,   [PART_OPERATOR] = scan_operator,
    [PART_MINUS] = scan_minus,     [PART_EQUALS] = scan_equals, [PART_FRACTION] = scan_fraction,
    [PART_UNKNOWN] = scan_unknown,
};

/* NULL, or the reason why this is no expression of the game. */
static const char *scan_answer(struct text answer, const json_t *filled)
{
    struct scan scan = {.text = answer,
                        .unary_minus = option_is_true(filled, "unary_minus"),
                        .allow_equals = option_is_true(filled, "allow_equals")};
    const char *reason = NULL;

    while (!reason && scan.at < answer.length_bytes) {
        enum part part = take_part(&scan);
        reason = scans[part](&scan);
    }
    return reason || (scan.behind_value && !scan.depth) ? reason : "unparsed_answer";
}

/* --- the tree --- */

struct numbers {
    fmpz given[NUMBERS_MAX];
    bool used[NUMBERS_MAX];
    size_t count;
};

/* The value of a tree of the four operations. NULL, or the reason why it has none. Rationals can only grow with the
 * numbers that are used, so these are counted first. */
static const char *evaluate(const struct math_node *node, fmpq_t ret_value);

static const char *divide(const struct math_node *node, fmpq_t ret_value)
{
    const char *reason;
    fmpq_t divisor;

    fmpq_init(divisor);
    reason = evaluate(node->children[0], ret_value);
    if (!reason)
        reason = evaluate(node->children[1], divisor);
    if (!reason && fmpq_is_zero(divisor))
        reason = "division_by_zero";
    if (!reason)
        fmpq_div(ret_value, ret_value, divisor);
    fmpq_clear(divisor);
    return reason;
}

static const char *combine(const struct math_node *node, fmpq_t ret_value)
{
    const char *reason = NULL;
    fmpq_t part;

    fmpq_init(part);
    fmpq_set_si(ret_value, node->kind == MATH_PRODUCT, 1);
    for (size_t i = 0; i < node->count && !reason; i++) {
        reason = evaluate(node->children[i], part);
        if (reason)
            break;
        if (node->kind == MATH_PRODUCT)
            fmpq_mul(ret_value, ret_value, part);
        else
            fmpq_add(ret_value, ret_value, part);
    }
    fmpq_clear(part);
    return reason;
}

static const char *evaluate(const struct math_node *node, fmpq_t ret_value)
{
    const char *reason;

    if (node->kind == MATH_SUM || node->kind == MATH_PRODUCT)
        return combine(node, ret_value);
    if (node->kind == MATH_QUOTIENT)
        return divide(node, ret_value);
    if (node->kind == MATH_NEGATE) {
        reason = evaluate(node->children[0], ret_value);
        fmpq_neg(ret_value, ret_value);
        return reason;
    }
    if (node->kind != MATH_NUMBER)
        return "unparsed_answer";
    fmpq_set(ret_value, node->value);
    return NULL;
}

static bool use_number(const struct math_node *node, struct numbers *numbers)
{
    bool plain = node->text.length_bytes && digits_bytes(node->text, 0) == node->text.length_bytes &&
                 (node->text.data[0] != '0' || node->text.length_bytes == 1);

    for (size_t i = 0; i < numbers->count && plain; i++)
        if (!numbers->used[i] && fmpz_is_one(fmpq_denref(node->value)) &&
            fmpz_equal(fmpq_numref(node->value), &numbers->given[i])) {
            numbers->used[i] = true;
            return true;
        }
    return false;
}

/* NULL if each number below the node is one of those given that was not used yet. */
static const char *use_numbers(const struct math_node *node, struct numbers *numbers)
{
    const char *reason = NULL;

    if (node->kind == MATH_NUMBER)
        return use_number(node, numbers) ? NULL : "wrong_numbers";
    if (node->kind != MATH_SUM && node->kind != MATH_PRODUCT && node->kind != MATH_QUOTIENT &&
        node->kind != MATH_NEGATE)
        return "unparsed_answer";
    for (size_t i = 0; i < node->count && !reason; i++)
        reason = use_numbers(node->children[i], numbers);
    return reason;
}

static bool all_used(const struct numbers *numbers)
{
    for (size_t i = 0; i < numbers->count; i++)
        if (!numbers->used[i])
            return false;
    return true;
}

/* A value as one writes it: 86, -3, 7/2, 2.5. */
static bool is_plain_value(const struct math_node *node)
{
    if (node->kind == MATH_NEGATE)
        node = node->children[0];
    if (node->kind != MATH_QUOTIENT)
        return node->kind == MATH_NUMBER;
    return node->children[0]->kind == MATH_NUMBER && node->children[1]->kind == MATH_NUMBER;
}

static const char *check_claim(const struct math_node *claim, const fmpq_t value)
{
    const char *reason = is_plain_value(claim) ? NULL : "equals_sign";
    fmpq_t claimed;

    fmpq_init(claimed);
    if (!reason)
        reason = evaluate(claim, claimed);
    if (!reason && !fmpq_equal(claimed, value))
        reason = "wrong_claim";
    fmpq_clear(claimed);
    return reason;
}

/* NULL with the value, or the reason. */
static const char *work_out(const struct math_node *node, struct numbers *numbers, fmpq_t ret_value)
{
    bool claims = node->kind == MATH_RELATION && node->count == 2 && node->relations[0] == MATH_EQUALS;
    const struct math_node *expression = claims ? node->children[0] : node;
    const char *reason = use_numbers(expression, numbers);

    if (!reason && !all_used(numbers))
        reason = "wrong_numbers";
    if (!reason)
        reason = evaluate(expression, ret_value);
    if (!reason && claims)
        reason = check_claim(node->children[1], ret_value);
    return reason;
}

/* --- the reference --- */

static int refuse_target(struct verifier_problem *ret_problem)
{
    return verifier_refuse(ret_problem, "",
                           "target: expected a whole number, or a text like \"-3\", \"7/2\" or \"2.5\"");
}

/* 0, or -1: no value. */
static int read_value(struct text text, fmpq_t ret_value)
{
    _cleanup_math_arena_ struct math_arena *arena = math_arena_create(ARENA_BYTES);
    struct math_reading reading = {.max_depth = 8};
    struct math_node *node;

    if (text.length_bytes > TARGET_BYTES || math_parse(arena, text, &reading, &node, NULL) != MATH_PARSED)
        return -1;
    return is_plain_value(node) && !evaluate(node, ret_value) ? 0 : -1;
}

static int read_target(const json_t *target, struct verifier_problem *ret_problem, fmpq_t ret_value)
{
    if (json_is_integer(target))
        fmpq_set_si(ret_value, json_integer_value(target), 1);
    else if (!json_is_string(target) || read_value(json_text_of(target), ret_value) < 0)
        return refuse_target(ret_problem);
    return 0;
}

static int check_numbers(const json_t *list, struct verifier_problem *ret_problem)
{
    size_t i;
    const json_t *number;

    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > NUMBERS_MAX)
        return verifier_refuse(ret_problem, "", "numbers: expected a list of 1 to %d whole numbers", NUMBERS_MAX);
    json_array_foreach (list, i, number)
        if (!json_is_integer(number) || json_integer_value(number) < 0)
            return verifier_refuse(ret_problem, "", "numbers[%zu]: expected a whole number from 0", i);
    return 0;
}

static int check_reference(const json_t *reference, const json_t *filled, struct verifier_problem *ret_problem)
{
    fmpq_t target;
    int result;

    (void)filled;
    if (!json_is_object(reference))
        return verifier_refuse(ret_problem, "", "expected an object with numbers and target");
    if (check_numbers(json_object_get(reference, "numbers"), ret_problem) < 0)
        return -1;
    fmpq_init(target);
    result = read_target(json_object_get(reference, "target"), ret_problem, target);
    fmpq_clear(target);
    return result;
}

static void numbers_init(struct numbers *numbers, const json_t *list)
{
    *numbers = (struct numbers){.count = json_array_size(list)};
    for (size_t i = 0; i < numbers->count; i++) {
        fmpz_init(&numbers->given[i]);
        fmpz_set_si(&numbers->given[i], json_integer_value(json_array_get(list, i)));
    }
}

static void numbers_finish(struct numbers *numbers)
{
    for (size_t i = 0; i < numbers->count; i++)
        fmpz_clear(&numbers->given[i]);
}

/* --- the verdict --- */

/* A tag that was never closed is no answer, whatever is boxed. */
static struct text find_answer(struct text completion)
{
    struct text final = extract_final_part(completion);
    bool tagged = final.data && text_find(final, 0, "<answer>") < final.length_bytes;
    struct extracted extracted;

    extract_answer(completion, tagged ? EXTRACT_ANSWER_TAG : EXTRACT_BOXED, &extracted);
    return extracted.answer;
}

/* Spaces and a full stop say nothing. */
static struct text without_margin(struct text answer)
{
    answer = text_trimmed(answer);
    if (answer.length_bytes > 1 && answer.data[answer.length_bytes - 1] == '.')
        answer = text_trimmed((struct text){answer.data, answer.length_bytes - 1});
    return answer;
}

static void note_value(struct verdict *verdict, const struct math_node *node, const fmpq_t value)
{
    _cleanup_buffer_ struct buffer read;
    char *text = fmpq_get_str(NULL, 10, value);

    buffer_init(&read, 2 * MATH_ANSWER_BYTES);
    math_print(node, &read);
    json_object_set_new(verdict->detail, "read", json_stringn(buffer_text(&read).data, read.length_bytes));
    json_object_set_new(verdict->detail, "value", json_string(text));
    flint_free(text);
}

static void grade_tree(const struct math_node *node, const json_t *reference, struct verdict *ret_verdict)
{
    struct verifier_problem problem;
    struct numbers numbers;
    const char *reason;
    fmpq_t value;
    fmpq_t target;

    fmpq_init(value);
    fmpq_init(target);
    numbers_init(&numbers, json_object_get(reference, "numbers"));
    read_target(json_object_get(reference, "target"), &problem, target); /* checked before */
    reason = work_out(node, &numbers, value);
    if (!reason) {
        note_value(ret_verdict, node, value);
        reason = fmpq_equal(value, target) ? "equal" : "different";
    }
    verdict_set(ret_verdict, strcmp(reason, "equal") == 0, reason);
    numbers_finish(&numbers);
    fmpq_clear(target);
    fmpq_clear(value);
}

static void grade_answer(const struct verifier_input *input, struct text answer, struct verdict *ret_verdict)
{
    _cleanup_math_arena_ struct math_arena *arena = math_arena_create(ARENA_BYTES);
    struct math_reading reading = {.max_depth = (int)option_number(input->options, "max_depth", 256)};
    const char *reason = scan_answer(answer, input->options);
    struct math_node *node;

    if (!reason && math_parse(arena, answer, &reading, &node, NULL) != MATH_PARSED)
        reason = "unparsed_answer";
    if (reason)
        verdict_set(ret_verdict, false, reason);
    else
        grade_tree(node, input->reference, ret_verdict);
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    struct text answer = find_answer(input->completion);
    struct verifier_problem problem;

    if (check_reference(input->reference, input->options, &problem) < 0) {
        verdict_fail(ret_verdict, "reference_unreadable", "%s", problem.message);
        return;
    }
    if (!answer.data) {
        verdict_set(ret_verdict, false, "no_answer");
        return;
    }
    verdict_note_extracted(ret_verdict, input->completion, answer);
    if (answer.length_bytes > MATH_ANSWER_BYTES)
        verdict_set(ret_verdict, false, "too_long");
    else
        grade_answer(input, without_margin(answer), ret_verdict);
}

const struct verifier verifier_countdown = {
    .name = "countdown",
    .version = "2",
    .help = "1 if the expression uses each given number exactly once and gives the target",
    .needs_reference = true,
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_reference = check_reference,
    .grade = grade,
};
