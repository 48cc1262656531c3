/* One completion's way through a worker: the frame there, the verdicts back, the reward. */
#include <math.h>
#include <stdio.h>

#include "server/base/sum.h"
#include "server/verify/externals.h"
#include "server/verify/of_private.h"
#include "server/verify/pool.h"
#include "server/verify/spec.h"
#include "verifiers/registry.h"
#include "verifiers/worker/worker.h"

/* --- there --- */

static void put_if_given(struct json_write *json, const char *key, struct text raw)
{
    if (raw.data)
        json_put_raw(json, key, raw);
}

static void write_ids(struct json_write *json, const struct verify_subject *subject)
{
    json_key(json, "completion_ids");
    json_array_begin(json);
    for (size_t i = 0; i < subject->completion_id_count; i++)
        json_int(json, subject->completion_ids[i]);
    json_array_end(json);
}

static void write_about(struct json_write *json, const struct verify_subject *subject)
{
    if (subject->id.data)
        json_put_text(json, "id", subject->id);
    if (subject->task.data)
        json_put_text(json, "task", subject->task);
    put_if_given(json, "metadata", subject->metadata_json);
    put_if_given(json, "members", subject->members_json);
    if (subject->completion_ids)
        write_ids(json, subject);
}

void verify_member_write(const struct verify_subject *subject, struct buffer *out)
{
    struct json_write json;

    json_write_init(&json, out);
    json_object_begin(&json);
    json_put_text(&json, "id", subject->id);
    json_put_text(&json, "completion", subject->completion);
    if (subject->completion_ids)
        write_ids(&json, subject);
    else
        json_put_null(&json, "completion_ids");
    json_object_end(&json);
}

static void write_verifier(struct json_write *json, const struct verifier_spec *spec)
{
    json_object_begin(json);
    json_put_string(json, "name", spec->verifier->name);
    json_put_raw(json, "options", text_of(spec->options_json));
    if (spec->external)
        json_put_raw(json, "external", text_of(spec->external->entry_json));
    if (spec->steps)
        json_put_string(json, "steps", pieces_kind_names[spec->steps]);
    if (spec->reference_json)
        json_put_raw(json, "reference", text_of(spec->reference_json));
    json_object_end(json);
}

/* Of messages that are sent for the question in them alone: longer ones would make a frame too large that is none. */
#define MESSAGES_BYTES (64 * 1024)

static void write_request(struct json_write *json, const struct verifier_list *list,
                          const struct verify_subject *subject)
{
    bool asks_external = false;

    json_object_begin(json);
    json_put_text(json, "completion", subject->completion);
    if (subject->prompt.data)
        json_put_text(json, "prompt", subject->prompt);
    if (subject->completion_tokens >= 0)
        json_put_int(json, "completion_tokens", subject->completion_tokens);
    put_if_given(json, "reference", subject->reference_json);
    json_key(json, "verifiers");
    json_array_begin(json);
    for (size_t i = 0; i < list->count; i++) {
        write_verifier(json, &list->specs[i]);
        asks_external = asks_external || list->specs[i].external;
    }
    json_array_end(json);
    if (asks_external || subject->messages_json.length_bytes <= MESSAGES_BYTES)
        put_if_given(json, "messages", subject->messages_json);
    if (asks_external)
        write_about(json, subject);
    json_object_end(json);
}

int verify_request_build(const struct verifier_list *list, const struct verify_subject *subject, struct buffer *out)
{
    size_t start = out->length_bytes;
    struct json_write json;
    size_t length_bytes;

    buffer_append(out, (char[REQUEST_HEADER_BYTES]){0}, REQUEST_HEADER_BYTES);
    json_write_init(&json, out);
    write_request(&json, list, subject);
    length_bytes = out->length_bytes - start - REQUEST_HEADER_BYTES;
    if (out->failed || length_bytes > verifier_list_frame_limit_bytes(list))
        return -1;
    frame_put_length(out->data + start, length_bytes);
    return 0;
}

/* --- back --- */

static void fail(struct verdict_record *record, const char *code, const char *message, bool retryable)
{
    free(record->detail_json);
    free(record->steps);
    *record = (struct verdict_record){.kind = VERDICT_UNSCORED, .score = NAN, .retryable = retryable};
    snprintf(record->reason, sizeof record->reason, "%s", code);
    snprintf(record->failure_code, sizeof record->failure_code, "%s", code);
    snprintf(record->failure_message, sizeof record->failure_message, "%s", message);
}

static void allocate(const struct verifier_list *list, struct verdict_set *ret_set)
{
    ret_set->count = list->count;
    ret_set->verdicts = xcalloc(list->count ? list->count : 1, sizeof ret_set->verdicts[0]);
}

/* Codes are short and plain; anything else in their place is not ours. */
static bool copy_code(const json_t *value, char ret_code[VERIFY_CODE_BYTES])
{
    struct text code = json_text_of(value);

    if (code.length_bytes == 0 || code.length_bytes >= VERIFY_CODE_BYTES)
        return false;
    for (size_t i = 0; i < code.length_bytes; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_", code.data[i]) || !code.data[i])
            return false;
    memcpy(ret_code, code.data, code.length_bytes);
    ret_code[code.length_bytes] = 0;
    return true;
}

static int kind_of(const json_t *value)
{
    for (int kind = 0; kind < VERDICT_KINDS; kind++)
        if (text_equals(json_text_of(value), verdict_kind_names[kind]))
            return kind;
    return -1;
}

/* Does the score belong to the verdict: 1, 0, any finite number, none? */
static bool score_fits(int kind, const json_t *value)
{
    double score = json_is_number(value) ? json_number_value(value) : NAN;

    switch (kind) {
    case VERDICT_CORRECT:
        return score == 1;
    case VERDICT_INCORRECT:
        return score == 0;
    case VERDICT_SCORED:
        return fabs(score) <= VERDICT_SCORE_MAX;
    default:
        return json_is_null(value);
    }
}

static bool read_failure(const json_t *value, struct verdict_record *record)
{
    struct text message = json_text_of(json_object_get(value, "message"));

    if (!copy_code(json_object_get(value, "code"), record->failure_code))
        return false;
    snprintf(record->failure_message, sizeof record->failure_message, "%.*s", (int)message.length_bytes,
             message.data ? message.data : "");
    record->retryable = json_is_true(json_object_get(value, "retryable"));
    return true;
}

/* [[end in bytes, score], …], each end behind the one before. */
static bool read_steps(const json_t *value, struct verdict_record *record)
{
    size_t count = json_array_size(value);
    size_t i;
    const json_t *step;

    if (!json_is_array(value) || count > PIECES_MAX)
        return false;
    record->steps = xcalloc(count + 1, sizeof record->steps[0]);
    record->step_count = count;
    json_array_foreach (value, i, step) {
        json_int_t end = json_integer_value(json_array_get(step, 0));
        const json_t *score = json_array_get(step, 1);
        if (end <= (i > 0 ? record->steps[i - 1].byte_end : 0) || end > UINT32_MAX || !json_is_real(score))
            return false;
        record->steps[i] = (struct verdict_step){.byte_end = (uint32_t)end, .score = json_real_value(score)};
    }
    return true;
}

/* Printable ASCII; anything else is none. */
static void read_version(const json_t *value, struct verdict_record *record)
{
    struct text version = json_text_of(value);

    if (version.length_bytes >= sizeof record->version)
        return;
    for (size_t i = 0; i < version.length_bytes; i++)
        if (version.data[i] <= ' ' || version.data[i] > '~')
            return;
    snprintf(record->version, sizeof record->version, "%.*s", (int)version.length_bytes,
             version.data ? version.data : "");
}

/* steps: it was asked for a grade of each. */
static bool read_verdict(const json_t *value, bool steps, struct verdict_record *record)
{
    const json_t *score = json_object_get(value, "score");
    const json_t *failure = json_object_get(value, "failure");
    const json_t *detail = json_object_get(value, "detail");
    const json_t *duration = json_object_get(value, "duration_us");
    int kind = kind_of(json_object_get(value, "verdict"));

    if (kind < 0 || !score_fits(kind, score) || !copy_code(json_object_get(value, "reason"), record->reason))
        return false;
    record->kind = (enum verdict_kind)kind;
    record->score = kind == VERDICT_UNSCORED ? NAN : json_number_value(score);
    if (kind == VERDICT_UNSCORED ? !read_failure(failure, record) : !json_is_null(failure))
        return false;
    if (steps && kind != VERDICT_UNSCORED && !read_steps(json_object_get(value, "steps"), record))
        return false;
    read_version(json_object_get(value, "version"), record);
    if (json_is_object(detail))
        record->detail_json = json_dumps(detail, JSON_COMPACT);
    record->duration_us =
        json_is_integer(duration) && json_integer_value(duration) >= 0 ? json_integer_value(duration) : 0;
    return true;
}

/* A worker's reply, believing nothing. */
static void parse(const struct verifier_list *list, uint64_t share, struct text reply, struct verdict_set *set)
{
    json_t *root = json_loadb(reply.data, reply.length_bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    const json_t *verdicts = json_object_get(root, "verdicts");
    bool fits = json_array_size(verdicts) == list->count;

    for (size_t i = 0; i < list->count; i++)
        if (share >> i & 1 && (!fits || !read_verdict(json_array_get(verdicts, i), list->specs[i].steps != PIECES_NONE,
                                                      &set->verdicts[i])))
            fail(&set->verdicts[i], "verifier_crashed", "the worker's reply cannot be read", true);
    json_decref(root);
}

void verdict_set_fail(const struct verifier_list *list, const char *code, const char *message, bool retryable,
                      struct verdict_set *ret_set)
{
    allocate(list, ret_set);
    for (size_t i = 0; i < list->count; i++)
        fail(&ret_set->verdicts[i], code, message, retryable);
}

static void lose(struct verdict_set *set, uint64_t lost, const char *code, const char *message, bool retryable)
{
    for (size_t i = 0; i < set->count; i++)
        if (lost >> i & 1)
            fail(&set->verdicts[i], code, message, retryable);
}

static void read_part(const struct verify_job *job, int index, struct verdict_set *set)
{
    const struct verify_part *part = &job->parts[index];
    uint64_t share = verify_job_share(job, index);

    if (part->reply)
        parse(job->list, share, (struct text){part->reply, part->reply_bytes}, set);
    else if (part->failure_code)
        lose(set, share, part->failure_code, part->failure_message, strcmp(part->failure_code, VERIFIER_OUTGROWN) != 0);
    lose(set, part->crashed, VERIFIER_CRASHED, VERIFIER_CRASHED_MESSAGE, true);
    lose(set, part->timed_out, VERIFIER_TIMEOUT, VERIFIER_TIMEOUT_MESSAGE, true);
    lose(set, part->outgrown, VERIFIER_OUTGROWN, VERIFIER_OUTGROWN_MESSAGE, false);
}

/* The verdicts of those that graded the whole group. */
static void take_told(const struct verify_job *job, struct verdict_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (!(job->elsewhere >> i & 1))
            continue;
        if (!job->told) {
            fail(&set->verdicts[i], "verifier_unavailable", "its group was not judged", true);
            continue;
        }
        set->verdicts[i] = job->told[i];
        if (job->told[i].detail_json)
            set->verdicts[i].detail_json = xstrdup(job->told[i].detail_json);
    }
}

void verdict_set_read(const struct verify_job *job, struct verdict_set *ret_set)
{
    allocate(job->list, ret_set);
    for (int part = 0; part < VERIFY_PARTS; part++)
        read_part(job, part, ret_set);
    for (size_t i = 0; i < ret_set->count; i++)
        if (job->asked >> i & 1)
            ret_set->verdicts[i].duration_us += job->calls_us;
    take_told(job, ret_set);
    of_settle(job->list, ret_set);
}

/* The member's own verdict; beside it the detail has what is true of all. */
static void read_member(const struct verdict_record *group, json_t *detail, const json_t *member,
                        struct verdict_record *record)
{
    json_t *own = json_copy(detail);

    if (!json_is_object(member) || !read_verdict(member, false, record))
        fail(record, "verifier_crashed", "the worker's reply cannot be read", true);
    json_object_del(own, "members");
    json_object_update(own, json_object_get(member, "detail"));
    free(record->detail_json);
    record->detail_json = json_dumps(own, JSON_COMPACT);
    record->duration_us = group->duration_us;
    memcpy(record->version, group->version, sizeof record->version);
    json_decref(own);
}

void verdict_set_read_members(const struct verify_job *job, size_t count, struct verdict_set *ret_set)
{
    struct verdict_set whole;
    const struct verdict_record *group;

    verdict_set_read(job, &whole);
    group = &whole.verdicts[0];
    ret_set->count = count;
    ret_set->verdicts = xcalloc(count, sizeof ret_set->verdicts[0]);
    json_t *detail = group->detail_json ? json_loads(group->detail_json, JSON_ALLOW_NUL, NULL) : NULL;
    for (size_t i = 0; i < count; i++) {
        if (group->kind != VERDICT_UNSCORED) {
            read_member(group, detail, json_array_get(json_object_get(detail, "members"), i), &ret_set->verdicts[i]);
            continue;
        }
        ret_set->verdicts[i] = *group;
        if (group->detail_json)
            ret_set->verdicts[i].detail_json = xstrdup(group->detail_json);
    }
    json_decref(detail);
    verdict_set_finish(&whole);
}

void verdict_records_free(struct verdict_record *records, size_t count)
{
    for (size_t i = 0; i < count && records; i++)
        free(records[i].detail_json);
    free(records);
}

size_t verdict_set_undecided(const struct verdict_set *set)
{
    size_t count = 0;

    for (size_t i = 0; i < set->count; i++)
        count +=
            strcmp(set->verdicts[i].reason, "undecided") == 0 || strcmp(set->verdicts[i].reason, "work_limit") == 0;
    return count;
}

void verdict_set_finish(struct verdict_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free(set->verdicts[i].detail_json);
        free(set->verdicts[i].steps);
    }
    free(set->verdicts);
    *set = (struct verdict_set){0, NULL};
}

/* --- on the wire --- */

void verify_failure_write(struct json_write *json, const struct verdict_record *failure)
{
    if (!failure || !failure->failure_code[0]) {
        json_write_null(json);
        return;
    }
    json_object_begin(json);
    json_put_string(json, "stage", "verify");
    json_put_string(json, "code", failure->failure_code);
    json_put_string(json, "message", failure->failure_message);
    json_put_bool(json, "retryable", failure->retryable);
    json_put_int(json, "attempts", 1);
    json_object_end(json);
}

static void write_steps(struct json_write *json, const struct verdict_record *record)
{
    json_key(json, "steps");
    json_array_begin(json);
    for (size_t i = 0; i < record->step_count; i++) {
        const struct verdict_step *step = &record->steps[i];
        json_object_begin(json);
        json_put_int_or_null(json, "end", step->end ? (int64_t)step->end : -1);
        json_put_double(json, "score", step->score);
        json_put_int_or_null(json, "byte_end", step->byte_end ? (int64_t)step->byte_end : -1);
        json_object_end(json);
    }
    json_array_end(json);
}

void verdict_write(struct json_write *json, const struct verifier_spec *spec, const struct verdict_record *record)
{
    json_object_begin(json);
    json_put_string(json, "id", spec->id);
    json_put_string(json, "name", spec->verifier->name);
    json_put_string(json, "version", record->version[0] ? record->version : spec->version);
    json_put_string(json, "options_sha256", spec->options_sha256);
    json_put_double(json, "score", record->score);
    json_put_string(json, "verdict", verdict_kind_names[record->kind]);
    json_put_string(json, "reason", record->reason);
    json_put_raw(json, "detail", text_of(record->detail_json));
    if (record->steps)
        write_steps(json, record);
    json_key(json, "failure");
    verify_failure_write(json, record);
    json_put_int(json, "duration_us", record->duration_us);
    json_object_end(json);
}

void verdict_set_write(struct json_write *json, const struct verifier_list *list, const struct verdict_set *set)
{
    json_array_begin(json);
    for (size_t i = 0; i < set->count; i++)
        verdict_write(json, &list->specs[i], &set->verdicts[i]);
    json_array_end(json);
}

void rewards_write(struct json_write *json, const struct verifier_list *list, const struct verdict_set *set)
{
    json_object_begin(json);
    for (size_t i = 0; i < set->count; i++) {
        if (list->specs[i].heldout)
            continue;
        json_key(json, list->specs[i].id);
        json_object_begin(json);
        json_put_double(json, "score", set->verdicts[i].score);
        json_put_double(json, "weight", list->specs[i].weight);
        if (list->specs[i].gate)
            json_put_bool(json, "gate", true);
        json_object_end(json);
    }
    json_object_end(json);
}

void heldout_write(struct json_write *json, const struct verifier_list *list, const struct verdict_set *set)
{
    json_object_begin(json);
    for (size_t i = 0; i < set->count; i++) {
        if (!list->specs[i].heldout)
            continue;
        json_key(json, list->specs[i].id);
        json_object_begin(json);
        json_put_double(json, "score", set->verdicts[i].score);
        json_object_end(json);
    }
    json_object_end(json);
}

/* --- the reward --- */

const char *const reward_missing_names[] = {"null", "skip", NULL};

void reward_sum_add(struct reward_sum *sum, double score, double weight, bool gate)
{
    if (weight == 0 && !gate)
        return;
    if (isnan(score)) {
        sum->missing++;
        sum->held = sum->held || gate;
        return;
    }
    sum->scored += weight != 0;
    sum->value += weight * score;
    sum->size += fabs(weight * score);
    sum->shut = sum->shut || (gate && score == 0);
}

/* A missing score wins over a shut gate, and that of a gate over everything: a failure is never a number. */
double reward_sum_value(const struct reward_sum *sum, enum reward_missing missing)
{
    if (sum->held || (sum->missing > 0 && (missing == REWARD_MISSING_NULL || sum->scored == 0)))
        return NAN;
    return sum->shut ? 0 : sum_or_nothing(sum->value, sum->size);
}

struct reward reward_combine(const struct verifier_list *list, const struct verdict_set *set,
                             enum reward_missing missing)
{
    struct reward reward = {.value = NAN};
    struct reward_sum sum = {0};

    for (size_t i = 0; i < set->count; i++) {
        const struct verifier_spec *spec = &list->specs[i];
        const struct verdict_record *record = &set->verdicts[i];
        size_t missed = sum.missing;

        if (spec->heldout)
            continue;
        reward.rewarded = true;
        reward_sum_add(&sum, record->kind == VERDICT_UNSCORED ? NAN : record->score, spec->weight, spec->gate);
        if (sum.missing > missed && !reward.failure)
            reward.failure = record;
    }
    if (reward.rewarded)
        reward.value = reward_sum_value(&sum, missing);
    if (!isnan(reward.value))
        reward.failure = NULL;
    return reward;
}
