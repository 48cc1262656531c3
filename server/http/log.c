#include "server/http/log_private.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/http/refusals_private.h"

enum { LINES_AT_ONCE = 1000, LINES_A_SECOND = 10, PATH_BYTES_MAX = 256 };

#define LINE_US (US_PER_S / LINES_A_SECOND)

static const struct {
    enum log_level level;
    const char *event;
    const char *left_out;
} kinds[HTTP_LOG_KINDS] = {
    [HTTP_LOG_REFUSED] = {LOG_LEVEL_INFO, "request refused", "lines of refused requests were left out"},
    [HTTP_LOG_FAILED] = {LOG_LEVEL_WARNING, "request failed", "lines of failed requests were left out"},
};

bool log_budget_take(struct log_budget *budget, int64_t now_us)
{
    int64_t passed_us = now_us - budget->at_us;
    budget->at_us = now_us;
    budget->spent_us = budget->spent_us > passed_us ? budget->spent_us - passed_us : 0;
    bool room = budget->spent_us + LINE_US <= LINES_AT_ONCE * LINE_US;
    if (room)
        budget->spent_us += LINE_US;
    else
        budget->left_out++;
    return room;
}

static void say_left_out(void *arg)
{
    struct http_log *log = arg;
    for (size_t i = 0; i < HTTP_LOG_KINDS; i++) {
        if (log->budgets[i].left_out)
            log_event(kinds[i].level, kinds[i].left_out, LOG_INT("count", log->budgets[i].left_out), NULL);
        log->budgets[i].left_out = 0;
    }
}

void http_log_write(struct http_log *log, const struct http_log_line *line)
{
    if (log->refusals)
        refusals_add(log->refusals, line);
    size_t kind = line->status >= 500 ? HTTP_LOG_FAILED : HTTP_LOG_REFUSED;
    int64_t now_us = loop_now_us(log->loop);
    if (!log_budget_take(&log->budgets[kind], now_us)) {
        if (!log->timer.place)
            loop_timer_set(log->loop, &log->timer, now_us + US_PER_S, say_left_out, log);
        return;
    }
    size_t path_bytes = line->path.length_bytes < PATH_BYTES_MAX ? line->path.length_bytes : PATH_BYTES_MAX;
    _cleanup_free_ char *path = line->path.data ? xstrndup(line->path.data, path_bytes) : NULL;
    log_event(kinds[kind].level, kinds[kind].event, "request_id", line->request_id, "method",
              line->method[0] ? line->method : NULL, "path", path && path[0] ? path : NULL,
              LOG_INT("status", line->status), "code", line->code, "field", line->field, "message", line->message,
              NULL);
}

void http_log_finish(struct http_log *log)
{
    loop_timer_clear(log->loop, &log->timer);
    say_left_out(log);
}
