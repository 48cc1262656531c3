#include "server/reports/changes.h"

#include "server/base/cleanup.h"
#include "server/base/hash.h"
#include "server/base/json_write.h"
#include "server/spec/settings_tree.h"
#include "server/store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BATCHES = 64, SCAN_BATCHES = 2048, CURSOR_BYTES = 48 };

/* One batch, in the form that is compared. */
struct side {
    int64_t seq; /* 0: there is none yet */
    uint8_t sha256[SHA256_BYTES];
    json_t *tree;
    char *versions; /* [{"id","version"}] of the latest verdicts; NULL: there are none */
};

static void side_finish(struct side *side)
{
    json_decref(TAKE_PTR(side->tree));
    free(TAKE_PTR(side->versions));
}

struct scan {
    struct call *call;
    const struct changes_query *query;
    struct json_write json;
    struct side before;
    int64_t first_seq; /* of the batch that the cursor continues behind; 0: none */
    size_t skip;       /* changes of the next batch that were shown before */
    size_t shown;      /* of this page */
    size_t seen;       /* batches of this page */
    /* the batch at hand */
    const struct store_batch_settings *batch;
    size_t place; /* of its changes */
    bool full;
};

/* ---- one batch as a tree ----------------------------------------------------------------------------------- */

static const char *const maker_keys[] = {"engine_model", "engine_version", "rolloutd_version"};

/* One name, or the list of several; NULL: not known. */
static json_t *names_tree(const struct store_names *names)
{
    json_t *list = json_array();
    for (size_t i = 0; i < names->count; i++)
        json_array_append_new(list, json_stringn(names->names[i].data, names->names[i].length_bytes));
    if (names->count > 1)
        return list;
    json_t *only = names->count ? json_incref(json_array_get(list, 0)) : NULL;
    json_decref(list);
    return only;
}

static void add_makers(json_t *tree, const struct store_makers *makers)
{
    json_t *const values[] = {names_tree(&makers->engine_models), names_tree(&makers->engine_versions),
                              names_tree(&makers->rolloutd_versions)};
    for (size_t i = 0; i < ARRAY_LENGTH(maker_keys); i++)
        if (values[i])
            json_object_set_new(tree, maker_keys[i], values[i]);
}

/* A missing value counts as that of the batch before: no maker is known yet, or a score has no sampling. */
static void carry(json_t *tree, json_t *before)
{
    static const char *const carried[] = {"engine_model", "engine_version", "rolloutd_version", "sampling"};
    for (size_t i = 0; i < sizeof(carried) / sizeof(*carried); i++)
        if (!json_object_get(tree, carried[i]) && json_object_get(before, carried[i]))
            json_object_set(tree, carried[i], json_object_get(before, carried[i]));
}

static json_t *tree_of(const struct store_batch_settings *batch, json_t *before)
{
    json_t *tree = settings_tree_of_record(batch, NULL);
    json_object_del(tree, "masks"); /* the objective's own section */
    add_makers(tree, &batch->makers);
    carry(tree, before);
    return tree;
}

/* The verifiers and versions of the verdicts, without the completions; NULL: there is no verdict. */
static char *versions_of(struct text verdicts)
{
    json_auto_t *list = verdicts.data ? json_loadb(verdicts.data, verdicts.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
    json_auto_t *versions = json_array();
    size_t i;
    json_t *verdict;
    json_array_foreach (list, i, verdict)
        json_array_append_new(versions, json_pack("{sO?,sO?}", "id", json_object_get(verdict, "id"), "version",
                                                  json_object_get(verdict, "version")));
    return json_array_size(versions) ? json_dumps(versions, JSON_COMPACT) : NULL;
}

static void digest_names(struct buffer *bytes, const struct store_names *names)
{
    buffer_append_format(bytes, "%zu;", names->count);
    for (size_t i = 0; i < names->count; i++) {
        buffer_append_format(bytes, "%zu:", names->names[i].length_bytes);
        buffer_append(bytes, names->names[i].data, names->names[i].length_bytes);
    }
}

/* Batches of one digest have no change between them. */
static void digest_batch(const struct store_batch_settings *batch, uint8_t ret_sha256[SHA256_BYTES])
{
    _cleanup_buffer_ struct buffer bytes = {0};
    const struct text texts[] = {batch->objective, batch->sampling, batch->verifiers, batch->makers.verdicts};
    buffer_init(&bytes, SIZE_MAX);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        buffer_append_format(&bytes, "%zu:", texts[i].length_bytes);
        buffer_append(&bytes, texts[i].data, texts[i].length_bytes);
    }
    digest_names(&bytes, &batch->makers.engine_models);
    digest_names(&bytes, &batch->makers.engine_versions);
    digest_names(&bytes, &batch->makers.rolloutd_versions);
    sha256_of(bytes.data, bytes.length_bytes, ret_sha256);
}

/* ---- one batch against the one before ---------------------------------------------------------------------- */

static bool show_change(void *arg, const char *key, json_t *from, json_t *to)
{
    struct scan *scan = arg;
    size_t place = scan->place;
    if (place < scan->skip) {
        scan->place++;
        return true;
    }
    if (scan->shown == scan->query->limit) {
        scan->full = true;
        return false;
    }
    scan->place++;
    scan->shown++;
    json_object_begin(&scan->json);
    json_put_string(&scan->json, "batch", scan->batch->id);
    json_put_int(&scan->json, "incarnation", scan->batch->incarnation);
    json_put_int(&scan->json, "revision", scan->batch->policy_revision);
    json_put_time(&scan->json, "at", scan->batch->created_at_us);
    json_put_string(&scan->json, "key", key);
    json_key(&scan->json, "from");
    settings_write(&scan->json, from);
    json_key(&scan->json, "to");
    settings_write(&scan->json, to);
    json_object_end(&scan->json);
    return true;
}

static void replace_versions(struct scan *scan, struct store_batch_settings *batch)
{
    char *versions = versions_of(batch->makers.verdicts);
    if (versions) {
        free(scan->before.versions);
        scan->before.versions = versions;
    }
    batch->makers.verdicts = text_of(scan->before.versions);
}

static void take_batch(struct scan *scan, struct store_batch_settings *batch)
{
    uint8_t sha256[SHA256_BYTES];
    replace_versions(scan, batch);
    digest_batch(batch, sha256);
    scan->batch = batch;
    scan->place = 0;
    if (!scan->before.tree || memcmp(sha256, scan->before.sha256, sizeof(sha256)) != 0) {
        json_t *tree = tree_of(batch, scan->before.tree);
        if (scan->before.tree)
            settings_differences(scan->before.tree, tree, SETTINGS_BOTH, show_change, scan);
        json_decref(scan->full ? tree : scan->before.tree);
        if (scan->full)
            return;
        scan->before.tree = tree;
        memcpy(scan->before.sha256, sha256, sizeof(sha256));
    }
    scan->before.seq = batch->seq;
}

/* ---- a page ------------------------------------------------------------------------------------------------ */

/* The batch before the page inherits the missing values of earlier batches. */
static int take_first(struct scan *scan, struct store_batch_settings *batch)
{
    _cleanup_(store_known_makers_finish) struct store_known_makers known = {0};
    if (store_find_makers(scan->call->reader, scan->query->run, batch->purpose, batch->seq, &known) != STORE_OK)
        return call_refuse_unreadable(scan->call);
    batch->makers = known.makers;
    if (known.sampling.data)
        batch->sampling = known.sampling;
    take_batch(scan, batch);
    return 0;
}

static int take_page(struct scan *scan, const struct store_settings_page *page)
{
    for (size_t i = 0; i < page->count && !scan->full; i++) {
        struct store_batch_settings *batch = &page->batches[i];
        if ((int)batch->purpose != scan->query->purpose)
            continue;
        if (scan->before.seq > 0) {
            take_batch(scan, batch);
            scan->skip = scan->full ? scan->skip : 0;
        } else if (scan->first_seq > 0 && batch->seq != scan->first_seq) {
            return call_refuse(scan->call, ERR_INVALID_FIELD, "cursor", "not a cursor of this list with these filters");
        } else if (take_first(scan, batch) < 0) {
            return -1;
        }
    }
    return 0;
}

static int refuse(struct call *call, enum store_status status)
{
    if (status == STORE_NOT_FOUND)
        return call_refuse(call, ERR_NOT_FOUND, "run", "there is no run of this name");
    return call_refuse_unreadable(call);
}

/* *ret_more: the page has ended before the record. */
static int scan_batches(struct scan *scan, bool *ret_more)
{
    int64_t after = scan->first_seq > 0 ? scan->first_seq - 1 : 0;
    for (*ret_more = true; *ret_more && !scan->full && scan->seen < SCAN_BATCHES;) {
        _cleanup_(store_settings_page_finish) struct store_settings_page page = {0};
        if (atomic_load_explicit(&scan->call->abandoned, memory_order_relaxed))
            return call_refuse_unreadable(scan->call);
        enum store_status status =
            store_list_settings(scan->call->reader, scan->query->run, after, PAGE_BATCHES, &page);
        if (status != STORE_OK)
            return refuse(scan->call, status);
        if (take_page(scan, &page) < 0)
            return -1;
        scan->seen += scan->before.seq > 0 ? page.count : 0; /* those of another purpose are passed over */
        *ret_more = page.count == PAGE_BATCHES;
        if (page.count > 0)
            after = page.batches[page.count - 1].seq;
    }
    *ret_more |= scan->full;
    if (scan->first_seq > 0 && scan->before.seq == 0 && !*ret_more)
        return call_refuse(scan->call, ERR_INVALID_FIELD, "cursor", "not a cursor of this list with these filters");
    return 0;
}

/* "SEQ.PLACE": behind which batch the page begins, and how many changes of the next one were shown. */
static int read_cursor(struct scan *scan)
{
    char text[CURSOR_BYTES];
    char *dot;
    char *end;
    struct text cursor = scan->query->cursor;
    if (!cursor.data)
        return 0;
    if (cursor.length_bytes < sizeof(text)) {
        memcpy(text, cursor.data, cursor.length_bytes);
        text[cursor.length_bytes] = '\0';
        scan->first_seq = strtoll(text, &dot, 10);
        scan->skip = *dot == '.' ? strtoul(dot + 1, &end, 10) : 0;
        if (strspn(text, "0123456789.") == cursor.length_bytes && *dot == '.' && dot > text && end > dot + 1 && !*end &&
            scan->first_seq > 0)
            return 0;
    }
    return call_refuse(scan->call, ERR_INVALID_FIELD, "cursor", "not a cursor of this list with these filters");
}

void changes_answer(struct call *call, const struct changes_query *query)
{
    struct scan scan = {.call = call, .query = query};
    _cleanup_buffer_ struct buffer body = {0}; /* a refusal half way leaves nothing of it */
    char next[CURSOR_BYTES];
    bool more = false;
    if (read_cursor(&scan) < 0)
        return;
    if (!call->reader) {
        call_refuse_unreadable(call);
        return;
    }
    buffer_init(&body, call->reply.body.maximum_bytes);
    json_write_init(&scan.json, &body);
    json_object_begin(&scan.json);
    json_key(&scan.json, "items");
    json_array_begin(&scan.json);
    int result = scan_batches(&scan, &more);
    json_array_end(&scan.json);
    snprintf(next, sizeof(next), "%" PRId64 ".%zu", scan.before.seq, scan.full ? scan.place : scan.skip);
    json_put_string(&scan.json, "next", more && scan.before.seq > 0 ? next : NULL);
    json_object_end(&scan.json);
    if (result == 0) {
        buffer_append(&call->reply.body, body.data, body.length_bytes);
        call_answer_json(call, 200);
    }
    side_finish(&scan.before);
}
