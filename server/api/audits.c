/* POST /v1/audits: the worker part. */
#include "server/api/audits_private.h"

#include "server/api/routes.h"
#include "server/base/blocks.h"
#include "server/base/cleanup.h"
#include "server/reports/audit.h"

void audits_parse(struct call *call)
{
    struct json_input input;

    if (json_input_init(&input, call, NULL) < 0)
        return;
    const json_t *kind = json_object_get(input.root, "kind");
    if (json_is_string(kind) && strcmp(json_string_value(kind), "adversarial") == 0)
        audit_probes_parse(&input);
    else
        audit_answer(&input);
    json_input_finish(&input);
    block_give(TAKE_PTR(call->body)); /* the frames of probes have what is needed of it */
}
