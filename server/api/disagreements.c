/* GET /v1/disagreements: the parameters. */
#include "server/reports/disagreements.h"

#include "server/api/routes.h"
#include "server/spec/rollout_query.h"

static int query_names(struct call *call, struct disagreements_query *query)
{
    const struct {
        const char *name;
        struct text *value;
    } needed[] = {{"run", &query->filter.run}, {"a", &query->a}, {"b", &query->b}};

    query->a = call_query(call, "a");
    query->b = call_query(call, "b");
    query->a_from = call_query(call, "a_from");
    query->b_from = call_query(call, "b_from");
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].value->length_bytes)
            return call_refuse(call, ERR_MISSING_FIELD, needed[i].name, "a disagreement is of a run, between a and b");
    bool same_verdicts = query->a_from.data && query->b_from.data ? text_same(query->a_from, query->b_from)
                                                                  : !query->a_from.data && !query->b_from.data;
    return text_same(query->a, query->b) && same_verdicts ? call_refuse(call, ERR_INVALID_FIELD, "b", "it is a itself")
                                                          : 0;
}

void get_disagreements(struct call *call)
{
    static const char *const own[] = {"a", "b", "a_from", "b_from", NULL};
    struct disagreements_query query;

    if (rollout_query_check(call, own) < 0 || rollout_query_read(call, &query.filter) < 0 ||
        query_names(call, &query) < 0)
        return;
    if (query.filter.purpose < 0)
        query.filter.purpose = STORE_TRAIN;
    disagreements_answer(call, &query);
}
