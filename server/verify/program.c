#include "server/verify/program.h"

#include <stdio.h>

#include "server/base/cleanup.h"
#include "verifiers/registry.h"

struct verifier_list *program_list_create(json_t *options, int64_t total_ms)
{
    struct verifier_list *list = xcalloc(1, sizeof *list + sizeof list->specs[0]);
    struct verifier_spec *spec = &list->specs[0];

    list->references = 1;
    list->count = 1;
    spec->verifier = &verifier_program;
    spec->version = verifier_program.version;
    spec->id = xstrdup(verifier_program.name);
    spec->options_json = json_dumps(options, JSON_COMPACT);
    json_decref(options);
    if (!spec->options_json) {
        verifier_list_unref(list);
        return NULL;
    }
    spec->options = json_pack("{s:{s:I}}", "limits", "total_ms", (json_int_t)total_ms);
    return list;
}

void program_result_read(const struct verify_job *job, struct program_result *ret_result)
{
    struct verdict_set set;

    verdict_set_read(job, &set);
    const struct verdict_record *record = &set.verdicts[0];
    *ret_result = (struct program_result){.detail = NULL};
    snprintf(ret_result->failure_code, sizeof ret_result->failure_code, "%s", record->failure_code);
    snprintf(ret_result->failure_message, sizeof ret_result->failure_message, "%s", record->failure_message);
    if (record->kind != VERDICT_UNSCORED && record->detail_json)
        ret_result->detail = json_loads(record->detail_json, JSON_ALLOW_NUL, NULL);
    verdict_set_finish(&set);
}

void program_result_finish(struct program_result *result)
{
    json_decref(TAKE_PTR(result->detail));
}
