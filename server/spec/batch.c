#include "server/spec/batch.h"
#include "server/base/json_big.h"

#include "server/base/blocks.h"
#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/settings/settings.h"
#include "server/spec/objective.h"
#include "server/spec/returns.h"
#include "server/store/store.h"

#include <math.h>
#include <stdio.h>

#define RUN_MAX_BYTES 128
#define RUN_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define JSON_MAX_BYTES ((size_t)1 << 30)

static const char *const lifted_names[] = {"prompt_ids", "stop_token_ids", NULL};
static const char *const lifted_of_score[] = {"prompt_ids",      "completion_ids", "logprobs",
                                              "completion_mask", "token_ends",     NULL};

/* --- memory ---------------------------------------------------------------------------------------- */

void *batch_spec_own(struct batch_spec *spec, void *memory)
{
    if (spec->owned_count == spec->owned_capacity) {
        spec->owned_capacity = spec->owned_capacity ? 2 * spec->owned_capacity : 64;
        spec->owned = xrealloc(spec->owned, spec->owned_capacity * sizeof(void *));
    }
    spec->owned[spec->owned_count++] = memory;
    return memory;
}

struct text batch_spec_own_buffer(struct batch_spec *spec, struct buffer *buffer)
{
    struct text text = {NULL, 0};
    text.data = batch_spec_own(spec, buffer_steal(buffer, &text.length_bytes));
    return text;
}

struct text batch_spec_dump(struct batch_spec *spec, const json_t *value)
{
    if (!value)
        return TEXT_NONE;
    char *dumped = json_big_dump(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!dumped)
        return TEXT_NONE;
    batch_spec_own(spec, dumped);
    return text_of(dumped);
}

void batch_spec_pack_body(struct batch_spec *spec)
{
    if (spec->origin == BATCH_GIVEN && batch_spec_pack_lean(spec))
        spec->body_codec = STORE_CODEC_LEAN;
    else
        spec->body_codec = store_pack((struct text){spec->body, spec->body_bytes}, &spec->packed);
    if (spec->body_codec == STORE_CODEC_PLAIN) {
        buffer_finish(&spec->packed);
        return;
    }
    buffer_trim(&spec->packed);
    free(TAKE_PTR(spec->body));
}

void batch_spec_drop_body(struct batch_spec *spec)
{
    free(TAKE_PTR(spec->body));
    buffer_finish(&spec->packed);
}

void batch_spec_destroy(struct batch_spec *spec)
{
    if (!spec)
        return;
    for (size_t g = 0; g < spec->group_count; g++) {
        for (int64_t i = 0; i < spec->groups[g].n && spec->groups[g].completions; i++)
            verifier_list_unref(spec->groups[g].completions[i].verifiers);
        verifier_list_unref(spec->groups[g].verifiers);
    }
    verifier_list_unref(spec->verifiers);
    json_input_finish(&spec->input);
    for (size_t i = 0; i < spec->owned_count; i++)
        free(spec->owned[i]);
    free(spec->owned);
    free(spec->groups);
    batch_spec_drop_body(spec);
    free(spec);
}

size_t batch_spec_bytes(const struct batch_spec *spec)
{
    /* given completions are in here once more, on their way to the verifiers */
    size_t times = spec->origin == BATCH_GIVEN ? 3 : 2;
    return times * (spec->body_bytes + spec->set_bytes) + spec->group_count * sizeof(struct group_spec) +
           spec->rollout_count * 64;
}

/* --- sampling --------------------------------------------------------------------------------------- */

struct sampling_fields {
    int64_t n;
    int64_t max_tokens;
    double temperature;
    double top_p;
    int64_t top_k;
    double min_p;
    json_t *stop;
    struct numbers stop_token_ids;
    json_t *chat_template_kwargs;
    json_t *engine_options;
};

#define SAMPLING(field) offsetof(struct sampling_fields, field)
static const struct field sampling_table[] = {
    {"n", FIELD_INT, 0, SAMPLING(n), 1, 65536, NULL},
    {"max_tokens", FIELD_INT, 0, SAMPLING(max_tokens), 1, 16777216, NULL},
    {"temperature", FIELD_DOUBLE, 0, SAMPLING(temperature), 0, 100, NULL},
    {"top_p", FIELD_DOUBLE, 0, SAMPLING(top_p), 0, 1, NULL},
    {"top_k", FIELD_INT, 0, SAMPLING(top_k), -1, 16777216, NULL},
    {"min_p", FIELD_DOUBLE, 0, SAMPLING(min_p), 0, 1, NULL},
    {"stop", FIELD_ANY, 0, SAMPLING(stop), 0, 0, NULL},
    {"stop_token_ids", FIELD_NUMBERS, 0, SAMPLING(stop_token_ids), 0, 0, NULL},
    {"chat_template_kwargs", FIELD_OBJECT, FIELD_NULLABLE, SAMPLING(chat_template_kwargs), 0, 0, NULL},
    {"engine_options", FIELD_OBJECT, FIELD_NULLABLE, SAMPLING(engine_options), 0, 0, NULL},
};

static int read_stop(struct batch_spec *spec, const json_t *stop, const char *path, struct sampling *sampling)
{
    size_t count = json_is_array(stop) ? json_array_size(stop) : 1;
    struct text *texts = batch_spec_own(spec, xcalloc(count + 1, sizeof(struct text)));
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_is_array(stop) ? json_array_get(stop, i) : stop;
        if (!json_is_string(one) || json_string_length(one) == 0)
            return call_refuse(spec->input.call, ERR_INVALID_FIELD, path,
                               "stop is a text or a list of texts, none empty");
        texts[i] = (struct text){json_string_value(one), json_string_length(one)};
    }
    sampling->stop = texts;
    sampling->stop_count = count;
    return 0;
}

/* A list of token ids, checked, as packed integers. */
int batch_spec_read_ids(struct batch_spec *spec, const struct numbers *numbers, const char *path, uint32_t **ret_ids)
{
    uint32_t *ids = batch_spec_own(spec, calloc(numbers->count + 1, sizeof(uint32_t)));
    if (!ids)
        return call_refuse(spec->input.call, ERR_QUEUE_FULL, path, "there is no memory for these ids now");
    for (size_t i = 0; i < numbers->count; i++) {
        double id = numbers->values[i];
        if (!(id >= 0 && id <= 4294967295.0) || id != floor(id)) {
            char where[PATH_BYTES];
            path_index(where, path, "", i);
            return call_refuse(spec->input.call, ERR_INVALID_FIELD, where,
                               "a token id is an integer from 0 to 4294967295");
        }
        ids[i] = (uint32_t)id;
    }
    *ret_ids = ids;
    return 0;
}

static int read_engine_options(struct batch_spec *spec, const struct sampling_fields *fields, const char *path,
                               struct sampling *sampling)
{
    struct text offending;
    sampling->engine_options = batch_spec_dump(spec, fields->engine_options);
    if (engine_options_check(sampling->engine_options, &offending))
        return 0;
    char where[PATH_BYTES];
    path_join(where, path, "engine_options");
    return call_refuse(spec->input.call, ERR_INVALID_FIELD, where, "%.*s is set by the service itself",
                       (int)offending.length_bytes, offending.data ? offending.data : "");
}

int batch_spec_read_sampling(struct batch_spec *spec, const json_t *object, const char *path, struct sampling *sampling,
                             int64_t *n)
{
    struct sampling_fields fields = {.n = *n,
                                     .max_tokens = sampling->max_tokens,
                                     .temperature = sampling->temperature,
                                     .top_p = sampling->top_p,
                                     .top_k = sampling->top_k,
                                     .min_p = sampling->min_p};
    char where[PATH_BYTES];

    if (json_read_object(&spec->input, object, path, sampling_table, ARRAY_LENGTH(sampling_table), &fields) < 0)
        return -1;
    *n = fields.n;
    sampling->max_tokens = fields.max_tokens;
    sampling->temperature = fields.temperature;
    sampling->top_p = fields.top_p;
    sampling->top_k = fields.top_k;
    sampling->min_p = fields.min_p;
    path_join(where, path, "stop");
    if (fields.stop && read_stop(spec, fields.stop, where, sampling) < 0)
        return -1;
    if (fields.stop_token_ids.values) {
        uint32_t *ids = NULL;
        path_join(where, path, "stop_token_ids");
        if (batch_spec_read_ids(spec, &fields.stop_token_ids, where, &ids) < 0)
            return -1;
        sampling->stop_token_ids = ids;
        sampling->stop_token_id_count = fields.stop_token_ids.count;
    }
    if (fields.chat_template_kwargs)
        sampling->chat_template_kwargs = batch_spec_dump(spec, fields.chat_template_kwargs);
    return fields.engine_options ? read_engine_options(spec, &fields, path, sampling) : 0;
}

struct text batch_spec_write_sampling(struct batch_spec *spec)
{
    const struct sampling *sampling = &spec->sampling;
    struct buffer out;
    struct json_write json;
    buffer_init(&out, JSON_MAX_BYTES);
    json_write_init(&json, &out);
    json_object_begin(&json);
    json_put_int(&json, "n", spec->n);
    json_put_int(&json, "max_tokens", sampling->max_tokens);
    json_put_double(&json, "temperature", sampling->temperature);
    json_put_double(&json, "top_p", sampling->top_p);
    json_put_int(&json, "top_k", sampling->top_k);
    json_put_double(&json, "min_p", sampling->min_p);
    json_key(&json, "stop");
    json_array_begin(&json);
    for (size_t i = 0; i < sampling->stop_count; i++)
        json_text(&json, sampling->stop[i]);
    json_array_end(&json);
    json_put_u32s(&json, "stop_token_ids", sampling->stop_token_ids, sampling->stop_token_id_count, JSON_ARRAYS_PLAIN);
    json_put_raw(&json, "chat_template_kwargs", sampling->chat_template_kwargs);
    json_put_raw(&json, "engine_options", sampling->engine_options);
    json_object_end(&json);
    return batch_spec_own_buffer(spec, &out);
}

/* --- the request ---------------------------------------------------------------------------------------- */

struct batch_fields {
    struct text run;
    int64_t policy_revision;
    int64_t seed;
    int purpose;
    struct text model;
    struct text engine;
    int deliver;
    json_t *sampling;
    json_t *verifiers;
    int missing;
    json_t *objective;
    int64_t deadline_us;
    int64_t rollout_timeout_us;
    int64_t max_staleness;
    bool strict_references;
    bool store;
    json_t *returns;
    json_t *metadata;
    json_t *groups;
    json_t *reserve;
    json_t *refill;
    json_t *pass_at;
    struct text pass_verifier;
    double pass_threshold;
};

#define BATCH(field) offsetof(struct batch_fields, field)
#define BATCH_FIELDS(BOTH, SAMPLED, GIVEN)                                                                             \
    BOTH("run", FIELD_TEXT, FIELD_REQUIRED, BATCH(run), 0, RUN_MAX_BYTES, NULL)                                        \
    BOTH("policy_revision", FIELD_INT, 0, BATCH(policy_revision), 0, 9223372036854775807.0, NULL)                      \
    SAMPLED("seed", FIELD_INT, 0, BATCH(seed), 0, 9223372036854775807.0, NULL)                                         \
    BOTH("purpose", FIELD_CHOICE, 0, BATCH(purpose), 0, 0, store_purpose_names)                                        \
    SAMPLED("model", FIELD_TEXT, 0, BATCH(model), 0, 1024, NULL)                                                       \
    SAMPLED("engine", FIELD_TEXT, 0, BATCH(engine), 0, 128, NULL)                                                      \
    SAMPLED("deliver", FIELD_CHOICE, 0, BATCH(deliver), 0, 0, store_deliver_names)                                     \
    SAMPLED("sampling", FIELD_OBJECT, 0, BATCH(sampling), 0, 0, NULL)                                                  \
    BOTH("verifiers", FIELD_ARRAY, 0, BATCH(verifiers), 0, 0, NULL)                                                    \
    BOTH("missing", FIELD_CHOICE, 0, BATCH(missing), 0, 0, reward_missing_names)                                       \
    BOTH("objective", FIELD_OBJECT, 0, BATCH(objective), 0, 0, NULL)                                                   \
    BOTH("deadline", FIELD_DURATION, 0, BATCH(deadline_us), 0, 0, NULL)                                                \
    SAMPLED("rollout_timeout", FIELD_DURATION, 0, BATCH(rollout_timeout_us), 0, 0, NULL)                               \
    BOTH("max_staleness", FIELD_INT, FIELD_NULLABLE, BATCH(max_staleness), 0, 9223372036854775807.0, NULL)             \
    BOTH("strict_references", FIELD_BOOL, 0, BATCH(strict_references), 0, 0, NULL)                                     \
    GIVEN("store", FIELD_BOOL, 0, BATCH(store), 0, 0, NULL)                                                            \
    BOTH("return", FIELD_ARRAY, 0, BATCH(returns), 0, 0, NULL)                                                         \
    BOTH("metadata", FIELD_OBJECT, FIELD_NULLABLE, BATCH(metadata), 0, 0, NULL)                                        \
    BOTH("groups", FIELD_ARRAY, FIELD_REQUIRED | FIELD_LIFTED, BATCH(groups), 0, 0, NULL)                              \
    SAMPLED("reserve", FIELD_ARRAY, FIELD_LIFTED, BATCH(reserve), 0, 0, NULL)                                          \
    SAMPLED("refill", FIELD_OBJECT, 0, BATCH(refill), 0, 0, NULL)                                                      \
    BOTH("pass_at", FIELD_ARRAY, 0, BATCH(pass_at), 0, 0, NULL)                                                        \
    BOTH("pass_verifier", FIELD_TEXT, 0, BATCH(pass_verifier), 0, 0, NULL)                                             \
    BOTH("pass_threshold", FIELD_DOUBLE, 0, BATCH(pass_threshold), 0, 0, NULL)

static const struct field batch_table[] = {BATCH_FIELDS(FIELD_ROW, FIELD_ROW, FIELD_NO_ROW)};

/* Fields of a score: its completions exist, so it has no engine, no sampling and no time-out. */
static const struct field score_table[] = {BATCH_FIELDS(FIELD_ROW, FIELD_NO_ROW, FIELD_ROW)};

/* A batch of before stays what it is, whatever ready_limit is now. */
static int check_delivery(struct call *call, const struct batch_fields *fields)
{
    int64_t ready_limit = call->settings->ready_limit;
    if (fields->deliver != STORE_LEASE)
        return 0;
    if (fields->purpose == STORE_EVAL)
        return call_refuse(call, ERR_EVAL_GROUP, "deliver", "groups of an evaluation are never leased");
    if (!call->resumed && (int64_t)json_array_size(fields->groups) > ready_limit)
        return call_refuse(call, ERR_INVALID_FIELD, "groups",
                           "%zu groups are more than ready_limit lets a run have for its leases (%lld)",
                           json_array_size(fields->groups), (long long)ready_limit);
    return 0;
}

int run_name_check(struct call *call, struct text run)
{
    size_t sane = 0;
    while (sane < run.length_bytes && run.data[sane] && strchr(RUN_CHARACTERS, run.data[sane]))
        sane++;
    if (run.length_bytes == 0 || run.length_bytes > RUN_MAX_BYTES || sane < run.length_bytes)
        return call_refuse(call, ERR_INVALID_FIELD, "run", "a run's name has 1 to 128 of A-Z a-z 0-9 . _ -");
    return 0;
}

static int check_fields(struct call *call, const struct batch_fields *fields)
{
    if (run_name_check(call, fields->run) < 0)
        return -1;
    if (fields->deadline_us <= 0)
        return call_refuse(call, ERR_INVALID_FIELD, "deadline", "a deadline lies in the future");
    if (fields->rollout_timeout_us <= 0)
        return call_refuse(call, ERR_INVALID_FIELD, "rollout_timeout", "a time-out is longer than 0");
    if (json_array_size(fields->groups) == 0)
        return call_refuse(call, ERR_INVALID_FIELD, "groups", "a batch has at least one group");
    return check_delivery(call, fields);
}

static void copy_fields(struct batch_spec *spec, const struct batch_fields *fields)
{
    spec->run = fields->run;
    spec->policy_revision = fields->policy_revision;
    spec->seed = spec->origin == BATCH_GIVEN ? 0 : (uint64_t)fields->seed;
    if (fields->seed < 0 && spec->origin == BATCH_SAMPLED) {
        random_bytes(&spec->seed, sizeof(spec->seed));
        spec->seed >>= 1;
    }
    spec->purpose = fields->purpose;
    spec->deliver = fields->deliver;
    spec->model = fields->model;
    spec->pool = fields->engine;
    spec->missing = fields->missing;
    spec->deadline_us = fields->deadline_us;
    spec->rollout_timeout_us = fields->rollout_timeout_us;
    spec->max_staleness = fields->max_staleness;
    spec->strict_references = fields->strict_references;
    spec->store = fields->store;
    spec->returns_json = batch_spec_dump(spec, fields->returns);
    spec->metadata_json = batch_spec_dump(spec, fields->metadata);
}

static bool grades_steps(const struct verifier_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->specs[i].steps && !list->specs[i].heldout && list->specs[i].weight != 0)
            return true;
    return false;
}

/* Steps of given completions may come with them; those of sampled ones come from verifiers alone. */
static int check_steps(struct batch_spec *spec)
{
    if (spec->objective.advantage.estimator != OBJECTIVE_ESTIMATOR_PROCESS || spec->origin == BATCH_GIVEN)
        return 0;
    for (size_t g = 0; g < spec->group_count; g++)
        if (!grades_steps(spec->groups[g].verifiers))
            return call_refuse(spec->input.call, ERR_OBJECTIVE_OPTIONS, "objective.advantage.estimator",
                               "process needs a verifier that grades steps (\"steps\" beside its options), with a "
                               "weight other than 0");
    return 0;
}

static int read_objective(struct batch_spec *spec, const json_t *object)
{
    struct call *call = spec->input.call;
    struct objective_contradiction contradiction;
    char path[PATH_BYTES];
    if (objective_json_read(&spec->input, object, "objective", &spec->objective) < 0)
        return -1;
    if (objective_check_sampling(&spec->objective, &contradiction) < 0) {
        path_join(path, "objective", contradiction.path);
        return call_refuse(call, ERR_OBJECTIVE_OPTIONS, path, "%s", contradiction.message);
    }
    /* `missing` of the batch and advantage.missing of the objective are one rule: either names it, both must agree. */
    bool named = object && json_object_get(json_object_get(object, "advantage"), "missing");
    bool of_batch = json_object_get(spec->input.root, "missing") != NULL;
    if (!of_batch)
        spec->missing = spec->objective.advantage.missing;
    if (named && of_batch && spec->objective.advantage.missing != spec->missing)
        return call_refuse(call, ERR_OBJECTIVE_OPTIONS, "objective.advantage.missing",
                           "the batch's own `missing` says otherwise");
    spec->objective.advantage.missing = spec->missing;

    struct buffer out;
    struct json_write json;
    buffer_init(&out, JSON_MAX_BYTES);
    json_write_init(&json, &out);
    objective_json_write(&json, &spec->objective);
    spec->objective_json = batch_spec_own_buffer(spec, &out);
    return 0;
}

static int read_pass(struct batch_spec *spec, const struct batch_fields *fields)
{
    struct call *call = spec->input.call;

    spec->pass = (struct pass_spec){.verifier = fields->pass_verifier, .threshold = fields->pass_threshold};
    if (pass_at_read(call, fields->pass_at, spec->pass.k, &spec->pass.count) < 0)
        return -1;
    if (spec->pass.count == 0 && (spec->pass.verifier.data || !isnan(spec->pass.threshold)))
        return call_refuse(call, ERR_MISSING_FIELD, "pass_at", "pass_verifier and pass_threshold belong to a pass_at");
    if (isnan(spec->pass.threshold))
        spec->pass.threshold = PASS_THRESHOLD;
    return 0;
}

static int read_refill(struct batch_spec *spec, const struct batch_fields *fields)
{
    if (!fields->reserve && !fields->refill)
        return 0;
    if (spec->purpose == STORE_EVAL)
        return call_refuse(spec->input.call, ERR_EVAL_GROUP, fields->reserve ? "reserve" : "refill",
                           "an evaluation is of the groups that were asked for: none is replaced");
    return refill_read(&spec->input, fields->refill, &spec->refill);
}

static bool is_judged_by(const struct group_spec *group, struct text verifier)
{
    if (verifier_list_has(group->verifiers, verifier))
        return true;
    for (size_t i = 0; i < group->completion_count; i++)
        if (verifier_list_has(group->completions[i].verifiers, verifier))
            return true;
    return false;
}

/* More samples than a group has are never drawn from it, and a score that nobody gives decides nothing. */
static int check_pass(const struct batch_spec *spec)
{
    struct call *call = spec->input.call;
    const struct pass_spec *pass = &spec->pass;
    char path[PATH_BYTES];

    for (size_t g = 0; g < spec->group_count; g++) {
        for (size_t i = 0; i < pass->count; i++) {
            path_index(path, "", "pass_at", i);
            if (pass->k[i] > spec->groups[g].n)
                return call_refuse(call, ERR_OBJECTIVE_OPTIONS, path, "groups[%zu] has %lld members", g,
                                   (long long)spec->groups[g].n);
        }
        if (pass->verifier.data && !is_judged_by(&spec->groups[g], pass->verifier))
            return call_refuse(call, ERR_INVALID_FIELD, "pass_verifier", "groups[%zu] has no verifier with this id", g);
    }
    return 0;
}

static int read_body(struct batch_spec *spec, const struct settings *settings)
{
    struct batch_fields fields = {.policy_revision = -1,
                                  .seed = -1,
                                  .deadline_us = settings->default_deadline_us,
                                  .rollout_timeout_us = settings->rollout_timeout_us,
                                  .max_staleness = settings->max_staleness,
                                  .pass_threshold = NAN,
                                  .store = true};
    bool given = spec->origin == BATCH_GIVEN;
    if (json_read_object(&spec->input, spec->input.root, "", given ? score_table : batch_table,
                         given ? ARRAY_LENGTH(score_table) : ARRAY_LENGTH(batch_table), &fields) < 0)
        return -1;
    if (check_fields(spec->input.call, &fields) < 0)
        return -1;
    copy_fields(spec, &fields);
    unsigned returns;
    if (returns_read(spec->input.call, fields.returns, &returns) < 0)
        return -1;
    if (fields.sampling && batch_spec_read_sampling(spec, fields.sampling, "sampling", &spec->sampling, &spec->n) < 0)
        return -1;
    spec->sampling_json = given ? TEXT_LITERAL("null") : batch_spec_write_sampling(spec);
    _cleanup_(json_decrefp) json_t *none = json_array();
    spec->verifiers = verifier_list_read(&spec->input, fields.verifiers ? fields.verifiers : none, "verifiers");
    if (!spec->verifiers)
        return -1;
    spec->verifiers_json = fields.verifiers ? batch_spec_dump(spec, fields.verifiers) : TEXT_LITERAL("[]");
    if (read_objective(spec, fields.objective) < 0 || read_pass(spec, &fields) < 0)
        return -1;
    if (read_refill(spec, &fields) < 0 || batch_spec_read_groups(spec, fields.groups, fields.reserve) < 0)
        return -1;
    if (refill_check(spec) < 0 || check_steps(spec) < 0)
        return -1;
    return check_pass(spec);
}

enum { PACKED_ROOM_BYTES = 1 << 20 }; /* zstd's last block */

/* Lifting overwrites the text, and the record keeps it as it was posted. */
static bool keep_body(struct batch_spec *spec, const struct call *call)
{
    spec->body = malloc(call->body_bytes + 1);
    if (!spec->body)
        return false;
    memcpy(spec->body, call->body, call->body_bytes + 1);
    spec->body_bytes = call->body_bytes;
    memcpy(spec->body_sha256, call->body_sha256, SHA256_BYTES);
    return true;
}

static struct batch_spec *read_spec(struct call *call, enum batch_origin origin)
{
    const struct settings *settings = call->settings;
    struct batch_spec *spec = xcalloc(1, sizeof(*spec));
    spec->origin = origin;
    buffer_init(&spec->packed, call->body_bytes + PACKED_ROOM_BYTES);
    spec->n = settings->sampling_n;
    spec->sampling = (struct sampling){.max_tokens = settings->sampling_max_tokens,
                                       .temperature = settings->sampling_temperature,
                                       .top_p = settings->sampling_top_p};
    bool kept = keep_body(spec, call);
    if (!kept)
        call_refuse(call, ERR_QUEUE_FULL, NULL, "there is no memory for this body now");
    if (!kept || json_input_init(&spec->input, call, origin == BATCH_GIVEN ? lifted_of_score : lifted_names) < 0 ||
        read_body(spec, settings) < 0) {
        batch_spec_destroy(spec);
        return NULL;
    }
    lifted_finish(&spec->input.lifted); /* what was needed of them is packed now */
    block_give(TAKE_PTR(call->body));
    call->body_bytes = 0;
    return spec;
}

struct batch_spec *batch_spec_read(struct call *call)
{
    return read_spec(call, BATCH_SAMPLED);
}

struct batch_spec *score_spec_read(struct call *call)
{
    return read_spec(call, BATCH_GIVEN);
}
