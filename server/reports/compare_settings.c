/* The settings of two runs, and the differences that make the runs not comparable. */
#include "server/reports/compare_private.h"

#include "server/base/cleanup.h"

#include <string.h>

/* Whole numbers and others are one kind, so that 1 and 1.0 are one value. */
static void add_value(json_t *settings, const char *key, json_t *value)
{
    json_auto_t *normal = json_is_integer(value) ? json_real((double)json_integer_value(value)) : json_incref(value);
    _cleanup_free_ char *text = json_dumps(normal, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    json_t *values = json_object_get(settings, key);
    if (!values) {
        values = json_object();
        json_object_set_new(settings, key, values);
    }
    if (text)
        json_object_set(values, text, value);
}

static void add_tree(json_t *settings, const char *path, json_t *tree)
{
    char where[PATH_BYTES];
    const char *name;
    json_t *value;
    json_object_foreach (tree, name, value) {
        path_join(where, path, name);
        if (json_object_size(value) > 0)
            add_tree(settings, where, value);
        else
            add_value(settings, where, value);
    }
}

void compare_add_settings(struct compare_side *side, json_t *tree)
{
    static const char *const names[] = {"sampling", "verifiers", "masks", "data", "evaluation"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        json_t *part = json_object_get(tree, names[i]);
        if (json_is_object(part))
            add_tree(side->settings, names[i], part);
    }
}

static bool has_same_values(json_t *left, json_t *right)
{
    const char *text;
    json_t *value;
    if (json_object_size(left) != json_object_size(right))
        return false;
    json_object_foreach (left, text, value)
        if (!json_object_get(right, text))
            return false;
    return true;
}

/* One value, or the list of several; null for none. */
static json_t *shown(json_t *values)
{
    json_t *list = json_array();
    const char *text;
    json_t *value;
    json_object_foreach (values, text, value)
        json_array_append(list, value);
    if (json_array_size(list) > 1)
        return list;
    json_t *only = json_array_size(list) ? json_incref(json_array_get(list, 0)) : json_null();
    json_decref(list);
    return only;
}

static bool is_ignored(struct text list, const char *key)
{
    const char *end = list.data + list.length_bytes;
    for (const char *at = list.data; at && at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct text name = text_without_blanks((struct text){at, (size_t)((comma ? comma : end) - at)});
        bool begins = name.length_bytes > 0 && strncmp(key, name.data, name.length_bytes) == 0;
        if (begins && (key[name.length_bytes] == '\0' || key[name.length_bytes] == '.'))
            return true;
        at = comma ? comma + 1 : NULL;
    }
    return false;
}

static void note(struct comparison *comparison, json_t *differences, const char *key)
{
    json_t *left = json_object_get(comparison->sides[0].settings, key);
    json_t *right = json_object_get(comparison->sides[1].settings, key);
    if (has_same_values(left, right))
        return;
    if (is_ignored(comparison->query->ignore, key)) {
        json_array_append_new(comparison->ignored, json_string(key));
        return;
    }
    json_t *difference = json_object();
    json_object_set_new(difference, "key", json_string(key));
    json_object_set_new(difference, "a", shown(left));
    json_object_set_new(difference, "b", shown(right));
    json_array_append_new(differences, difference);
}

json_t *compare_differences(struct comparison *comparison)
{
    json_t *differences = json_array();
    const char *key;
    json_t *values;
    json_object_foreach (comparison->sides[0].settings, key, values)
        note(comparison, differences, key);
    json_object_foreach (comparison->sides[1].settings, key, values)
        if (!json_object_get(comparison->sides[0].settings, key))
            note(comparison, differences, key);
    return differences;
}
