/* Counts of the outcomes of programs. */
#include "server/verify/spec.h"

#include "server/runtime/metrics.h"

void verdict_set_count(const struct verdict_set *set, const struct verifier_list *list)
{
    for (size_t i = 0; i < set->count; i++)
        if (verifier_spec_runs_programs(&list->specs[i]))
            metric_add_named(METRIC_CODE_VERDICTS, set->verdicts[i].reason, 1);
}
