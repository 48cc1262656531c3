/* http_log: one line for each request that was refused or failed. Loop thread.
 *
 * A flood of them does not fill a disk: a burst of lines, then a rate per second; lines left out are counted in a line
 * of their own. Failures (5xx) have lines of their own beside refusals. */
#ifndef SERVER_HTTP_LOG_PRIVATE_H
#define SERVER_HTTP_LOG_PRIVATE_H

#include "server/base/text.h"
#include "server/runtime/loop.h"

struct log_budget {
    int64_t spent_us; /* of time: a line costs what refills it; at most what the burst costs */
    int64_t at_us;
    uint64_t left_out;
};

/* Whether one more line may be written; counts it as left out where not. */
bool log_budget_take(struct log_budget *budget, int64_t now_us);

enum { HTTP_LOG_REFUSED, HTTP_LOG_FAILED, HTTP_LOG_KINDS };

struct refusals;

struct http_log {
    struct refusals *refusals; /* keeps the last ones; not owned; NULL: none are kept */
    struct log_budget budgets[HTTP_LOG_KINDS];
    struct loop *loop;
    struct loop_timer timer; /* for the count of lines left out */
};

struct http_log_line {
    const char *request_id;
    const char *method; /* "" where the request line was not read */
    struct text path;   /* of the URL, without query */
    int status;
    const char *code; /* these three may be NULL */
    const char *field;
    const char *message;
};

void http_log_write(struct http_log *log, const struct http_log_line *line);
void http_log_finish(struct http_log *log);

#endif
