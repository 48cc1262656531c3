#include "server/reports/picks_private.h"

#include "server/base/cleanup.h"
#include "server/http/call.h"
#include "server/reports/stats_private.h"

#include <string.h>

#define PAGE_ROWS 1000
#define PAGE_BYTES ((size_t)4 << 20)

static int refuse_memory(struct call *call)
{
    return call_refuse(call, ERR_QUEUE_FULL, NULL, "there is no memory for this report now");
}

static int add(struct call *call, struct picks *picks, const struct store_rollout *rollout)
{
    struct pick *pick;

    if (picks->count == picks->room) {
        size_t room = picks->room ? picks->room * 2 : 256;
        struct pick *larger = reallocarray(picks->rows, room, sizeof *larger);
        if (!larger)
            return refuse_memory(call);
        picks->rows = larger;
        picks->room = room;
    }
    pick = &picks->rows[picks->count];
    *pick = (struct pick){.sample_index = rollout->sample_index,
                          .revision = rollout->policy_revision,
                          .incarnation = rollout->incarnation};
    if (id_split_group(text_of(rollout->group_id), pick->batch_id, &pick->group_index))
        picks->count++;
    return 0;
}

static int compare_numbers(int64_t left, int64_t right)
{
    return (left > right) - (left < right);
}

static int compare_place(const void *left, const void *right)
{
    const struct pick *a = left;
    const struct pick *b = right;
    int order = strcmp(a->batch_id, b->batch_id);

    order = order ? order : compare_numbers(a->group_index, b->group_index);
    return order ? order : compare_numbers(a->sample_index, b->sample_index);
}

/* Those that no later incarnation replaced. */
static void keep_surviving_line(struct picks *picks, const struct store_lines *lines, enum store_purpose purpose)
{
    size_t kept = 0;

    for (size_t i = 0; i < picks->count; i++)
        if (lines_have(lines, picks->rows[i].incarnation, picks->rows[i].revision, purpose))
            picks->rows[kept++] = picks->rows[i];
    picks->count = kept;
}

static int arrange(struct call *call, const struct store_rollout_filter *filter, struct picks *picks)
{
    _cleanup_(store_lines_finish) struct store_lines lines = {0};

    if (filter->incarnation < 0) {
        if (store_read_lines(call->reader, filter->run, &lines) != STORE_OK)
            return call_refuse_unreadable(call);
        keep_surviving_line(picks, &lines, (enum store_purpose)filter->purpose);
    }
    if (picks->count > 0)
        qsort(picks->rows, picks->count, sizeof *picks->rows, compare_place);
    return 0;
}

static int read_page(struct call *call, const struct store_rollout_filter *filter, char cursor[64], struct picks *picks)
{
    static const struct store_page_limits limits = {.rows = PAGE_ROWS, .scanned = PAGE_ROWS, .bytes = PAGE_BYTES};
    _cleanup_(store_rollouts_finish) struct store_rollouts page = {0};
    struct text from = cursor[0] ? text_of(cursor) : TEXT_NONE;

    if (store_list_rollouts(call->reader, filter, from, &limits, 0, &page) != STORE_OK)
        return call_refuse_unreadable(call);
    for (size_t i = 0; i < page.count; i++)
        if (add(call, picks, &page.rollouts[i]) < 0)
            return -1;
    memcpy(cursor, page.next, sizeof page.next);
    return 0;
}

int picks_find(struct call *call, const struct store_rollout_filter *filter, size_t most, struct picks *ret_picks)
{
    char cursor[64] = "";

    *ret_picks = (struct picks){0};
    do {
        if (call->abandoned || read_page(call, filter, cursor, ret_picks) < 0)
            return -1;
        ret_picks->too_many = ret_picks->count > most;
    } while (cursor[0] && !ret_picks->too_many);
    return arrange(call, filter, ret_picks);
}

void picks_finish(struct picks *picks)
{
    free(picks->rows);
    *picks = (struct picks){0};
}

size_t picks_next_group(const struct picks *picks, size_t at)
{
    const struct pick *first = &picks->rows[at];

    while (at < picks->count && picks->rows[at].group_index == first->group_index &&
           strcmp(picks->rows[at].batch_id, first->batch_id) == 0)
        at++;
    return at;
}

size_t picks_next_batch(const struct picks *picks, size_t at)
{
    const struct pick *first = &picks->rows[at];

    while (at < picks->count && strcmp(picks->rows[at].batch_id, first->batch_id) == 0)
        at++;
    return at;
}
