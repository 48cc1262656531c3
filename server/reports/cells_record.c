/* Rows of the record as cells take them. */
#include "server/reports/cells_record_private.h"

static enum cell_group group_state(const struct store_rollout *rollout)
{
    if (rollout->group_rewarded < 0)
        return CELL_GROUP_RUNNING;
    if (rollout->group_rewarded == 0)
        return CELL_GROUP_UNJUDGED;
    return rollout->group_zero_variance ? CELL_GROUP_ZERO_VARIANCE : CELL_GROUP_VARIED;
}

struct cell_rollout cell_of_record(const struct store_rollout *rollout)
{
    static const enum cell_state states[] = {[STORE_ROLLOUT_SCORED] = CELL_SCORED,
                                             [STORE_ROLLOUT_FAILED] = CELL_FAILED,
                                             [STORE_ROLLOUT_CANCELLED] = CELL_CANCELLED};
    struct cell_rollout values;

    cell_rollout_init(&values);
    values.task = rollout->task;
    values.group = text_of(rollout->group_id);
    values.group_state = group_state(rollout);
    values.state = states[rollout->state];
    values.reward = rollout->reward;
    values.tokens = rollout->completion_tokens;
    values.truncated = text_equals(rollout->finish_reason, "length");
    values.straddles = rollout->straddles;
    values.duplicate = rollout->duplicate == STORE_KNOWN_YES;
    values.failure = rollout->failure.code;
    values.engine_us = rollout->engine_us;
    if (rollout->revision_at_end >= 0)
        values.staleness = (double)(rollout->revision_at_end - rollout->policy_revision);
    return values;
}

struct cell_sums cell_sums_of_rollup(const struct store_rollup *rollup)
{
    return (struct cell_sums){.n = rollup->n,
                              .scored = rollup->scored,
                              .failed = rollup->failed,
                              .cancelled = rollup->cancelled,
                              .groups = rollup->groups,
                              .judged_groups = rollup->judged_groups,
                              .zero_variance_groups = rollup->zero_variance_groups,
                              .reward = {.count = (size_t)rollup->judged, .sum = rollup->reward},
                              .reward_min = rollup->reward_min,
                              .reward_max = rollup->reward_max,
                              .judged_tokens = rollup->judged_tokens,
                              .tokens = rollup->tokens,
                              .tokens_max = rollup->tokens_max,
                              .truncated = rollup->truncated,
                              .straddles = rollup->straddles,
                              .duplicates = rollup->duplicates,
                              .decided = rollup->decided,
                              .solved = rollup->solved,
                              .engine_us = rollup->engine_us,
                              .ended = rollup->ended,
                              .staleness = rollup->staleness};
}
