/* GET /v1/runs/{run}/changes: the parameters. */
#include "server/reports/changes.h"

#include "server/api/page.h"
#include "server/api/routes.h"

void list_changes(struct call *call)
{
    static const char *const known[] = {"purpose", "limit", "cursor", NULL};
    struct page page;
    struct text purpose = call_query(call, "purpose");
    struct changes_query query = {.run = call->args[0]};
    if (call_check_query(call, known) < 0 || query_page(call, &page) < 0)
        return;
    query.purpose = purpose.data ? store_name_index(store_purpose_names, purpose) : STORE_TRAIN;
    if (query.purpose < 0) {
        call_refuse(call, ERR_INVALID_FIELD, "purpose", "expected train or eval");
        return;
    }
    query.cursor = page.cursor;
    query.limit = (size_t)page.limit;
    changes_answer(call, &query);
}
