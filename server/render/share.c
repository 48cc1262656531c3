#include "server/render/share.h"

#include "server/base/cleanup.h"

#include <stdbool.h>
#include <stdlib.h>

struct item {
    int64_t weight;
    size_t place;
};

/* Heaviest first. */
static int compare_items(const void *left, const void *right)
{
    const struct item *a = left;
    const struct item *b = right;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

struct load {
    int64_t weight;
    int64_t rank;
};

static bool is_before(const struct load *a, const struct load *b)
{
    return a->weight != b->weight ? a->weight < b->weight : a->rank < b->rank;
}

/* The first load of a heap has grown. */
static void sink_first(struct load *heap, size_t count)
{
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &heap[at]))
            return;
        struct load load = heap[at];
        heap[at] = heap[child];
        heap[child] = load;
    }
}

void share_out(size_t count, const int64_t *weight, int64_t ranks, int64_t *ret_rank)
{
    _cleanup_free_ struct item *items = xcalloc(count + 1, sizeof(*items));
    _cleanup_free_ struct load *heap = xcalloc((size_t)ranks, sizeof(*heap)); /* the least loaded is first */
    for (size_t i = 0; i < count; i++)
        items[i] = (struct item){weight[i], i};
    for (int64_t rank = 0; rank < ranks; rank++)
        heap[rank].rank = rank;
    qsort(items, count, sizeof(*items), compare_items);
    for (size_t i = 0; i < count; i++) {
        ret_rank[items[i].place] = heap[0].rank;
        heap[0].weight += items[i].weight;
        sink_first(heap, (size_t)ranks);
    }
}
