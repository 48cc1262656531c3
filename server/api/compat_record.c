/* Samples of a trainer as a score under a run (?run=NAME of the routes in compat_rewards.c).
 *
 * Each sample is a group of its own, because these trainers ask for one at a time, and its task is named by its prompt and
 * label. A sample that no verifier can grade is on record as a failure: the score would be refused for it. */
#include "server/api/compat_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/api/batches.h"
#include "server/api/verify_private.h"
#include "server/base/hash.h"
#include "server/base/json_big.h"
#include "server/spec/batch.h"
#include "server/store/store.h"
#include "verifiers/registry.h"

#define TASK_DIGITS 16

int compat_check_run(struct call *call, struct text run)
{
    struct store_standing standing;

    if (run_name_check(call, run) < 0)
        return -1;
    if (!call->reader)
        return call_refuse_unreadable(call);
    enum store_status status = store_read_standing(call->reader, run, 0, &standing);
    if (status == STORE_NOT_FOUND)
        return call_refuse(
            call, ERR_NOT_FOUND, "run",
            "no run has this name; POST /v1/runs/{run}/attach with {\"step\": 0, \"revision\": 0} makes it");
    return status == STORE_OK ? 0 : call_refuse_unreadable(call);
}

/* --- the score --- */

/* Completions of one prompt and label are of one task, in every request. */
static json_t *task_name(const struct compat_sample *sample)
{
    char hex[SHA256_HEX_BYTES];
    uint8_t digest[SHA256_BYTES];
    json_t *asked = sample->asked ? json_incref((json_t *)(uintptr_t)sample->asked) : json_null();
    json_t *reference = sample->reference ? json_incref((json_t *)(uintptr_t)sample->reference) : json_null();
    json_t *key = json_pack("[o,o]", asked, reference);
    _cleanup_free_ char *text = json_big_dump(key, JSON_COMPACT | JSON_SORT_KEYS);

    json_decref(key);
    sha256_of(text, strlen(text), digest);
    sha256_hex(digest, hex);
    return json_stringn(hex, TASK_DIGITS);
}

static bool needs_reference(const struct verifier_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (verifier_needs_reference(&list->specs[i]))
            return true;
    return false;
}

static void fail(struct verify_item *item, const char *code, const char *message)
{
    verify_item_fail(item, code, message, false);
}

/* Why there is nothing to judge, or nothing to judge it by: item->failed. Its list is the caller's. */
static void check_sample(const struct intake *intake, const struct compat_sample *sample,
                         const struct verifier_list *shared, struct verify_item *item)
{
    const struct verifier_list *list = shared;

    if (sample->verifiers) {
        verify_item_read_list(intake->input, sample->verifiers, "label.verifiers", item);
        list = item->list;
    }
    if (!list)
        return;
    if (sample->completion.length_bytes == 0)
        fail(item, "empty_completion", "the completion is empty");
    else if (!sample->reference && needs_reference(list))
        fail(item, "reference_unreadable", "a verifier needs a reference, and the label has none");
}

static json_t *text_value(struct text text)
{
    return json_stringn_nocheck(text.data, text.length_bytes);
}

static json_t *failure_of(const struct verify_item *item)
{
    return json_pack("{s:s, s:s, s:s, s:i}", "stage", "verify", "code", item->failure.failure_code, "message",
                     item->failure.failure_message, "attempts", 1);
}

static void set_prompt(json_t *group, const struct compat_sample *sample)
{
    if (sample->prompt.data)
        json_object_set_new(group, "prompt", text_value(sample->prompt));
}

static json_t *group_of(const struct intake *intake, size_t index, const struct verifier_list *shared)
{
    const struct compat_sample *sample = &intake->samples[index];
    struct verify_item item = {0};
    json_t *completion = json_object();
    json_t *group =
        json_pack("{s:o, s:I, s:[o]}", "task", task_name(sample), "draw", (json_int_t)index, "completions", completion);

    check_sample(intake, sample, shared, &item);
    set_prompt(group, sample);
    if (sample->reference)
        json_object_set(group, "reference", (json_t *)(uintptr_t)sample->reference);
    if (sample->completion.length_bytes)
        json_object_set_new(completion, "text", text_value(sample->completion));
    if (item.failed)
        json_object_set_new(completion, "failure", failure_of(&item));
    if (item.failed)
        json_object_set_new(group, "verifiers", json_array());
    else if (sample->verifiers)
        json_object_set(group, "verifiers", (json_t *)(uintptr_t)sample->verifiers);
    verifier_list_unref(item.list);
    buffer_finish(&item.unread_verdicts);
    return group;
}

char *compat_score_body(const struct intake *intake, struct text run, const json_t *list,
                        const struct verifier_list *shared)
{
    json_t *groups = json_array();
    json_t *body =
        json_pack("{s:o, s:O, s:s, s:[], s:{s:s}, s:o}", "run", text_value(run), "verifiers", list, "missing", "null",
                  "return", "metadata", "route", intake->rewards->protocol->path, "groups", groups);

    for (size_t i = 0; i < intake->rewards->count; i++)
        json_array_append_new(groups, group_of(intake, i, shared));
    char *text = json_big_dump(body, JSON_COMPACT);
    json_decref(body);
    return text;
}

/* --- when the batch has ended --- */

/* {"math": {"score": 1, …}}: the scores. */
static void add_scores(struct outcome *outcome, struct text json)
{
    json_t *rewards = json.data ? json_loadb(json.data, json.length_bytes, 0, NULL) : NULL;
    const char *name;
    const json_t *reward;

    json_object_foreach (rewards, name, reward)
        json_object_set(outcome->components, name, json_object_get(reward, "score"));
    json_decref(rewards);
}

static void take_rollout(struct outcome *outcome, const struct store_rollout *rollout)
{
    const struct store_failure *failure = &rollout->failure;

    outcome->value = rollout->reward;
    snprintf(outcome->code, sizeof outcome->code, "%.*s", (int)failure->code.length_bytes,
             failure->code.data ? failure->code.data : "");
    snprintf(outcome->message, sizeof outcome->message, "%.*s", (int)failure->message.length_bytes,
             failure->message.data ? failure->message.data : "");
    add_scores(outcome, rollout->rewards);
    add_scores(outcome, rollout->heldout);
}

static bool find_rollout(const struct graded *graded, size_t index, struct outcome *ret_outcome)
{
    const struct store_groups *groups = graded->of;
    struct store_group group = {0};

    *ret_outcome = (struct outcome){.value = NAN, .components = json_object()};
    if (index >= groups->count || store_read_group(graded->call->reader, text_of(groups->groups[index].id),
                                                   STORE_WITH_VERDICTS, &group) != STORE_OK) {
        call_refuse_unreadable(graded->call);
        outcome_finish(ret_outcome);
        ret_outcome->components = NULL;
        return false;
    }
    if (group.rollout_count)
        take_rollout(ret_outcome, &group.rollouts[0]);
    else
        snprintf(ret_outcome->code, sizeof ret_outcome->code, "cancelled");
    store_group_finish(&group);
    outcome_settle(ret_outcome);
    return true;
}

static void answer_recorded(struct call *call)
{
    const struct rewards *rewards = call->about;
    struct store_groups groups = {0};

    if (!call->reader ||
        store_read_groups(call->reader, text_of(call->subject), 0, rewards->count, 0, &groups) != STORE_OK) {
        call_refuse_unreadable(call);
        return;
    }
    rewards->protocol->write(&(struct graded){.rewards = rewards, .call = call, .find = find_rollout, .of = &groups});
    store_groups_finish(&groups);
}

void compat_record(struct call *call, char *body, struct rewards *rewards)
{
    call->about = rewards;
    call->about_destroy = rewards_destroy;
    call->answer_batch = answer_recorded;
    call->accept_ndjson = call->accept_safetensors = call->prefer_async = false; /* the reply is that of the protocol */
    if (!body) {
        call_refuse(call, ERR_QUEUE_FULL, NULL, "there is no memory for this request now");
        return;
    }
    call->body = body;
    call->body_bytes = strlen(body);
    sha256_of(body, call->body_bytes, call->body_sha256);
    batches_read_score(call);
}
