/* A job before it is asked and after. */
#include "server/verify/pool.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/settings/settings.h"
#include "server/verify/externals.h"
#include "server/verify/spec.h"
#include "verifiers/code/limits.h"

#define MARGIN_US (20 * US_PER_S) /* a slot is made, a program is compiled, a busy machine */

/* The longest that the verifier may run its programs: it ends them itself, and says so in its verdict. */
static int64_t programs_us(const struct verifier_spec *spec)
{
    if (spec->external)
        return spec->external->settings->timeout_us;
    return code_limits_total_us(json_object_get(spec->options, "limits"));
}

void verify_job_ask(struct verify_job *job, const struct verifier_list *list, int64_t text_timeout_us)
{
    job->list = list;
    job->verifier_count = list->count;
    job->programs = job->asks = job->elsewhere = 0;
    job->parts[WORKER_TEXT].timeout_us = job->parts[VERIFY_ANSWERS].timeout_us = text_timeout_us;
    job->parts[WORKER_CODE].timeout_us = MARGIN_US;
    for (size_t i = 0; i < list->count; i++) {
        if (list->specs[i].of_group && !job->of_group) {
            job->elsewhere |= UINT64_C(1) << i;
            continue;
        }
        if (verifier_spec_asks(&list->specs[i]))
            job->asks |= UINT64_C(1) << i;
        if (!verifier_spec_runs_programs(&list->specs[i]))
            continue;
        job->programs |= UINT64_C(1) << i;
        job->parts[WORKER_CODE].timeout_us += programs_us(&list->specs[i]);
    }
}

void verify_job_fail(struct verify_job *job, const char *code, const char *message)
{
    for (size_t part = 0; part < VERIFY_PARTS; part++) {
        job->parts[part].failure_code = code;
        job->parts[part].failure_message = message;
    }
}

void verify_job_finish(struct verify_job *job)
{
    for (size_t part = 0; part < VERIFY_PARTS; part++)
        free(TAKE_PTR(job->parts[part].reply));
    free(TAKE_PTR(job->answers_frame));
}
