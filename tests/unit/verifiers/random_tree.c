#include "tests/unit/verifiers/random_tree.h"

#include "server/base/cleanup.h"
#include "tests/unit/base/random.h"

#include <string.h>

static struct math_node *with_text(struct math_arena *arena, struct math_node *node, const char *text)
{
    node->text = math_copy_text(arena, text_of(text));
    return node;
}

static struct math_node *made(struct math_arena *arena, enum math_kind kind, size_t count,
                              struct math_node *(*child)(struct math_arena *, int), int depth)
{
    struct math_node *node = math_node_create(arena, kind, count);

    for (size_t i = 0; i < count; i++)
        node->children[i] = child(arena, depth - 1);
    return node;
}

/* --- leaves --- */

static struct math_node *random_number(struct math_arena *arena)
{
    static const struct {
        const char *text, *value;
        bool decimal;
    } numbers[] = {
        {"0", "0", false},     {"1", "1", false},        {"2", "2", false},
        {"7", "7", false},     {"42", "42", false},      {"1000000", "1000000", false},
        {"0.5", "1/2", true},  {"2.50", "5/2", true},    {"0.\\overline{3}", "1/3", true},
        {"2E3", "2000", true}, {"1.5E-1", "3/20", true}, {"12345678901234567890123", "12345678901234567890123", false},
    };
    size_t which = random_below(ARRAY_LENGTH(numbers));
    struct math_node *node;
    fmpq_t value;

    fmpq_init(value);
    fmpq_set_str(value, numbers[which].value, 10);
    node = math_number_create(arena, value);
    fmpq_clear(value);
    node->flags = numbers[which].decimal ? MATH_DECIMAL : 0;
    return with_text(arena, node, numbers[which].text);
}

static struct math_node *whole_number(struct math_arena *arena, unsigned long number)
{
    char digits[24];
    struct math_node *node;
    fmpq_t value;

    fmpq_init(value);
    fmpq_set_ui(value, number, 1);
    node = math_number_create(arena, value);
    fmpq_clear(value);
    snprintf(digits, sizeof digits, "%lu", number);
    return with_text(arena, node, digits);
}

static struct math_node *random_name(struct math_arena *arena)
{
    static const char *const names[] = {"x",   "y",  "n",        "a",       "f",      "U",
                                        "C",   "F",  "E",        "\\alpha", "x_{1}",  "a_{n+1}",
                                        "f''", "A'", "\\vec{v}", "\\theta", "x_{max}"};

    return with_text(arena, math_node_create(arena, MATH_NAME, 0), names[random_below(ARRAY_LENGTH(names))]);
}

static struct math_node *random_leaf(struct math_arena *arena)
{
    struct math_node *node;

    if (random_below(5) > 2)
        return random_number(arena);
    if (random_below(3))
        return random_name(arena);
    node = math_node_create(arena, MATH_CONSTANT, 0);
    node->constant = (enum math_constant)random_below(MATH_CONSTANTS);
    return node;
}

/* --- scalars --- */

static struct math_node *random_mixed(struct math_arena *arena)
{
    unsigned long below = 2 + random_below(20);
    struct math_node *fraction = math_node_create(arena, MATH_QUOTIENT, 2);

    fraction->children[0] = whole_number(arena, random_below(below));
    fraction->children[1] = whole_number(arena, below);
    return math_node_of(arena, MATH_MIXED, 2,
                        (struct math_node *const[]){whole_number(arena, random_below(9)), fraction});
}

static struct math_node *random_function(struct math_arena *arena, int depth)
{
    enum math_function function = (enum math_function)random_below(MATH_FUNCTIONS);
    bool many = function >= MATH_GCD && function <= MATH_MAX;
    size_t count = many ? 2 + random_below(2) : function == MATH_LOG || function == MATH_MOD ? 2 : 1;
    struct math_node *node = made(arena, MATH_FUNCTION, count, random_scalar, depth);

    node->function = function;
    return node;
}

static struct math_node *random_operator(struct math_arena *arena, int depth)
{
    static const char *const names[] = {"sum", "prod", "lim", "int"};
    size_t which = random_below(ARRAY_LENGTH(names));
    struct math_node *node = made(arena, MATH_OPERATOR, which == 3 ? 4 : 3, random_scalar, depth);

    if (which == 3)
        node->children[3] = with_text(arena, math_node_create(arena, MATH_NAME, 0), "t");
    if (which == 2) {
        struct math_node *bound = made(arena, MATH_RELATION, 2, random_scalar, depth);
        bound->children[0] = random_name(arena);
        bound->relations = math_allocate(arena, sizeof *bound->relations);
        bound->relations[0] = MATH_APPROACHES;
        node->children[0] = bound;
    }
    if (random_below(3) == 0 || which == 2)
        node->children[1] = math_node_create(arena, MATH_NOTHING, 0);
    return with_text(arena, node, names[which]);
}

static const struct {
    enum math_kind kind;
    size_t least, more;
    unsigned flag; /* by chance */
} scalars[] = {
    {MATH_SUM, 2, 3, 0},
    {MATH_PRODUCT, 2, 3, MATH_JUXTAPOSED},
    {MATH_PRODUCT, 2, 3, MATH_JUXTAPOSED},
    {MATH_QUOTIENT, 2, 0, 0},
    {MATH_NEGATE, 1, 0, 0},
    {MATH_POWER, 2, 0, 0},
    {MATH_ROOT, 2, 0, 0},
    {MATH_FACTORIAL, 1, 0, MATH_DOUBLED},
    {MATH_BINOMIAL, 2, 0, 0},
    {MATH_ABSOLUTE, 1, 0, 0},
    {MATH_FLOOR, 1, 0, 0},
    {MATH_CEILING, 1, 0, 0},
    {MATH_PLUS_MINUS, 1, 0, MATH_FLIPPED},
    {MATH_DEGREES, 1, 0, 0},
    {MATH_PERCENT, 1, 0, 0},
};

struct math_node *random_scalar(struct math_arena *arena, int depth)
{
    size_t which = random_below(ARRAY_LENGTH(scalars) + 4);
    struct math_node *node;

    if (depth <= 0 || random_below(6) == 0)
        return random_leaf(arena);
    if (which == ARRAY_LENGTH(scalars))
        return random_mixed(arena);
    if (which == ARRAY_LENGTH(scalars) + 1)
        return random_operator(arena, depth);
    if (which > ARRAY_LENGTH(scalars) + 1)
        return random_function(arena, depth);
    node = made(arena, scalars[which].kind, scalars[which].least + random_below(scalars[which].more + 1), random_scalar,
                depth);
    if (random_below(2))
        node->flags |= scalars[which].flag;
    return node;
}

/* --- structures --- */

static struct math_node *random_tuple(struct math_arena *arena, int depth)
{
    struct math_node *node = made(arena, MATH_TUPLE, 2 + random_below(2), random_scalar, depth);

    node->opening = random_below(2) ? '(' : '[';
    node->closing = random_below(2) ? ')' : ']';
    return node;
}

static struct math_node *random_number_set(struct math_arena *arena)
{
    static const char *const sets[] = {"R", "Z", "N", "R^{+}", "Z_{\\ge 0}", "R^{2}"};

    return with_text(arena, math_node_create(arena, MATH_NUMBER_SET, 0), sets[random_below(ARRAY_LENGTH(sets))]);
}

static struct math_node *random_set(struct math_arena *arena, int depth)
{
    switch (depth > 0 ? random_below(6) : random_below(2)) {
    case 0:
        return random_number_set(arena);
    case 1:
        return random_name(arena);
    case 2:
        return made(arena, MATH_SET, random_below(4), random_answer, depth);
    case 3:
        return made(arena, random_below(2) ? MATH_UNION : MATH_INTERSECTION, 2 + random_below(2), random_set, depth);
    case 4:
        return made(arena, MATH_DIFFERENCE, 2, random_set, depth);
    default:
        return random_tuple(arena, depth);
    }
}

static struct math_node *random_builder(struct math_arena *arena, int depth)
{
    struct math_node *node = math_node_create(arena, MATH_SET_BUILDER, 2);

    node->children[0] = random_name(arena);
    node->children[1] = random_answer(arena, depth - 1);
    return node;
}

static struct math_node *random_matrix(struct math_arena *arena, int depth)
{
    size_t rows = 1 + random_below(3);
    size_t columns = 1 + random_below(3);
    struct math_node *node = made(arena, MATH_MATRIX, rows * columns, random_scalar, depth);

    node->columns = columns;
    node->flags = columns == 1 && random_below(3) == 0 ? MATH_ANGLED : random_below(3) == 0 ? MATH_DETERMINANT : 0;
    return node;
}

static struct math_node *random_relation(struct math_arena *arena, int depth)
{
    size_t count = 2 + random_below(2);
    struct math_node *node = made(arena, MATH_RELATION, count, random_below(3) ? random_scalar : random_answer, depth);

    node->relations = math_allocate(arena, (count - 1) * sizeof *node->relations);
    for (size_t i = 0; i + 1 < count; i++)
        node->relations[i] = (enum math_relation)random_below(MATH_RELATIONS);
    return node;
}

static struct math_node *random_quantity(struct math_arena *arena, int depth)
{
    static const char *const units[] = {"cm",       "m^2",  "$",       "km/h", "square units",
                                        "kg*m/s^2", "s^-1", "\u00b0C", "€",    "$ per hour"};
    struct math_node *node = math_node_create(arena, MATH_QUANTITY, 1);

    do {
        node->children[0] = random_scalar(arena, depth - 1);
    } while (node->children[0]->kind == MATH_PERCENT || node->children[0]->kind == MATH_DEGREES);
    return with_text(arena, node, units[random_below(ARRAY_LENGTH(units))]);
}

static struct math_node *random_list(struct math_arena *arena, int depth)
{
    struct math_node *node = made(arena, MATH_LIST, 2 + random_below(2), random_answer, depth);

    node->flags = random_below(2) ? MATH_BY_OR : 0;
    return node;
}

static struct math_node *random_text(struct math_arena *arena, int depth)
{
    static const char *const texts[] = {"even", "all odd primes", "non-zero", "yes/no"};

    (void)depth;
    return with_text(arena, math_node_create(arena, MATH_TEXT, 0), texts[random_below(ARRAY_LENGTH(texts))]);
}

static struct math_node *random_ratio(struct math_arena *arena, int depth)
{
    return made(arena, MATH_RATIO, 2 + random_below(2), random_scalar, depth);
}

struct math_node *random_answer(struct math_arena *arena, int depth)
{
    static struct math_node *(*const makers[])(struct math_arena *, int) = {
        random_set,      random_tuple, random_builder, random_matrix, random_relation,
        random_quantity, random_list,  random_text,    random_ratio,  random_scalar,
    };

    if (depth <= 0)
        return random_leaf(arena);
    return makers[random_below(ARRAY_LENGTH(makers))](arena, depth);
}
