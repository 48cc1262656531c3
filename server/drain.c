/* The end: no new work, running batches get drain_timeout, whoever still waits then is told the id; the rest is on
 * disk. */
#include "server/api/server.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/batches/live.h"
#include "server/batches/observer.h"
#include "server/http/http.h"
#include "server/settings/settings.h"

#define GOODBYE_US (2 * US_PER_S) /* for replies that are on their way out */
#define LOOK_AGAIN_US (20 * US_PER_MS)

static bool anybody_waits(struct server *server)
{
    for (const struct live_batch *live = server->batches->first; live; live = live->next)
        if (live->observers)
            return true;
    return false;
}

/* Again and again: a body that was on its way may have become one more who waits. */
static void say_goodbye(struct server *server)
{
    for (struct live_batch *live = server->batches->first, *next; live; live = next) {
        next = live->next;
        live_tell_service_ends(live);
    }
    http_release_waiting(server->http);
}

static void look_again(void *arg)
{
    struct server *server = arg;
    int64_t now_us = clock_monotonic_us();
    bool idle = server->batches->count == 0 && !anybody_waits(server);

    if (!http_is_leaving(server->http) && (idle || now_us >= server->drain_until_us)) {
        http_leave(server->http);
        server->leave_at_us = now_us + GOODBYE_US;
    }
    if (http_is_leaving(server->http))
        say_goodbye(server);
    /* Suspended connections must be gone before the library may be stopped. */
    if (http_is_leaving(server->http) && http_suspended(server->http) == 0 &&
        (http_active(server->http) == 0 || now_us >= server->leave_at_us)) {
        loop_stop(server->loop);
        return;
    }
    loop_timer_set(server->loop, &server->drain_timer, now_us + LOOK_AGAIN_US, look_again, server);
}

void server_drain(struct server *server)
{
    if (http_is_draining(server->http)) {
        log_event(LOG_LEVEL_WARNING, "stopping at once", NULL);
        server->drain_until_us = clock_monotonic_us();
        return;
    }
    log_event(LOG_LEVEL_INFO, "draining", NULL);
    http_drain(server->http);
    server->drain_until_us = clock_monotonic_us() + server->settings->drain_timeout_us;
    look_again(server);
}
