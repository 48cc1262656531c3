/* GET /v1/disagreements: what is asked. */
#include "server/reports/disagreements.h"

#include "server/api/routes.h"
#include "server/http/call.h"
#include "server/store/words.h"

static int query_purpose(struct call *call, int *ret_purpose)
{
    struct text text = call_query(call, "purpose");

    *ret_purpose = text.data ? store_name_index(store_purpose_names, text) : STORE_TRAIN;
    return *ret_purpose >= 0 ? 0 : call_refuse(call, ERR_INVALID_FIELD, "purpose", "expected train or eval");
}

static int query_revisions(struct call *call, struct store_rollout_filter *filter)
{
    int64_t revision = -1;

    if (call_query_int(call, "revision", 0, INT64_MAX, &revision) < 0 ||
        call_query_int(call, "revision_min", 0, INT64_MAX, &filter->revision_min) < 0 ||
        call_query_int(call, "revision_max", 0, INT64_MAX, &filter->revision_max) < 0)
        return -1;
    if (revision < 0)
        return 0;
    if (filter->revision_min >= 0 || filter->revision_max >= 0)
        return call_refuse(call, ERR_INVALID_FIELD, "revision",
                           "give either revision, or revision_min and revision_max");
    filter->revision_min = filter->revision_max = revision;
    return 0;
}

static int query_names(struct call *call, struct disagreements_query *query)
{
    const struct {
        const char *name;
        struct text *value;
    } needed[] = {{"run", &query->filter.run}, {"a", &query->a}, {"b", &query->b}};

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        *needed[i].value = call_query(call, needed[i].name);
        if (!needed[i].value->length_bytes)
            return call_refuse(call, ERR_MISSING_FIELD, needed[i].name, "a disagreement is of a run, between a and b");
    }
    query->filter.task = call_query(call, "task");
    query->filter.batch = call_query(call, "batch");
    return text_same(query->a, query->b) ? call_refuse(call, ERR_INVALID_FIELD, "b", "it is a itself") : 0;
}

void get_disagreements(struct call *call)
{
    static const char *const known[] = {
        "run", "a", "b", "batch", "task", "incarnation", "revision", "revision_min", "revision_max", "purpose", NULL};
    struct disagreements_query query;

    store_rollout_filter_init(&query.filter);
    if (call_check_query(call, known) < 0 || query_names(call, &query) < 0 ||
        query_purpose(call, &query.filter.purpose) < 0 || query_revisions(call, &query.filter) < 0 ||
        call_query_int(call, "incarnation", 0, INT64_MAX, &query.filter.incarnation) < 0)
        return;
    disagreements_answer(call, &query);
}
