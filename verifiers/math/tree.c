/* Stand-in until the parser's own. */
#include "verifiers/math/tree.h"
#include <stdlib.h>

struct block {
    struct block *next;
    fmpq *value;
};
struct math_arena {
    size_t limit, used;
    struct block *blocks;
};

struct math_arena *math_arena_create(size_t limit_bytes)
{
    struct math_arena *arena = calloc(1, sizeof *arena);
    if (arena)
        arena->limit = limit_bytes;
    return arena;
}
void math_arena_destroy(struct math_arena *arena)
{
    if (!arena)
        return;
    for (struct block *b = arena->blocks, *next; b; b = next) {
        next = b->next;
        if (b->value)
            fmpq_clear(b->value);
        free(b);
    }
    free(arena);
}
void *math_allocate(struct math_arena *arena, size_t bytes)
{
    if (bytes > arena->limit - arena->used)
        return NULL;
    struct block *b = calloc(1, sizeof *b + bytes);
    if (!b)
        return NULL;
    arena->used += bytes;
    b->next = arena->blocks;
    arena->blocks = b;
    return b + 1;
}
struct text math_copy_text(struct math_arena *arena, struct text text)
{
    char *copy = math_allocate(arena, text.length_bytes + 1);
    if (!copy)
        return TEXT_NONE;
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
    node->children = (struct math_node **)(node + 1);
    return node;
}
struct math_node *math_number_create(struct math_arena *arena, const fmpq_t value)
{
    struct math_node *node = math_node_create(arena, MATH_NUMBER, 0);
    fmpq *v = math_allocate(arena, sizeof *v);
    if (!node || !v)
        return NULL;
    fmpq_init(v);
    fmpq_set(v, value);
    arena->blocks->value = v;
    node->value = v;
    return node;
}
struct math_node *math_node_of(struct math_arena *arena, enum math_kind kind, size_t count,
                               struct math_node *const children[])
{
    for (size_t i = 0; i < count; i++)
        if (!children[i])
            return NULL;
    struct math_node *node = math_node_create(arena, kind, count);
    for (size_t i = 0; node && i < count; i++)
        node->children[i] = children[i];
    return node;
}
bool math_is_scalar(const struct math_node *node)
{
    if (node->kind >= MATH_LIST)
        return false;
    for (size_t i = 0; i < node->count; i++)
        if (node->kind != MATH_OPERATOR && !math_is_scalar(node->children[i]))
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
bool math_same_tree(const struct math_node *l, const struct math_node *r)
{
    if (l->kind != r->kind || l->count != r->count || !text_same(l->text, r->text) || l->constant != r->constant)
        return false;
    if (l->kind == MATH_NUMBER && !fmpq_equal(l->value, r->value))
        return false;
    for (size_t i = 0; i + 1 < l->count && l->kind == MATH_RELATION; i++)
        if (l->relations[i] != r->relations[i])
            return false;
    for (size_t i = 0; i < l->count; i++)
        if (!math_same_tree(l->children[i], r->children[i]))
            return false;
    return true;
}
