#include "server/objective_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const sections[] = {"advantage", "shaping",    "mask",      "filter",     "loss",
                                       "kl",        "importance", "selection", "aggregation"};

/* --- reading --- */

struct reader {
    struct call *call;
    const char *path; /* of the objective */
    struct objective_knobs *knobs;
};

static int refuse(const struct reader *reader, enum error_code code, const char *section, const char *name,
                  const char *message)
{
    char inner[PATH_BYTES];
    char full[PATH_BYTES];

    path_join(inner, section, name);
    path_join(full, reader->path, inner);
    return call_refuse(reader->call, code, full, "%s", message);
}

static void *target(const struct reader *reader, const struct objective_knob *knob)
{
    return (char *)reader->knobs + knob->offset;
}

static int refuse_choice(const struct reader *reader, const struct objective_knob *knob, bool known)
{
    char message[512];
    int length = snprintf(message, sizeof message, "%s; this version knows",
                          known ? "it is part of the contract but not built yet" : "no such value");

    for (size_t i = 0; i < knob->choices->built && length < (int)sizeof message; i++)
        length +=
            snprintf(message + length, sizeof message - (size_t)length, "%s %s", i ? "," : "", knob->choices->names[i]);
    return refuse(reader, ERR_OBJECTIVE_OPTIONS, knob->section, knob->name, message);
}

static int read_choice(const struct reader *reader, const struct objective_knob *knob, const json_t *value)
{
    if (!json_is_string(value))
        return refuse(reader, ERR_INVALID_FIELD, knob->section, knob->name, "a text is expected");
    struct text name = {json_string_value(value), json_string_length(value)};
    for (size_t i = 0; knob->choices->names[i]; i++) {
        if (!text_equals(name, knob->choices->names[i]))
            continue;
        if (i >= knob->choices->built)
            return refuse_choice(reader, knob, true);
        *(int *)target(reader, knob) = (int)i;
        return 0;
    }
    return refuse_choice(reader, knob, false);
}

static int check_range(const struct reader *reader, const struct objective_knob *knob, double value)
{
    char message[128];
    bool above = knob->flags & KNOB_ABOVE_MINIMUM;

    if (value <= knob->maximum && (above ? value > knob->minimum : value >= knob->minimum))
        return 0;
    if (isinf(knob->maximum))
        snprintf(message, sizeof message, "it must be %s %g", above ? "above" : "at least", knob->minimum);
    else
        snprintf(message, sizeof message, "it must be from %g to %g", knob->minimum, knob->maximum);
    return refuse(reader, ERR_OBJECTIVE_OPTIONS, knob->section, knob->name, message);
}

static int read_number(const struct reader *reader, const struct objective_knob *knob, const json_t *value)
{
    bool nullable = knob->flags & KNOB_NULLABLE;

    if (json_is_null(value) && nullable) {
        *(double *)target(reader, knob) = NAN;
        return 0;
    }
    if (!json_is_number(value))
        return refuse(reader, ERR_INVALID_FIELD, knob->section, knob->name,
                      nullable ? "a number or null is expected" : "a number is expected");
    if (check_range(reader, knob, json_number_value(value)) < 0)
        return -1;
    *(double *)target(reader, knob) = json_number_value(value);
    return 0;
}

static int read_integer(const struct reader *reader, const struct objective_knob *knob, const json_t *value)
{
    if (!json_is_integer(value))
        return refuse(reader, ERR_INVALID_FIELD, knob->section, knob->name, "an integer is expected");
    if (check_range(reader, knob, (double)json_integer_value(value)) < 0)
        return -1;
    *(int *)target(reader, knob) = (int)json_integer_value(value);
    return 0;
}

static int read_boolean(const struct reader *reader, const struct objective_knob *knob, const json_t *value)
{
    if (!json_is_boolean(value))
        return refuse(reader, ERR_INVALID_FIELD, knob->section, knob->name, "true or false is expected");
    *(bool *)target(reader, knob) = json_is_true(value);
    return 0;
}

static int read_knob(const struct reader *reader, const struct objective_knob *knob, const json_t *value)
{
    static int (*const readers[])(const struct reader *, const struct objective_knob *, const json_t *) = {
        [KNOB_NUMBER] = read_number,
        [KNOB_INTEGER] = read_integer,
        [KNOB_BOOLEAN] = read_boolean,
        [KNOB_CHOICE] = read_choice,
    };
    return readers[knob->type](reader, knob, value);
}

static const struct objective_knob *find_knob(const char *section, const char *name)
{
    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        if (strcmp(knob->section, section) == 0 && strcmp(knob->name, name) == 0)
            return knob;
    }
    return NULL;
}

static int read_selector(const struct reader *reader, const char *section, const json_t *object)
{
    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        if (!(knob->flags & KNOB_SELECTOR) || strcmp(knob->section, section) != 0)
            continue;
        const json_t *value = json_object_get(object, knob->name);
        if (value && read_knob(reader, knob, value) < 0)
            return -1;
        if (value)
            objective_expand_short_kinds(reader->knobs, knob);
    }
    return 0;
}

static int read_member(const struct reader *reader, const char *section, const char *name, const json_t *value)
{
    const struct objective_knob *knob = find_knob(section, name);

    if (!knob && objective_knob_is_known(section, name))
        return refuse(reader, ERR_OBJECTIVE_OPTIONS, section, name, "no kind that this version computes uses it");
    if (!knob)
        return refuse(reader, ERR_UNKNOWN_FIELD, section, name, "no such knob");
    if (knob->flags & KNOB_SELECTOR)
        return 0;
    if (!objective_knob_is_used(reader->knobs, knob))
        return refuse(reader, ERR_OBJECTIVE_OPTIONS, section, name, "the chosen kind does not use it");
    return read_knob(reader, knob, value);
}

static int read_section(const struct reader *reader, const char *section, json_t *object)
{
    const char *name;
    json_t *value;

    if (!json_is_object(object))
        return refuse(reader, ERR_INVALID_FIELD, "", section, "an object is expected");
    if (read_selector(reader, section, object) < 0)
        return -1;
    json_object_foreach(object, name, value)
    {
        if (read_member(reader, section, name, value) < 0)
            return -1;
    }
    return 0;
}

static int read_shaping(const struct reader *reader, const json_t *list)
{
    if (!json_is_array(list))
        return refuse(reader, ERR_INVALID_FIELD, "", "shaping", "a list is expected");
    if (json_array_size(list) > 0)
        return refuse(reader, ERR_OBJECTIVE_OPTIONS, "", "shaping[0]",
                      "shaping is part of the contract but not built yet; give the empty list");
    return 0;
}

/* One object, or a list of them. */
static int read_importance(const struct reader *reader, json_t *value)
{
    char section[PATH_BYTES];

    if (!json_is_array(value))
        return read_section(reader, "importance", value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        path_index(section, "", "importance", i);
        if (!json_is_object(json_array_get(value, i)))
            return refuse(reader, ERR_INVALID_FIELD, "", section, "an object is expected");
        if (read_section(reader, "importance", json_array_get(value, i)) < 0)
            return -1;
    }
    return 0;
}

static int read_preset(const struct reader *reader, const json_t *value)
{
    if (!value)
        return objective_preset_find(OBJECTIVE_DEFAULT_PRESET, strlen(OBJECTIVE_DEFAULT_PRESET), reader->knobs) ? 0
                                                                                                                : -1;
    if (!json_is_string(value))
        return refuse(reader, ERR_INVALID_FIELD, "", "preset", "a text is expected");
    if (!objective_preset_find(json_string_value(value), json_string_length(value), reader->knobs))
        return refuse(reader, ERR_OBJECTIVE_OPTIONS, "", "preset", "no such preset; GET /v1/presets lists them");
    return 0;
}

/* Short for both bounds; it stands before what `loss` itself says. */
static int read_epsilon(const struct reader *reader, const json_t *value)
{
    const struct objective_knob *low = find_knob("loss", "eps_low");
    const struct objective_knob *high = find_knob("loss", "eps_high");

    if (!json_is_number(value))
        return refuse(reader, ERR_INVALID_FIELD, "", "epsilon", "a number is expected");
    if (!objective_knob_is_used(reader->knobs, low))
        return refuse(reader, ERR_OBJECTIVE_OPTIONS, "", "epsilon", "the chosen loss has no bounds");
    if (json_number_value(value) < 0)
        return refuse(reader, ERR_OBJECTIVE_OPTIONS, "", "epsilon", "it must be at least 0");
    *(double *)target(reader, low) = *(double *)target(reader, high) = json_number_value(value);
    return 0;
}

static bool is_section(const char *name)
{
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (strcmp(sections[i], name) == 0)
            return true;
    return false;
}

static int check_names(const struct reader *reader, json_t *object)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        bool known = strcmp(name, "preset") == 0 || strcmp(name, "epsilon") == 0 || is_section(name);
        if (!known && !find_knob("", name))
            return refuse(reader, ERR_UNKNOWN_FIELD, "", name, "no such section or knob");
    }
    return 0;
}

static int read_sections(const struct reader *reader, json_t *object)
{
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        json_t *value = json_object_get(object, sections[i]);
        if (!value)
            continue;
        int result = strcmp(sections[i], "shaping") == 0      ? read_shaping(reader, value)
                     : strcmp(sections[i], "importance") == 0 ? read_importance(reader, value)
                                                              : read_section(reader, sections[i], value);
        if (result < 0)
            return -1;
    }
    return 0;
}

static int read_top_level(const struct reader *reader, json_t *object)
{
    const json_t *epsilon = json_object_get(object, "epsilon");
    json_t *loss = json_object_get(object, "loss");

    /* The kind of loss decides whether epsilon means anything. */
    if (json_is_object(loss) && read_selector(reader, "loss", loss) < 0)
        return -1;
    if (epsilon && read_epsilon(reader, epsilon) < 0)
        return -1;
    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        const json_t *value = knob->section[0] ? NULL : json_object_get(object, knob->name);
        if (value && read_knob(reader, knob, value) < 0)
            return -1;
    }
    return read_sections(reader, object);
}

int objective_json_read(struct json_input *input, const json_t *object, const char *path,
                        struct objective_knobs *ret_knobs)
{
    struct reader reader = {input->call, path, ret_knobs};
    struct objective_contradiction contradiction;
    json_t *mutable_object = (json_t *)(uintptr_t)object; /* jansson's iterators take no const */

    if (object && !json_is_object(object))
        return call_refuse(input->call, ERR_INVALID_FIELD, path, "an object is expected");
    if (read_preset(&reader, object ? json_object_get(object, "preset") : NULL) < 0)
        return -1;
    if (!object)
        return 0;
    if (check_names(&reader, mutable_object) < 0 || read_top_level(&reader, mutable_object) < 0)
        return -1;
    if (objective_settle(ret_knobs, &contradiction) < 0)
        return refuse(&reader, ERR_OBJECTIVE_OPTIONS, "", contradiction.path, contradiction.message);
    return 0;
}

int objective_json_parse(struct text stored, struct objective_knobs *ret_knobs)
{
    struct call call;
    struct json_input input = {.call = &call};

    if (!stored.data)
        return -1;
    json_t *root = json_loadb(stored.data, stored.length_bytes, JSON_REJECT_DUPLICATES, NULL);
    if (!root)
        return -1;
    call_init(&call);
    int result = objective_json_read(&input, root, "", ret_knobs);
    call_finish(&call);
    json_decref(root);
    return result;
}

/* --- writing --- */

static void write_knob(struct json_write *json, const struct objective_knobs *knobs, const struct objective_knob *knob)
{
    const char *at = (const char *)knobs + knob->offset;

    switch (knob->type) {
    case KNOB_NUMBER:
        json_put_double(json, knob->name, *(const double *)at);
        break;
    case KNOB_INTEGER:
        json_put_int(json, knob->name, *(const int *)at);
        break;
    case KNOB_BOOLEAN:
        json_put_bool(json, knob->name, *(const bool *)at);
        break;
    case KNOB_CHOICE:
        json_put_string(json, knob->name, knob->choices->names[*(const int *)at]);
        break;
    }
}

static void write_section(struct json_write *json, const struct objective_knobs *knobs, const char *section)
{
    json_key(json, section);
    json_object_begin(json);
    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        if (strcmp(knob->section, section) == 0 && objective_knob_is_used(knobs, knob))
            write_knob(json, knobs, knob);
    }
    json_object_end(json);
}

void objective_json_write(struct json_write *json, const struct objective_knobs *knobs)
{
    json_object_begin(json);
    json_put_string(json, "preset", knobs->preset);
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (strcmp(sections[i], "shaping") == 0)
            json_put_raw(json, "shaping", TEXT_LITERAL("[]"));
        else
            write_section(json, knobs, sections[i]);
    }
    for (size_t i = 0; i < objective_knobs_count; i++)
        if (objective_knobs_table[i].section[0] == '\0')
            write_knob(json, knobs, &objective_knobs_table[i]);
    json_object_end(json);
}

static void write_total(struct json_write *json, const char *name, double value)
{
    if (isnan(value))
        json_put_null(json, name);
    else
        json_put_int(json, name, (int64_t)value);
}

void objective_json_write_totals(struct json_write *json, const struct objective_totals *totals)
{
    write_total(json, "tokens", totals->tokens);
    write_total(json, "sequences", totals->sequences);
    write_total(json, "groups", totals->groups);
}
