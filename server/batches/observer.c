#include "server/batches/observer.h"

#include "server/batches/live.h"

void live_observe(struct live_batch *live, struct live_observer *observer, const struct live_observer_calls *calls)
{
    *observer = (struct live_observer){.calls = calls, .live = live, .next = live->observers};
    if (live->observers)
        live->observers->previous = observer;
    live->observers = observer;
}

void live_unobserve(struct live_observer *observer)
{
    if (observer->previous)
        observer->previous->next = observer->next;
    else
        observer->live->observers = observer->next;
    if (observer->next)
        observer->next->previous = observer->previous;
    live_look(observer->live);
}

void live_tell_group_closed(const struct live_batch *live, uint32_t group)
{
    for (struct live_observer *observer = live->observers; observer; observer = observer->next)
        observer->calls->group_closed(observer, group);
}

void live_tell_held_up(const struct live_batch *live, enum live_trouble trouble)
{
    for (struct live_observer *observer = live->observers, *next; observer; observer = next) {
        next = observer->next;
        observer->calls->held_up(observer, trouble);
    }
}

void live_tell_not_stored(const struct live_batch *live, enum store_status status)
{
    live_tell_held_up(live, status == STORE_DISK_FULL ? LIVE_DISK_FULL : LIVE_NOT_WRITTEN);
}

void live_tell_ended(struct live_batch *live)
{
    for (struct live_observer *observer; (observer = live->observers);) {
        live_unobserve(observer);
        observer->calls->ended(observer);
    }
}

void live_tell_service_ends(struct live_batch *live)
{
    for (struct live_observer *observer; (observer = live->observers);) {
        live_unobserve(observer);
        observer->calls->service_ends(observer);
    }
}
