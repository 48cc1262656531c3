/* The parameters of stats. */
#include "server/reports/stats_private.h"

#include "server/base/cleanup.h"
#include "server/base/nearest.h"
#include "server/spec/rollout_query.h"

#include <string.h>

#define STATS_KEY_WORD(name, word) word,
const char *const stats_key_names[] = {STATS_KEYS(STATS_KEY_WORD) NULL};
#undef STATS_KEY_WORD

bool stats_query_has(const struct stats_query *query, enum stats_key key)
{
    for (size_t i = 0; i < query->key_count; i++)
        if (query->keys[i] == key)
            return true;
    return false;
}

bool stats_asks_only(const struct call *call, const char *const *names)
{
    for (size_t i = 0; i < call->query_count; i++)
        if (store_name_index(names, call->query[i].name) < 0)
            return false;
    return true;
}

bool stats_keys_are_among(const struct stats_query *query, const enum stats_key *keys, size_t count)
{
    for (size_t i = 0; i < query->key_count; i++) {
        size_t k = 0;
        while (k < count && keys[k] != query->keys[i])
            k++;
        if (k == count)
            return false;
    }
    return true;
}

static bool is_tag(struct text name)
{
    return name.length_bytes > sizeof STATS_TAG_PREFIX - 1 &&
           memcmp(name.data, STATS_TAG_PREFIX, sizeof STATS_TAG_PREFIX - 1) == 0 &&
           store_tag_name_is_valid(stats_tag_name(name));
}

static bool is_named(const struct stats_query *query, struct text name)
{
    for (size_t i = 0; i < query->key_count; i++)
        if (text_same(query->key_names[i], name))
            return true;
    return false;
}

static int refuse_key(struct call *call, struct text name)
{
    char advice[ADVICE_BYTES];
    names_advise_list(name, stats_key_names, advice);
    return call_refuse(call, ERR_INVALID_FIELD, "by", "there is no key \"%.*s\"; %s",
                       (int)(name.length_bytes < 64 ? name.length_bytes : 64), name.data, advice);
}

static int read_key(struct call *call, struct stats_query *query, struct text name)
{
    int key = is_tag(name) ? (int)STATS_TAG : store_name_index(stats_key_names, name);

    if (key < 0)
        return refuse_key(call, name);
    if (is_named(query, name))
        return call_refuse(call, ERR_INVALID_FIELD, "by", "%.*s is named twice", (int)name.length_bytes, name.data);
    if (query->key_count == CELL_PARTS_MAX)
        return call_refuse(call, ERR_INVALID_FIELD, "by", "at most %d keys are expected", CELL_PARTS_MAX);
    query->key_names[query->key_count] = name;
    query->keys[query->key_count++] = (enum stats_key)key;
    return 0;
}

int stats_query_read_by(struct call *call, struct stats_query *query)
{
    struct text list = call_query(call, "by");

    query->key_count = 0;
    if (!list.data || list.length_bytes == 0)
        return 0;
    const char *end = list.data + list.length_bytes;
    for (const char *at = list.data; at <= end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct text name = text_without_blanks((struct text){at, (size_t)((comma ? comma : end) - at)});
        if (read_key(call, query, name) < 0)
            return -1;
        at = (comma ? comma : end) + 1;
    }
    return 0;
}

/* As a parameter `verifier` chooses the score; beside `verdict` or `reason` it is also part of that filter. */
int stats_query_read(struct call *call, struct stats_query *query)
{
    struct store_rollout_filter *filter = &query->filter;

    query->threshold = 1;
    if (rollout_query_read(call, filter) < 0 || call_query_double(call, "threshold", &query->threshold) < 0)
        return -1;
    query->verifier = filter->verifier;
    if (!filter->verdict.data && !filter->reason.data)
        filter->verifier = TEXT_NONE;
    query->every_incarnation = filter->incarnation >= 0 || stats_query_has(query, STATS_INCARNATION);
    if (filter->purpose < 0 && !stats_query_has(query, STATS_PURPOSE))
        filter->purpose = STORE_TRAIN;
    return 0;
}
