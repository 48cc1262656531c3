/* GET /v1/export: rollouts by a filter, to the last one. */
#include "server/api/page.h"
#include "server/api/routes.h"

#include "server/render/csv.h"
#include "server/render/rollout_list.h"
#include "server/spec/rollout_query.h"

static int query_csv_fields(struct call *call, render_fields *fields)
{
    *fields = csv_fields();
    if (query_fields(call, fields) < 0)
        return -1;
    if (*fields & ~csv_fields())
        return call_refuse(call, ERR_INVALID_FIELD, "fields",
                           "arrays and lists have no column in CSV: ask for application/x-ndjson");
    return 0;
}

void export_rollouts(struct call *call)
{
    static const char *const known[] = {"order", "order_by", "limit", "cursor", "fields", "arrays", NULL};
    struct rollout_list_spec spec = {.form = call->accept_csv ? ROLLOUT_LIST_CSV : ROLLOUT_LIST_LINES,
                                     .fields = RENDER_ALL | RENDER_TASK,
                                     .limit = INT64_MAX};
    int arrays = JSON_ARRAYS_PLAIN;
    if (rollout_query_check(call, known) < 0 || rollout_query_read(call, &spec.filter) < 0 ||
        rollout_query_read_order(call, &spec.filter) < 0 ||
        call_query_int(call, "limit", 1, INT64_MAX, &spec.limit) < 0 || call_query_arrays(call, &arrays) < 0)
        return;
    int refused = call->accept_csv ? query_csv_fields(call, &spec.fields) : query_fields(call, &spec.fields);
    spec.cursor = call_query(call, "cursor");
    if (refused < 0 || query_check_cursor(call, store_rollouts_cursor_fits(&spec.filter, spec.cursor)) < 0)
        return;
    spec.arrays = call->accept_csv ? JSON_ARRAYS_NONE : (enum json_arrays)arrays;
    if (call->reader)
        rollout_list_answer(call, &spec);
    else
        call_refuse_unreadable(call);
}
