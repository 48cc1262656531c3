/* Everything with an opening and a closing sign. */
#include "server/base/cleanup.h"
#include "verifiers/math/reader.h"

/* --- braces --- */

/* a \over b and n \choose k take all that stands in their braces. */
struct math_node *math_read_stacked(struct math_reader *reader)
{
    struct math_node *upper = math_read_list(reader);
    enum math_kind kind = sees(reader, TOKEN_CHOOSE) ? MATH_BINOMIAL : MATH_QUOTIENT;

    if (!upper || !(take(reader, TOKEN_CHOOSE) || take(reader, TOKEN_OVER)))
        return upper;
    return math_can_combine(upper) ? math_make_two(reader, kind, upper, math_read_scalar(reader))
                                   : math_refuse(reader, "a number or expression above");
}

struct math_node *math_read_group(struct math_reader *reader)
{
    struct math_context outside = reader->context;
    struct math_node *node;

    reader->at++;
    reader->context = (struct math_context){.bars = 0};
    node = math_read_stacked(reader);
    if (node && !take(reader, TOKEN_CLOSE_BRACE))
        return math_refuse(reader, "a closing brace");
    reader->context = outside;
    return node;
}

/* --- ( and [ --- */

/* ]2,5[ is (2,5): a bracket that is turned away leaves its end out. */
static bool is_turned_away(const struct math_reader *reader, size_t mark)
{
    return sees(reader, TOKEN_OPEN_SQUARE) && reader->stack_count == mark + 2;
}

static struct math_node *finish_tuple(struct math_reader *reader, size_t mark, char opening)
{
    char closing = sees(reader, TOKEN_CLOSE_SQUARE) ? ']' : ')';
    struct math_node *node;

    if (!sees(reader, TOKEN_CLOSE_PAREN) && !sees(reader, TOKEN_CLOSE_SQUARE) && !is_turned_away(reader, mark))
        return math_refuse(reader, "a closing bracket");
    reader->at++;
    if (reader->stack_count > mark + 1) {
        node = math_collect(reader, MATH_TUPLE, mark);
        if (node) {
            node->opening = opening;
            node->closing = closing;
        }
        return node;
    }
    node = reader->stack[--reader->stack_count];
    if ((opening == '(') != (closing == ')'))
        return math_refuse(reader, "two ends, or brackets of one kind");
    /* [3] is a list of one in some languages, [3+4] only a bracket. */
    if (opening == '[' && node->kind != MATH_SUM && node->kind != MATH_PRODUCT && node->kind != MATH_MATRIX)
        return math_refuse(reader, "two ends of an interval");
    node->flags |= MATH_BRACKETED;
    return node;
}

struct math_node *math_read_bracket(struct math_reader *reader)
{
    struct math_context outside = reader->context;
    bool away = sees(reader, TOKEN_CLOSE_SQUARE);
    char opening = sees(reader, TOKEN_OPEN_PAREN) || away ? '(' : '[';
    size_t mark = reader->stack_count;
    struct math_node *node;

    reader->at++;
    reader->context = (struct math_context){.brackets = true};
    do {
        if (!math_push(reader, math_read_relation(reader)))
            return NULL;
    } while (take(reader, TOKEN_COMMA) || take(reader, TOKEN_SEMICOLON));
    if (away && (reader->stack_count != mark + 2 || sees(reader, TOKEN_CLOSE_PAREN)))
        return math_refuse(reader, "two ends of an interval");
    node = finish_tuple(reader, mark, opening);
    reader->context = outside;
    return node;
}

/* --- sets --- */

#define NESTED_SETS_MAX 4 /* looking ahead stays linear */

/* Is there an odd number of bars up to the closing brace? Then one of them separates the condition. */
static bool has_lone_bar(const struct math_reader *reader)
{
    size_t sets = 0;
    size_t bars = 0;

    for (size_t ahead = 0;; ahead++) {
        enum token_kind kind = peek_at(reader, ahead)->kind;
        if (kind == TOKEN_END || (kind == TOKEN_CLOSE_SET && sets == 0))
            return bars % 2 == 1;
        sets += kind == TOKEN_OPEN_SET;
        if (sets > NESTED_SETS_MAX)
            return false;
        sets -= kind == TOKEN_CLOSE_SET;
        bars += kind == TOKEN_BAR && sets == 0;
    }
}

static struct math_node *read_condition(struct math_reader *reader, struct math_node *variable)
{
    struct math_node *condition;

    if (variable->kind != MATH_NAME && variable->kind != MATH_RELATION && variable->kind != MATH_TUPLE)
        return math_refuse(reader, "a name in front of the condition");
    reader->context.condition = false;
    condition = math_read_list(reader);
    return math_make_two(reader, MATH_SET_BUILDER, variable, condition);
}

static struct math_node *read_members(struct math_reader *reader)
{
    size_t mark = reader->stack_count;
    struct math_node *first;

    if (sees(reader, TOKEN_CLOSE_SET))
        return math_make(reader, MATH_SET, 0, NULL);
    reader->context.condition = has_lone_bar(reader);
    first = math_read_relation(reader);
    if (first && (take(reader, TOKEN_COLON) || take(reader, TOKEN_MID) ||
                  (reader->context.condition && take(reader, TOKEN_BAR))))
        return read_condition(reader, first);
    if (!math_push(reader, first))
        return NULL;
    while (take(reader, TOKEN_COMMA) || take(reader, TOKEN_SEMICOLON))
        if (!math_push(reader, math_read_relation(reader)))
            return NULL;
    return math_collect(reader, MATH_SET, mark);
}

struct math_node *math_read_set(struct math_reader *reader)
{
    struct math_context outside = reader->context;
    struct math_node *node;

    reader->at++;
    reader->context = (struct math_context){.brackets = true, .set = true};
    node = read_members(reader);
    if (node && !take(reader, TOKEN_CLOSE_SET))
        return math_refuse(reader, "a closing brace of the set");
    reader->context = outside;
    return node;
}

/* --- bars, floor, ceiling, angles --- */

static const struct fence {
    enum token_kind opening, closing;
    enum math_kind kind;
} fences[] = {
    {TOKEN_BAR, TOKEN_BAR, MATH_ABSOLUTE},
    {TOKEN_OPEN_BAR, TOKEN_CLOSE_BAR, MATH_ABSOLUTE},
    {TOKEN_OPEN_FLOOR, TOKEN_CLOSE_FLOOR, MATH_FLOOR},
    {TOKEN_OPEN_CEILING, TOKEN_CLOSE_CEILING, MATH_CEILING},
};

static struct math_node *read_angles(struct math_reader *reader)
{
    size_t mark = reader->stack_count;
    struct math_node *node;

    do {
        if (!math_push(reader, math_read_scalar(reader)))
            return NULL;
    } while (take(reader, TOKEN_COMMA));
    if (!take(reader, TOKEN_CLOSE_ANGLE))
        return math_refuse(reader, "a closing angle");
    node = math_collect(reader, MATH_MATRIX, mark);
    if (node) {
        node->columns = 1;
        node->flags = MATH_ANGLED;
    }
    return node;
}

static struct math_node *read_between(struct math_reader *reader, const struct fence *fence)
{
    struct math_node *inner = math_read_sum(reader);

    if (!inner)
        return NULL;
    if (!take(reader, fence->closing))
        return math_refuse(reader, "a closing bar, floor or ceiling");
    if (inner->kind == MATH_MATRIX && fence->kind == MATH_ABSOLUTE && !inner->flags) {
        inner->flags |= MATH_DETERMINANT;
        return inner;
    }
    return math_can_combine(inner) ? math_make_one(reader, fence->kind, inner)
                                   : math_refuse(reader, "a number or expression between the bars");
}

struct math_node *math_read_fence(struct math_reader *reader)
{
    struct math_context outside = reader->context;
    enum token_kind opening = peek(reader)->kind;
    struct math_node *node = NULL;

    reader->at++;
    reader->context = (struct math_context){.bars = opening == TOKEN_BAR, .brackets = true};
    if (opening == TOKEN_OPEN_ANGLE)
        node = read_angles(reader);
    for (size_t i = 0; i < ARRAY_LENGTH(fences); i++)
        if (fences[i].opening == opening)
            node = read_between(reader, &fences[i]);
    reader->context = outside;
    return node;
}

/* --- matrices --- */

static bool ends_matrix(const struct math_reader *reader)
{
    return sees(reader, TOKEN_FINISH) || sees(reader, TOKEN_END);
}

/* Pushes the cells; the number of columns, 0 if refused. A row sign at the end begins no row. */
static size_t read_rows(struct math_reader *reader)
{
    size_t columns = 0;

    while (!ends_matrix(reader)) {
        size_t cells = 0;
        do {
            if (!math_push(reader, math_read_scalar(reader)))
                return 0;
            cells++;
        } while (take(reader, TOKEN_AMPERSAND));
        if (columns && cells != columns) {
            math_refuse(reader, "rows of equal length");
            return 0;
        }
        columns = cells;
        if (!take(reader, TOKEN_ROW))
            break;
    }
    return columns;
}

/* x = 3 \\ y = -2: relations that hold together. */
static struct math_node *read_system(struct math_reader *reader, unsigned environment)
{
    struct math_context outside = reader->context;
    size_t mark = reader->stack_count;

    reader->context = (struct math_context){.bars = 0};
    do {
        if (!math_push(reader, math_read_aligned(reader, environment == ENVIRONMENT_ALIGNED)))
            return NULL;
        take(reader, TOKEN_COMMA);
    } while (take(reader, TOKEN_ROW) && !ends_matrix(reader));
    if (peek(reader)->value != environment || !take(reader, TOKEN_FINISH))
        return math_refuse(reader, "the end of the lines");
    reader->context = outside;
    return reader->stack_count == mark + 1 ? reader->stack[--reader->stack_count]
                                           : math_collect(reader, MATH_LIST, mark);
}

struct math_node *math_read_matrix(struct math_reader *reader)
{
    struct math_context outside = reader->context;
    size_t mark = reader->stack_count;
    bool determinant = take(reader, TOKEN_DETERMINANT);
    unsigned environment = peek(reader)->value;
    size_t columns;
    struct math_node *node;

    if (!take(reader, TOKEN_BEGIN))
        return math_refuse(reader, "a matrix");
    if (environment == ENVIRONMENT_CASES || environment == ENVIRONMENT_ALIGNED)
        return determinant ? math_refuse(reader, "a matrix") : read_system(reader, environment);
    reader->context = (struct math_context){.brackets = true};
    columns = read_rows(reader);
    if (columns == 0)
        return math_refuse(reader, "rows of a matrix");
    if (peek(reader)->value != environment || !take(reader, TOKEN_FINISH))
        return math_refuse(reader, "the end of the matrix");
    reader->context = outside;
    node = math_collect(reader, MATH_MATRIX, mark);
    if (node) {
        node->columns = columns;
        node->flags = determinant || environment == ENVIRONMENT_DETERMINANT ? MATH_DETERMINANT : 0;
    }
    return node;
}
