#include "verifiers/math_answer.h"

#include <ctype.h>
#include <stdio.h>

#include "server/base/cleanup.h"
#include "verifiers/math_unit.h"

struct scan {
    struct number_reader reader;
    const struct math_reading *reading;
};

static bool sees(const struct scan *scan, const char *what)
{
    size_t length_bytes = strlen(what);
    return (size_t)(scan->reader.end - scan->reader.at) >= length_bytes &&
           memcmp(scan->reader.at, what, length_bytes) == 0;
}

static bool take(struct scan *scan, const char *what)
{
    if (!sees(scan, what))
        return false;
    scan->reader.at += strlen(what);
    return true;
}

static bool at_end(const struct scan *scan)
{
    return scan->reader.at == scan->reader.end;
}

static void skip_space(struct scan *scan)
{
    while (take(scan, " "))
        continue;
}

static struct text rest(const struct scan *scan)
{
    return (struct text){scan->reader.at, (size_t)(scan->reader.end - scan->reader.at)};
}

/* --- names --- */

/* x, x_1, x_{12}, f(x): its length, or 0. */
static size_t name_length(struct text text)
{
    size_t at = 1;

    if (text.length_bytes == 0 || !isalpha((unsigned char)text.data[0]))
        return 0;
    if (at < text.length_bytes && text.data[at] == '_') {
        bool braces = at + 1 < text.length_bytes && text.data[at + 1] == '{';
        at += 1 + braces;
        while (at < text.length_bytes && isalnum((unsigned char)text.data[at]))
            at++;
        at += braces && at < text.length_bytes && text.data[at] == '}';
    }
    if (text.length_bytes - at >= 3 && text.data[at] == '(' && isalpha((unsigned char)text.data[at + 1]) &&
        text.data[at + 2] == ')')
        at += 3;
    return at;
}

/* Takes "x=" (or another relation) off the front. */
static void take_name(struct scan *scan, const char *relation, char ret_name[MATH_NAME_BYTES])
{
    struct text text = rest(scan);
    size_t length_bytes = name_length(text);
    size_t after = length_bytes;

    while (after < text.length_bytes && text.data[after] == ' ')
        after++;
    if (length_bytes == 0 || length_bytes >= MATH_NAME_BYTES || text.length_bytes - after < strlen(relation) ||
        memcmp(text.data + after, relation, strlen(relation)) != 0)
        return;
    memcpy(ret_name, text.data, length_bytes);
    ret_name[length_bytes] = 0;
    scan->reader.at += after + strlen(relation);
    skip_space(scan);
}

/* --- elements --- */

static const char *take_money(struct scan *scan)
{
    if (take(scan, "$") || take(scan, "\\text{$}"))
        return "dollar";
    if (take(scan, "\\euro"))
        return "euro";
    return take(scan, "\\pounds") ? "pound" : NULL;
}

static struct math_element *add_element(struct math_answer *answer)
{
    struct math_element *element;

    if (answer->count == MATH_ELEMENTS_MAX)
        return NULL;
    element = &answer->elements[answer->count++];
    mpq_init(element->value);
    return element;
}

static enum number_status trouble(const struct scan *scan)
{
    return scan->reader.status == NUMBER_OK ? NUMBER_NONE : scan->reader.status;
}

static bool read_suffix(struct scan *scan, struct math_element *element)
{
    skip_space(scan);
    if (take(scan, "%") || take(scan, "\\text{percent}") || take(scan, "percent")) {
        element->percent = true;
        return true;
    }
    return math_unit_take(&scan->reader, scan->reading->prose, element->unit);
}

/* \pm 3 is two elements. */
static enum number_status add_negative(struct math_answer *answer, const struct math_element *positive)
{
    struct math_element *negative = add_element(answer);

    if (!negative)
        return NUMBER_LIMIT;
    mpq_neg(negative->value, positive->value);
    negative->percent = positive->percent;
    memcpy(negative->unit, positive->unit, sizeof negative->unit);
    memcpy(negative->name, positive->name, sizeof negative->name);
    return NUMBER_OK;
}

static enum number_status read_element(struct scan *scan, struct math_answer *answer)
{
    struct math_element *element = add_element(answer);
    const char *money;
    bool minus, both;

    if (!element)
        return NUMBER_LIMIT;
    take_name(scan, "=", element->name);
    both = take(scan, "\\pm");
    skip_space(scan);
    minus = sees(scan, "-$") && take(scan, "-");
    money = take_money(scan);
    if (money)
        snprintf(element->unit, sizeof element->unit, "%s", money);
    if (!number_read(&scan->reader, element->value))
        return trouble(scan);
    if (minus)
        mpq_neg(element->value, element->value);
    if (!read_suffix(scan, element))
        return trouble(scan);
    return both ? add_negative(answer, element) : NUMBER_OK;
}

static bool take_separator(struct scan *scan)
{
    static const char *const words[] = {"\\text{and}",   "\\text{or}", "\\text{ and}", "\\text{,and}",
                                        "\\text{, and}", "and ",       "or "};
    bool taken;

    skip_space(scan);
    taken = take(scan, ",") || take(scan, ";");
    skip_space(scan);
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        taken = take(scan, words[i]) || taken;
    skip_space(scan);
    return taken;
}

static enum number_status read_list(struct scan *scan, struct math_answer *answer)
{
    enum number_status status;

    do {
        status = read_element(scan, answer);
    } while (status == NUMBER_OK && take_separator(scan));
    return status;
}

/* --- brackets --- */

static char last_byte(struct text text)
{
    return text.length_bytes ? text.data[text.length_bytes - 1] : 0;
}

/* Do the first and last byte enclose a list at their own level? (1,2) does, (1)(2) and (1+2) do not. */
static bool encloses_list(struct text text)
{
    int depth = 0;
    bool comma = false;

    for (size_t i = 0; i + 1 < text.length_bytes; i++) {
        char byte = text.data[i];
        depth += strchr("([{", byte) && byte ? 1 : 0;
        depth -= strchr(")]}", byte) && byte ? 1 : 0;
        if (depth == 0)
            return false;
        comma = comma || (depth == 1 && (byte == ',' || byte == ';'));
    }
    return comma;
}

static void take_brackets(struct scan *scan, struct math_answer *answer)
{
    struct text text = rest(scan);
    char open = text.length_bytes ? text.data[0] : 0;
    char close = last_byte(text);

    if (sees(scan, "\\{") && text.length_bytes >= 4 && memcmp(text.data + text.length_bytes - 2, "\\}", 2) == 0) {
        answer->open = '{';
        answer->close = '}';
        scan->reader.at += 2;
        scan->reader.end -= 2;
    } else if ((open == '(' || open == '[') && (close == ')' || close == ']') && encloses_list(text)) {
        answer->open = open;
        answer->close = close;
        scan->reader.at++;
        scan->reader.end--;
    }
    scan->reader.in_brackets = answer->open != 0;
    skip_space(scan);
}

/* --- other bases --- */

static unsigned base_of(struct text text)
{
    static const struct {
        const char *name;
        unsigned base;
    } names[] = {{"two", 2},   {"three", 3}, {"four", 4}, {"five", 5},    {"six", 6},     {"seven", 7},
                 {"eight", 8}, {"nine", 9},  {"ten", 10}, {"twelve", 12}, {"sixteen", 16}};
    unsigned base = 0;

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (text_equals(text, names[i].name))
            return names[i].base;
    if (text.length_bytes == 0 || text.length_bytes > 2)
        return 0;
    for (size_t i = 0; i < text.length_bytes; i++) {
        if (!isdigit((unsigned char)text.data[i]))
            return 0;
        base = base * 10 + (unsigned)(text.data[i] - '0');
    }
    return base >= 2 && base <= 36 ? base : 0;
}

static struct text unwrapped(struct text text, const char *open)
{
    size_t before = strlen(open);
    bool is = text.length_bytes > before && memcmp(text.data, open, before) == 0 && last_byte(text) == '}';
    return is ? (struct text){text.data + before, text.length_bytes - before - 1} : text;
}

static int digit_value(char byte)
{
    if (isdigit((unsigned char)byte))
        return byte - '0';
    return isalpha((unsigned char)byte) ? tolower((unsigned char)byte) - 'a' + 10 : 99;
}

/* Is it a number in this base, with at least one decimal digit in it, so that a_n is not taken for one? */
static bool value_in_base(struct text digits, unsigned base, mpq_t value)
{
    bool decimal = false;

    mpq_set_ui(value, 0, 1);
    if (digits.length_bytes == 0 || digits.length_bytes > 1000)
        return false;
    for (size_t i = 0; i < digits.length_bytes; i++) {
        int digit = digit_value(digits.data[i]);
        if (digit >= (int)base)
            return false;
        decimal = decimal || digit < 10;
        mpz_mul_ui(mpq_numref(value), mpq_numref(value), base);
        mpz_add_ui(mpq_numref(value), mpq_numref(value), (unsigned long)digit);
    }
    return decimal;
}

static bool read_based(struct text text, struct math_answer *answer)
{
    const char *mark = memrchr(text.data, '_', text.length_bytes);
    struct math_element *element;
    struct text base;

    if (!mark)
        return false;
    base = (struct text){mark + 1, text.length_bytes - (size_t)(mark + 1 - text.data)};
    base = unwrapped(unwrapped(base, "{"), "\\text{");
    answer->digits = unwrapped((struct text){text.data, (size_t)(mark - text.data)}, "\\text{");
    answer->base = base_of(base);
    if (answer->base == 0)
        return false;
    element = add_element(answer);
    return value_in_base(answer->digits, answer->base, element->value);
}

/* --- whole answers --- */

static bool is_plain_digits(struct text text)
{
    for (size_t i = 0; i < text.length_bytes; i++)
        if (!isalnum((unsigned char)text.data[i]))
            return false;
    return text.length_bytes > 0;
}

static void clear_elements(struct math_answer *answer)
{
    for (size_t i = 0; i < answer->count; i++)
        mpq_clear(answer->elements[i].value);
    *answer = (struct math_answer){.count = 0};
}

/* "x=" or "x\\in" before the whole. "x=1, y=2" keeps its names on its elements. */
static void take_lone_name(struct scan *scan, struct math_answer *answer)
{
    const char *before = scan->reader.at;
    struct text text;

    take_name(scan, "\\in", answer->name);
    if (answer->name[0])
        return;
    take_name(scan, "=", answer->name);
    text = rest(scan);
    if (text.length_bytes && !strchr("\\([", text.data[0]) && memchr(text.data, ',', text.length_bytes)) {
        scan->reader.at = before;
        answer->name[0] = 0;
    }
}

enum number_status math_answer_read(struct text cleaned, const struct math_reading *reading,
                                    struct math_answer *ret_answer)
{
    struct scan scan = {.reading = reading};
    enum number_status status;

    *ret_answer = (struct math_answer){.count = 0};
    if (cleaned.length_bytes == 0)
        return NUMBER_NONE;
    if (read_based(cleaned, ret_answer))
        return NUMBER_OK;
    clear_elements(ret_answer);
    number_reader_init(&scan.reader, cleaned, reading->max_depth, reading->decimal_comma);
    take_lone_name(&scan, ret_answer);
    take_brackets(&scan, ret_answer);
    if (at_end(&scan))
        return NUMBER_OUTSIDE; /* the empty set, and such */
    status = read_list(&scan, ret_answer);
    skip_space(&scan);
    if (status != NUMBER_OK)
        return status;
    if (!at_end(&scan))
        return isalpha((unsigned char)*scan.reader.at) || *scan.reader.at == '\\' ? NUMBER_OUTSIDE : NUMBER_NONE;
    ret_answer->operations = scan.reader.operations;
    ret_answer->unreduced = scan.reader.unreduced;
    ret_answer->digits = is_plain_digits(cleaned) ? cleaned : TEXT_NONE;
    return NUMBER_OK;
}

void math_answer_finish(struct math_answer *answer)
{
    clear_elements(answer);
}

/* --- comparison --- */

static bool names_agree(const char *left, const char *right)
{
    return !left[0] || !right[0] || strcmp(left, right) == 0;
}

static void read_percent(const struct math_element *element, bool by_value, mpq_t ret_value)
{
    mpq_set(ret_value, element->value);
    if (element->percent && by_value) {
        mpq_t hundred;
        mpq_init(hundred);
        mpq_set_ui(hundred, 100, 1);
        mpq_div(ret_value, ret_value, hundred);
        mpq_clear(hundred);
    }
}

/* |difference| <= max(relative * |reference|, absolute) */
static bool is_near(mpq_t difference, const mpq_t reference, const struct math_tolerance *tolerance)
{
    mpq_t allowed;
    bool near;

    mpq_init(allowed);
    mpq_mul(allowed, tolerance->relative, reference);
    mpq_abs(allowed, allowed);
    if (mpq_cmp(allowed, tolerance->absolute) < 0)
        mpq_set(allowed, tolerance->absolute);
    mpq_abs(difference, difference);
    near = mpq_cmp(difference, allowed) <= 0;
    mpq_clear(allowed);
    return near;
}

static bool same_element(const struct math_element *reference, const struct math_element *answer,
                         const struct math_tolerance *tolerance)
{
    bool by_value = reference->percent || !tolerance->percent_is_unit;
    mpq_t wanted;
    mpq_t given;
    bool same;

    if (!names_agree(reference->name, answer->name) || !math_units_agree(reference->unit, answer->unit))
        return false;
    mpq_inits(wanted, given, NULL);
    read_percent(reference, by_value, wanted);
    read_percent(answer, by_value, given);
    mpq_sub(given, given, wanted);
    same = mpq_sgn(given) == 0 || is_near(given, wanted, tolerance);
    mpq_clears(wanted, given, NULL);
    return same;
}

/* Is every element of `all` somewhere in `in`? */
static bool contains_all(const struct math_answer *in, const struct math_answer *all, bool reference_is_in,
                         const struct math_tolerance *tolerance)
{
    for (size_t i = 0; i < all->count; i++) {
        bool found = false;
        for (size_t k = 0; k < in->count && !found; k++)
            found = reference_is_in ? same_element(&in->elements[k], &all->elements[i], tolerance)
                                    : same_element(&all->elements[i], &in->elements[k], tolerance);
        if (!found)
            return false;
    }
    return true;
}

static bool same_in_order(const struct math_answer *reference, const struct math_answer *answer,
                          const struct math_tolerance *tolerance)
{
    if (reference->count != answer->count)
        return false;
    for (size_t i = 0; i < reference->count; i++)
        if (!same_element(&reference->elements[i], &answer->elements[i], tolerance))
            return false;
    return true;
}

/* A number without its base is read in the reference's. */
static bool same_based(const struct math_answer *reference, const struct math_answer *answer)
{
    mpq_t value;
    bool same;

    if (answer->base)
        return mpq_equal(reference->elements[0].value, answer->elements[0].value) != 0;
    if (!answer->digits.data)
        return false;
    mpq_init(value);
    same = value_in_base(answer->digits, reference->base, value) && mpq_equal(value, reference->elements[0].value);
    mpq_clear(value);
    return same;
}

static bool is_unordered(const struct math_answer *answer)
{
    return answer->open == '{' || answer->open == 0;
}

/* Do two elements have different names, as in x=1, y=2? Then the order of bare values would mean something. */
static bool is_assignment(const struct math_answer *answer)
{
    for (size_t i = 1; i < answer->count; i++)
        if (strcmp(answer->elements[i].name, answer->elements[0].name) != 0)
            return true;
    return false;
}

/* {5} is a set, 5 is a value, 3, 5 is either. */
static bool same_kind(const struct math_answer *reference, const struct math_answer *answer)
{
    if (!is_unordered(reference) || !is_unordered(answer))
        return reference->open == answer->open && reference->close == answer->close;
    if (is_assignment(reference) != is_assignment(answer))
        return false;
    if (reference->open != answer->open)
        return reference->count > 1 && answer->count > 1;
    return reference->open || (reference->count == 1) == (answer->count == 1);
}

bool math_answer_same(const struct math_answer *reference, const struct math_answer *answer,
                      const struct math_tolerance *tolerance)
{
    if (!names_agree(reference->name, answer->name))
        return false;
    if (reference->base)
        return same_based(reference, answer);
    if (answer->base && answer->base != 10)
        return false; /* asked for in decimal notation */
    if (!same_kind(reference, answer))
        return false;
    if (!is_unordered(reference))
        return same_in_order(reference, answer, tolerance);
    return contains_all(reference, answer, true, tolerance) && contains_all(answer, reference, false, tolerance);
}
