/* The completions of a group that the request brings itself (POST /v1/score). */
#include "server/spec/batch.h"

#include "server/base/json_scan.h"
#include "server/base/logprob.h"
#include "server/base/words.h"
#include "server/settings/settings.h"
#include "server/spec/completion_steps_private.h"
#include "verifiers/registry.h"

#include <math.h>
#include <stdio.h>

#define CODE_MAX_BYTES 48
#define NAME_MAX_BYTES 64
#define WEIGHT_MAX 1e9
#define SCORE_MAX 1e100 /* so that no sum of them is beyond double */

struct completion_fields {
    struct text text;
    struct numbers completion_ids;
    struct numbers logprobs;
    struct numbers completion_mask;
    struct numbers token_ends;
    int finish_reason; /* -1: not said */
    json_t *messages;
    int64_t seed;
    struct text engine;
    json_t *sampling;
    json_t *metadata;
    json_t *failure;
    json_t *rewards;
};

static const char *const finish_reasons[] = {FINISH_REASON_WORDS(WORD_TEXT) NULL};
static const char *const stages[] = {"sample", "verify", "store", NULL};

#define COMPLETION(field) offsetof(struct completion_fields, field)
static const struct field completion_table[] = {
    {"text", FIELD_TEXT, FIELD_NULLABLE, COMPLETION(text), 0, 0, NULL},
    {"completion_ids", FIELD_NUMBERS, FIELD_NULLABLE, COMPLETION(completion_ids), 0, 0, NULL},
    {"logprobs", FIELD_NUMBERS, FIELD_NULLABLE, COMPLETION(logprobs), 0, 0, NULL},
    {"completion_mask", FIELD_NUMBERS, FIELD_NULLABLE, COMPLETION(completion_mask), 0, 0, NULL},
    {"token_ends", FIELD_NUMBERS, FIELD_NULLABLE, COMPLETION(token_ends), 0, 0, NULL},
    {"finish_reason", FIELD_CHOICE, FIELD_NULLABLE, COMPLETION(finish_reason), 0, 0, finish_reasons},
    {"messages", FIELD_ARRAY, FIELD_NULLABLE, COMPLETION(messages), 0, 0, NULL},
    {"seed", FIELD_INT, FIELD_NULLABLE, COMPLETION(seed), 0, 9223372036854775807.0, NULL},
    {"engine", FIELD_TEXT, FIELD_NULLABLE, COMPLETION(engine), 0, 256, NULL},
    {"sampling", FIELD_OBJECT, FIELD_NULLABLE, COMPLETION(sampling), 0, 0, NULL},
    {"metadata", FIELD_OBJECT, FIELD_NULLABLE, COMPLETION(metadata), 0, 0, NULL},
    {"failure", FIELD_OBJECT, FIELD_NULLABLE, COMPLETION(failure), 0, 0, NULL},
    {"rewards", FIELD_OBJECT, FIELD_NULLABLE, COMPLETION(rewards), 0, 0, NULL},
};

/* Where the reading is. */
struct place {
    struct batch_spec *spec;
    const struct group_spec *group;
    char path[PATH_BYTES];
};

static int refuse(const struct place *place, const char *name, enum error_code code, const char *message)
{
    char where[PATH_BYTES];
    path_join(where, place->path, name);
    return call_refuse(place->spec->input.call, code, where, "%s", message);
}

static int refuse_element(const struct place *place, const char *name, size_t index, enum error_code code,
                          const char *message)
{
    char where[PATH_BYTES];
    path_index(where, place->path, name, index);
    return call_refuse(place->spec->input.call, code, where, "%s", message);
}

static void *own(const struct place *place, size_t count, size_t size_bytes)
{
    void *memory = calloc(count + 1, size_bytes);
    if (!memory)
        refuse(place, "", ERR_QUEUE_FULL, "there is no memory for this completion now");
    return batch_spec_own(place->spec, memory);
}

/* --- tokens ------------------------------------------------------------------------------------------- */

static int check_length(const struct place *place, const char *name, const struct numbers *numbers, size_t tokens)
{
    char where[PATH_BYTES];
    if (!numbers->values || numbers->count == tokens)
        return 0;
    path_join(where, place->path, name);
    return call_refuse(place->spec->input.call, ERR_LENGTH_MISMATCH, where, "%zu values for %zu completion_ids",
                       numbers->count, tokens);
}

static int read_mask(const struct place *place, const struct numbers *numbers, struct completion_spec *completion)
{
    if (!numbers->values)
        return 0;
    uint8_t *mask = own(place, numbers->count, sizeof(uint8_t));
    if (!mask)
        return -1;
    for (size_t i = 0; i < numbers->count; i++) {
        if (numbers->values[i] != 0 && numbers->values[i] != 1)
            return refuse_element(place, "completion_mask", i, ERR_INVALID_FIELD, "a mask has 0 or 1 for each token");
        mask[i] = numbers->values[i] != 0;
    }
    completion->mask = mask;
    return 0;
}

/* Where the mask is 0 nothing is read, whatever stands there: 0 is kept. */
static int read_logprobs(const struct place *place, const struct numbers *numbers, struct completion_spec *completion)
{
    float *logprobs = own(place, numbers->count, sizeof(float));
    if (!logprobs)
        return -1;
    for (size_t i = 0; i < numbers->count; i++) {
        if (completion->mask && !completion->mask[i])
            continue;
        logprobs[i] = (float)numbers->values[i];
        if (!isfinite(logprobs[i]))
            return refuse_element(place, "logprobs", i, ERR_NON_FINITE,
                                  "a log-probability is a finite number wherever the mask is 1");
        if (numbers->values[i] > LOGPROB_MAX)
            return refuse_element(place, "logprobs", i, ERR_INVALID_FIELD,
                                  "above 0 it is no logarithm of a probability: are these logits, or is the sign "
                                  "missing?");
    }
    completion->logprobs = logprobs;
    return 0;
}

static int read_tokens(const struct place *place, const struct completion_fields *fields,
                       struct completion_spec *completion)
{
    const struct numbers *ids = &fields->completion_ids;
    char where[PATH_BYTES];
    uint32_t *owned;

    if (!ids->values && (fields->logprobs.values || fields->completion_mask.values))
        return refuse(place, "completion_ids", ERR_MISSING_FIELD, "the ids that these values belong to are missing");
    if (!ids->values)
        return 0;
    if (ids->count == 0)
        return refuse(place, "completion_ids", ERR_EMPTY_COMPLETION, "a completion has at least one token");
    if (!fields->logprobs.values)
        return refuse(place, "logprobs", ERR_MISSING_FIELD,
                      "completion_ids come with their logprobs; leave both out for a text that is judged only");
    path_join(where, place->path, "completion_ids");
    if (batch_spec_read_ids(place->spec, ids, where, &owned) < 0)
        return -1;
    completion->ids = owned;
    completion->token_count = ids->count;
    if (check_length(place, "logprobs", &fields->logprobs, ids->count) < 0 ||
        check_length(place, "completion_mask", &fields->completion_mask, ids->count) < 0)
        return -1;
    if (read_mask(place, &fields->completion_mask, completion) < 0)
        return -1;
    return read_logprobs(place, &fields->logprobs, completion);
}

/* --- text ------------------------------------------------------------------------------------------------ */

/* Of a conversation the last thing that the model said is judged. */
static struct text last_said(const json_t *messages)
{
    for (size_t i = json_array_size(messages); i-- > 0;) {
        const json_t *message = json_array_get(messages, i);
        const json_t *role = json_object_get(message, "role");
        const json_t *content = json_object_get(message, "content");
        if (json_is_string(role) && strcmp(json_string_value(role), "assistant") == 0 && json_is_string(content))
            return (struct text){json_string_value(content), json_string_length(content)};
    }
    return TEXT_NONE;
}

static int read_text(const struct place *place, const struct completion_fields *fields,
                     struct completion_spec *completion)
{
    completion->text = fields->text.data ? fields->text : last_said(fields->messages);
    if (completion->failure.code.data)
        return 0;
    if (!completion->text.data && place->group->verifiers->count > 0)
        return refuse(place, "text", ERR_MISSING_FIELD,
                      "the verifiers judge a text (or the last message of the model)");
    if (!completion->text.data && !completion->ids && !fields->rewards)
        return refuse(place, "text", ERR_MISSING_FIELD, "a completion has a text, or completion_ids, or rewards");
    if (completion->text.data && completion->text.length_bytes == 0 && !completion->ids)
        return refuse(place, "text", ERR_EMPTY_COMPLETION, "the completion is empty");
    return 0;
}

/* --- failure --------------------------------------------------------------------------------------------- */

struct failure_fields {
    int stage;
    struct text code;
    struct text message;
    bool retryable;
    int64_t attempts;
};

#define FAILURE(field) offsetof(struct failure_fields, field)
static const struct field failure_table[] = {
    {"stage", FIELD_CHOICE, FIELD_NULLABLE, FAILURE(stage), 0, 0, stages},
    {"code", FIELD_TEXT, FIELD_REQUIRED, FAILURE(code), 0, CODE_MAX_BYTES, NULL},
    {"message", FIELD_TEXT, FIELD_NULLABLE, FAILURE(message), 0, 0, NULL},
    {"retryable", FIELD_BOOL, FIELD_NULLABLE, FAILURE(retryable), 0, 0, NULL},
    {"attempts", FIELD_INT, FIELD_NULLABLE, FAILURE(attempts), 0, 65535, NULL},
};

/* Codes are counted, filtered by and shown: plain words. */
static bool is_code(struct text code)
{
    for (size_t i = 0; i < code.length_bytes; i++)
        if (!code.data[i] || !strchr("abcdefghijklmnopqrstuvwxyz0123456789_", code.data[i]))
            return false;
    return code.length_bytes > 0;
}

static int read_failure(const struct place *place, const struct completion_fields *fields,
                        struct completion_spec *completion)
{
    struct failure_fields read = {.message = TEXT_LITERAL("")};
    char where[PATH_BYTES];

    if (!fields->failure)
        return 0;
    path_join(where, place->path, "failure");
    if (json_read_object(&place->spec->input, fields->failure, where, failure_table, ARRAY_LENGTH(failure_table),
                         &read) < 0)
        return -1;
    if (!is_code(read.code))
        return refuse(place, "failure.code", ERR_INVALID_FIELD, "a code consists of a-z 0-9 _");
    if (fields->rewards)
        return refuse(place, "rewards", ERR_INVALID_FIELD, "a completion that failed has no rewards");
    completion->failure = (struct store_failure){.stage = text_of(stages[read.stage]),
                                                 .code = read.code,
                                                 .message = read.message,
                                                 .retryable = read.retryable,
                                                 .attempts = read.attempts};
    return 0;
}

/* --- rewards ----------------------------------------------------------------------------------------------- */

struct reward_fields {
    double score; /* NAN: null */
    double weight;
    json_t *steps;
};

static const struct field reward_table[] = {
    {"score", FIELD_DOUBLE, FIELD_NULLABLE, offsetof(struct reward_fields, score), -SCORE_MAX, SCORE_MAX, NULL},
    {"weight", FIELD_DOUBLE, 0, offsetof(struct reward_fields, weight), -WEIGHT_MAX, WEIGHT_MAX, NULL},
    {"steps", FIELD_ARRAY, FIELD_NULLABLE, offsetof(struct reward_fields, steps), 0, 0, NULL},
};

/* As the id of a verifier. */
static bool is_name(const char *name)
{
    size_t length = 0;
    while (name[length] && (unsigned char)name[length] >= ' ' && name[length] != 0x7f)
        length++;
    return length > 0 && length <= NAME_MAX_BYTES && !name[length];
}

static int read_reward(const struct place *place, const char *name, const json_t *value,
                       const struct completion_spec *completion, struct given_reward *reward,
                       struct given_score *ret_score)
{
    struct reward_fields read = {.score = NAN, .weight = 1};
    char where[PATH_BYTES];

    path_join(where, place->path, "rewards");
    path_join(where, where, name);
    if (!is_name(name))
        return call_refuse(place->spec->input.call, ERR_INVALID_FIELD, where,
                           "a reward's name has 1 to %d printable bytes", NAME_MAX_BYTES);
    if (verifier_list_has(place->group->verifiers, text_of(name)))
        return call_refuse(place->spec->input.call, ERR_INVALID_FIELD, where, "a verifier has this id already");
    if (json_read_object(&place->spec->input, value, where, reward_table, ARRAY_LENGTH(reward_table), &read) < 0)
        return -1;
    if (!json_object_get(value, "score"))
        return call_refuse(place->spec->input.call, ERR_MISSING_FIELD, where, "a reward has a score (or null)");
    *reward = (struct given_reward){name, read.weight};
    *ret_score = (struct given_score){.score = read.score};
    return completion_read_steps(place->spec, where, read.steps, completion, ret_score);
}

/* Most completions of a request name the same rewards: they share one list. */
static struct verifier_list *share_list(const struct place *place, const struct given_reward *rewards, size_t count)
{
    const struct group_spec *group = place->group;
    size_t at = group->completion_count;
    struct verifier_list *before = at > 0 ? group->completions[at - 1].verifiers : NULL;
    if (before && verifier_list_gives(before, group->verifiers, rewards, count))
        return verifier_list_ref(before);
    return verifier_list_with_given(group->verifiers, rewards, count);
}

static int read_rewards(const struct place *place, const struct completion_fields *fields,
                        struct completion_spec *completion)
{
    size_t count = json_object_size(fields->rewards);
    size_t at = 0;
    const char *name;
    json_t *value;

    if (count > VERIFIER_LIST_LIMIT)
        return refuse(place, "rewards", ERR_INVALID_FIELD, "these are too many");
    _cleanup_free_ struct given_reward *rewards = xcalloc(count + 1, sizeof(*rewards));
    struct given_score *scores = own(place, count, sizeof(*scores));
    if (!scores)
        return -1;
    json_object_foreach (fields->rewards, name, value) {
        if (read_reward(place, name, value, completion, &rewards[at], &scores[at]) < 0)
            return -1;
        at++;
    }
    completion->given = scores;
    completion->given_count = count;
    completion->verifiers = share_list(place, rewards, count);
    return 0;
}

/* --- all of them ----------------------------------------------------------------------------------------------- */

static int read_completion(const struct place *place, const json_t *object, struct completion_spec *completion)
{
    struct completion_fields fields = {.finish_reason = -1, .seed = -1};
    if (json_read_object(&place->spec->input, object, place->path, completion_table, ARRAY_LENGTH(completion_table),
                         &fields) < 0)
        return -1;
    completion->finish_reason = fields.finish_reason < 0 ? TEXT_NONE : text_of(finish_reasons[fields.finish_reason]);
    completion->seed = fields.seed;
    completion->engine = fields.engine;
    if (read_failure(place, &fields, completion) < 0 || read_tokens(place, &fields, completion) < 0 ||
        read_text(place, &fields, completion) < 0 ||
        completion_read_token_ends(place->spec, place->path, &fields.token_ends, completion) < 0)
        return -1;
    return read_rewards(place, &fields, completion);
}

int score_read_completions(struct batch_spec *spec, const json_t *list, const char *path, struct group_spec *group)
{
    struct place place = {.spec = spec, .group = group};
    size_t count = json_array_size(list);
    size_t limit = (size_t)spec->input.call->settings->max_rollouts_per_batch;

    snprintf(place.path, sizeof(place.path), "%s", path);
    if (count == 0)
        return refuse(&place, "completions", ERR_INVALID_FIELD, "a group has at least one completion");
    if (count > limit)
        return refuse(&place, "completions", ERR_INVALID_FIELD, "more than max_rollouts_per_batch completions");
    group->n = (int64_t)count;
    group->completions = batch_spec_own(spec, xcalloc(count, sizeof(struct completion_spec)));
    for (; group->completion_count < count; group->completion_count++) {
        path_index(place.path, path, "completions", group->completion_count);
        if (read_completion(&place, json_array_get(list, group->completion_count),
                            &group->completions[group->completion_count]) < 0)
            return -1;
    }
    return 0;
}

/* --- which kind of request it is -------------------------------------------------------------------------------- */

static bool enter_member(struct json_scan *scan, const char *name)
{
    struct text key;
    if (!json_scan_object(scan))
        return false;
    while (json_scan_member(scan, &key)) {
        if (text_equals(key, name))
            return true;
        json_scan_skip(scan);
    }
    return false;
}

bool score_brings_completions(struct text body)
{
    struct json_scan scan;
    json_scan_init(&scan, body);
    return enter_member(&scan, "groups") && json_scan_array(&scan) && json_scan_element(&scan) &&
           enter_member(&scan, "completions");
}
