/* Stats by a scan of rollouts, a page at a time. */
#include "server/reports/stats_private.h"

#include "server/base/buffer.h"
#include "server/base/cleanup.h"
#include "server/reports/cells_record_private.h"
#include "server/store/deciding_score.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#define PAGE_ROWS 1000
#define PAGE_SCANNED 4096
#define PAGE_BYTES ((size_t)4 << 20)

/* One verdict of a rollout, as far as it is looked at. */
struct verdict_view {
    struct text id, reason;
    double score;
};
static const struct verdict_view no_verdict = {.score = NAN};

static struct text text_in(const json_t *value)
{
    return json_is_string(value) ? (struct text){json_string_value(value), json_string_length(value)} : TEXT_NONE;
}

static double json_score(const json_t *entry)
{
    const json_t *score = json_object_get(entry, "score");
    return json_is_number(score) ? json_number_value(score) : NAN;
}

static json_t *parse(struct text text)
{
    return text.data ? json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
}

static struct verdict_view view_of(const json_t *verdict)
{
    return (struct verdict_view){text_in(json_object_get(verdict, "id")), text_in(json_object_get(verdict, "reason")),
                                 json_score(verdict)};
}

static struct verdict_view find_verdict(const json_t *verdicts, struct text id)
{
    size_t index;
    const json_t *verdict;

    json_array_foreach (verdicts, index, verdict)
        if (text_same(text_in(json_object_get(verdict, "id")), id))
            return view_of(verdict);
    return no_verdict;
}

/* --- one rollout --- */

static struct cell_part part_of(enum stats_key key, const struct store_rollout *rollout,
                                const struct verdict_view *verdict)
{
    switch (key) {
    case STATS_RUN:
        return cell_text(rollout->run);
    case STATS_INCARNATION:
        return cell_number(rollout->incarnation);
    case STATS_REVISION:
        return cell_number(rollout->policy_revision);
    case STATS_PURPOSE:
        return cell_text(text_of(store_purpose_names[rollout->purpose]));
    case STATS_TASK:
        return cell_text(rollout->task);
    case STATS_BATCH:
        return cell_text(text_of(rollout->batch_id));
    case STATS_ENGINE:
        return cell_text(rollout->engine);
    case STATS_ENGINE_MODEL:
        return cell_text(rollout->engine_model);
    case STATS_FINISH_REASON:
        return cell_text(rollout->finish_reason);
    case STATS_FAILURE:
        return cell_text(rollout->failure.code);
    case STATS_VERIFIER:
        return cell_text(verdict->id);
    case STATS_REASON:
        return cell_text(verdict->reason);
    case STATS_TAG:
        break;
    }
    return cell_text(TEXT_NONE);
}

static struct text tag_of(const struct store_rollout *rollout, struct text key_name, char value[STORE_TAG_VALUE_BYTES])
{
    _cleanup_buffer_ struct buffer found = {0};

    buffer_init(&found, STORE_TAG_VALUE_BYTES);
    if (!store_tag_find(rollout->tags, stats_tag_name(key_name), &found))
        return TEXT_NONE;
    if (found.length_bytes)
        memcpy(value, found.data, found.length_bytes);
    return (struct text){value, found.length_bytes};
}

static void add_to_cell(const struct stats_scan *scan, const struct store_rollout *rollout,
                        const struct verdict_view *verdict, struct cell_rollout *values)
{
    const struct stats_query *query = scan->query;
    char tags[CELL_PARTS_MAX][STORE_TAG_VALUE_BYTES];
    struct cell_key key = {.count = query->key_count};

    for (size_t i = 0; i < key.count; i++)
        key.parts[i] = query->keys[i] == STATS_TAG ? cell_text(tag_of(rollout, query->key_names[i], tags[i]))
                                                   : part_of(query->keys[i], rollout, verdict);
    cells_add(scan->cells, cells_find(scan->cells, &key), values);
}

static void decide(const struct stats_query *query, struct cell_rollout *values, double score)
{
    values->solved = isnan(score) ? -1 : score >= query->threshold;
}

/* One cell for each verdict; by reasons alone, of the verifier that is asked for. */
static void add_verdicts(const struct stats_scan *scan, const struct store_rollout *rollout, const json_t *verdicts,
                         struct cell_rollout *values)
{
    const struct stats_query *query = scan->query;
    bool by_verifier = stats_query_has(query, STATS_VERIFIER);
    bool added = false;
    size_t index;
    const json_t *entry;

    json_array_foreach (verdicts, index, entry) {
        struct verdict_view verdict = view_of(entry);
        if (query->verifier.data && !by_verifier && !text_same(verdict.id, query->verifier))
            continue;
        if (by_verifier) {
            values->score = verdict.score;
            if (!query->verifier.data)
                decide(query, values, verdict.score);
        }
        add_to_cell(scan, rollout, &verdict, values);
        added = true;
    }
    if (!added)
        add_to_cell(scan, rollout, &no_verdict, values);
}

void stats_scan_add(const struct stats_scan *scan, const struct store_rollout *rollout)
{
    const struct stats_query *query = scan->query;
    bool by_verdict = stats_query_has(query, STATS_VERIFIER) || stats_query_has(query, STATS_REASON);
    json_auto_t *verdicts = by_verdict || query->verifier.data ? parse(rollout->verdicts) : NULL;
    struct cell_rollout values = cell_of_record(rollout);

    if (query->verifier.data) {
        values.score = find_verdict(verdicts, query->verifier).score;
        decide(query, &values, values.score);
    } else {
        decide(query, &values,
               store_deciding_score(rollout->pass_verifier, rollout->rewards, rollout->heldout, rollout->reward));
    }
    if (by_verdict)
        add_verdicts(scan, rollout, verdicts, &values);
    else
        add_to_cell(scan, rollout, &no_verdict, &values);
}

/* --- pages --- */

static int add_page(struct stats_scan *scan, const struct store_rollouts *page)
{
    for (size_t i = 0; i < page->count; i++) {
        bool survives;
        if (lines_survives(scan, &page->rollouts[i], &survives) < 0)
            return -1;
        if (survives)
            stats_scan_add(scan, &page->rollouts[i]);
    }
    return 0;
}

/* Stops with -1 when the budget is used up and rows are left. */
int stats_scan_rollouts(struct stats_scan *scan)
{
    char cursor[64] = "";

    do {
        _cleanup_(store_rollouts_finish) struct store_rollouts page = {0};
        size_t scanned = scan->rows_left < PAGE_SCANNED ? (size_t)scan->rows_left : PAGE_SCANNED;
        const struct store_page_limits limits = {.rows = PAGE_ROWS, .scanned = scanned, .bytes = PAGE_BYTES};
        if (scan->call->abandoned)
            return -1;
        if (scanned == 0)
            return stats_refuse_budget(scan);
        if (store_list_rollouts(scan->call->reader, &scan->query->filter, cursor[0] ? text_of(cursor) : TEXT_NONE,
                                &limits, STORE_WITH_VERDICTS, &page) != STORE_OK)
            return call_refuse_unreadable(scan->call);
        scan->rows_left -= page.scanned < scanned ? (int64_t)page.scanned : (int64_t)scanned;
        if (add_page(scan, &page) < 0)
            return -1;
        memcpy(cursor, page.next, sizeof cursor);
    } while (cursor[0]);
    return 0;
}
