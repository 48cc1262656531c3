/* refusals: the last requests that were refused or failed, with the reason. Loop thread. In memory: a flood of them costs
 * no disk; the log has the older ones. */
#ifndef SERVER_HTTP_REFUSALS_PRIVATE_H
#define SERVER_HTTP_REFUSALS_PRIVATE_H

#include "server/base/json_write.h"
#include "server/http/call.h"
#include "server/http/log_private.h"

#define REFUSALS_KEPT 1000

struct refusal {
    int64_t at_us;
    int status;
    const char *code; /* static; NULL: none */
    char request_id[REQUEST_ID_BYTES];
    char method[16];
    char path[160];
    char field[96];
    char message[320];
};

struct refusals {
    struct refusal *kept; /* a ring; NULL: there was none yet */
    size_t total;         /* since the start */
};

void refusals_add(struct refusals *refusals, const struct http_log_line *line);
/* Members of an object, newest first. request_id TEXT_NONE: all. */
void refusals_write(const struct refusals *refusals, struct text request_id, int64_t limit, struct json_write *json);
void refusals_finish(struct refusals *refusals);

#endif
