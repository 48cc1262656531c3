#include "tests/unit/server/objective_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- a record of two groups, three rollouts
 * --------------------------------------------------------------------------- */

static const float recorded_logprobs[] = {-0.1f, -0.2f};
static const uint8_t recorded_mask[] = {1, 0};

struct fake_rollout {
    const char *id, *group_id;
    int64_t sample_index;
    double reward, advantage;
    const uint8_t *mask;
    enum store_purpose purpose;
    bool trainable;
};
static const struct fake_rollout fake_rollouts[] = {
    {ROLLOUT(0, 0), "g_0", 0, 1, 1, NULL, STORE_TRAIN, true},
    {ROLLOUT(0, 1), "g_0", 1, 0, -1, recorded_mask, STORE_TRAIN, true},
    {ROLLOUT(1, 0), "g_1", 0, 1, NAN, NULL, STORE_TRAIN, true},
    {ROLLOUT(2, 0), "g_2", 0, 1, 0, NULL, STORE_EVAL, true},
    {ROLLOUT(3, 0), "g_3", 0, NAN, NAN, NULL, STORE_TRAIN, true},
};

/* Only its address is passed around. */
static struct store_reader *const reader = (struct store_reader *)(uintptr_t)0x1000;

enum store_status store_read_rollout(struct store_reader *from, struct text id, unsigned with,
                                     struct store_rollouts *ret_rollout)
{
    (void)with;
    assert_ptr_equal(from, reader);
    for (size_t i = 0; i < sizeof fake_rollouts / sizeof fake_rollouts[0]; i++) {
        const struct fake_rollout *fake = &fake_rollouts[i];
        if (!text_equals(id, fake->id))
            continue;
        struct store_rollout *rollout = calloc(1, sizeof *rollout);
        snprintf(rollout->id, sizeof rollout->id, "%s", fake->id);
        snprintf(rollout->group_id, sizeof rollout->group_id, "%s", fake->group_id);
        snprintf(rollout->batch_id, sizeof rollout->batch_id, "%s", BATCH);
        rollout->run = TEXT_LITERAL("arith");
        rollout->sample_index = fake->sample_index;
        rollout->reward = fake->reward;
        rollout->shaped_reward = isnan(fake->advantage) ? NAN : fake->reward;
        rollout->advantage = fake->advantage;
        rollout->purpose = fake->purpose;
        rollout->trainable = fake->trainable;
        rollout->logprobs = recorded_logprobs;
        rollout->completion_mask = fake->mask;
        rollout->token_count = 2;
        rollout->completion_tokens = 2;
        rollout->finish_reason = TEXT_LITERAL("stop");
        *ret_rollout = (struct store_rollouts){.rollouts = rollout, .count = 1};
        return STORE_OK;
    }
    return STORE_NOT_FOUND;
}

void store_rollouts_finish(struct store_rollouts *rollouts)
{
    free(rollouts->rollouts);
}

enum store_status store_read_group_members(struct store_reader *from, struct text group_id,
                                           struct store_members *ret_members)
{
    (void)from;
    ret_members->members = calloc(4, sizeof *ret_members->members);
    ret_members->count = 0;
    for (size_t i = 0; i < sizeof fake_rollouts / sizeof fake_rollouts[0]; i++) {
        if (!text_equals(group_id, fake_rollouts[i].group_id))
            continue;
        struct store_member *member = &ret_members->members[ret_members->count++];
        member->sample_index = fake_rollouts[i].sample_index;
        member->reward = fake_rollouts[i].reward;
        member->shaped_reward = fake_rollouts[i].reward;
        member->advantage = fake_rollouts[i].advantage;
        member->trainable = fake_rollouts[i].trainable;
        member->trainable_tokens = 2;
        member->finish_reason = TEXT_LITERAL("stop");
    }
    return STORE_OK;
}

void store_members_finish(struct store_members *members)
{
    free(members->members);
    members->members = NULL;
}

/* Whole rollouts are read where shaping or gdpo needs them: not in these tests. */
enum store_status store_read_group(struct store_reader *from, struct text group_id, unsigned with,
                                   struct store_group *ret_group)
{
    (void)from;
    (void)group_id;
    (void)with;
    (void)ret_group;
    return STORE_UNAVAILABLE;
}

void store_group_finish(struct store_group *group)
{
    (void)group;
}

static const char *recorded_objective = "{\"preset\":\"grpo\",\"epsilon\":0.1}";

enum store_status store_read_batch(struct store_reader *from, struct text batch_id, struct store_batch *ret_batch)
{
    (void)from;
    assert_true(text_equals(batch_id, BATCH));
    *ret_batch = (struct store_batch){.objective = text_of(recorded_objective)};
    return STORE_OK;
}

void store_batch_finish(struct store_batch *batch)
{
    (void)batch;
}

/* --- asking --- */

void ask(struct asked *asked, const char *body)
{
    call_init(&asked->call);
    asked->call.content_type = "application/json";
    asked->call.reader = reader;
    asked->call.body = strdup(body);
    asked->call.body_bytes = strlen(body);
    objective_handler(&asked->call);
    if (asked->call.parsed) {
        assert_int_equal(asked->call.reply.status, 0); /* the loop part answers */
        call_answer_json(&asked->call, 200);
    }
    asked->reply = json_loadb(asked->call.reply.body.data, asked->call.reply.body.length_bytes, 0, NULL);
    assert_non_null(asked->reply);
}

void finish(struct asked *asked)
{
    json_decref(asked->reply);
    call_finish(&asked->call);
}

/* "sequences.0.contributions.1" */
json_t *find(json_t *value, const char *path)
{
    char *copy = strdup(path), *rest = NULL;
    for (char *name = strtok_r(copy, ".", &rest); name && value; name = strtok_r(NULL, ".", &rest))
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(name)) : json_object_get(value, name);
    free(copy);
    return value;
}

double number(const struct asked *asked, const char *path)
{
    json_t *value = find(asked->reply, path);
    if (!json_is_number(value))
        fail_msg("no number at %s in %s", path, asked->call.reply.body.data);
    return json_number_value(value);
}

void assert_number(const struct asked *asked, const char *path, double want)
{
    double got = number(asked, path);
    if (!(fabs(got - want) <= 1e-12 * fmax(1, fabs(want))))
        fail_msg("%s: got %.17g, want %.17g", path, got, want);
}

void assert_is_null(const struct asked *asked, const char *path)
{
    assert_true(json_is_null(find(asked->reply, path)));
}

bool has_note(const struct asked *asked, const char *part)
{
    size_t i;
    json_t *note;
    json_array_foreach (json_object_get(asked->reply, "notes"), i, note) {
        if (strstr(json_string_value(note), part))
            return true;
    }
    return false;
}

void assert_refused(const char *body, int status, const char *code, const char *path)
{
    struct asked asked;
    ask(&asked, body);
    const char *got_code = json_string_value(find(asked.reply, "error.code"));
    const char *got_path = json_string_value(find(asked.reply, "error.path"));
    if (asked.call.reply.status != status || !got_code || strcmp(got_code, code) != 0 ||
        (path && (!got_path || strcmp(got_path, path) != 0)))
        fail_msg("want %d %s %s, got %s", status, code, path ? path : "", asked.call.reply.body.data);
    finish(&asked);
}

/* The made-up run has no manifest. */
int manifest_look(struct call *call, struct text run, struct manifest_hold *hold)
{
    (void)call;
    (void)run;
    hold->version = 0;
    return 0;
}

struct store_manifest_guard manifest_guard(struct manifest_hold *hold)
{
    return (struct store_manifest_guard){.version = hold->version};
}
