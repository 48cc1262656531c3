/* Matrices: entry by entry, a row is no column. */
#include "verifiers/math/comparison.h"

#define DETERMINANT_MAX 4 /* rows; more is not worked out */

static size_t rows_of(const struct math_node *matrix)
{
    return matrix->columns ? matrix->count / matrix->columns : 0;
}

/* --- determinants --- */

static const struct math_node *determinant_of(struct comparison *comparison, size_t size,
                                              const struct math_node *const *entries);

/* The determinant of what is left without the first row and one column. */
static const struct math_node *minor_of(struct comparison *comparison, size_t size,
                                        const struct math_node *const *entries, size_t without)
{
    const struct math_node *left[DETERMINANT_MAX * DETERMINANT_MAX];
    size_t count = 0;

    for (size_t row = 1; row < size; row++)
        for (size_t column = 0; column < size; column++)
            if (column != without)
                left[count++] = entries[row * size + column];
    return determinant_of(comparison, size - 1, left);
}

/* Along the first row. */
static const struct math_node *determinant_of(struct comparison *comparison, size_t size,
                                              const struct math_node *const *entries)
{
    const struct math_node *terms[DETERMINANT_MAX];

    if (size == 1)
        return entries[0];
    for (size_t column = 0; column < size; column++) {
        const struct math_node *factors[] = {entries[column], minor_of(comparison, size, entries, column)};
        terms[column] = math_build(comparison, MATH_PRODUCT, 2, factors);
        if (column % 2)
            terms[column] = math_build(comparison, MATH_NEGATE, 1, &terms[column]);
    }
    return math_build(comparison, MATH_SUM, size, terms);
}

static const struct math_node *work_out(struct comparison *comparison, const struct math_node *matrix)
{
    size_t size = matrix->columns;

    if (size == 0 || size > DETERMINANT_MAX || rows_of(matrix) != size)
        return NULL;
    for (size_t i = 0; i < matrix->count; i++)
        if (!math_is_scalar(matrix->children[i]))
            return NULL;
    return determinant_of(comparison, size, (const struct math_node *const *)matrix->children);
}

/* --- sums and multiples --- */

/* A matrix, or sums and multiples of matrices worked out; a determinant becomes a scalar. NULL: none, or the limit. */
static const struct math_node *matrix_of(struct comparison *comparison, const struct math_node *node);

/* Only a matrix: a determinant within a larger expression is not worked out. */
static const struct math_node *operand(struct comparison *comparison, const struct math_node *node)
{
    const struct math_node *matrix = matrix_of(comparison, node);

    return matrix && matrix->kind == MATH_MATRIX ? matrix : NULL;
}

static const struct math_node *map(struct comparison *comparison, const struct math_node *matrix, enum math_kind kind,
                                   const struct math_node *other)
{
    const struct math_node **entries =
        math_allocate(comparison->rules->arena, matrix->count * sizeof(struct math_node *));

    if (!entries)
        return NULL;
    for (size_t i = 0; i < matrix->count; i++) {
        const struct math_node *pair[] = {matrix->children[i], other};
        if (other && other->kind == MATH_MATRIX)
            pair[1] = other->children[i];
        entries[i] = math_build(comparison, kind, other ? 2 : 1, pair);
    }
    return math_with_children(comparison, matrix, entries);
}

static const struct math_node *scaled(struct comparison *comparison, const struct math_node *product)
{
    const struct math_node *matrix = NULL;

    for (size_t i = 0; i < product->count; i++) {
        const struct math_node *factor = product->children[i];
        if (math_is_scalar(factor))
            continue;
        if (matrix)
            return NULL; /* of two matrices: not worked out */
        matrix = operand(comparison, factor);
        if (!matrix)
            return NULL;
    }
    for (size_t i = 0; i < product->count && matrix; i++)
        if (math_is_scalar(product->children[i]))
            matrix = map(comparison, matrix, MATH_PRODUCT, product->children[i]);
    return matrix;
}

static const struct math_node *added(struct comparison *comparison, const struct math_node *sum)
{
    const struct math_node *total = operand(comparison, sum->children[0]);

    for (size_t i = 1; i < sum->count && total; i++) {
        const struct math_node *next = operand(comparison, sum->children[i]);
        if (!next || next->columns != total->columns || next->count != total->count)
            return NULL;
        total = map(comparison, total, MATH_SUM, next);
    }
    return total;
}

static const struct math_node *negated(struct comparison *comparison, const struct math_node *node)
{
    const struct math_node *matrix = operand(comparison, node->children[0]);

    return matrix ? map(comparison, matrix, MATH_NEGATE, NULL) : NULL;
}

static const struct math_node *divided(struct comparison *comparison, const struct math_node *node)
{
    const struct math_node *matrix = operand(comparison, node->children[0]);

    return matrix && math_is_scalar(node->children[1]) ? map(comparison, matrix, MATH_QUOTIENT, node->children[1])
                                                       : NULL;
}

static bool is_transposition(const struct math_node *node)
{
    return node->kind == MATH_NAME && (text_equals(node->text, "T") || text_equals(node->text, "\\top"));
}

static const struct math_node *transposed(struct comparison *comparison, const struct math_node *node)
{
    const struct math_node *matrix = operand(comparison, node->children[0]);
    struct math_node *turned;
    size_t rows;

    if (!matrix || !is_transposition(node->children[1]))
        return NULL;
    turned = math_node_create(comparison->rules->arena, MATH_MATRIX, matrix->count);
    if (!turned)
        return NULL;
    rows = rows_of(matrix);
    turned->columns = rows;
    for (size_t i = 0; i < matrix->count; i++)
        turned->children[(i % matrix->columns) * rows + i / matrix->columns] = matrix->children[i];
    return turned;
}

static const struct math_node *matrix_of(struct comparison *comparison, const struct math_node *node)
{
    switch ((int)node->kind) {
    case MATH_MATRIX:
        return node->flags & MATH_DETERMINANT ? work_out(comparison, node) : node;
    case MATH_SUM:
        return added(comparison, node);
    case MATH_PRODUCT:
        return scaled(comparison, node);
    case MATH_NEGATE:
        return negated(comparison, node);
    case MATH_QUOTIENT:
        return divided(comparison, node);
    case MATH_POWER:
        return transposed(comparison, node);
    default:
        return NULL;
    }
}

/* --- comparing --- */

static enum math_decision same_entries(struct comparison *comparison, const struct math_node *reference,
                                       const struct math_node *answer)
{
    enum math_decision decision = math_say(reference->count == answer->count && reference->columns == answer->columns);

    for (size_t i = 0; i < reference->count && decision != MATH_DIFFERENT; i++)
        decision = math_both(decision, math_same_bodies(comparison, reference->children[i], answer->children[i]));
    return decision;
}

static const struct math_node *worked_out(struct comparison *comparison, const struct math_node *node)
{
    const struct math_node *matrix = matrix_of(comparison, node);

    return matrix ? matrix : node;
}

static bool is_bracketed(const struct math_node *node)
{
    return node->kind == MATH_TUPLE && node->opening == '[' && node->closing == ']';
}

/* [[1, 2], [3, 4]] as a matrix, or NULL: it is none, or beyond the limit. */
static const struct math_node *matrix_of_rows(struct comparison *comparison, const struct math_node *rows)
{
    struct math_node *matrix;
    size_t columns = is_bracketed(rows) ? rows->children[0]->count : 0;

    for (size_t row = 0; row < rows->count; row++)
        if (columns == 0 || !is_bracketed(rows->children[row]) || rows->children[row]->count != columns)
            return NULL;
    matrix = columns ? math_node_create(comparison->rules->arena, MATH_MATRIX, rows->count * columns) : NULL;
    if (!matrix)
        return NULL;
    matrix->columns = columns;
    for (size_t i = 0; i < matrix->count; i++)
        matrix->children[i] = rows->children[i / columns]->children[i % columns];
    return matrix;
}

enum math_decision math_same_matrices(struct comparison *comparison, const struct math_node *reference,
                                      const struct math_node *answer)
{
    const struct math_node *wanted = worked_out(comparison, reference);
    const struct math_node *rows = matrix_of_rows(comparison, answer);
    const struct math_node *given = rows ? rows : worked_out(comparison, answer);

    if (wanted->kind == MATH_MATRIX && given->kind == MATH_MATRIX)
        return (wanted->flags ^ given->flags) & MATH_DETERMINANT ? MATH_DIFFERENT
                                                                 : same_entries(comparison, wanted, given);
    if (math_has_kind(wanted, MATH_MATRIX) || math_has_kind(given, MATH_MATRIX))
        return wanted->kind == given->kind && math_same_tree(wanted, given)              ? MATH_EQUAL
               : math_has_kind(wanted, MATH_MATRIX) && math_has_kind(given, MATH_MATRIX) ? MATH_UNDECIDED
                                                                                         : MATH_DIFFERENT;
    return math_same_bodies(comparison, wanted, given);
}
