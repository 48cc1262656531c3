/* POST /v1/audits: the worker part. */
#include "server/api/routes.h"

#include "server/input/input.h"
#include "server/reports/audit.h"

void audits_parse(struct call *call)
{
    static const char *const no_parameters[] = {NULL};
    struct json_input input;

    if (call_check_query(call, no_parameters) < 0 || json_input_init(&input, call, NULL) < 0)
        return;
    audit_answer(&input);
    json_input_finish(&input);
}
