#include "server/verify/incidents.h"

#include <errno.h>
#include <stdio.h>
#include <uthash.h>

#include "server/base/clock.h"
#include "server/base/ids.h"
#include "server/base/log.h"
#include "server/runtime/metrics.h"
#include "server/verify/kept_inputs_private.h"
#include "verifiers/registry.h"
#include "verifiers/worker/worker.h"

#define RUNS_MAX 1000
#define ALARM_MINIMUM 3           /* a single one is no habit */
#define LOGGED_MAX 10             /* lines of one run and verifier in half a window */
#define KEEPING_MAX 8             /* files being written */
#define KEEPING_BYTES (16u << 20) /* of requests that wait to be written */
#define FILE_NAME_BYTES 128

/* Of half a window: what is lately is this half and the one before. */
struct half {
    int64_t judged;
    int64_t lost;
};

/* Of one verifier in one run. */
struct tally {
    int64_t crashed;
    int64_t timed_out;
    struct half now;
    struct half before;
    bool alarm;
    int64_t last_utc_us; /* 0: never, as long as all else is 0, too */
    char last_rollout[ID_BYTES];
    char last_file[FILE_NAME_BYTES];
};

struct run_tallies {
    char *run;               /* "": none was named */
    struct tally *verifiers; /* [verifier_count + 1], the last one: where none was grading */
    UT_hash_handle hh;       /* the run that had an incident last is the last */
};

struct incidents {
    struct workers *workers;
    struct incidents_rules rules;
    char *folder;
    struct run_tallies *runs;
    struct keeping *keeping;
    size_t keeping_count;
    size_t keeping_bytes;
    uint64_t kept; /* makes names of files different */
};

/* --- keeping a file --- */

struct keeping {
    struct job job; /* first */
    struct incidents *incidents;
    struct keeping *previous;
    struct keeping *next;
    struct kept_input input;
    struct verifier_list *list;
    char *run;
    char *rollout;
    char *request;
    char name[FILE_NAME_BYTES];
};

static void keeping_destroy(struct keeping *keeping)
{
    struct incidents *incidents = keeping->incidents;

    if (keeping->previous)
        keeping->previous->next = keeping->next;
    else
        incidents->keeping = keeping->next;
    if (keeping->next)
        keeping->next->previous = keeping->previous;
    incidents->keeping_count--;
    incidents->keeping_bytes -= keeping->input.request.length_bytes;
    verifier_list_unref(keeping->list);
    free(keeping->run);
    free(keeping->rollout);
    free(keeping->request);
    free(keeping);
}

static void write_kept(struct job *job, struct store_reader *reader)
{
    const struct keeping *keeping = (struct keeping *)job;
    const struct incidents *incidents = keeping->incidents;
    struct kept_inputs_limits limits = {incidents->rules.keep_files, incidents->rules.keep_bytes};

    (void)reader;
    if (kept_inputs_add(incidents->folder, &limits, &keeping->input) < 0)
        log_event(LOG_LEVEL_WARNING, "a completion that crashed or hung a verifier cannot be kept", "folder",
                  incidents->folder, "error", strerror(errno), NULL);
}

static void kept(struct job *job)
{
    keeping_destroy((struct keeping *)job);
}

static const char *name_of(const struct verify_job *job, int index)
{
    return index < 0 ? NULL : job->list->specs[index].verifier->name;
}

/* 20261129T225501.123456Z-0003-math-timeout.json */
static void name_file(struct incidents *incidents, const struct verify_job *job, int index, bool timed_out,
                      int64_t at_utc_us, char ret_name[FILE_NAME_BYTES])
{
    char time[RFC3339_BYTES];
    const char *verifier = name_of(job, index);
    size_t length = 0;

    clock_format_rfc3339(at_utc_us, time);
    for (size_t i = 0; time[i]; i++)
        if (time[i] != '-' && time[i] != ':')
            time[length++] = time[i];
    snprintf(ret_name, FILE_NAME_BYTES, "%.*s-%04u-%s-%s.json", (int)length, time,
             (unsigned)(incidents->kept++ % 10000), verifier ? verifier : "all", timed_out ? "timeout" : "crash");
}

/* False: too many are being written, or none shall be. */
static bool keep(struct incidents *incidents, const struct verify_job *job, int index, bool timed_out,
                 struct tally *tally)
{
    size_t length_bytes = job->frame_bytes - REQUEST_HEADER_BYTES;
    struct keeping *keeping;

    if (incidents->rules.keep_files == 0 || incidents->keeping_count >= KEEPING_MAX ||
        incidents->keeping_bytes + length_bytes > KEEPING_BYTES)
        return false;
    keeping = xcalloc(1, sizeof *keeping);
    *keeping = (struct keeping){.job = {.run = write_kept, .done = kept},
                                .incidents = incidents,
                                .next = incidents->keeping,
                                .list = verifier_list_ref((struct verifier_list *)(uintptr_t)job->list),
                                .run = job->run ? xstrdup(job->run) : NULL,
                                .rollout = job->rollout ? xstrdup(job->rollout) : NULL,
                                .request = xstrndup(job->frame + REQUEST_HEADER_BYTES, length_bytes)};
    memcpy(keeping->name, tally->last_file, sizeof keeping->name);
    keeping->input = (struct kept_input){.name = keeping->name,
                                         .at_utc_us = tally->last_utc_us,
                                         .code = timed_out ? VERIFIER_TIMEOUT : VERIFIER_CRASHED,
                                         .run = keeping->run,
                                         .rollout = keeping->rollout,
                                         .list = keeping->list,
                                         .index = index,
                                         .request = {keeping->request, length_bytes}};
    if (keeping->next)
        keeping->next->previous = keeping;
    incidents->keeping = keeping;
    incidents->keeping_count++;
    incidents->keeping_bytes += length_bytes;
    if (workers_submit(incidents->workers, &keeping->job))
        return true;
    keeping_destroy(keeping);
    return false;
}

/* --- counting --- */

static struct run_tallies *find_run(const struct incidents *incidents, const char *run)
{
    struct run_tallies *found;

    HASH_FIND_STR(incidents->runs, run ? run : "", found);
    return found;
}

static void forget_run(struct incidents *incidents, struct run_tallies *tallies)
{
    HASH_DEL(incidents->runs, tallies);
    free(tallies->run);
    free(tallies->verifiers);
    free(tallies);
}

/* Found or made, and now the latest. */
static struct run_tallies *take_run(struct incidents *incidents, const char *run)
{
    struct run_tallies *tallies = find_run(incidents, run);

    if (tallies) {
        HASH_DEL(incidents->runs, tallies);
    } else {
        if (HASH_COUNT(incidents->runs) >= RUNS_MAX)
            forget_run(incidents, incidents->runs); /* the first is the one whose last incident is the oldest */
        tallies = xcalloc(1, sizeof *tallies);
        tallies->run = xstrdup(run ? run : "");
        tallies->verifiers = xcalloc(verifier_count + 1, sizeof tallies->verifiers[0]);
    }
    HASH_ADD_KEYPTR(hh, incidents->runs, tallies->run, strlen(tallies->run), tallies);
    return tallies;
}

static size_t place_of(const struct verifier *verifier)
{
    size_t place = 0;

    while (place < verifier_count && verifiers[place] != verifier)
        place++;
    return place;
}

static void lost(void *arg, const struct verify_job *job, int index, bool timed_out)
{
    struct incidents *incidents = arg;
    struct run_tallies *tallies = take_run(incidents, job->run);
    struct tally *tally = &tallies->verifiers[index < 0 ? verifier_count : place_of(job->list->specs[index].verifier)];

    metric_add(METRIC_VERIFIER_INCIDENTS, timed_out, 1);
    *(timed_out ? &tally->timed_out : &tally->crashed) += 1;
    tally->now.lost++;
    tally->last_utc_us = clock_utc_us();
    snprintf(tally->last_rollout, sizeof tally->last_rollout, "%s", job->rollout ? job->rollout : "");
    name_file(incidents, job, index, timed_out, tally->last_utc_us, tally->last_file);
    if (!keep(incidents, job, index, timed_out, tally))
        tally->last_file[0] = 0;
    if (tally->now.lost <= LOGGED_MAX)
        log_event(LOG_LEVEL_WARNING, timed_out ? "a completion hung a verifier" : "a completion crashed a verifier",
                  "request_id", job->request_id, "run", job->run, "rollout", job->rollout, "verifier",
                  name_of(job, index), "file", tally->last_file[0] ? tally->last_file : NULL, NULL);
}

/* --- the alarm --- */

static int64_t lost_lately(const struct tally *tally)
{
    return tally->now.lost + tally->before.lost;
}

/* A completion of several verifiers is lost before the others have graded it. */
static int64_t judged_lately(const struct tally *tally)
{
    int64_t judged = tally->now.judged + tally->before.judged;

    return judged > lost_lately(tally) ? judged : lost_lately(tally);
}

static void change_alarm(const struct run_tallies *tallies, size_t place, bool alarm)
{
    struct tally *tally = &tallies->verifiers[place];

    tally->alarm = alarm;
    log_event(alarm ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO,
              alarm ? "completions of a run crash or hang a verifier: its policy may be learning to"
                    : "completions of a run no longer crash or hang a verifier",
              "run", tallies->run[0] ? tallies->run : NULL, "verifier",
              place < verifier_count ? verifiers[place]->name : NULL, LOG_INT("lost", lost_lately(tally)),
              LOG_INT("judged", judged_lately(tally)), NULL);
}

/* Raised at the share, ended below half of it. */
static void look_at(const struct incidents_rules *rules, const struct run_tallies *tallies, size_t place)
{
    const struct tally *tally = &tallies->verifiers[place];
    double judged = (double)judged_lately(tally);
    double lost_share = judged > 0 ? (double)lost_lately(tally) / judged : 0;

    if (rules->alarm_share <= 0)
        return;
    if (!tally->alarm && lost_lately(tally) >= ALARM_MINIMUM && lost_share >= rules->alarm_share)
        change_alarm(tallies, place, true);
    else if (tally->alarm && lost_share < rules->alarm_share / 2)
        change_alarm(tallies, place, false);
}

static void count_judged(const struct incidents_rules *rules, const struct run_tallies *tallies, size_t place)
{
    struct tally *tally = &tallies->verifiers[place];

    if (!tally->last_utc_us)
        return;
    tally->now.judged++;
    look_at(rules, tallies, place);
    if (tally->now.judged < (rules->window + 1) / 2)
        return;
    tally->before = tally->now;
    tally->now = (struct half){0, 0};
}

static void judged(void *arg, const struct verify_job *job)
{
    const struct incidents *incidents = arg;
    const struct run_tallies *tallies = incidents->runs ? find_run(incidents, job->run) : NULL;

    if (!tallies)
        return;
    for (size_t i = 0; i < job->list->count; i++)
        count_judged(&incidents->rules, tallies, place_of(job->list->specs[i].verifier));
    count_judged(&incidents->rules, tallies, verifier_count);
}

/* --- from outside --- */

struct incidents *incidents_create(struct workers *workers, const struct incidents_rules *rules)
{
    struct incidents *incidents = xcalloc(1, sizeof *incidents);

    incidents->workers = workers;
    incidents->rules = *rules;
    incidents->folder = xasprintf("%s.crashes", rules->database);
    return incidents;
}

void incidents_destroy(struct incidents *incidents)
{
    if (!incidents)
        return;
    while (incidents->keeping)
        keeping_destroy(incidents->keeping);
    while (incidents->runs)
        forget_run(incidents, incidents->runs);
    free(incidents->folder);
    free(incidents);
}

void incidents_observe(struct incidents *incidents, struct verify_observer *ret_observer)
{
    *ret_observer = (struct verify_observer){incidents, lost, judged};
}

static void write_tally(struct json_write *json, const struct incidents *incidents, const struct run_tallies *tallies,
                        size_t place)
{
    const struct tally *tally = &tallies->verifiers[place];
    _cleanup_free_ char *file = tally->last_file[0] ? xasprintf("%s/%s", incidents->folder, tally->last_file) : NULL;

    json_object_begin(json);
    json_put_string(json, "run", tallies->run[0] ? tallies->run : NULL);
    json_put_string(json, "verifier", place < verifier_count ? verifiers[place]->name : NULL);
    json_put_int(json, "crashed", tally->crashed);
    json_put_int(json, "timed_out", tally->timed_out);
    json_key(json, "lately");
    json_object_begin(json);
    json_put_int(json, "judged", judged_lately(tally));
    json_put_int(json, "lost", lost_lately(tally));
    json_object_end(json);
    json_put_bool(json, "alarm", tally->alarm);
    json_put_time(json, "last_at", tally->last_utc_us);
    json_put_string(json, "last_rollout", tally->last_rollout[0] ? tally->last_rollout : NULL);
    json_put_string(json, "last_file", file);
    json_object_end(json);
}

void incidents_write(struct json_write *json, const struct incidents *incidents, struct text run)
{
    json_key(json, "verifier_incidents");
    json_array_begin(json);
    for (const struct run_tallies *tallies = incidents->runs; tallies; tallies = tallies->hh.next)
        for (size_t place = 0; place <= verifier_count; place++)
            if (tallies->verifiers[place].last_utc_us && (!run.data || text_equals(run, tallies->run)))
                write_tally(json, incidents, tallies, place);
    json_array_end(json);
}

size_t incidents_alarms(const struct incidents *incidents)
{
    size_t alarms = 0;

    for (const struct run_tallies *tallies = incidents->runs; tallies; tallies = tallies->hh.next)
        for (size_t place = 0; place <= verifier_count; place++)
            alarms += tallies->verifiers[place].alarm;
    return alarms;
}
