#include "server/batches/weight_hold.h"

void hold_begin(struct weight_hold *hold, enum hold_mode mode, int64_t deadline_us)
{
    *hold = (struct weight_hold){.mode = mode, .phase = HOLD_STOPPING, .deadline_us = deadline_us};
}

void hold_restore(struct weight_hold *hold, enum hold_mode mode, int64_t deadline_us)
{
    *hold = (struct weight_hold){.mode = mode, .phase = HOLD_QUIET, .deadline_us = deadline_us};
}

enum hold_allows hold_allows(const struct weight_hold *hold, int64_t now_us)
{
    if (hold->phase == HOLD_ENDED || now_us >= hold->deadline_us)
        return ALLOWS_ALL;
    return hold->mode == HOLD_WAIT && hold->phase == HOLD_STOPPING ? ALLOWS_BEGUN_GROUPS : ALLOWS_NOTHING;
}

bool hold_look(struct weight_hold *hold, size_t in_flight, size_t owed)
{
    static const struct {
        bool drains;
        bool finishes_groups;
    } modes[] = {[HOLD_WAIT] = {true, true}, [HOLD_ABORT] = {true, false}, [HOLD_STRADDLE] = {false, false}};
    if (hold->phase != HOLD_STOPPING || (modes[hold->mode].drains && in_flight > 0) ||
        (modes[hold->mode].finishes_groups && owed > 0))
        return false;
    hold->phase = HOLD_QUIET;
    return true;
}

bool hold_expire(struct weight_hold *hold, int64_t now_us)
{
    if (hold->phase == HOLD_ENDED || now_us < hold->deadline_us)
        return false;
    hold->phase = HOLD_ENDED;
    return true;
}

void hold_end(struct weight_hold *hold)
{
    hold->phase = HOLD_ENDED;
}

bool hold_mixes(const struct weight_hold *hold)
{
    return hold->mode == HOLD_STRADDLE && hold->phase != HOLD_ENDED;
}

bool hold_may_commit(const struct weight_hold *hold)
{
    return hold->phase != HOLD_STOPPING;
}
