/* The body of POST /v1/objective, read and checked. */
#include "server/objective_call.h"
#include "server/objective_json.h"
#include "server/objective_tensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const objective_array_names[ARRAY_COUNT] = {"surrogates", "contributions", "dloss_dlogp", "ratios",
                                                        "weights",    "clipped",       "kl",          "selected"};

static const char *const lifted_names[] = {
    "mask",    "logprobs",       "old_logprobs",   "ref_logprobs",  "rollout_logprobs", "teacher_logprobs",
    "entropy", "sum_pi_squared", "completion_ids", "token_rewards", "advantage",        NULL};

/* --- what the call owns --- */

struct objective_memory {
    struct objective_memory *next;
    max_align_t bytes[];
};

void *objective_allocate(struct objective_call *objective, size_t count, size_t size_bytes)
{
    struct objective_memory *entry = NULL;
    size_t bytes;

    if (!__builtin_mul_overflow(count, size_bytes, &bytes) && !__builtin_add_overflow(bytes, sizeof *entry, &bytes))
        entry = calloc(1, bytes);
    if (!entry) {
        call_refuse(objective->call, ERR_QUEUE_FULL, NULL, "there is no memory for this request now");
        return NULL;
    }
    entry->next = objective->memory;
    objective->memory = entry;
    return entry->bytes;
}

void objective_call_finish(struct objective_call *objective)
{
    while (objective->memory) {
        struct objective_memory *next = objective->memory->next;
        free(objective->memory);
        objective->memory = next;
    }
    store_results_destroy(TAKE_PTR(objective->results));
    buffer_finish(&objective->notes);
    json_input_finish(&objective->input);
    objective_tensors_destroy(TAKE_PTR(objective->tensors));
}

void objective_note(struct objective_call *objective, const char *text)
{
    _cleanup_buffer_ struct buffer quoted;
    struct json_write json;

    buffer_init(&quoted, 1024);
    json_write_init(&json, &quoted);
    json_write_string(&json, text);
    if (quoted.failed || (objective->notes.data && strstr(objective->notes.data, quoted.data)))
        return;
    if (objective->notes.length_bytes)
        buffer_append_byte(&objective->notes, ',');
    buffer_append(&objective->notes, quoted.data, quoted.length_bytes);
}

int objective_refuse(struct objective_call *objective, enum error_code code, size_t index, const char *field,
                     size_t token, const char *message)
{
    char path[PATH_BYTES];

    path_index(path, "", "sequences", index);
    path_join(path, path, field);
    if (token != NO_TOKEN)
        path_index(path, path, "", token);
    return call_refuse(objective->call, code, path, "%s", message);
}

/* --- one sequence --- */

struct sequence_fields {
    struct text rollout, group, finish_reason, agent;
    json_t *reward, *rewards, *step_rewards, *advantage;
    struct numbers token_advantages, token_rewards, mask, completion_ids;
    struct numbers logprobs, old_logprobs, ref_logprobs, rollout_logprobs;
    struct numbers teacher_logprobs, entropy, sum_pi_squared;
    double greedy_reward;
    int64_t length, prompt_tokens, turns;
};

#define AT(member) offsetof(struct sequence_fields, member)
#define NUMBERS(name)                                                                                                  \
    {                                                                                                                  \
#name, FIELD_NUMBERS, FIELD_NULLABLE, AT(name), 0, 0, NULL                                                     \
    }
#define COUNT_OF(name)                                                                                                 \
    {                                                                                                                  \
#name, FIELD_INT, FIELD_NULLABLE, AT(name), 0, 0x1p53, NULL                                                    \
    }

/* `advantage` is one number or one for each token, so it stands in the table in one of two ways. */
#define SEQUENCE_TABLE(advantage_row)                                                                                  \
    {                                                                                                                  \
        {"rollout", FIELD_TEXT, 0, AT(rollout), 0, ID_BYTES, NULL},                                                    \
            {"group", FIELD_TEXT, 0, AT(group), 0, 1024, NULL}, {"reward", FIELD_ANY, 0, AT(reward), 0, 0, NULL},      \
            {"rewards", FIELD_OBJECT, 0, AT(rewards), 0, 0, NULL}, advantage_row,                                      \
            {"step_rewards", FIELD_ANY, 0, AT(step_rewards), 0, 0, NULL},                                              \
            {"finish_reason", FIELD_TEXT, FIELD_NULLABLE, AT(finish_reason), 0, 64, NULL},                             \
            {"agent", FIELD_TEXT, FIELD_NULLABLE, AT(agent), 0, 256, NULL},                                            \
            {"greedy_reward", FIELD_DOUBLE, FIELD_NULLABLE, AT(greedy_reward), 0, 0, NULL}, COUNT_OF(length),          \
            COUNT_OF(prompt_tokens), COUNT_OF(turns), NUMBERS(mask), NUMBERS(token_rewards), NUMBERS(completion_ids),  \
            NUMBERS(logprobs), NUMBERS(old_logprobs), NUMBERS(ref_logprobs), NUMBERS(rollout_logprobs),                \
            NUMBERS(teacher_logprobs), NUMBERS(entropy), NUMBERS(sum_pi_squared)                                       \
    }

#define ADVANTAGE_NUMBER                                                                                               \
    {                                                                                                                  \
        "advantage", FIELD_ANY, 0, AT(advantage), 0, 0, NULL                                                           \
    }
#define ADVANTAGE_NUMBERS                                                                                              \
    {                                                                                                                  \
        "advantage", FIELD_NUMBERS, 0, AT(token_advantages), 0, 0, NULL                                                \
    }

static const struct field with_number[] = SEQUENCE_TABLE(ADVANTAGE_NUMBER);
static const struct field with_numbers[] = SEQUENCE_TABLE(ADVANTAGE_NUMBERS);

static bool is_single(const json_t *value)
{
    return json_is_number(value) || json_is_null(value);
}

static int read_score(struct objective_call *objective, size_t index, const char *name, const json_t *part,
                      double *ret_score, double *ret_weight)
{
    char path[PATH_BYTES];
    const json_t *score = json_object_get(part, "score");
    const json_t *weight = json_object_get(part, "weight");
    bool whole = json_is_object(part) && json_object_size(part) == (weight ? 2U : 1U);

    snprintf(path, sizeof path, "rewards.%s", name);
    if (!whole || !score || !is_single(score) || (weight && !json_is_number(weight)))
        return objective_refuse(objective, ERR_INVALID_FIELD, index, path, NO_TOKEN,
                                "expected {\"score\": number or null, \"weight\": number}");
    *ret_score = json_is_null(score) ? NAN : json_number_value(score);
    *ret_weight = weight ? json_number_value(weight) : 1;
    return 0;
}

static int read_rewards(struct objective_call *objective, size_t index, json_t *rewards, double *ret_reward)
{
    size_t n = json_object_size(rewards);
    size_t i = 0;
    const char *name;
    json_t *part;
    double *scores = objective_allocate(objective, 2 * n + 1, sizeof *scores);

    if (!scores)
        return -1;
    json_object_foreach(rewards, name, part)
    {
        if (read_score(objective, index, name, part, &scores[i], &scores[n + i]) < 0)
            return -1;
        i++;
    }
    *ret_reward = objective_combine_rewards(n, scores, scores + n, objective->knobs.advantage.missing);
    if (isinf(*ret_reward))
        return objective_refuse(objective, ERR_NON_FINITE, index, "rewards", NO_TOKEN, "their sum is beyond double");
    return 0;
}

static int read_judgement(struct objective_call *objective, size_t index, const struct sequence_fields *fields)
{
    struct objective_item *item = &objective->items[index];
    struct objective_sequence *sequence = &objective->sequences[index];
    bool single = fields->advantage != NULL;

    sequence->reward = NAN;
    if (fields->step_rewards || numbers_are_given(&fields->token_rewards))
        return objective_refuse(objective, ERR_OBJECTIVE_OPTIONS, index,
                                fields->step_rewards ? "step_rewards" : "token_rewards", NO_TOKEN,
                                "no estimator that this version computes reads them");
    if (fields->reward && fields->rewards)
        return objective_refuse(objective, ERR_INVALID_FIELD, index, "rewards", NO_TOKEN, "give reward or rewards");
    if (fields->reward && !is_single(fields->reward))
        return objective_refuse(objective, ERR_INVALID_FIELD, index, "reward", NO_TOKEN, "expected a number or null");
    if (json_is_number(fields->reward))
        sequence->reward = json_number_value(fields->reward);
    if (fields->rewards && read_rewards(objective, index, fields->rewards, &sequence->reward) < 0)
        return -1;
    item->has_reward = fields->reward || fields->rewards;
    item->has_advantage = single || fields->token_advantages.values;
    if (item->has_reward && item->has_advantage)
        return objective_refuse(objective, ERR_INVALID_FIELD, index, "advantage", NO_TOKEN,
                                "give a reward or an advantage, not both");
    item->token_advantages = fields->token_advantages;
    sequence->token_advantages = fields->token_advantages.values;
    sequence->advantage = json_is_number(fields->advantage) ? json_number_value(fields->advantage) : NAN;
    sequence->judged = item->has_advantage ? !json_is_null(fields->advantage) : !isnan(sequence->reward);
    return 0;
}

static int read_mask(struct objective_call *objective, size_t index)
{
    const struct numbers *mask = &objective->items[index].mask;
    uint8_t *bytes;

    if (mask->u8) {
        for (size_t t = 0; t < mask->count; t++)
            if (mask->u8[t] > 1)
                return objective_refuse(objective, ERR_INVALID_FIELD, index, "mask", t, "expected 0 or 1");
        objective->sequences[index].mask = mask->u8;
        return 0;
    }
    if (!mask->values)
        return 0;
    if (!(bytes = objective_allocate(objective, mask->count + 1, 1)))
        return -1;
    for (size_t t = 0; t < mask->count; t++) {
        if (mask->values[t] != 0 && mask->values[t] != 1)
            return objective_refuse(objective, ERR_INVALID_FIELD, index, "mask", t, "expected 0 or 1");
        bytes[t] = mask->values[t] == 1;
    }
    objective->sequences[index].mask = bytes;
    return 0;
}

/* The number of tokens is that of `logprobs`; every other array must have as many. */
static int check_lengths(struct objective_call *objective, size_t index, const struct sequence_fields *fields)
{
    size_t tokens = fields->logprobs.count;
    char message[96];
    const struct {
        const char *name;
        const struct numbers *numbers;
    } arrays[] = {
        {"mask", &fields->mask},
        {"old_logprobs", &fields->old_logprobs},
        {"ref_logprobs", &fields->ref_logprobs},
        {"rollout_logprobs", &fields->rollout_logprobs},
        {"teacher_logprobs", &fields->teacher_logprobs},
        {"entropy", &fields->entropy},
        {"sum_pi_squared", &fields->sum_pi_squared},
        {"advantage", &fields->token_advantages},
        {"completion_ids", &fields->completion_ids},
    };

    if (!numbers_are_given(&fields->logprobs))
        return objective_refuse(objective, ERR_MISSING_FIELD, index, "logprobs", NO_TOKEN, "this field is required");
    if (tokens == 0)
        return objective_refuse(objective, ERR_EMPTY_COMPLETION, index, "logprobs", NO_TOKEN,
                                "a completion has at least one token");
    for (size_t i = 0; i < ARRAY_LENGTH(arrays); i++) {
        if (!numbers_are_given(arrays[i].numbers) || arrays[i].numbers->count == tokens)
            continue;
        snprintf(message, sizeof message, "%zu values, but logprobs has %zu", arrays[i].numbers->count, tokens);
        return objective_refuse(objective, ERR_LENGTH_MISMATCH, index, arrays[i].name, NO_TOKEN, message);
    }
    return 0;
}

static enum objective_finish finish_of(struct text reason)
{
    if (!reason.data)
        return OBJECTIVE_FINISH_UNKNOWN;
    return text_equals(reason, "length") ? OBJECTIVE_FINISH_LENGTH : OBJECTIVE_FINISH_OTHER;
}

static int read_sequence(struct objective_call *objective, size_t index, const json_t *object)
{
    struct sequence_fields fields = {.length = -1};
    struct objective_item *item = &objective->items[index];
    struct objective_sequence *sequence = &objective->sequences[index];
    char path[PATH_BYTES];
    const json_t *advantage = json_object_get(object, "advantage");
    bool single = advantage && is_single(advantage);

    path_index(path, "", "sequences", index);
    if (json_read_object(&objective->input, object, path, single ? with_number : with_numbers,
                         ARRAY_LENGTH(with_number), &fields) < 0)
        return -1;
    if (objective_tensors_fill(objective, index, object, with_numbers, ARRAY_LENGTH(with_numbers), &fields) < 0)
        return -1;
    *item = (struct objective_item){.rollout = fields.group.data ? TEXT_NONE : fields.rollout,
                                    .group = fields.group,
                                    .logprobs = fields.logprobs,
                                    .old_logprobs = fields.old_logprobs,
                                    .ref_logprobs = fields.ref_logprobs,
                                    .rollout_logprobs = fields.rollout_logprobs,
                                    .mask = fields.mask};
    if (check_lengths(objective, index, &fields) < 0 || read_judgement(objective, index, &fields) < 0)
        return -1;
    sequence->tokens = fields.logprobs.count;
    sequence->length = fields.length >= 0 ? fields.length : (int64_t)sequence->tokens;
    sequence->finish_reason = finish_of(fields.finish_reason);
    sequence->logprobs = objective_values_of(&fields.logprobs);
    sequence->old_logprobs = objective_values_of(&fields.old_logprobs);
    sequence->ref_logprobs = objective_values_of(&fields.ref_logprobs);
    sequence->rollout_logprobs = objective_values_of(&fields.rollout_logprobs);
    return read_mask(objective, index);
}

/* --- all sequences --- */

static int check_form(struct objective_call *objective, size_t index)
{
    const struct objective_item *item = &objective->items[index];

    if (objective->stored != (item->rollout.data != NULL))
        return objective_refuse(objective, ERR_INVALID_FIELD, index, "rollout", NO_TOKEN,
                                "stored rollouts and inline sequences do not mix in one request");
    if (objective->stored && (item->has_reward || item->has_advantage || numbers_are_given(&item->rollout_logprobs)))
        return objective_refuse(objective, ERR_INVALID_FIELD, index,
                                item->has_reward      ? "reward"
                                : item->has_advantage ? "advantage"
                                                      : "rollout_logprobs",
                                NO_TOKEN, "it comes from the record of this rollout");
    if (!objective->stored && !item->group.data)
        return objective_refuse(objective, ERR_MISSING_FIELD, index, "group", NO_TOKEN,
                                "give a group, or the id of a stored rollout");
    if (!objective->stored && !item->has_reward && !item->has_advantage)
        return objective_refuse(objective, ERR_MISSING_FIELD, index, "reward", NO_TOKEN,
                                "give a reward (null: not judged), rewards, or an advantage");
    if (!objective->stored && item->has_advantage != objective->advantages_given)
        return objective_refuse(objective, ERR_OBJECTIVE_OPTIONS, index, "advantage", NO_TOKEN,
                                "either every sequence brings its advantage, or none");
    return 0;
}

static int read_sequences(struct objective_call *objective, const json_t *list)
{
    objective->count = json_array_size(list);
    if (objective->count == 0)
        return call_refuse(objective->call, ERR_INVALID_FIELD, "sequences", "at least one sequence is expected");
    objective->items = objective_allocate(objective, objective->count, sizeof *objective->items);
    objective->sequences = objective_allocate(objective, objective->count, sizeof *objective->sequences);
    if (!objective->items || !objective->sequences)
        return -1;
    for (size_t i = 0; i < objective->count; i++)
        if (read_sequence(objective, i, json_array_get(list, i)) < 0)
            return -1;
    objective->stored = objective->items[0].rollout.data != NULL;
    objective->advantages_given = objective->items[0].has_advantage;
    for (size_t i = 0; i < objective->count; i++)
        if (check_form(objective, i) < 0)
            return -1;
    return 0;
}

/* --- groups --- */

static int compare_texts(struct text left, struct text right)
{
    size_t shorter = left.length_bytes < right.length_bytes ? left.length_bytes : right.length_bytes;
    int order = shorter ? memcmp(left.data, right.data, shorter) : 0;
    return order ? order : (left.length_bytes > right.length_bytes) - (left.length_bytes < right.length_bytes);
}

/* By name, then by place: the first of equal names comes first. */
static int compare_items(const void *left, const void *right, void *items)
{
    size_t a = *(const size_t *)left;
    size_t b = *(const size_t *)right;
    const struct objective_item *all = items;
    int order = compare_texts(all[a].group, all[b].group);
    return order ? order : (a > b) - (a < b);
}

int objective_number_groups(struct objective_call *objective)
{
    size_t n = objective->count;
    size_t *order = objective_allocate(objective, n, sizeof *order);
    size_t *first = objective_allocate(objective, n, sizeof *first);

    objective->group_names = objective_allocate(objective, n, sizeof *objective->group_names);
    if (!order || !first || !objective->group_names)
        return -1;
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof *order, compare_items, objective->items);
    for (size_t k = 0; k < n; k++) {
        bool same = k > 0 && compare_texts(objective->items[order[k]].group, objective->items[order[k - 1]].group) == 0;
        first[order[k]] = same ? first[order[k - 1]] : order[k];
    }
    for (size_t i = 0; i < n; i++) {
        if (first[i] == i)
            objective->group_names[objective->group_count] = objective->items[i].group;
        objective->sequences[i].group = first[i] == i ? objective->group_count++ : objective->sequences[first[i]].group;
    }
    objective->groups = objective_allocate(objective, objective->group_count, sizeof *objective->groups);
    return objective->groups ? 0 : -1;
}

static int check_group_size(struct objective_call *objective, size_t group, const size_t *members)
{
    struct text name = objective->group_names[group];
    const json_t *size = json_object_getn(objective->group_sizes, name.data, name.length_bytes);
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "group_sizes.%.*s", (int)name.length_bytes, name.data);
    if (!size)
        return call_refuse(objective->call, ERR_MISSING_FIELD, path, "the size of this group is missing");
    if ((json_int_t)members[group] < json_integer_value(size))
        return call_refuse(objective->call, ERR_INCOMPLETE_GROUP, path,
                           "%zu of %lld members are here: its mean and deviation would be those of a part",
                           members[group], (long long)json_integer_value(size));
    if ((json_int_t)members[group] > json_integer_value(size))
        return call_refuse(objective->call, ERR_INVALID_FIELD, path, "%zu members are here", members[group]);
    return 0;
}

/* Also of groups that are not here: a caller may name those of the whole step with every part. */
static int check_sizes_are_counts(const struct objective_call *objective)
{
    char path[PATH_BYTES];
    const char *name;
    json_t *size;

    json_object_foreach(objective->group_sizes, name, size)
    {
        snprintf(path, sizeof path, "group_sizes.%s", name);
        if (!json_is_integer(size) || json_integer_value(size) < 1)
            return call_refuse(objective->call, ERR_INVALID_FIELD, path, "expected an integer of at least 1");
    }
    return 0;
}

static int check_group_sizes(struct objective_call *objective)
{
    if (!objective->group_sizes && objective->has_totals && !objective->advantages_given)
        return call_refuse(objective->call, ERR_MISSING_FIELD, "group_sizes",
                           "with totals this may be a part, so the size of every group is needed");
    if (!objective->group_sizes)
        return 0;
    if (check_sizes_are_counts(objective) < 0)
        return -1;
    size_t *members = objective_allocate(objective, objective->group_count, sizeof *members);
    if (!members)
        return -1;
    for (size_t i = 0; i < objective->count; i++)
        members[objective->sequences[i].group]++;
    for (size_t g = 0; g < objective->group_count; g++)
        if (check_group_size(objective, g, members) < 0)
            return -1;
    return 0;
}

/* --- the rest of the body --- */

struct body_fields {
    json_t *objective, *sequences, *group_sizes, *totals, *returns, *pass_at;
    int64_t optimizer_step, ppo_epoch, part;
    bool store;
};

static const struct field body_table[] = {
    {"objective", FIELD_OBJECT, 0, offsetof(struct body_fields, objective), 0, 0, NULL},
    {"sequences", FIELD_ARRAY, FIELD_REQUIRED | FIELD_LIFTED, offsetof(struct body_fields, sequences), 0, 0, NULL},
    {"group_sizes", FIELD_OBJECT, 0, offsetof(struct body_fields, group_sizes), 0, 0, NULL},
    {"totals", FIELD_OBJECT, 0, offsetof(struct body_fields, totals), 0, 0, NULL},
    {"return", FIELD_ARRAY, 0, offsetof(struct body_fields, returns), 0, 0, NULL},
    {"pass_at", FIELD_ARRAY, 0, offsetof(struct body_fields, pass_at), 0, 0, NULL},
    {"optimizer_step", FIELD_INT, 0, offsetof(struct body_fields, optimizer_step), 0, 0x1p63, NULL},
    {"ppo_epoch", FIELD_INT, 0, offsetof(struct body_fields, ppo_epoch), 0, 0x1p63, NULL},
    {"part", FIELD_INT, 0, offsetof(struct body_fields, part), 0, 0x1p63, NULL},
    {"store", FIELD_BOOL, 0, offsetof(struct body_fields, store), 0, 0, NULL},
};

static int read_totals(struct objective_call *objective, const json_t *object)
{
    static const char *const names[] = {"tokens", "sequences", "groups"};
    int64_t counts[] = {-1, -1, -1};
    const struct field table[] = {{names[0], FIELD_INT, FIELD_NULLABLE, 0, 0, 0x1p53, NULL},
                                  {names[1], FIELD_INT, FIELD_NULLABLE, sizeof *counts, 0, 0x1p53, NULL},
                                  {names[2], FIELD_INT, FIELD_NULLABLE, 2 * sizeof *counts, 0, 0x1p53, NULL}};

    if (!object)
        return 0;
    if (json_read_object(&objective->input, object, "totals", table, ARRAY_LENGTH(table), counts) < 0)
        return -1;
    objective->has_totals = true;
    objective->totals =
        (struct objective_totals){counts[0] < 0 ? NAN : (double)counts[0], counts[1] < 0 ? NAN : (double)counts[1],
                                  counts[2] < 0 ? NAN : (double)counts[2]};
    if (!objective->advantages_given && !objective->stored && objective_needs_whole_batch(&objective->knobs))
        return call_refuse(objective->call, ERR_OBJECTIVE_OPTIONS, "objective.advantage.scale",
                           "with totals this may be a part, and this rule needs the whole request");
    return 0;
}

static int read_return(struct objective_call *objective, const json_t *list)
{
    char path[PATH_BYTES];

    objective->returns = list ? 0 : (1U << ARRAY_COUNT) - 1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        size_t found = 0;
        while (found < ARRAY_COUNT && !(name && strcmp(name, objective_array_names[found]) == 0))
            found++;
        path_index(path, "", "return", i);
        if (found == ARRAY_COUNT)
            return call_refuse(
                objective->call, ERR_INVALID_FIELD, path,
                "expected surrogates, contributions, dloss_dlogp, ratios, weights, clipped, kl or selected");
        objective->returns |= 1U << found;
    }
    return 0;
}

static int read_pass_at(struct objective_call *objective, const json_t *list)
{
    char path[PATH_BYTES];

    if (json_array_size(list) > ARRAY_LENGTH(objective->pass_at))
        return call_refuse(objective->call, ERR_INVALID_FIELD, "pass_at", "at most %zu values are expected",
                           ARRAY_LENGTH(objective->pass_at));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *k = json_array_get(list, i);
        path_index(path, "", "pass_at", i);
        if (!json_is_integer(k) || json_integer_value(k) < 1)
            return call_refuse(objective->call, ERR_INVALID_FIELD, path, "expected an integer of at least 1");
        objective->pass_at[objective->pass_at_count++] = json_integer_value(k);
    }
    return 0;
}

static int read_query(struct objective_call *objective)
{
    static const char *const known[] = {"arrays", "explain", NULL};

    objective->arrays = JSON_ARRAYS_PLAIN;
    if (call_check_query(objective->call, known) < 0)
        return -1;
    if (call_query_arrays(objective->call, &objective->arrays) < 0)
        return -1;
    return 0;
}

static int read_body(struct objective_call *objective)
{
    struct body_fields fields = {.optimizer_step = -1, .store = true};

    if (json_read_object(&objective->input, objective->input.root, "", body_table, ARRAY_LENGTH(body_table), &fields) <
        0)
        return -1;
    if (objective_json_read(&objective->input, fields.objective, "objective", &objective->knobs) < 0)
        return -1;
    if (read_sequences(objective, fields.sequences) < 0 || read_totals(objective, fields.totals) < 0)
        return -1;
    if (read_return(objective, fields.returns) < 0 || read_pass_at(objective, fields.pass_at) < 0)
        return -1;
    objective->has_objective = fields.objective != NULL;
    objective->group_sizes = fields.group_sizes;
    objective->keep = objective->stored && fields.store && fields.optimizer_step >= 0;
    objective->optimizer_step = fields.optimizer_step;
    objective->ppo_epoch = fields.ppo_epoch;
    objective->part = fields.part;
    if (objective->stored && fields.group_sizes)
        return call_refuse(objective->call, ERR_INVALID_FIELD, "group_sizes",
                           "the record knows the groups of its rollouts");
    if (objective->stored)
        return 0;
    return objective_number_groups(objective) < 0 ? -1 : check_group_sizes(objective);
}

int objective_request_read(struct objective_call *objective, struct call *call)
{
    *objective = (struct objective_call){.call = call};
    buffer_init(&objective->notes, 64 * 1024);
    bool tensors = strcmp(call->content_type, SAFETENSORS_MEDIA_TYPE) == 0;
    if (read_query(objective) < 0)
        return -1;
    if ((tensors ? objective_tensors_read(objective, lifted_names)
                 : json_input_init(&objective->input, call, lifted_names)) < 0)
        return -1;
    return read_body(objective);
}
