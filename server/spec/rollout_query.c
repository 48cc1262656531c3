#include "server/spec/rollout_query.h"

#include "server/base/clock.h"
#include "server/base/nearest.h"
#include "server/input/input.h"
#include "verifiers/verifier.h"

#include <stddef.h>

enum filter_kind {
    FILTER_TEXT,
    FILTER_WORD, /* a text of a closed list */
    FILTER_NAME, /* the index of a word of a closed list */
    FILTER_COUNT,
    FILTER_REAL,
    FILTER_TIME,
    FILTER_FLAG,
};

struct filter_row {
    const char *name;
    enum filter_kind kind;
    size_t offset;
    const char *const *words;
};

#define AT(member) offsetof(struct store_rollout_filter, member)

/* THE list of filters; `revision` is both bounds at once. */
static const struct filter_row rows[] = {
    {"run", FILTER_TEXT, AT(run), NULL},
    {"incarnation", FILTER_COUNT, AT(incarnation), NULL},
    {"purpose", FILTER_NAME, AT(purpose), store_purpose_names},
    {"revision", FILTER_COUNT, AT(revision_min), NULL},
    {"revision_min", FILTER_COUNT, AT(revision_min), NULL},
    {"revision_max", FILTER_COUNT, AT(revision_max), NULL},
    {"task", FILTER_TEXT, AT(task), NULL},
    {"batch", FILTER_TEXT, AT(batch), NULL},
    {"group", FILTER_TEXT, AT(group), NULL},
    {"engine", FILTER_TEXT, AT(engine), NULL},
    {"engine_revision", FILTER_TEXT, AT(engine_revision), NULL},
    {"verifier", FILTER_TEXT, AT(verifier), NULL},
    {"verdict", FILTER_WORD, AT(verdict), verdict_kind_names},
    {"reason", FILTER_TEXT, AT(reason), NULL},
    {"reward_min", FILTER_REAL, AT(reward_min), NULL},
    {"reward_max", FILTER_REAL, AT(reward_max), NULL},
    {"advantage_min", FILTER_REAL, AT(advantage_min), NULL},
    {"advantage_max", FILTER_REAL, AT(advantage_max), NULL},
    {"heldout_min", FILTER_REAL, AT(heldout_min), NULL},
    {"finish_reason", FILTER_TEXT, AT(finish_reason), NULL},
    {"failure", FILTER_TEXT, AT(failure), NULL},
    {"state", FILTER_NAME, AT(state), store_rollout_state_names},
    {"straddles", FILTER_FLAG, AT(straddles), NULL},
    {"seed_honoured", FILTER_FLAG, AT(seed_honoured), NULL},
    {"trainable", FILTER_FLAG, AT(trainable), NULL},
    {"duplicate", FILTER_FLAG, AT(duplicate), NULL},
    {"since", FILTER_TIME, AT(since_us), NULL},
    {"until", FILTER_TIME, AT(until_us), NULL},
    {"text", FILTER_TEXT, AT(text), NULL},
};

enum { OWN_MAX = 16 };

int rollout_query_check(struct call *call, const char *const *own)
{
    const char *known[ARRAY_LENGTH(rows) + OWN_MAX + 2] = {NULL};
    size_t count = 0;
    for (; count < ARRAY_LENGTH(rows); count++)
        known[count] = rows[count].name;
    known[count++] = "tag.NAME";
    for (; *own; own++)
        known[count++] = *own;
    return call_check_query(call, known);
}

static int read_flag(struct call *call, const char *name, int *value)
{
    bool flag = false;
    if (call_query_bool(call, name, &flag) < 0)
        return -1;
    *value = flag;
    return 0;
}

static int read_word(struct call *call, const struct filter_row *row, struct text *value)
{
    int index = 0;
    *value = call_query(call, row->name);
    return call_query_word(call, row->name, row->words, &index);
}

static int read_row(struct call *call, const struct filter_row *row, void *value)
{
    switch (row->kind) {
    case FILTER_TEXT:
        *(struct text *)value = call_query(call, row->name);
        return 0;
    case FILTER_WORD:
        return read_word(call, row, value);
    case FILTER_NAME:
        return call_query_word(call, row->name, row->words, value);
    case FILTER_COUNT:
        return call_query_int(call, row->name, 0, INT64_MAX, value);
    case FILTER_REAL:
        return call_query_double(call, row->name, value);
    case FILTER_TIME:
        return call_query_time(call, row->name, value);
    case FILTER_FLAG:
        return read_flag(call, row->name, value);
    }
    return -1;
}

/* either: a bound is given, too. */
static int take_revision(struct call *call, bool either, struct store_rollout_filter *filter)
{
    if (either)
        return call_refuse(call, ERR_INVALID_FIELD, "revision",
                           "give either revision, or revision_min and revision_max");
    filter->revision_max = filter->revision_min;
    return 0;
}

/* The name of a tag in "tag.source"; TEXT_NONE: it is no such text. */
static struct text name_of_tag(struct text text)
{
    static const char prefix[] = "tag.";
    if (text.length_bytes < sizeof(prefix) || memcmp(text.data, prefix, sizeof(prefix) - 1) != 0)
        return TEXT_NONE;
    return (struct text){text.data + sizeof(prefix) - 1, text.length_bytes - sizeof(prefix) + 1};
}

static int read_revision(struct call *call, struct store_rollout_filter *filter)
{
    if (!call_query(call, "revision").data)
        return 0;
    return take_revision(call, call_query(call, "revision_min").data || call_query(call, "revision_max").data, filter);
}

static int add_tag(struct call *call, const char *path, const struct store_tag *tag, struct store_tag tags[],
                   size_t *count)
{
    if (!store_tag_name_is_valid(tag->name))
        return call_refuse(call, ERR_INVALID_FIELD, path, "no tag has such a name");
    if (*count == STORE_TAGS_MAX)
        return call_refuse(call, ERR_INVALID_FIELD, path, "a group has at most %d tags", STORE_TAGS_MAX);
    tags[(*count)++] = *tag;
    return 0;
}

/* tag.source=gsm8k */
int query_read_tags(struct call *call, struct store_tag ret_tags[STORE_TAGS_MAX], size_t *ret_count)
{
    *ret_count = 0;
    for (size_t i = 0; i < call->query_count; i++) {
        struct text name = call->query[i].name;
        struct store_tag tag = {name_of_tag(name), call->query[i].value.data ? call->query[i].value : TEXT_LITERAL("")};
        if (!tag.name.data)
            continue;
        _cleanup_free_ char *path = xstrndup(name.data, name.length_bytes);
        if (add_tag(call, path, &tag, ret_tags, ret_count) < 0)
            return -1;
    }
    return 0;
}

int query_read_split(struct call *call, struct text *ret_name)
{
    struct text by = call_query(call, "by");
    *ret_name = TEXT_NONE;
    if (!by.data || by.length_bytes == 0)
        return 0;
    *ret_name = name_of_tag(by);
    if (!store_tag_name_is_valid(*ret_name))
        return call_refuse(call, ERR_INVALID_FIELD, "by", "expected one tag, e.g. tag.source");
    return 0;
}

int rollout_query_read(struct call *call, struct store_rollout_filter *ret_filter)
{
    store_rollout_filter_init(ret_filter);
    if (text_equals(call_query(call, "state"), "pending"))
        return call_refuse(call, ERR_INVALID_FIELD, "state", "pending rollouts have no row yet: see /v1/pending");
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (call_query(call, rows[i].name).data && read_row(call, &rows[i], (char *)ret_filter + rows[i].offset) < 0)
            return -1;
    return read_revision(call, ret_filter) < 0 ? -1 : query_read_tags(call, ret_filter->tags, &ret_filter->tag_count);
}

/* --- the same of JSON --- */

static int refuse_member(struct call *call, const char *name, const char *expected)
{
    return call_refuse(call, ERR_INVALID_FIELD, name, "expected %s", expected);
}

static int refuse_word(struct call *call, const char *name, struct text word, const char *const *words)
{
    char advice[ADVICE_BYTES];
    names_advise_list(word, words, advice);
    return call_refuse(call, ERR_INVALID_FIELD, name, "there is no such value; %s", advice);
}

static int read_text_member(struct call *call, const struct filter_row *row, const json_t *member, void *value)
{
    struct text text = json_text_of(member);
    int word = row->words ? store_name_index(row->words, text) : 0;
    if (!text.data)
        return refuse_member(call, row->name, row->kind == FILTER_TIME ? "a time as a text" : "a text");
    if (word < 0)
        return refuse_word(call, row->name, text, row->words);
    if (row->kind == FILTER_NAME)
        *(int *)value = word;
    else if (row->kind != FILTER_TIME)
        *(struct text *)value = text;
    else if (!clock_parse_rfc3339(text, value))
        return refuse_member(call, row->name, "a time like 2026-01-31T12:00:00Z");
    return 0;
}

static int read_row_member(struct call *call, const struct filter_row *row, const json_t *member, void *value)
{
    switch (row->kind) {
    case FILTER_COUNT:
        if (!json_whole(member, value) || *(int64_t *)value < 0)
            return refuse_member(call, row->name, "a whole number from 0 on");
        return 0;
    case FILTER_REAL:
        if (!json_is_number(member))
            return refuse_member(call, row->name, "a number");
        *(double *)value = json_number_value(member);
        return 0;
    case FILTER_FLAG:
        if (!json_is_boolean(member))
            return refuse_member(call, row->name, "true or false");
        *(int *)value = json_is_true(member);
        return 0;
    case FILTER_TEXT:
    case FILTER_WORD:
    case FILTER_NAME:
    case FILTER_TIME:
        break;
    }
    return read_text_member(call, row, member, value);
}

static int refuse_name(struct call *call, const char *name)
{
    char advice[ADVICE_BYTES];
    names_advise(text_of(name), rows, sizeof(rows[0]), ARRAY_LENGTH(rows), advice);
    return call_refuse(call, ERR_UNKNOWN_FIELD, name, "there is no field of this name; %s", advice);
}

static int read_named_member(struct call *call, const char *name, const json_t *member,
                             struct store_rollout_filter *filter)
{
    struct store_tag tag = {name_of_tag(text_of(name)), json_text_of(member)};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return read_row_member(call, &rows[i], member, (char *)filter + rows[i].offset);
    if (!tag.name.data)
        return refuse_name(call, name);
    if (!tag.value.data)
        return refuse_member(call, name, "a text");
    return add_tag(call, name, &tag, filter->tags, &filter->tag_count);
}

int rollout_query_read_members(struct call *call, json_t *object, const char *const *own,
                               struct store_rollout_filter *ret_filter)
{
    const char *name;
    json_t *member;
    store_rollout_filter_init(ret_filter);
    if (!json_is_object(object))
        return refuse_member(call, NULL, "an object");
    json_object_foreach (object, name, member) {
        if (store_name_index(own, text_of(name)) >= 0)
            continue;
        if (read_named_member(call, name, member, ret_filter) < 0)
            return -1;
    }
    if (!json_object_get(object, "revision"))
        return 0;
    return take_revision(call, json_object_get(object, "revision_min") || json_object_get(object, "revision_max"),
                         ret_filter);
}

int query_read_descending(struct call *call, bool *descending)
{
    static const char *const words[] = {"asc", "desc", NULL};
    int order = *descending;
    if (call_query_word(call, "order", words, &order) < 0)
        return -1;
    *descending = order == 1;
    return 0;
}

int rollout_query_read_order(struct call *call, struct store_rollout_filter *filter)
{
    static const char *const words[] = {[STORE_BY_CREATED] = "created",
                                        [STORE_BY_REWARD] = "reward",
                                        [STORE_BY_ADVANTAGE] = "advantage",
                                        [STORE_BY_TOKENS] = "tokens",
                                        NULL};
    if (query_read_descending(call, &filter->descending) < 0 ||
        call_query_word(call, "order_by", words, &filter->order_by) < 0)
        return -1;
    if (filter->order_by == STORE_BY_CREATED)
        return 0;
    if (!filter->run.data)
        return call_refuse(call, ERR_MISSING_FIELD, "run", "an order by %s is one within a run and a revision",
                           words[filter->order_by]);
    if (filter->revision_min < 0 || filter->revision_min != filter->revision_max)
        return call_refuse(call, ERR_MISSING_FIELD, "revision", "an order by %s is one within a run and a revision",
                           words[filter->order_by]);
    return 0;
}
