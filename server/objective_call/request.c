/* The body of POST /v1/objective, read and checked. */
#include "server/base/blocks.h"
#include "server/base/nearest.h"
#include "server/objective_call/objective_call.h"
#include "server/objective_call/tensors.h"
#include "server/spec/objective.h"

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

void objective_call_release(struct objective_call *objective)
{
    lifted_finish(&objective->input.lifted);
    if (objective->tensors)
        objective_tensors_release(objective->tensors);
}

void objective_call_finish(struct objective_call *objective)
{
    block_give(TAKE_PTR(objective->outputs));
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

/* --- all sequences --- */

static int check_form(struct objective_call *objective, size_t index)
{
    const struct objective_item *item = &objective->items[index];

    if (objective->stored != (item->rollout.data != NULL))
        return objective_refuse(objective, ERR_INVALID_FIELD, index, "rollout", NO_TOKEN,
                                "stored rollouts and inline sequences do not mix in one request");
    if (objective->stored && item->recorded)
        return objective_refuse(objective, ERR_INVALID_FIELD, index, item->recorded, NO_TOKEN,
                                "it comes from the record of this rollout");
    if (!objective->stored && !item->group.data)
        return objective_refuse(objective, ERR_MISSING_FIELD, index, "group", NO_TOKEN,
                                "give a group, or the id of a stored rollout");
    if (!objective->stored && !item->has_reward && !item->has_advantage)
        return objective_refuse(objective, ERR_MISSING_FIELD, index, "reward", NO_TOKEN,
                                "give a reward (null: none), rewards, or an advantage");
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
        if (objective_read_sequence(objective, i, json_array_get(list, i)) < 0)
            return -1;
    objective->stored = objective->items[0].rollout.data != NULL;
    objective->advantages_given = objective->items[0].has_advantage;
    for (size_t i = 0; i < objective->count; i++)
        if (check_form(objective, i) < 0)
            return -1;
    return 0;
}

/* --- groups --- */

static int check_group_size(struct objective_call *objective, size_t group, const size_t *members)
{
    struct text name = objective->group_names[group];
    const json_t *size = json_object_getn(objective->group_sizes, name.data, name.length_bytes);
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "group_sizes.%.*s", (int)name.length_bytes, name.data);
    if (!size)
        return call_refuse(objective->call, ERR_MISSING_FIELD, path, "the size of this group is missing");
    if ((double)members[group] < json_number_value(size))
        return call_refuse(objective->call, ERR_INCOMPLETE_GROUP, path,
                           "%zu of %.0f members are here: its mean and deviation would be those of a part",
                           members[group], json_number_value(size));
    if ((double)members[group] > json_number_value(size))
        return call_refuse(objective->call, ERR_INVALID_FIELD, path, "%zu members are here", members[group]);
    return 0;
}

/* Also of groups that are not here: a caller may name those of the whole step with every part. */
static int check_sizes_are_counts(const struct objective_call *objective)
{
    char path[PATH_BYTES];
    const char *name;
    json_t *size;
    int64_t count;

    json_object_foreach (objective->group_sizes, name, size) {
        snprintf(path, sizeof path, "group_sizes.%s", name);
        if (!json_whole(size, &count) || count < 1)
            return call_refuse(objective->call, ERR_INVALID_FIELD, path, "expected an integer of at least 1");
    }
    return 0;
}

static int check_group_sizes(struct objective_call *objective)
{
    bool needed = !objective->advantages_given || objective_needs_whole_groups(&objective->knobs);

    if (!objective->group_sizes && objective->has_totals && needed)
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
    int dtype;
};

enum { DTYPE_F64, DTYPE_F32 };
static const char *const dtypes[] = {[DTYPE_F64] = "f64", [DTYPE_F32] = "f32", NULL};

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
    {"dtype", FIELD_CHOICE, 0, offsetof(struct body_fields, dtype), 0, 0, dtypes},
};

int objective_check_totals(struct objective_call *objective)
{
    char path[PATH_BYTES];
    const char *whole =
        objective_needs_whole_request(&objective->knobs, objective->advantages_given || objective->stored);

    if (whole && objective->has_totals) {
        path_join(path, "objective", whole);
        return call_refuse(objective->call, ERR_OBJECTIVE_OPTIONS, path,
                           "with totals this may be a part, and this knob needs the whole request");
    }
    return 0;
}

static int read_totals(struct objective_call *objective, const json_t *object)
{
    int64_t counts[] = {-1, -1, -1, -1};
    const struct field table[] = {{"tokens", FIELD_INT, FIELD_NULLABLE, 0, 0, 0x1p53, NULL},
                                  {"sequences", FIELD_INT, FIELD_NULLABLE, sizeof *counts, 0, 0x1p53, NULL},
                                  {"groups", FIELD_INT, FIELD_NULLABLE, 2 * sizeof *counts, 0, 0x1p53, NULL},
                                  {"rollouts", FIELD_INT, FIELD_NULLABLE, 3 * sizeof *counts, 0, 0x1p53, NULL}};

    if (!object)
        return 0;
    if (json_read_object(&objective->input, object, "totals", table, ARRAY_LENGTH(table), counts) < 0)
        return -1;
    objective->has_totals = true;
    objective->totals = (struct objective_totals){.tokens = counts[0] < 0 ? NAN : (double)counts[0],
                                                  .sequences = counts[1] < 0 ? NAN : (double)counts[1],
                                                  .groups = counts[2] < 0 ? NAN : (double)counts[2],
                                                  .rollouts = counts[3] < 0 ? NAN : (double)counts[3]};
    return objective_check_totals(objective);
}

static int refuse_array(struct call *call, const char *path, const char *name)
{
    char advice[ADVICE_BYTES];

    names_advise(text_of(name), objective_array_names, sizeof objective_array_names[0], ARRAY_COUNT, advice);
    return call_refuse(call, ERR_INVALID_FIELD, path, "a sequence of the reply has no such array; %s", advice);
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
            return refuse_array(objective->call, path, name);
        objective->returns |= 1U << found;
    }
    return 0;
}

/* JSON has one kind of number, and `_f64` is part of a name: only tensors have a type of their own. */
static int read_dtype(struct objective_call *objective, int dtype)
{
    if (dtype == DTYPE_F32 && !objective->call->accept_safetensors)
        return call_refuse(objective->call, ERR_INVALID_FIELD, "dtype",
                           "f32 is for the arrays of a safetensors reply: ask for one with Accept: "
                           "application/x-safetensors");
    objective->narrow = dtype == DTYPE_F32;
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
    struct body_fields fields = {.optimizer_step = -1, .ppo_epoch = -1, .part = -1, .store = true};

    if (json_read_object(&objective->input, objective->input.root, "", body_table, ARRAY_LENGTH(body_table), &fields) <
        0)
        return -1;
    if (objective_json_read(&objective->input, fields.objective, "objective", &objective->knobs) < 0)
        return -1;
    if (read_sequences(objective, fields.sequences) < 0 || read_totals(objective, fields.totals) < 0)
        return -1;
    if (read_return(objective, fields.returns) < 0 || read_dtype(objective, fields.dtype) < 0 ||
        pass_at_read(objective->call, fields.pass_at, objective->pass_at, &objective->pass_at_count) < 0)
        return -1;
    objective->has_objective = fields.objective != NULL;
    objective->group_sizes = fields.group_sizes;
    objective->keep = objective->stored && fields.store && fields.optimizer_step >= 0;
    objective->optimizer_step = fields.optimizer_step;
    objective->ppo_epoch = fields.ppo_epoch < 0 ? 0 : fields.ppo_epoch;
    objective->part = fields.part < 0 ? 0 : fields.part;
    if (fields.optimizer_step >= 0 && !objective->stored)
        objective_note(objective, "nothing is kept under optimizer_step: only calls that name stored rollouts are");
    if (fields.optimizer_step < 0 && (fields.ppo_epoch >= 0 || fields.part >= 0))
        objective_note(objective, "nothing is kept: ppo_epoch and part belong to an optimizer_step");
    if (objective->stored && fields.group_sizes)
        return call_refuse(objective->call, ERR_INVALID_FIELD, "group_sizes",
                           "the record knows the groups of its rollouts");
    if (objective->stored)
        return 0;
    if (objective_number_groups(objective) < 0 || objective_number_others(objective) < 0 ||
        objective_read_scores(objective) < 0)
        return -1;
    return check_group_sizes(objective);
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
    block_give(TAKE_PTR(call->body)); /* all that is needed of it has been read */
    call->body_bytes = 0;
    return read_body(objective);
}
