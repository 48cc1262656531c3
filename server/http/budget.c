#include "server/http/budget_private.h"

void reply_budget_init(struct reply_budget *budget, int64_t limit_bytes)
{
    *budget = (struct reply_budget){.limit_bytes = limit_bytes};
    for (size_t i = 0; i < REPLY_QUEUES; i++)
        budget->last[i] = &budget->first[i];
}

/* One alone always fits. */
static bool has_room(const struct reply_budget *budget, size_t bytes)
{
    int64_t held_bytes = budget->held_bytes;
    return held_bytes == 0 || held_bytes + (int64_t)bytes <= budget->limit_bytes;
}

bool reply_budget_take(struct reply_budget *budget, size_t bytes)
{
    if (budget->first[REPLY_BEGINS] || !has_room(budget, bytes))
        return false;
    reply_budget_add(budget, bytes);
    return true;
}

bool reply_budget_take_whole(struct reply_budget *budget, size_t bytes, bool *ret_oversize)
{
    *ret_oversize = (int64_t)bytes > budget->limit_bytes;
    if (*ret_oversize ? budget->oversize : !has_room(budget, bytes))
        return false;
    budget->oversize |= *ret_oversize;
    if (!*ret_oversize)
        reply_budget_add(budget, bytes);
    return true;
}

void reply_budget_add(struct reply_budget *budget, size_t bytes)
{
    budget->held_bytes += (int64_t)bytes;
}

void reply_budget_give(struct reply_budget *budget, size_t bytes)
{
    budget->held_bytes -= (int64_t)bytes;
}

void reply_budget_give_oversize(struct reply_budget *budget)
{
    budget->oversize = false;
}

bool reply_budget_is_over(const struct reply_budget *budget)
{
    return budget->held_bytes > budget->limit_bytes;
}

void reply_budget_wait(struct reply_budget *budget, struct reply_wait *wait)
{
    size_t queue = wait->bytes == 0 ? REPLY_GOES_ON : REPLY_BEGINS;
    wait->next = NULL;
    wait->link = budget->last[queue];
    *budget->last[queue] = wait;
    budget->last[queue] = &wait->next;
}

void reply_budget_leave(struct reply_budget *budget, struct reply_wait *wait)
{
    size_t queue = wait->bytes == 0 ? REPLY_GOES_ON : REPLY_BEGINS;
    if (!wait->link)
        return;
    *wait->link = wait->next;
    if (wait->next)
        wait->next->link = wait->link;
    else
        budget->last[queue] = wait->link;
    wait->link = NULL;
    wait->next = NULL;
}

static struct reply_wait *next_to_serve(const struct reply_budget *budget)
{
    return budget->first[REPLY_GOES_ON] ? budget->first[REPLY_GOES_ON] : budget->first[REPLY_BEGINS];
}

void reply_budget_serve(struct reply_budget *budget)
{
    struct reply_wait *wait;
    while ((wait = next_to_serve(budget)) && has_room(budget, wait->bytes)) {
        reply_budget_leave(budget, wait);
        reply_budget_add(budget, wait->bytes);
        wait->room(wait->arg);
    }
}
