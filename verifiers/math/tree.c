#include "verifiers/math/tree.h"

#include <string.h>

#include "server/base/cleanup.h"

#define CHUNK_BYTES 8160
#define CHUNK_BYTES_MAX 65536

const char *const math_kind_names[MATH_KINDS] = {
    [MATH_NUMBER] = "number",
    [MATH_MIXED] = "mixed number",
    [MATH_CONSTANT] = "constant",
    [MATH_NAME] = "name",
    [MATH_SUM] = "sum",
    [MATH_PRODUCT] = "product",
    [MATH_QUOTIENT] = "quotient",
    [MATH_NEGATE] = "negation",
    [MATH_POWER] = "power",
    [MATH_ROOT] = "root",
    [MATH_FACTORIAL] = "factorial",
    [MATH_BINOMIAL] = "binomial coefficient",
    [MATH_ABSOLUTE] = "absolute value",
    [MATH_FLOOR] = "floor",
    [MATH_CEILING] = "ceiling",
    [MATH_FUNCTION] = "function",
    [MATH_PLUS_MINUS] = "plus or minus",
    [MATH_DEGREES] = "degrees",
    [MATH_PERCENT] = "percent",
    [MATH_OPERATOR] = "big operator",
    [MATH_CALL] = "call",
    [MATH_QUANTITY] = "quantity",
    [MATH_LIST] = "list",
    [MATH_SET] = "set",
    [MATH_SET_BUILDER] = "set by a condition",
    [MATH_TUPLE] = "tuple",
    [MATH_UNION] = "union",
    [MATH_INTERSECTION] = "intersection",
    [MATH_DIFFERENCE] = "difference of sets",
    [MATH_NUMBER_SET] = "number set",
    [MATH_MATRIX] = "matrix",
    [MATH_RELATION] = "relation",
    [MATH_RATIO] = "ratio",
    [MATH_BASED] = "number in a base",
    [MATH_TEXT] = "text",
    [MATH_NOTHING] = "nothing",
};

const char *const math_function_names[MATH_FUNCTIONS] = {
    [MATH_LN] = "ln",
    [MATH_LOG] = "log",
    [MATH_EXP] = "exp",
    [MATH_SIN] = "sin",
    [MATH_COS] = "cos",
    [MATH_TAN] = "tan",
    [MATH_COT] = "cot",
    [MATH_SEC] = "sec",
    [MATH_CSC] = "csc",
    [MATH_ASIN] = "arcsin",
    [MATH_ACOS] = "arccos",
    [MATH_ATAN] = "arctan",
    [MATH_ACOT] = "arccot",
    [MATH_ASEC] = "arcsec",
    [MATH_ACSC] = "arccsc",
    [MATH_SINH] = "sinh",
    [MATH_COSH] = "cosh",
    [MATH_TANH] = "tanh",
    [MATH_ASINH] = "arsinh",
    [MATH_ACOSH] = "arcosh",
    [MATH_ATANH] = "artanh",
    [MATH_GCD] = "gcd",
    [MATH_LCM] = "lcm",
    [MATH_MIN] = "min",
    [MATH_MAX] = "max",
    [MATH_MOD] = "mod",
    [MATH_SIGN] = "sgn",
    [MATH_RE] = "Re",
    [MATH_IM] = "Im",
    [MATH_ARG] = "arg",
    [MATH_CONJUGATE] = "overline",
    [MATH_LOG_PLAIN] = "log",
};

/* --- memory --- */

struct chunk {
    struct chunk *next;
    size_t size_bytes, used_bytes;
    _Alignas(16) char bytes[];
};

/* A value of FLINT's may own memory of its own: all of them are found again when the arena ends. */
struct held_value {
    struct held_value *next;
    fmpq_t value;
};

struct math_arena {
    struct chunk *chunk; /* the newest */
    struct held_value *values;
    size_t left_bytes;
};

static struct chunk *add_chunk(struct math_arena *arena, size_t least_bytes)
{
    size_t size_bytes = arena->chunk ? 2 * arena->chunk->size_bytes : CHUNK_BYTES;
    struct chunk *chunk;

    if (size_bytes > CHUNK_BYTES_MAX)
        size_bytes = CHUNK_BYTES_MAX;
    if (size_bytes < least_bytes)
        size_bytes = least_bytes;
    chunk = xrealloc(NULL, sizeof *chunk + size_bytes);
    *chunk = (struct chunk){.next = arena->chunk, .size_bytes = size_bytes};
    arena->chunk = chunk;
    return chunk;
}

struct math_arena *math_arena_create(size_t limit_bytes)
{
    struct math_arena *arena = xrealloc(NULL, sizeof *arena);

    *arena = (struct math_arena){.left_bytes = limit_bytes};
    return arena;
}

void math_arena_destroy(struct math_arena *arena)
{
    if (!arena)
        return;
    for (struct held_value *held = arena->values; held; held = held->next)
        fmpq_clear(held->value);
    for (struct chunk *chunk = arena->chunk, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(arena);
}

void *math_allocate(struct math_arena *arena, size_t bytes)
{
    struct chunk *chunk = arena->chunk;
    size_t rounded = (bytes + 15) & ~(size_t)15;
    void *memory;

    if (rounded < bytes || rounded > arena->left_bytes)
        return NULL;
    if (!chunk || chunk->size_bytes - chunk->used_bytes < rounded)
        chunk = add_chunk(arena, rounded);
    memory = chunk->bytes + chunk->used_bytes;
    chunk->used_bytes += rounded;
    arena->left_bytes -= rounded;
    return memset(memory, 0, rounded);
}

struct text math_copy_text(struct math_arena *arena, struct text text)
{
    char *copy = math_allocate(arena, text.length_bytes + 1);

    if (!copy)
        return TEXT_NONE;
    if (text.length_bytes)
        memcpy(copy, text.data, text.length_bytes);
    return (struct text){copy, text.length_bytes};
}

struct math_node *math_node_create(struct math_arena *arena, enum math_kind kind, size_t count)
{
    struct math_node *node = math_allocate(arena, sizeof *node + count * sizeof(struct math_node *));

    if (!node)
        return NULL;
    node->kind = kind;
    node->count = count;
    node->children = count ? (struct math_node **)(node + 1) : NULL;
    return node;
}

struct math_node *math_number_create(struct math_arena *arena, const fmpq_t value)
{
    struct math_node *node = math_node_create(arena, MATH_NUMBER, 0);
    struct held_value *held = math_allocate(arena, sizeof *held);

    if (!node || !held)
        return NULL;
    fmpq_init(held->value);
    fmpq_set(held->value, value);
    held->next = arena->values;
    arena->values = held;
    node->value = held->value;
    return node;
}

struct math_node *math_node_of(struct math_arena *arena, enum math_kind kind, size_t count,
                               struct math_node *const children[])
{
    struct math_node *node = math_node_create(arena, kind, count);

    for (size_t i = 0; node && i < count; i++) {
        if (!children[i])
            return NULL;
        node->children[i] = children[i];
        if (node->height <= children[i]->height)
            node->height = children[i]->height + 1;
    }
    return node;
}

/* --- looking --- */

bool math_is_scalar(const struct math_node *node)
{
    if (node->kind >= MATH_LIST)
        return false;
    /* The bounds of a sum are relations: they are written, not computed with. */
    for (size_t i = 0; node->kind != MATH_OPERATOR && i < node->count; i++)
        if (!math_is_scalar(node->children[i]))
            return false;
    return true;
}

bool math_has_kind(const struct math_node *node, enum math_kind kind)
{
    if (node->kind == kind)
        return true;
    for (size_t i = 0; i < node->count; i++)
        if (math_has_kind(node->children[i], kind))
            return true;
    return false;
}

bool math_has_names(const struct math_node *node)
{
    return math_has_kind(node, MATH_NAME);
}

#define LAYOUT_FLAGS MATH_BRACKETED

static bool same_content(const struct math_node *left, const struct math_node *right)
{
    size_t relations = left->relations && right->relations ? (left->count - 1) * sizeof *left->relations : 0;

    if (left->kind == MATH_NUMBER)
        return fmpq_equal(left->value, right->value) != 0;
    /* `columns` is the widest member of a union that was born zero: it stands for all of them. */
    return left->columns == right->columns && text_same(left->text, right->text) &&
           (relations == 0 || memcmp(left->relations, right->relations, relations) == 0);
}

bool math_same_tree(const struct math_node *left, const struct math_node *right)
{
    if (left->kind != right->kind || left->count != right->count ||
        ((left->flags ^ right->flags) & ~(unsigned)LAYOUT_FLAGS) || !same_content(left, right))
        return false;
    for (size_t i = 0; i < left->count; i++)
        if (!math_same_tree(left->children[i], right->children[i]))
            return false;
    return true;
}
