#include "server/spec/settings_tree.h"

#include "server/base/cleanup.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static json_t *load(struct text text)
{
    return text.data ? json_loadb(text.data, text.length_bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
}

/* ---- verifiers --------------------------------------------------------------------------------------------- */

static json_t *verifier_tree(const struct verifier_spec *spec)
{
    json_t *tree = json_object();
    json_object_set_new(tree, "name", json_string(spec->verifier->name));
    json_object_set_new(tree, "version", json_string(spec->version));
    json_object_set_new(tree, "weight", json_real(spec->weight));
    json_object_set_new(tree, "heldout", json_boolean(spec->heldout));
    json_object_set_new(tree, "gate", json_boolean(spec->gate));
    if (spec->steps)
        json_object_set_new(tree, "steps", json_string(pieces_kind_names[spec->steps]));
    json_object_set_new(tree, "options", json_deep_copy(spec->options));
    if (spec->reference)
        json_object_set_new(tree, "reference", json_deep_copy(spec->reference));
    return tree;
}

json_t *settings_tree_verifiers(const struct verifier_list *list)
{
    json_t *tree = json_object();
    for (size_t i = 0; i < list->count; i++)
        json_object_set_new(tree, list->specs[i].id, verifier_tree(&list->specs[i]));
    return tree;
}

static json_t *verifiers_as_given(json_t *list)
{
    json_t *tree = json_object();
    size_t i;
    json_t *verifier;
    json_array_foreach (list, i, verifier) {
        json_t *id = json_object_get(verifier, "id");
        if (!id)
            id = json_object_get(verifier, "name");
        if (json_is_string(id))
            json_object_set_new(tree, json_string_value(id), json_deep_copy(verifier));
    }
    return tree;
}

/* Versions as the verdicts have them; where there is no verdict yet, this program's. */
static void set_versions(json_t *tree, struct text verdicts)
{
    json_auto_t *list = load(verdicts);
    size_t i;
    json_t *verdict;
    json_array_foreach (list, i, verdict) {
        json_t *id = json_object_get(verdict, "id");
        json_t *version = json_object_get(verdict, "version");
        json_t *verifier = id ? json_object_get(tree, json_string_value(id)) : NULL;
        if (verifier && json_is_string(version))
            json_object_set(verifier, "version", version);
    }
}

static json_t *verifiers_of_record(struct text verifiers, struct text verdicts)
{
    json_auto_t *list = load(verifiers);
    struct call call;
    call_init(&call);
    struct json_input input = {.call = &call};
    struct verifier_list *read = verifier_list_read(&input, list, "verifiers");
    json_t *tree = read ? settings_tree_verifiers(read) : verifiers_as_given(list);
    verifier_list_unref(read);
    call_finish(&call);
    set_versions(tree, verdicts);
    return tree;
}

/* ---- trees ------------------------------------------------------------------------------------------------- */

json_t *settings_tree_of_objective(struct text objective)
{
    json_t *tree = json_object();
    json_t *knobs = load(objective);
    json_t *masks = knobs ? json_deep_copy(json_object_get(knobs, "mask")) : NULL;
    json_object_set_new(tree, "objective", knobs ? knobs : json_object());
    json_object_set_new(tree, "masks", masks ? masks : json_object());
    return tree;
}

/* The group's settings override the batch's. A stop that is one text becomes a list; null overrides nothing. */
static void overlay(json_t *sampling, struct text overrides)
{
    json_auto_t *given = load(overrides);
    const char *name;
    json_t *value;
    json_object_foreach (given, name, value) {
        if (json_is_null(value))
            continue;
        if (strcmp(name, "stop") == 0 && json_is_string(value))
            json_object_set_new(sampling, name, json_pack("[O]", value));
        else
            json_object_set(sampling, name, value);
    }
}

static json_t *sampling_tree(struct text sampling, struct text overrides)
{
    json_t *tree = load(sampling);
    if (json_is_object(tree)) {
        overlay(tree, overrides);
        return tree;
    }
    json_decref(tree);
    return NULL;
}

json_t *settings_tree_of_spec(const struct batch_spec *spec, const struct group_spec *group)
{
    json_t *tree = settings_tree_of_objective(spec->objective_json);
    json_t *sampling = sampling_tree(spec->sampling_json, group ? group->sampling_json : TEXT_NONE);
    if (sampling)
        json_object_set_new(tree, "sampling", sampling);
    json_object_set_new(tree, "verifiers", settings_tree_verifiers(group ? group->verifiers : spec->verifiers));
    return tree;
}

json_t *settings_tree_of_record(const struct store_batch_settings *batch, const struct store_group_settings *overrides)
{
    json_t *tree = settings_tree_of_objective(batch->objective);
    json_t *sampling = sampling_tree(batch->sampling, overrides ? overrides->sampling : TEXT_NONE);
    bool own = overrides && overrides->verifiers.data;
    if (sampling)
        json_object_set_new(tree, "sampling", sampling);
    json_object_set_new(tree, "verifiers",
                        verifiers_of_record(own ? overrides->verifiers : batch->verifiers, batch->makers.verdicts));
    return tree;
}

json_t *settings_tree_of_data(const struct store_data_source *source)
{
    const struct {
        const char *key;
        struct text value;
    } keys[] = {{"set", source->set}, {"sha256", source->sha256}, {"split", source->split}};
    json_t *data = json_object();
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++)
        if (keys[i].value.data)
            json_object_set_new(data, keys[i].key, json_stringn(keys[i].value.data, keys[i].value.length_bytes));
    return json_pack("{s:o}", "data", data);
}

/* ---- differences ------------------------------------------------------------------------------------------- */

struct search {
    enum settings_how how;
    settings_found *found;
    void *arg;
};

static bool is_same(json_t *left, json_t *right);

static bool is_same_object(json_t *left, json_t *right)
{
    const char *name;
    json_t *value;
    if (json_object_size(left) != json_object_size(right))
        return false;
    json_object_foreach (left, name, value)
        if (!is_same(value, json_object_get(right, name)))
            return false;
    return true;
}

static bool is_same_array(json_t *left, json_t *right)
{
    if (json_array_size(left) != json_array_size(right))
        return false;
    for (size_t i = 0; i < json_array_size(left); i++)
        if (!is_same(json_array_get(left, i), json_array_get(right, i)))
            return false;
    return true;
}

static bool is_same(json_t *left, json_t *right)
{
    if (!left || !right)
        return left == right;
    if (json_is_integer(left) && json_is_integer(right))
        return json_integer_value(left) == json_integer_value(right);
    if (json_is_number(left) && json_is_number(right))
        return json_number_value(left) == json_number_value(right);
    if (json_is_object(left) && json_is_object(right))
        return is_same_object(left, right);
    if (json_is_array(left) && json_is_array(right))
        return is_same_array(left, right);
    return json_equal(left, right);
}

static bool compare(const struct search *search, const char *path, json_t *left, json_t *right);

/* Whether a key that one side alone has is a difference. */
static bool counts(const struct search *search, const char *path, bool of_left)
{
    if (search->how == SETTINGS_BOTH || strcmp(path, "verifiers") == 0)
        return true;
    return search->how == SETTINGS_SHARED && of_left && *path && strcmp(path, "masks") != 0;
}

static bool compare_objects(const struct search *search, const char *path, json_t *left, json_t *right)
{
    char where[PATH_BYTES];
    const char *name;
    json_t *value;
    json_object_foreach (left, name, value) {
        json_t *other = json_object_get(right, name);
        path_join(where, path, name);
        if (!other && !counts(search, path, true))
            continue;
        if (!compare(search, where, value, other))
            return false;
    }
    json_object_foreach (right, name, value) {
        if (json_object_get(left, name) || !counts(search, path, false))
            continue;
        path_join(where, path, name);
        if (!compare(search, where, NULL, value))
            return false;
    }
    return true;
}

static bool compare(const struct search *search, const char *path, json_t *left, json_t *right)
{
    if (json_is_object(left) && json_is_object(right))
        return compare_objects(search, path, left, right);
    return is_same(left, right) || search->found(search->arg, path, left, right);
}

bool settings_differences(json_t *left, json_t *right, enum settings_how how, settings_found *found, void *arg)
{
    const struct search search = {how, found, arg};
    return compare_objects(&search, "", left, right);
}

/* ---- written ----------------------------------------------------------------------------------------------- */

static void write_container(struct json_write *json, json_t *value)
{
    const char *name;
    size_t name_bytes;
    json_t *member;
    if (json_is_array(value)) {
        json_array_begin(json);
        for (size_t i = 0; i < json_array_size(value); i++)
            settings_write(json, json_array_get(value, i));
        json_array_end(json);
        return;
    }
    json_object_begin(json);
    json_object_keylen_foreach(value, name, name_bytes, member)
    {
        json_key_text(json, (struct text){name, name_bytes});
        settings_write(json, member);
    }
    json_object_end(json);
}

void settings_write(struct json_write *json, json_t *value)
{
    if (json_is_object(value) || json_is_array(value))
        write_container(json, value);
    else if (json_is_integer(value))
        json_int(json, json_integer_value(value));
    else if (json_is_real(value))
        json_double(json, json_real_value(value));
    else if (json_is_boolean(value))
        json_bool(json, json_is_true(value));
    else
        json_text(json, json_is_string(value) ? (struct text){json_string_value(value), json_string_length(value)}
                                              : TEXT_NONE);
}

void settings_say(json_t *value, char ret_text[SETTINGS_TEXT_BYTES])
{
    _cleanup_free_ char *text =
        value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) : NULL;
    if (!text) {
        snprintf(ret_text, SETTINGS_TEXT_BYTES, "%s", value ? "something else" : "nothing");
        return;
    }
    size_t fits = strlen(text);
    if (fits >= SETTINGS_TEXT_BYTES) { /* not within a character */
        for (fits = SETTINGS_TEXT_BYTES - 5; fits > 0 && ((unsigned char)text[fits] & 0xC0) == 0x80;)
            fits--;
        memcpy(text + fits, "…", sizeof("…"));
    }
    memcpy(ret_text, text, strlen(text) + 1);
}
