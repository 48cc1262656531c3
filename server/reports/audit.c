#include "server/reports/audit_private.h"

#include "server/base/cleanup.h"

#include <math.h>

static void finish(struct audit *audit)
{
    for (size_t r = 0; r < ARRAY_LENGTH(audit->rows); r++) {
        free(audit->rows[r].rewards);
        buffer_finish(&audit->rows[r].promoted);
    }
    for (size_t i = 0; i < audit->name_count; i++)
        free(audit->names[i]);
    free(audit->names);
    free(audit->truths);
    free(audit->task_of);
    buffer_finish(&audit->divergence);
    json_decref(audit->numbers);
    json_decref(audit->tasks);
}

int audit_go_on(struct audit *audit)
{
    return audit->call->abandoned ? -1 : 0;
}

static int audit_request(struct audit *audit)
{
    struct audit_part part = {0};
    int result = audit_read_groups(audit, &part);

    if (result == 0)
        result = audit_compute(audit, &part);
    audit_part_finish(&part);
    return result;
}

void audit_answer(struct json_input *input)
{
    struct audit audit = {
        .call = input->call, .input = input, .numbers = json_object(), .tasks = json_object(), .recorded_weight = NAN};

    if (audit_read(&audit) == 0 && (audit.fields.run.data ? audit_record(&audit) : audit_request(&audit)) == 0)
        audit_write(&audit);
    finish(&audit);
}
