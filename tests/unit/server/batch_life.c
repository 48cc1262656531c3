#include "tests/unit/server/batch_life.h"

void end_life(struct life *life)
{
    actions_finish(&life->actions);
    batch_finish(&life->batch);
}

void happen(struct life *life, enum batch_event_kind kind, uint32_t index)
{
    life->actions.count = 0;
    struct batch_event event = {.kind = kind, .index = index, .sent = kind == EVENT_DISPATCHED};
    batch_step(&life->batch, &event, life->now_us, &life->actions);
}

bool acted(const struct life *life, enum action_kind kind, uint32_t index)
{
    for (size_t i = 0; i < life->actions.count; i++)
        if (life->actions.items[i].kind == kind && life->actions.items[i].index == index)
            return true;
    return false;
}

void score(struct life *life, uint32_t index)
{
    happen(life, EVENT_DISPATCHED, index);
    happen(life, EVENT_SAMPLED, index);
    assert_true(acted(life, ACTION_VERIFY, index));
    happen(life, EVENT_VERIFIED, index);
    assert_true(acted(life, ACTION_STORE, index));
    happen(life, EVENT_STORED, index);
}
