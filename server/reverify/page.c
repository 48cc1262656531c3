/* Worker parts of a reverification: a page of rollouts becomes frames, and the verdicts become rows. */
#include "server/reverify/page_private.h"

#include "server/base/cleanup.h"
#include "server/spec/objective.h"

#include <math.h>
#include <stdio.h>

#define PAGE_ROWS 64
#define PAGE_BYTES ((size_t)2 << 20)
#define PAGE_SCANNED 4096
#define PAGES_AT_ONCE 16 /* without a rollout in them, until the place comes on record */
#define FRAME_SLACK_BYTES                                                                                              \
    ((size_t)65536) /* a buffer refuses what is beyond its maximum; the frame's limit is checked exactly */
#define VERDICTS_MAX_BYTES ((size_t)16 << 20)

/* --- rules of batches --- */

struct batch_rule {
    char batch_id[ID_BYTES];
    enum reward_missing missing;
};

/* The last one is kept: the rollouts of a batch mostly follow each other. */
static int find_rule(struct store_reader *reader, const struct store_rollout *rollout, struct batch_rule *rule)
{
    _cleanup_(store_batch_finish) struct store_batch batch = {0};
    struct objective_knobs knobs;

    if (strcmp(rule->batch_id, rollout->batch_id) == 0)
        return 0;
    if (store_read_batch(reader, text_of(rollout->batch_id), &batch) != STORE_OK)
        return -1;
    memcpy(rule->batch_id, rollout->batch_id, sizeof rule->batch_id);
    rule->missing =
        objective_json_parse(batch.objective, &knobs) == 0 && knobs.advantage.missing == OBJECTIVE_MISSING_SKIP
            ? REWARD_MISSING_SKIP
            : REWARD_MISSING_NULL;
    return 0;
}

/* --- frames --- */

/* A prompt on record is a text, the messages of a chat, or null. */
static void build_frame(struct reverify_item *item, const struct verifier_list *list)
{
    const struct store_rollout *rollout = item->rollout;
    struct text prompt = rollout->prompt;
    json_auto_t *value =
        prompt.data ? json_loadb(prompt.data, prompt.length_bytes, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL) : NULL;
    struct verify_subject subject = {
        .completion = rollout->text,
        .prompt = json_text_of(value),
        .messages_json = json_is_array(value) ? prompt : TEXT_NONE,
        .reference_json = text_equals(rollout->reference, "null") ? TEXT_NONE : rollout->reference,
        .completion_tokens = rollout->completion_ids ? (int64_t)rollout->token_count : rollout->completion_tokens,
        .id = text_of(rollout->id),
        .task = rollout->task,
        .metadata_json = rollout->metadata,
        .completion_ids = rollout->completion_ids,
        .completion_id_count = rollout->completion_ids ? rollout->token_count : 0,
    };

    buffer_init(&item->frame, verifier_list_frame_limit_bytes(list) + FRAME_SLACK_BYTES);
    if (verify_request_build(list, &subject, &item->frame) == 0)
        return;
    buffer_finish(&item->frame);
    verify_job_fail(&item->job, "verifier_input_too_large",
                    "the completion and its reference are larger than a worker reads");
}

static int build_items(struct store_reader *reader, const struct reverify_request *request, struct reverify_page *page)
{
    struct batch_rule rule = {.batch_id = ""};

    page->items = xcalloc(page->count + 1, sizeof page->items[0]);
    for (size_t i = 0; i < page->count; i++) {
        struct reverify_item *item = &page->items[i];
        item->rollout = &page->rollouts.rollouts[i];
        if (find_rule(reader, item->rollout, &rule) < 0)
            return -1;
        item->missing = rule.missing;
        build_frame(item, request->verifiers);
    }
    return 0;
}

/* --- pages --- */

static unsigned parts_of(const struct verifier_list *list)
{
    unsigned with = STORE_WITH_TEXT | STORE_WITH_VERDICTS | STORE_WITH_TASK;

    for (size_t i = 0; i < list->count; i++)
        if (list->specs[i].external)
            with |= STORE_WITH_ARRAYS | STORE_WITH_METADATA;
    return with;
}

/* Rollouts behind the last one came later, and are not asked about. */
static void cut(struct reverify_page *page, int64_t last_rollout)
{
    page->count = 0;
    while (page->count < page->rollouts.count && page->rollouts.rollouts[page->count].seq <= last_rollout)
        page->count++;
    if (page->count < page->rollouts.count)
        page->next[0] = 0;
}

static enum store_status list(struct store_reader *reader, const struct reverify_request *request, const char *place,
                              struct reverify_page *page)
{
    static const struct store_page_limits limits = {.rows = PAGE_ROWS, .scanned = PAGE_SCANNED, .bytes = PAGE_BYTES};
    enum store_status status = store_list_rollouts(reader, &request->filter, place[0] ? text_of(place) : TEXT_NONE,
                                                   &limits, parts_of(request->verifiers), &page->rollouts);

    memcpy(page->next, page->rollouts.next, sizeof page->next);
    return status;
}

int page_read(struct store_reader *reader, const struct reverify_request *request, const char *place,
              struct reverify_page *ret_page)
{
    char from[sizeof ret_page->next];
    enum store_status status = STORE_UNAVAILABLE;

    snprintf(from, sizeof from, "%s", place);
    *ret_page = (struct reverify_page){0};
    for (int pages = 0; pages < PAGES_AT_ONCE && request->last_rollout > 0; pages++) {
        store_rollouts_finish(&ret_page->rollouts);
        status = list(reader, request, from, ret_page);
        if (status == STORE_INVALID_CURSOR) /* of another version: what is on record is not counted again */
            status = list(reader, request, "", ret_page);
        if (status != STORE_OK)
            return -1;
        cut(ret_page, request->last_rollout);
        if (ret_page->count > 0 || !ret_page->next[0])
            break;
        memcpy(from, ret_page->next, sizeof from);
    }
    return build_items(reader, request, ret_page);
}

void page_finish(struct reverify_page *page)
{
    for (size_t i = 0; i < page->count && page->items; i++) {
        struct reverify_item *item = &page->items[i];
        verify_job_finish(&item->job);
        buffer_finish(&item->frame);
        buffer_finish(&item->verdicts);
        row_flips_free(item->flips, item->flip_count);
    }
    free(page->items);
    free(page->rows);
    store_rollouts_finish(&page->rollouts);
    *page = (struct reverify_page){0};
}

/* --- verdicts --- */

static void judge_item(struct reverify_item *item, const struct verifier_list *list, struct store_judged *row)
{
    struct verdict_set set;
    struct json_write json;

    item->job.list = list; /* also where the verifiers were not asked */
    verdict_set_read(&item->job, &set);
    verdict_set_count(&set, list);
    buffer_init(&item->verdicts, VERDICTS_MAX_BYTES);
    json_write_init(&json, &item->verdicts);
    verdict_set_write(&json, list, &set);
    item->flips = row_flips(item->rollout, list, &set, &item->flip_count);
    *row = (struct store_judged){.rollout_seq = item->rollout->seq,
                                 .verdicts = buffer_text(&item->verdicts),
                                 .reward_from = item->rollout->reward,
                                 .reward = row_reward(item->rollout, list, &set, item->missing),
                                 .flips = item->flips,
                                 .flip_count = item->flip_count};
    for (size_t i = 0; i < set.count; i++)
        row->unscored += set.verdicts[i].kind == VERDICT_UNSCORED;
    verdict_set_finish(&set);
}

void page_judge(struct reverify_page *page, const struct verifier_list *list)
{
    page->rows = xcalloc(page->count + 1, sizeof page->rows[0]);
    for (size_t i = 0; i < page->count; i++)
        judge_item(&page->items[i], list, &page->rows[i]);
}
