/* Views of a live batch: GET /v1/batches/{id} while it runs, GET /v1/pending. */
#include "server/batches/live.h"

#include "server/base/clock.h"
#include "server/base/hash.h"
#include "server/batches/queues_private.h"
#include "server/batches/runs.h"
#include "server/batches/weight_update.h"
#include "server/engines/engines.h"
#include "server/spec/objective.h"

#include <stdio.h>

static void write_waiting(struct json_write *json, const struct batch *batch)
{
    json_key(json, "waiting");
    json_object_begin(json);
    json_put_int(json, "queued", (int64_t)(batch->in_phase[PHASE_QUEUED] + batch->in_phase[PHASE_BACKOFF]));
    json_put_int(json, "sampling", (int64_t)batch->in_phase[PHASE_SAMPLING]);
    json_put_int(json, "verifying", (int64_t)batch->in_phase[PHASE_VERIFYING]);
    json_put_int(json, "storing", (int64_t)batch->in_phase[PHASE_STORING]);
    json_object_end(json);
}

static void write_counts(struct json_write *json, const struct batch *batch)
{
    json_key(json, "counts");
    json_object_begin(json);
    json_put_int(json, "groups", (int64_t)batch->group_count);
    json_put_int(json, "open_groups", (int64_t)batch->open_groups);
    json_put_int(json, "rollouts", (int64_t)batch->rollout_count);
    json_put_int(json, "done", (int64_t)batch->in_phase[PHASE_DONE]);
    json_object_end(json);
}

/* By the pace since its admission or read-back; -1: no rollout has ended yet. */
static int64_t expected_end_us(const struct live_batch *live)
{
    size_t done = live->batch.in_phase[PHASE_DONE] - live->done_before;
    size_t left = live->batch.rollout_count - live->batch.in_phase[PHASE_DONE];
    int64_t passed_us = loop_now_us(live->batches->uses.loop) - live->admitted_us;
    return done == 0 || passed_us <= 0 ? -1
                                       : clock_utc_us() + (int64_t)((double)passed_us * (double)left / (double)done);
}

static void write_progress(struct json_write *json, const struct live_batch *live)
{
    const struct batch *batch = &live->batch;
    json_key(json, "progress");
    json_object_begin(json);
    json_put_double(json, "share", (double)batch->in_phase[PHASE_DONE] / (double)batch->rollout_count);
    json_put_time(json, "expected_at", expected_end_us(live));
    json_object_end(json);
}

/* The first thing that is in the way, in the order of a rollout's life. */
static const char *waits_for(const struct live_batch *live, char why[ENGINE_SENTENCE_BYTES])
{
    const size_t *in_phase = live->batch.in_phase;
    bool given = live->spec->origin == BATCH_GIVEN;
    if (live->batches->health.failing)
        return "the store, which cannot write";
    if (in_phase[PHASE_QUEUED] + in_phase[PHASE_BACKOFF] > 0 && update_holds(live))
        return "a weight update of its run, which is open";
    if (in_phase[PHASE_QUEUED] + in_phase[PHASE_BACKOFF] > 0 && queues_wait_for_run(live))
        return "the engines, which serve another run";
    if (in_phase[PHASE_QUEUED] + in_phase[PHASE_BACKOFF] > 0 && live->queue &&
        pool_say_why(live->batches->uses.engines, live->queue->pool, false, why))
        return why;
    if (in_phase[PHASE_QUEUED] > 0 && live->short_of)
        return live->short_of;
    if (given && in_phase[PHASE_QUEUED] + in_phase[PHASE_SAMPLING] > 0)
        return "a place in the verifiers' queue";
    if (in_phase[PHASE_SAMPLING] > 0)
        return "the engines";
    if (in_phase[PHASE_BACKOFF] > 0)
        return "a pause before the next attempt";
    if (in_phase[PHASE_QUEUED] > 0 && live->queue &&
        pool_say_why(live->batches->uses.engines, live->queue->pool, true, why))
        return why;
    if (in_phase[PHASE_QUEUED] > 0)
        return "an engine with a free place";
    if (in_phase[PHASE_VERIFYING] > 0)
        return "the verifiers";
    return "the store";
}

/* Notes known before the end; at the end batches/closing_revisions.c counts. */
static void write_running_notes(struct json_write *json, const struct live_batch *live)
{
    const struct run_state *run = live->run;
    char line[128];
    json_key(json, "notes");
    json_array_begin(json);
    snprintf(line, sizeof(line), "revision_behind: the batch is of policy_revision %lld, the run's is %lld",
             (long long)live->sampled_revision, (long long)run->revision);
    if (run->incarnation == live->incarnation && live->sampled_revision < run->revision)
        json_write_string(json, line);
    json_array_end(json);
}

void live_write_running(struct json_write *json, const struct live_batch *live)
{
    char sha256[SHA256_HEX_BYTES];
    sha256_hex(live->spec->body_sha256, sha256);
    json_put_string(json, "id", live->id);
    json_put_string(json, "run", live->run->name);
    json_put_int(json, "incarnation", live->incarnation);
    json_put_string(json, "purpose", store_purpose_names[live->spec->purpose]);
    json_put_string(json, "state", batch_state_names[live->batch.state]);
    json_put_int(json, "policy_revision", live->policy_revision);
    json_put_int(json, "seed", (int64_t)live->spec->seed);
    json_put_string(json, "request_sha256", sha256);
    json_put_time(json, "created_at", live->admitted_utc_us);
    json_put_time(json, "deadline_at", live->deadline_utc_us);
    json_put_null(json, "completed_at");
    json_put_raw(json, "sampling", live->spec->sampling_json);
    json_put_raw(json, "objective", live->spec->objective_json);
    write_running_notes(json, live);
    write_counts(json, &live->batch);
    write_waiting(json, &live->batch);
    write_progress(json, live);
    char why[ENGINE_SENTENCE_BYTES];
    json_put_string(json, "waits_for", waits_for(live, why));
}

void live_write_pending(struct json_write *json, const struct live_batch *live)
{
    json_object_begin(json);
    json_put_string(json, "batch", live->id);
    json_put_string(json, "run", live->run->name);
    json_put_string(json, "state", batch_state_names[live->batch.state]);
    json_put_int(json, "policy_revision", live->policy_revision);
    json_put_time(json, "created_at", live->admitted_utc_us);
    json_put_time(json, "deadline_at", live->deadline_utc_us);
    write_counts(json, &live->batch);
    write_waiting(json, &live->batch);
    write_progress(json, live);
    char why[ENGINE_SENTENCE_BYTES];
    json_put_string(json, "waits_for", waits_for(live, why));
    json_object_end(json);
}
