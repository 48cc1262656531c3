#include "server/api/alarms.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/reports/alarms.h"
#include "server/runtime/metrics.h"
#include "server/runtime/workers.h"

#include <stdio.h>
#include <string.h>

#include <uthash.h>

/* A run that is looked at, or has an alarm. */
struct watched_run {
    struct job job; /* first */
    struct alarms *alarms;
    char *name;
    bool looking; /* a worker has it */
    bool again;   /* another batch has ended meanwhile */
    bool gone;    /* deleted meanwhile */
    enum store_status status;
    struct alarm_finding found[ALARM_KINDS]; /* by the worker */
    struct alarm_finding raised[ALARM_KINDS];
    int64_t since_us[ALARM_KINDS]; /* UTC; 0: it is not raised */
    UT_hash_handle hh;
};

struct alarms {
    struct job begin;           /* first */
    struct alarm_recent recent; /* found by it */
    struct workers *workers;
    struct alarm_limits limits;
    struct watched_run *runs;
};

struct alarms *alarms_create(struct workers *workers, const struct settings *settings)
{
    struct alarms *alarms = xcalloc(1, sizeof(*alarms));
    alarms->workers = workers;
    alarm_limits_init(&alarms->limits, settings);
    return alarms;
}

static void drop(struct watched_run *run)
{
    HASH_DEL(run->alarms->runs, run);
    free(run->name);
    free(run);
}

void alarms_destroy(struct alarms *alarms)
{
    struct watched_run *run;
    struct watched_run *next;
    if (!alarms)
        return;
    HASH_ITER(hh, alarms->runs, run, next)
    {
        drop(run);
    }
    alarm_recent_finish(&alarms->recent);
    free(alarms);
}

/* --- findings ---------------------------------------------------------------------------------------------------- */

static void say(const struct watched_run *run, enum alarm_kind kind, const struct alarm_finding *finding, bool raised)
{
    char evidence[ALARM_EVIDENCE_BYTES];
    char value[32];
    char threshold[32];
    alarm_say_evidence(kind, finding, text_of(run->name), evidence);
    snprintf(value, sizeof(value), "%.4g", finding->value);
    snprintf(threshold, sizeof(threshold), "%.4g", finding->threshold);
    log_event(raised ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, raised ? "alarm" : "alarm ended", "run", run->name, "alarm",
              alarm_names[kind], LOG_INT("revision", finding->revision), "value", value, "threshold", threshold,
              "engine", finding->engine[0] ? finding->engine : NULL, "verifier",
              finding->verifier[0] ? finding->verifier : NULL, "evidence", evidence, NULL);
}

/* An unknown value leaves an alarm unchanged. */
static void take_finding(struct watched_run *run, enum alarm_kind kind)
{
    const struct alarm_finding *finding = &run->found[kind];
    bool was_raised = run->since_us[kind] != 0;
    bool raised = finding->state == ALARM_RAISED;
    if (finding->state == ALARM_UNKNOWN)
        return;
    if (raised)
        run->raised[kind] = *finding;
    if (raised == was_raised)
        return;
    run->since_us[kind] = raised ? clock_utc_us() : 0;
    say(run, kind, finding, raised);
}

static bool has_alarm(const struct watched_run *run)
{
    for (size_t kind = 0; kind < ALARM_KINDS; kind++)
        if (run->since_us[kind])
            return true;
    return false;
}

static void look(struct watched_run *run);

static void looked(struct job *job)
{
    struct watched_run *run = (struct watched_run *)job;
    run->looking = false;
    for (size_t kind = 0; kind < ALARM_KINDS && run->status == STORE_OK && !run->gone; kind++)
        take_finding(run, (enum alarm_kind)kind);
    if (run->again && !run->gone)
        look(run);
    else if (run->gone || !has_alarm(run))
        drop(run);
}

/* Worker. */
static void run_job(struct job *job, struct store_reader *reader)
{
    struct watched_run *run = (struct watched_run *)job;
    run->status =
        reader ? alarms_find(reader, text_of(run->name), &run->alarms->limits, run->found) : STORE_UNAVAILABLE;
}

/* A full lane delays the look by one batch at worst. */
static void look(struct watched_run *run)
{
    run->again = false;
    run->job.lane = LANE_REPORT;
    run->job.run = run_job;
    run->job.done = looked;
    run->looking = workers_submit(run->alarms->workers, &run->job);
    if (!run->looking && !has_alarm(run))
        drop(run);
}

/* --- replies ------------------------------------------------------------------------------------------------------ */

void alarms_batch_ended(struct alarms *alarms, const char *name)
{
    struct watched_run *run;
    HASH_FIND_STR(alarms->runs, name, run);
    if (!run) {
        run = xcalloc(1, sizeof(*run));
        run->alarms = alarms;
        run->name = xstrdup(name);
        HASH_ADD_KEYPTR(hh, alarms->runs, run->name, strlen(run->name), run);
    }
    if (run->looking)
        run->again = true;
    else
        look(run);
}

/* Worker. */
static void find_recent(struct job *job, struct store_reader *reader)
{
    struct alarms *alarms = (struct alarms *)job;
    if (reader)
        (void)alarms_find_recent(reader, clock_utc_us() - ALARM_RECENT_US, &alarms->recent);
}

static void found_recent(struct job *job)
{
    struct alarms *alarms = (struct alarms *)job;
    for (size_t i = 0; i < alarms->recent.count; i++)
        alarms_batch_ended(alarms, alarms->recent.names[i]);
    alarm_recent_finish(&alarms->recent);
}

/* Without a place in the lane each run is checked at the end of its next batch. */
void alarms_begin(struct alarms *alarms)
{
    alarms->begin.lane = LANE_REPORT;
    alarms->begin.run = find_recent;
    alarms->begin.done = found_recent;
    (void)workers_submit(alarms->workers, &alarms->begin);
}

void alarms_forget(struct alarms *alarms, const char *name)
{
    struct watched_run *run;
    HASH_FIND_STR(alarms->runs, name, run);
    if (!run)
        return;
    memset(run->since_us, 0, sizeof(run->since_us));
    run->gone = run->looking;
    if (!run->looking)
        drop(run);
}

static void write_alarm(const struct watched_run *run, enum alarm_kind kind, struct json_write *json)
{
    const struct alarm_finding *finding = &run->raised[kind];
    char evidence[ALARM_EVIDENCE_BYTES];
    alarm_say_evidence(kind, finding, text_of(run->name), evidence);
    json_object_begin(json);
    json_put_string(json, "run", run->name);
    json_put_string(json, "alarm", alarm_names[kind]);
    json_put_int_or_null(json, "from_revision", finding->from_revision);
    json_put_int_or_null(json, "revision", finding->revision);
    json_put_double(json, "value", finding->value);
    json_put_double(json, "threshold", finding->threshold);
    json_put_string(json, "engine", finding->engine[0] ? finding->engine : NULL);
    json_put_string(json, "verifier", finding->verifier[0] ? finding->verifier : NULL);
    json_put_time(json, "since", run->since_us[kind]);
    json_put_string(json, "evidence", evidence);
    json_object_end(json);
}

void alarms_write(const struct alarms *alarms, struct text name, struct json_write *json)
{
    json_key(json, "alarms");
    json_array_begin(json);
    for (const struct watched_run *run = alarms->runs; run; run = run->hh.next)
        for (size_t kind = 0; kind < ALARM_KINDS; kind++)
            if (run->since_us[kind] && (!name.data || text_equals(name, run->name)))
                write_alarm(run, (enum alarm_kind)kind, json);
    json_array_end(json);
}

void alarms_set_gauges(const struct alarms *alarms)
{
    int64_t counts[ALARM_KINDS] = {0};
    for (const struct watched_run *run = alarms->runs; run; run = run->hh.next)
        for (size_t kind = 0; kind < ALARM_KINDS; kind++)
            counts[kind] += run->since_us[kind] != 0;
    for (size_t kind = 0; kind < ALARM_KINDS; kind++)
        metric_set(METRIC_ALARMS, kind, counts[kind]);
}
