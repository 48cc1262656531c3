/* GET /v1/stats. */
#include "server/reports/stats.h"
#include "server/api/page.h"
#include "server/api/routes.h"
#include "server/spec/rollout_query.h"

void get_stats(struct call *call)
{
    static const char *const own[] = {"by", "threshold", "limit", "cursor", NULL};
    struct page page;

    if (rollout_query_check(call, own) < 0 || query_page(call, &page) < 0)
        return;
    if (call->reader)
        stats_answer(call, page.limit, page.cursor);
    else
        call_refuse_unreadable(call);
}
