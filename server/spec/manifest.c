#include "server/spec/manifest.h"

#include "server/base/cleanup.h"
#include "server/spec/objective.h"

#include <stdio.h>
#include <string.h>

#define JSON_MAX_BYTES ((size_t)16 << 20)
#define FREEZES(name) "manifest." name

void manifest_finish(struct manifest *manifest)
{
    json_decref(TAKE_PTR(manifest->given));
    json_decref(TAKE_PTR(manifest->frozen));
}

/* ---- fields ------------------------------------------------------------------------------------------------ */

struct manifest_fields {
    json_t *checkpoint;
    struct text tokenizer_sha256;
    json_t *data;
    json_t *reference_policy;
    json_t *objective;
    json_t *sampling;
    json_t *masks;
    json_t *verifiers;
    json_t *evaluation;
    json_t *budget;
};

#define AT(field) offsetof(struct manifest_fields, field)
static const struct field manifest_table[] = {
    {"checkpoint", FIELD_ANY, 0, AT(checkpoint), 0, 0, NULL},
    {"tokenizer_sha256", FIELD_TEXT, 0, AT(tokenizer_sha256), 0, 256, NULL},
    {"data", FIELD_OBJECT, 0, AT(data), 0, 0, NULL},
    {"reference_policy", FIELD_ANY, 0, AT(reference_policy), 0, 0, NULL},
    {"objective", FIELD_OBJECT, 0, AT(objective), 0, 0, NULL},
    {"sampling", FIELD_OBJECT, 0, AT(sampling), 0, 0, NULL},
    {"masks", FIELD_OBJECT, 0, AT(masks), 0, 0, NULL},
    {"verifiers", FIELD_ARRAY, 0, AT(verifiers), 0, 0, NULL},
    {"evaluation", FIELD_OBJECT, 0, AT(evaluation), 0, 0, NULL},
    {"budget", FIELD_OBJECT, 0, AT(budget), 0, 0, NULL},
};
#undef AT

struct data_fields {
    struct text set;
    struct text sha256;
    struct text split;
};

#define AT(field) offsetof(struct data_fields, field)
static const struct field data_table[] = {
    {"set", FIELD_TEXT, 0, AT(set), 0, 1024, NULL},
    {"sha256", FIELD_TEXT, 0, AT(sha256), 0, 256, NULL},
    {"split", FIELD_TEXT, 0, AT(split), 0, 1024, NULL},
};
#undef AT

#define AT(field) offsetof(struct store_budget, field)
static const struct field budget_table[] = {
    {"completion_tokens", FIELD_INT, 0, AT(completion_tokens), 0, 9223372036854775807.0, NULL},
    {"revisions", FIELD_INT, 0, AT(revisions), 0, 9223372036854775807.0, NULL},
};
#undef AT

/* ---- given keys, in the compared form ---------------------------------------------------------------------- */

/* Of a complete tree, the keys that were given. */
static json_t *given_keys(json_t *complete, json_t *given)
{
    json_t *kept = json_object();
    const char *name;
    json_t *value;
    json_object_foreach (given, name, value) {
        json_t *whole = json_object_get(complete, name);
        if (json_is_object(whole) && json_is_object(value))
            json_object_set_new(kept, name, given_keys(whole, value));
        else if (whole)
            json_object_set(kept, name, whole);
    }
    return kept;
}

/* `epsilon` is two knobs by one name. */
static void keep_epsilon(json_t *kept, json_t *complete)
{
    static const char *const names[] = {"eps_low", "eps_high"};
    json_t *loss = json_object_get(kept, "loss");
    if (!loss) {
        loss = json_object();
        json_object_set_new(kept, "loss", loss);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        json_t *value = json_object_get(json_object_get(complete, "loss"), names[i]);
        if (value)
            json_object_set(loss, names[i], value);
    }
}

/* A preset is a name for every knob; without one, those that are given. */
static json_t *freeze_objective(struct json_input *input, json_t *given)
{
    struct objective_knobs knobs;
    struct json_write json;
    _cleanup_buffer_ struct buffer text = {0};
    if (objective_json_read(input, given, FREEZES("objective"), &knobs) < 0)
        return NULL;
    buffer_init(&text, JSON_MAX_BYTES);
    json_write_init(&json, &text);
    objective_json_write(&json, &knobs);
    json_t *complete = json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL);
    if (!complete || json_object_get(given, "preset"))
        return complete;
    json_t *kept = given_keys(complete, given);
    if (json_object_get(given, "epsilon"))
        keep_epsilon(kept, complete);
    json_decref(complete);
    return kept;
}

static json_t *freeze_sampling(struct json_input *input, json_t *given)
{
    struct batch_spec *spec = xcalloc(1, sizeof(*spec));
    json_t *kept = NULL;
    spec->input.call = input->call;
    if (batch_spec_read_sampling(spec, given, FREEZES("sampling"), &spec->sampling, &spec->n) == 0) {
        struct text written = batch_spec_write_sampling(spec);
        json_auto_t *complete = json_loadb(written.data, written.length_bytes, JSON_ALLOW_NUL, NULL);
        kept = given_keys(complete, given);
    }
    batch_spec_destroy(spec);
    return kept;
}

/* Versions are in the record only, never in a request: each is removed before the list is read. */
static json_t *without_versions(json_t *given)
{
    json_t *copy = json_deep_copy(given);
    size_t i;
    json_t *verifier;
    json_array_foreach (copy, i, verifier)
        if (json_is_string(json_object_get(verifier, "version")))
            json_object_del(verifier, "version");
    return copy;
}

static json_t *freeze_verifiers(struct json_input *input, json_t *given)
{
    json_auto_t *plain = without_versions(given);
    struct verifier_list *list = verifier_list_read(input, plain, FREEZES("verifiers"));
    if (!list)
        return NULL;
    json_auto_t *complete = settings_tree_verifiers(list);
    json_t *kept = json_object();
    for (size_t i = 0; i < list->count; i++) {
        json_t *one = json_array_get(given, i);
        json_t *keys = given_keys(json_object_get(complete, list->specs[i].id), one);
        if (json_object_get(one, "version")) /* which need not be this program's */
            json_object_set(keys, "version", json_object_get(one, "version"));
        json_object_set_new(kept, list->specs[i].id, keys);
    }
    verifier_list_unref(list);
    return kept;
}

static int freeze_data(struct json_input *input, json_t *given)
{
    struct data_fields fields = {0};
    return json_read_object(input, given, FREEZES("data"), data_table, ARRAY_LENGTH(data_table), &fields);
}

static int freeze_budget(struct json_input *input, json_t *given, struct store_budget *budget)
{
    return json_read_object(input, given, FREEZES("budget"), budget_table, ARRAY_LENGTH(budget_table), budget);
}

/* Keys that are checked against other manifests only. */
static void freeze_as_given(json_t *given, json_t *frozen)
{
    static const char *const names[] = {"checkpoint", "tokenizer_sha256", "data",  "reference_policy",
                                        "masks",      "evaluation",       "budget"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (json_object_get(given, names[i]))
            json_object_set_new(frozen, names[i], json_deep_copy(json_object_get(given, names[i])));
}

static int set_part(json_t *frozen, const char *name, json_t *part)
{
    if (part)
        json_object_set_new(frozen, name, part);
    return part ? 0 : -1;
}

static int freeze(struct json_input *input, const struct manifest_fields *fields, struct manifest *manifest)
{
    json_t *frozen = manifest->frozen;
    if (fields->data && freeze_data(input, fields->data) < 0)
        return -1;
    if (fields->budget && freeze_budget(input, fields->budget, &manifest->budget) < 0)
        return -1;
    freeze_as_given(manifest->given, frozen);
    if (fields->objective && set_part(frozen, "objective", freeze_objective(input, fields->objective)) < 0)
        return -1;
    if (fields->sampling && set_part(frozen, "sampling", freeze_sampling(input, fields->sampling)) < 0)
        return -1;
    if (fields->verifiers && set_part(frozen, "verifiers", freeze_verifiers(input, fields->verifiers)) < 0)
        return -1;
    return 0;
}

static size_t depth_of(json_t *value)
{
    size_t deepest = 0;
    const char *name;
    json_t *member;
    json_object_foreach (value, name, member) {
        size_t depth = depth_of(member);
        deepest = depth > deepest ? depth : deepest;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        size_t depth = depth_of(json_array_get(value, i));
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

static int check_size(struct call *call, json_t *given)
{
    if (depth_of(given) > MANIFEST_DEPTH_MAX)
        return call_refuse(call, ERR_INVALID_FIELD, "manifest", "a manifest is at most %d deep", MANIFEST_DEPTH_MAX);
    if (json_dumpb(given, NULL, 0, JSON_COMPACT) > MANIFEST_BYTES_MAX)
        return call_refuse(call, ERR_INVALID_FIELD, "manifest", "a manifest has at most %d bytes", MANIFEST_BYTES_MAX);
    return 0;
}

int manifest_read(struct json_input *input, json_t *given, struct manifest *ret_manifest)
{
    struct manifest_fields fields = {0};
    *ret_manifest = (struct manifest){.given = json_deep_copy(given), .frozen = json_object(), .budget = {-1, -1}};
    if (check_size(input->call, given) < 0 ||
        json_read_object(input, given, "manifest", manifest_table, ARRAY_LENGTH(manifest_table), &fields) < 0)
        return -1;
    return freeze(input, &fields, ret_manifest);
}

/* ---- added to ---------------------------------------------------------------------------------------------- */

static bool note_difference(void *arg, const char *key, json_t *left, json_t *right)
{
    struct manifest_difference *difference = arg;
    snprintf(difference->key, sizeof(difference->key), "%s", key);
    settings_say(left, difference->wanted);
    settings_say(right, difference->found);
    return false;
}

static json_t *id_of(json_t *verifier)
{
    json_t *id = json_object_get(verifier, "id");
    return id ? id : json_object_get(verifier, "name");
}

static json_t *find_verifier(json_t *list, json_t *id)
{
    size_t i;
    json_t *verifier;
    json_array_foreach (list, i, verifier)
        if (json_equal(id_of(verifier), id))
            return verifier;
    return NULL;
}

static void add_keys(json_t *to, json_t *from);

static void add_verifiers(json_t *to, json_t *from)
{
    size_t i;
    json_t *verifier;
    json_array_foreach (from, i, verifier)
        add_keys(find_verifier(to, id_of(verifier)), verifier);
}

/* Keys of `from` that `to` has not. */
static void add_keys(json_t *to, json_t *from)
{
    const char *name;
    json_t *value;
    json_object_foreach (from, name, value) {
        json_t *known = json_object_get(to, name);
        if (!known)
            json_object_set_new(to, name, json_deep_copy(value));
        else if (json_is_object(known) && json_is_object(value))
            add_keys(known, value);
        else if (strcmp(name, "verifiers") == 0)
            add_verifiers(known, value);
    }
}

int manifest_add(struct json_input *input, struct text given_before, struct text frozen_before,
                 struct manifest *manifest)
{
    struct manifest_difference difference;
    if (!frozen_before.data)
        return 0;
    json_auto_t *frozen = json_loadb(frozen_before.data, frozen_before.length_bytes, JSON_ALLOW_NUL, NULL);
    json_t *given = json_loadb(given_before.data, given_before.length_bytes, JSON_ALLOW_NUL, NULL);
    if (!frozen || !given) {
        json_decref(given);
        return call_refuse(input->call, ERR_STATE_CONFLICT, "manifest", "the recorded manifest cannot be read");
    }
    if (!settings_differences(frozen, manifest->frozen, SETTINGS_MERGED, note_difference, &difference)) {
        json_decref(given);
        return call_refuse(input->call, ERR_STATE_CONFLICT, difference.key,
                           "the run has frozen %s here, and this manifest says %s", difference.wanted,
                           difference.found);
    }
    add_keys(given, manifest->given);
    manifest_finish(manifest);
    int result = manifest_read(input, given, manifest);
    json_decref(given);
    return result;
}

/* ---- requests against the manifest ------------------------------------------------------------------------- */

/* Gives up the tree. */
static bool agrees(json_t *frozen, json_t *tree, struct manifest_difference *ret_difference)
{
    bool same = settings_differences(frozen, tree, SETTINGS_SHARED, note_difference, ret_difference);
    json_decref(tree);
    return same;
}

static bool is_same_source(const struct store_data_source *a, const struct store_data_source *b)
{
    return text_same(a->set, b->set) && text_same(a->split, b->split); /* a set has one sha256 */
}

/* Groups of one set stand together as a rule. */
static bool agrees_with_data(json_t *frozen, const struct batch_spec *spec, struct manifest_difference *ret_difference)
{
    const struct store_data_source *before = NULL;
    if (!json_object_get(frozen, "data"))
        return true;
    for (size_t g = 0; g < spec->group_count; g++) {
        const struct store_data_source *source = &spec->groups[g].source;
        if (before && is_same_source(before, source))
            continue;
        if (!agrees(frozen, settings_tree_of_data(source), ret_difference))
            return false;
        before = source;
    }
    return true;
}

bool manifest_agrees(json_t *frozen, const struct batch_spec *spec, struct manifest_difference *ret_difference)
{
    bool plain = false;
    if (spec->purpose != STORE_TRAIN)
        return true;
    for (size_t g = 0; g < spec->group_count; g++) {
        const struct group_spec *group = &spec->groups[g];
        bool own = group->sampling_json.data || group->verifiers_json.data;
        if (!own && plain)
            continue;
        plain |= !own;
        if (!agrees(frozen, settings_tree_of_spec(spec, group), ret_difference))
            return false;
    }
    return agrees_with_data(frozen, spec, ret_difference);
}

bool manifest_agrees_with_record(json_t *frozen, const struct store_batch_settings *batch,
                                 struct manifest_difference *ret_difference)
{
    if (batch->purpose != STORE_TRAIN)
        return true;
    if (!agrees(frozen, settings_tree_of_record(batch, NULL), ret_difference))
        return false;
    for (size_t i = 0; i < batch->override_count; i++)
        if (!agrees(frozen, settings_tree_of_record(batch, &batch->overrides[i]), ret_difference))
            return false;
    for (size_t i = 0; i < batch->source_count; i++)
        if (!agrees(frozen, settings_tree_of_data(&batch->sources[i]), ret_difference))
            return false;
    return true;
}

bool manifest_agrees_with_objective(json_t *frozen, struct text objective, struct manifest_difference *ret_difference)
{
    return agrees(frozen, settings_tree_of_objective(objective), ret_difference);
}
