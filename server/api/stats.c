/* GET /v1/stats, /v1/tasks/history, /v1/flips. */
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

static void answer(struct call *call, const char *const *known,
                   void (*answer_page)(struct call *call, int64_t limit, struct text cursor))
{
    struct page page;

    if (call_check_query(call, known) < 0 || query_page(call, &page) < 0)
        return;
    if (call->reader)
        answer_page(call, page.limit, page.cursor);
    else
        call_refuse_unreadable(call);
}

void get_task_history(struct call *call)
{
    static const char *const known[] = {"run",         "task",     "verifier", "threshold", "purpose",
                                        "incarnation", "tag.NAME", "limit",    "cursor",    NULL};
    answer(call, known, task_history_answer);
}

void get_flips(struct call *call)
{
    static const char *const known[] = {"run",         "from",     "to", "verifier", "threshold", "rate", "purpose",
                                        "incarnation", "tag.NAME", "by", "limit",    "cursor",    NULL};
    answer(call, known, flips_answer);
}
