/* GET /v1/compare: the parameters. */
#include "server/reports/compare.h"

#include "server/api/routes.h"
#include "server/spec/rollout_query.h"
#include "server/store/words.h"

void get_compare(struct call *call)
{
    static const char *const known[] = {"a", "b", "budget", "ignore", "tag.NAME", "by", NULL};
    static const char *const sides[] = {"a", "b"};
    struct compare_query query = {.ignore = call_query(call, "ignore")};
    struct text budget = call_query(call, "budget");
    if (call_check_query(call, known) < 0 || query_read_tags(call, query.tags, &query.tag_count) < 0 ||
        query_read_split(call, &query.split) < 0)
        return;
    for (size_t i = 0; i < 2; i++) {
        query.runs[i] = call_query(call, sides[i]);
        if (!query.runs[i].length_bytes) {
            call_refuse(call, ERR_MISSING_FIELD, sides[i], "a comparison is of two runs, a and b");
            return;
        }
    }
    int by = budget.data ? store_name_index(compare_budget_names, budget) : COMPARE_TOKENS;
    if (by < 0) {
        call_refuse(call, ERR_INVALID_FIELD, "budget", "expected completion_tokens, rollouts or revisions");
        return;
    }
    query.budget = (enum compare_budget)by;
    compare_answer(call, &query);
}
