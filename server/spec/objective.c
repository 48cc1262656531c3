#include "server/spec/objective.h"

#include "server/base/nearest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- reading --- */

#define KNOB_NAMES_MAX 96

/* Names at the top level that are neither sections nor knobs. */
static const char *const top_level_names[] = {"preset", "epsilon"};

struct reader {
    struct call *call;
    const char *path; /* of the objective */
    struct objective_knobs *knobs;
    const struct objective_section *section; /* NULL: the top level */
    char section_path[64];                   /* "loss", "shaping[1]" */
    void *item;                              /* what the section's offsets count from */
};

static int refuse_at(const struct reader *reader, enum error_code code, const char *section, const char *name,
                     const char *message)
{
    char inner[PATH_BYTES];
    char full[PATH_BYTES];

    path_join(inner, section, name);
    path_join(full, reader->path, inner);
    return call_refuse(reader->call, code, full, "%s", message);
}

static int refuse(const struct reader *reader, enum error_code code, const char *name, const char *message)
{
    return refuse_at(reader, code, reader->section_path, name, message);
}

static void *target(const struct reader *reader, const struct objective_knob *knob)
{
    return (char *)reader->item + knob->offset;
}

/* --- one knob --- */

static int refuse_choice(const struct reader *reader, const struct objective_knob *knob, struct text name)
{
    char advice[ADVICE_BYTES];
    char message[ADVICE_BYTES + 32];

    names_advise_list(name, knob->choices, advice);
    snprintf(message, sizeof message, "no such value; %s", advice);
    return refuse(reader, ERR_OBJECTIVE_OPTIONS, knob->name, message);
}

static int read_choice(const struct reader *reader, const struct objective_knob *knob, const json_t *value)
{
    if (!json_is_string(value))
        return refuse(reader, ERR_INVALID_FIELD, knob->name, "a text is expected");
    struct text name = {json_string_value(value), json_string_length(value)};
    for (size_t i = 0; knob->choices[i]; i++) {
        if (!text_equals(name, knob->choices[i]))
            continue;
        *(int *)target(reader, knob) = (int)i;
        return 0;
    }
    return refuse_choice(reader, knob, name);
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
    return refuse(reader, ERR_OBJECTIVE_OPTIONS, knob->name, message);
}

static int read_number(const struct reader *reader, const struct objective_knob *knob, const json_t *value)
{
    bool nullable = knob->flags & KNOB_NULLABLE;

    if (json_is_null(value) && nullable) {
        *(double *)target(reader, knob) = NAN;
        return 0;
    }
    if (!json_is_number(value))
        return refuse(reader, ERR_INVALID_FIELD, knob->name,
                      nullable ? "a number or null is expected" : "a number is expected");
    if (check_range(reader, knob, json_number_value(value)) < 0)
        return -1;
    *(double *)target(reader, knob) = json_number_value(value);
    return 0;
}

static int read_integer(const struct reader *reader, const struct objective_knob *knob, const json_t *value)
{
    int64_t integer;

    if (!json_whole(value, &integer))
        return refuse(reader, ERR_INVALID_FIELD, knob->name, "an integer is expected");
    if (check_range(reader, knob, (double)integer) < 0)
        return -1;
    if (knob->type == KNOB_SEED)
        *(int64_t *)target(reader, knob) = integer;
    else
        *(int *)target(reader, knob) = (int)integer;
    return 0;
}

static int read_boolean(const struct reader *reader, const struct objective_knob *knob, const json_t *value)
{
    if (!json_is_boolean(value))
        return refuse(reader, ERR_INVALID_FIELD, knob->name, "true or false is expected");
    *(bool *)target(reader, knob) = json_is_true(value);
    return 0;
}

static int read_pair(const struct reader *reader, const struct objective_knob *knob, const json_t *value)
{
    double *pair = target(reader, knob);
    bool whole = json_array_size(value) == 2 && json_is_number(json_array_get(value, 0)) &&
                 json_is_number(json_array_get(value, 1));

    if (!whole)
        return refuse(reader, ERR_INVALID_FIELD, knob->name, "a list of two numbers is expected");
    pair[0] = json_number_value(json_array_get(value, 0));
    pair[1] = json_number_value(json_array_get(value, 1));
    return 0;
}

/* "0.5_2.0" */
static bool parse_bounds(const char *text, struct objective_bounds *ret_bounds)
{
    char *end;
    char *last;

    ret_bounds->number = NAN;
    ret_bounds->low = strtod(text, &end);
    if (end == text || *end != '_')
        return false;
    ret_bounds->high = strtod(end + 1, &last);
    return last != end + 1 && *last == '\0' && isfinite(ret_bounds->low) && isfinite(ret_bounds->high);
}

static int read_bounds(const struct reader *reader, const struct objective_knob *knob, const json_t *value)
{
    struct objective_bounds *bounds = target(reader, knob);
    const char *text = json_string_value(value);

    if (json_is_number(value)) {
        *bounds = (struct objective_bounds){json_number_value(value), NAN, NAN};
        return check_range(reader, knob, bounds->number);
    }
    if (!text || strlen(text) != json_string_length(value) || !parse_bounds(text, bounds))
        return refuse(reader, ERR_INVALID_FIELD, knob->name, "a number, or a text \"lo_hi\", is expected");
    return 0;
}

static int read_knob(const struct reader *reader, const struct objective_knob *knob, const json_t *value)
{
    static int (*const readers[])(const struct reader *, const struct objective_knob *, const json_t *) = {
        [KNOB_NUMBER] = read_number,   [KNOB_INTEGER] = read_integer, [KNOB_SEED] = read_integer,
        [KNOB_BOOLEAN] = read_boolean, [KNOB_CHOICE] = read_choice,   [KNOB_PAIR] = read_pair,
        [KNOB_BOUNDS] = read_bounds,
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

/* --- one section --- */

static int read_selector(const struct reader *reader, const json_t *object)
{
    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        if (!(knob->flags & KNOB_SELECTOR) || strcmp(knob->section, reader->section->name) != 0)
            continue;
        const json_t *value = json_object_get(object, knob->name);
        int previous = *(int *)target(reader, knob);
        if (value && read_knob(reader, knob, value) < 0)
            return -1;
        if (value)
            objective_kind_chosen(reader->item, knob, previous);
    }
    return 0;
}

/* The names of a section's knobs; at the top level those of sections, too. */
static size_t names_in(const char *section, const char *ret_names[KNOB_NAMES_MAX])
{
    size_t count = 0;
    bool top = *section == '\0';

    for (size_t i = 0; i < ARRAY_LENGTH(top_level_names) && top; i++)
        ret_names[count++] = top_level_names[i];
    for (size_t i = 0; i < objective_sections_count && top; i++)
        ret_names[count++] = objective_sections[i].name;
    for (size_t i = 0; i < objective_knobs_count && count < KNOB_NAMES_MAX; i++)
        if (strcmp(objective_knobs_table[i].section, section) == 0)
            ret_names[count++] = objective_knobs_table[i].name;
    return count;
}

static int refuse_knob(const struct reader *reader, const char *section, const char *section_path, const char *name)
{
    const char *names[KNOB_NAMES_MAX];
    size_t count = names_in(section, names);
    char advice[ADVICE_BYTES];
    char message[ADVICE_BYTES + 32];

    names_advise(text_of(name), names, sizeof names[0], count, advice);
    snprintf(message, sizeof message, "there is no knob of this name; %s", advice);
    return refuse_at(reader, ERR_UNKNOWN_FIELD, section_path, name, message);
}

static int read_member(const struct reader *reader, const char *name, const json_t *value)
{
    const struct objective_knob *knob = find_knob(reader->section->name, name);

    if (!knob)
        return refuse_knob(reader, reader->section->name, reader->section_path, name);
    if (knob->flags & KNOB_SELECTOR)
        return 0;
    bool is_used = objective_knob_is_used(reader->item, knob);
    if (!is_used && (knob->flags & KNOB_NULLABLE) && json_is_null(value))
        return 0;
    if (!is_used)
        return refuse(reader, ERR_OBJECTIVE_OPTIONS, name, "the chosen kind does not use it");
    return read_knob(reader, knob, value);
}

static int read_item(const struct reader *reader, json_t *object)
{
    const char *name;
    json_t *value;

    if (!json_is_object(object))
        return refuse_at(reader, ERR_INVALID_FIELD, "", reader->section_path, "an object is expected");
    if (read_selector(reader, object) < 0)
        return -1;
    json_object_foreach (object, name, value) {
        if (read_member(reader, name, value) < 0)
            return -1;
    }
    return 0;
}

/* --- lists --- */

static const struct objective_knob *selector_of(const struct objective_section *section)
{
    for (size_t i = 0; i < objective_knobs_count; i++)
        if (objective_knobs_table[i].flags & KNOB_SELECTOR &&
            strcmp(objective_knobs_table[i].section, section->name) == 0)
            return &objective_knobs_table[i];
    return NULL;
}

static size_t *count_of(const struct reader *reader)
{
    return (size_t *)(void *)((char *)reader->knobs + reader->section->count_offset);
}

/* An item that names `none` is none. */
static bool is_none(const struct reader *reader)
{
    const struct objective_knob *selector = selector_of(reader->section);
    return strcmp(selector->choices[*(int *)target(reader, selector)], "none") == 0;
}

static int add_item(struct reader *reader, json_t *object)
{
    const struct objective_knob *selector = selector_of(reader->section);
    size_t *count = count_of(reader);

    reader->item = objective_section_item(reader->knobs, reader->section, *count);
    objective_item_init(reader->section, reader->item);
    *(int *)target(reader, selector) = 0;
    if (json_is_object(object) && !json_object_get(object, selector->name))
        return refuse(reader, ERR_MISSING_FIELD, selector->name, "this field is required");
    if (read_item(reader, object) < 0)
        return -1;
    *count += !is_none(reader);
    return 0;
}

static int read_list(struct reader *reader, json_t *list)
{
    size_t size = json_array_size(list);

    if (!json_is_array(list))
        return refuse_at(reader, ERR_INVALID_FIELD, "", reader->section->name,
                         reader->section->may_be_object ? "an object or a list is expected" : "a list is expected");
    *count_of(reader) = 0;
    for (size_t i = 0; i < size; i++) {
        snprintf(reader->section_path, sizeof reader->section_path, "%s[%zu]", reader->section->name, i);
        if (i == reader->section->maximum)
            return refuse_at(reader, ERR_OBJECTIVE_OPTIONS, "", reader->section_path, "the list is too long");
        if (add_item(reader, json_array_get(list, i)) < 0)
            return -1;
    }
    return 0;
}

/* One object in place of a list: without a kind it changes the preset's only item. */
static int read_single(struct reader *reader, json_t *object)
{
    const struct objective_knob *selector = selector_of(reader->section);
    size_t *count = count_of(reader);
    bool changes = *count == 1 && !json_object_get(object, selector->name);

    snprintf(reader->section_path, sizeof reader->section_path, "%s", reader->section->name);
    reader->item = objective_section_item(reader->knobs, reader->section, 0);
    if (!changes) {
        objective_item_init(reader->section, reader->item);
        *(int *)target(reader, selector) = 0;
    }
    if (read_item(reader, object) < 0)
        return -1;
    *count = is_none(reader) ? 0 : 1;
    return 0;
}

static int read_section(struct reader *reader, const struct objective_section *section, json_t *value)
{
    reader->section = section;
    if (section->is_list)
        return section->may_be_object && json_is_object(value) ? read_single(reader, value) : read_list(reader, value);
    snprintf(reader->section_path, sizeof reader->section_path, "%s", section->name);
    reader->item = reader->knobs;
    return read_item(reader, value);
}

/* --- the whole --- */

static int refuse_preset(const struct reader *reader, struct text name)
{
    char advice[ADVICE_BYTES];
    char message[ADVICE_BYTES + 32];

    names_advise(name, objective_presets, sizeof objective_presets[0], objective_presets_count, advice);
    snprintf(message, sizeof message, "there is no such preset; %s", advice);
    return refuse_at(reader, ERR_OBJECTIVE_OPTIONS, "", "preset", message);
}

static int read_preset(const struct reader *reader, const json_t *value)
{
    if (!value)
        return objective_preset_find(OBJECTIVE_DEFAULT_PRESET, strlen(OBJECTIVE_DEFAULT_PRESET), reader->knobs) ? 0
                                                                                                                : -1;
    if (!json_is_string(value))
        return refuse_at(reader, ERR_INVALID_FIELD, "", "preset", "a text is expected");
    if (!objective_preset_find(json_string_value(value), json_string_length(value), reader->knobs))
        return refuse_preset(reader, (struct text){json_string_value(value), json_string_length(value)});
    return 0;
}

/* Short for both bounds; it stands before what `loss` itself says. */
static int read_epsilon(const struct reader *reader, const json_t *value)
{
    const struct objective_knob *low = find_knob("loss", "eps_low");

    if (!json_is_number(value))
        return refuse_at(reader, ERR_INVALID_FIELD, "", "epsilon", "a number is expected");
    if (!objective_knob_is_used(reader->knobs, low))
        return refuse_at(reader, ERR_OBJECTIVE_OPTIONS, "", "epsilon", "the chosen loss has no bounds");
    if (json_number_value(value) < 0)
        return refuse_at(reader, ERR_OBJECTIVE_OPTIONS, "", "epsilon", "it must be at least 0");
    reader->knobs->loss.eps_low = reader->knobs->loss.eps_high = json_number_value(value);
    return 0;
}

static int check_names(const struct reader *reader, json_t *object)
{
    const char *name;
    json_t *value;

    json_object_foreach (object, name, value) {
        const char *names[KNOB_NAMES_MAX];
        size_t count = names_in("", names);
        bool known = false;
        for (size_t i = 0; i < count && !known; i++)
            known = strcmp(name, names[i]) == 0;
        if (!known)
            return refuse_knob(reader, "", "", name);
    }
    return 0;
}

/* The kind of loss decides whether epsilon means anything, so it is read first. */
static int read_kind_and_epsilon(struct reader *reader, json_t *object)
{
    const json_t *epsilon = json_object_get(object, "epsilon");
    json_t *loss = json_object_get(object, "loss");

    reader->section = objective_section_find("loss");
    snprintf(reader->section_path, sizeof reader->section_path, "loss");
    reader->item = reader->knobs;
    if (json_is_object(loss) && read_selector(reader, loss) < 0)
        return -1;
    return epsilon ? read_epsilon(reader, epsilon) : 0;
}

static int read_top_level(struct reader *reader, json_t *object)
{
    if (read_kind_and_epsilon(reader, object) < 0)
        return -1;
    reader->section_path[0] = '\0';
    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        const json_t *value = knob->section[0] ? NULL : json_object_get(object, knob->name);
        if (value && read_knob(reader, knob, value) < 0)
            return -1;
    }
    for (size_t i = 0; i < objective_sections_count; i++) {
        json_t *value = json_object_get(object, objective_sections[i].name);
        if (value && read_section(reader, &objective_sections[i], value) < 0)
            return -1;
    }
    return 0;
}

static int settle(const struct reader *reader)
{
    struct objective_contradiction contradiction;

    if (objective_settle(reader->knobs, &contradiction) < 0)
        return refuse_at(reader, ERR_OBJECTIVE_OPTIONS, "", contradiction.path, contradiction.message);
    return 0;
}

int objective_json_read(struct json_input *input, const json_t *object, const char *path,
                        struct objective_knobs *ret_knobs)
{
    struct reader reader = {.call = input->call, .path = path, .knobs = ret_knobs};
    json_t *mutable_object = (json_t *)(uintptr_t)object; /* jansson's iterators take no const */

    if (object && !json_is_object(object))
        return call_refuse(input->call, ERR_INVALID_FIELD, path, "an object is expected");
    if (read_preset(&reader, object ? json_object_get(object, "preset") : NULL) < 0)
        return -1;
    if (object && (check_names(&reader, mutable_object) < 0 || read_top_level(&reader, mutable_object) < 0))
        return -1;
    return settle(&reader);
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
