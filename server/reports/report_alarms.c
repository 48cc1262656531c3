/* Alarms of a report: those of the run's newest revisions, also if the report is of older ones. */
#include "server/reports/report_private.h"
#include "server/reports/report_text_private.h"

#include "server/settings/settings.h"

#include <inttypes.h>

int report_find_alarms(struct report *report)
{
    struct alarm_limits limits;

    alarm_limits_init(&limits, report->call->settings);
    if (alarms_find(report->call->reader, report->run, &limits, report->alarms) != STORE_OK)
        return call_refuse_unreadable(report->call);
    for (size_t kind = 0; kind < ALARM_KINDS; kind++)
        report->alarm_count += report->alarms[kind].state == ALARM_RAISED;
    return 0;
}

static const char *const said[ALARM_KINDS] = {
    [ALARM_DIVERGENCE] = "the reward rose, and the share of solved rollouts fell by this",
    [ALARM_ZERO_VARIANCE] = "of the judged groups have equal rewards",
    [ALARM_TRUNCATED] = "of the judged rollouts ended at their largest length",
    [ALARM_FAILED] = "of the rollouts failed",
    [ALARM_LOGPROB_GAP] = "between the log-probabilities of an engine and the trainer's old ones",
    [ALARM_PRECISION] = "of the labels behind a verifier's positive scores say that it is right",
    [ALARM_RECALL] = "of the completions that labels call right have a positive score of a verifier"};

static void write_alarm(const struct report *report, enum alarm_kind kind, const struct report_alarm_form *form,
                        struct buffer *out)
{
    const struct alarm_finding *alarm = &report->alarms[kind];
    char evidence[ALARM_EVIDENCE_BYTES];
    char value[REPORT_NUMBER_BYTES];

    report_number(alarm->value, value);
    buffer_append_format(out, "%s%s%s %s (", form->before, value, form->behind, said[kind]);
    form->code(out, text_of(alarm_names[kind]));
    buffer_append_string(out, "), ");
    if (alarm->from_revision != alarm->revision)
        buffer_append_format(out, "revisions %" PRId64 " to %" PRId64, alarm->from_revision, alarm->revision);
    else
        buffer_append_format(out, "revision %" PRId64, alarm->revision);
    if (alarm->engine[0]) {
        buffer_append_string(out, ", engine ");
        form->text(out, text_of(alarm->engine));
    }
    if (alarm->verifier[0]) {
        buffer_append_string(out, ", verifier ");
        form->text(out, text_of(alarm->verifier));
    }
    alarm_say_evidence(kind, alarm, report->run, evidence);
    buffer_append_string(out, ": ");
    form->code(out, text_of(evidence));
    buffer_append_string(out, form->end);
}

void report_write_alarms(const struct report *report, const struct report_alarm_form *form, struct buffer *out)
{
    for (size_t kind = 0; kind < ALARM_KINDS; kind++)
        if (report->alarms[kind].state == ALARM_RAISED)
            write_alarm(report, (enum alarm_kind)kind, form, out);
}
