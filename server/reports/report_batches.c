/* The batches of a run: their settings, their requests, and the evaluations among them. */
#include "server/reports/report_private.h"

#include "server/base/buffer.h"
#include "server/base/cleanup.h"
#include "server/spec/pass_at.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BATCHES 200

static int add_setting(struct report *report, struct report_settings *settings, struct text text, const char *batch_id)
{
    size_t known = settings->texts.count;
    uint32_t number = names_number(&settings->texts, text.data ? text : TEXT_LITERAL("null"));

    if (number == NAMES_NONE || !report_make_room(&settings->rows, number, &settings->room, sizeof *settings->rows))
        return report_refuse_memory(report);
    struct report_setting *row = &settings->rows[number];
    if (number == known) {
        *row = (struct report_setting){0};
        memcpy(row->first_batch, batch_id, ID_BYTES);
    }
    row->batches++;
    return 0;
}

/* The settings that two comparable batches share, in one text. */
static int add_together(struct report *report, const struct store_batch *batch)
{
    const struct text parts[] = {batch->objective, batch->sampling, batch->verifiers};
    _cleanup_buffer_ struct buffer all = {0};

    buffer_init(&all, SIZE_MAX);
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
        buffer_append(&all, parts[i].data ? parts[i].data : "", parts[i].length_bytes);
        buffer_append_byte(&all, '\n');
    }
    return all.failed ? report_refuse_memory(report)
                      : add_setting(report, &report->together, buffer_text(&all), batch->id);
}

static int add_settings(struct report *report, const struct store_batch *batch)
{
    return add_setting(report, &report->objectives, batch->objective, batch->id) < 0 ||
                   add_setting(report, &report->samplings, batch->sampling, batch->id) < 0 ||
                   add_setting(report, &report->verifiers, batch->verifiers, batch->id) < 0 ||
                   add_together(report, batch) < 0
               ? -1
               : 0;
}

/* --- evaluations --- */

/* The verifier that decides: the batch's own, else the first that is held out. NULL: the reward. */
static char *decider_of(const struct store_batch *batch)
{
    struct text verifiers = batch->verifiers;
    json_auto_t *list =
        verifiers.data ? json_loadb(verifiers.data, verifiers.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
    size_t i;
    const json_t *verifier;

    if (batch->pass_verifier.data)
        return xstrndup(batch->pass_verifier.data, batch->pass_verifier.length_bytes);
    json_array_foreach (list, i, verifier) {
        const json_t *id = json_object_get(verifier, "id");
        const char *name = json_string_value(id ? id : json_object_get(verifier, "name"));
        if (name && json_is_true(json_object_get(verifier, "heldout")))
            return xstrdup(name);
    }
    return NULL;
}

static json_t *ks_of(struct text summary)
{
    json_auto_t *read = summary.data ? json_loadb(summary.data, summary.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;

    return json_incref(json_object_get(read, "pass_at_k"));
}

/* --- pages --- */

static int add_batch(struct report *report, const struct store_batch *batch)
{
    bool is_evaluation = batch->purpose == STORE_EVAL;
    struct report_batch **batches = is_evaluation ? &report->evaluations : &report->training;
    size_t *count = is_evaluation ? &report->evaluation_batch_count : &report->training_count;
    size_t *room = is_evaluation ? &report->evaluation_batch_room : &report->training_room;

    if (!report_make_room(batches, *count, room, sizeof **batches) ||
        !report_make_room(&report->requests, report->request_count, &report->request_room, sizeof *report->requests))
        return report_refuse_memory(report);
    sha256_hex(batch->request_sha256, report->requests[report->request_count++]);
    struct report_batch *added = &(*batches)[(*count)++];
    *added = (struct report_batch){.incarnation = batch->incarnation,
                                   .revision = batch->policy_revision,
                                   .group_count = batch->group_count,
                                   .rollout_count = batch->rollout_count};
    memcpy(added->id, batch->id, ID_BYTES);
    if (!is_evaluation)
        return add_settings(report, batch);
    added->decider = decider_of(batch);
    added->threshold = isnan(batch->pass_threshold) ? PASS_THRESHOLD : batch->pass_threshold;
    added->ks = ks_of(batch->summary);
    return 0;
}

static bool is_asked_for(const struct report *report, int64_t revision)
{
    return revision >= report->from && (report->to < 0 || revision <= report->to);
}

/* Rows of lists have no texts, so each is read. */
static int read_page(struct report *report, char cursor[64])
{
    static const struct store_page_limits limits = {.rows = PAGE_BATCHES, .scanned = PAGE_BATCHES, .bytes = SIZE_MAX};
    _cleanup_(store_batches_finish) struct store_batches page = {0};
    struct store_reader *reader = report->call->reader;
    struct text from = cursor[0] ? text_of(cursor) : TEXT_NONE;

    if (store_list_batches(reader, report->run, -1, false, from, &limits, &page) != STORE_OK)
        return call_refuse_unreadable(report->call);
    for (size_t i = 0; i < page.count; i++) {
        _cleanup_(store_batch_finish) struct store_batch batch = {0};
        if (!is_asked_for(report, page.batches[i].policy_revision))
            continue;
        if (store_read_batch(reader, text_of(page.batches[i].id), &batch) != STORE_OK)
            return call_refuse_unreadable(report->call);
        if (add_batch(report, &batch) < 0)
            return -1;
    }
    memcpy(cursor, page.next, sizeof page.next);
    return 0;
}

static int compare_hashes(const void *left, const void *right)
{
    return memcmp(left, right, SHA256_HEX_BYTES - 1);
}

static int hash_requests(struct report *report)
{
    uint8_t digest[SHA256_BYTES];
    _cleanup_buffer_ struct buffer all = {0};

    buffer_init(&all, SIZE_MAX);
    if (report->request_count > 0)
        qsort(report->requests, report->request_count, sizeof *report->requests, compare_hashes);
    for (size_t i = 0; i < report->request_count; i++)
        buffer_append_format(&all, "%s\n", report->requests[i]);
    if (all.failed)
        return report_refuse_memory(report);
    sha256_of(all.data ? all.data : "", all.length_bytes, digest);
    sha256_hex(digest, report->inputs_sha256);
    return 0;
}

int report_read_batches(struct report *report)
{
    char cursor[64] = "";

    do {
        if (report->call->abandoned || read_page(report, cursor) < 0)
            return -1;
    } while (cursor[0]);
    return hash_requests(report);
}
