/* Knobs as JSON: what objective.c reads back. */
#include "server/spec/objective.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- writing --- */

static void write_bounds(struct json_write *json, const char *name, const struct objective_bounds *bounds)
{
    char text[64];

    if (!isnan(bounds->number) || isnan(bounds->low)) {
        json_put_double(json, name, bounds->number);
        return;
    }
    snprintf(text, sizeof text, "%.17g_%.17g", bounds->low, bounds->high);
    json_put_string(json, name, text);
}

static void write_pair(struct json_write *json, const char *name, const double *pair)
{
    json_put_f64s(json, name, pair, 2, JSON_ARRAYS_PLAIN);
}

static void write_knob(struct json_write *json, const void *item, const struct objective_knob *knob)
{
    const char *at = (const char *)item + knob->offset;

    switch (knob->type) {
    case KNOB_NUMBER:
        json_put_double(json, knob->name, *(const double *)at);
        break;
    case KNOB_INTEGER:
        json_put_int(json, knob->name, *(const int *)at);
        break;
    case KNOB_SEED:
        json_put_int(json, knob->name, *(const int64_t *)at);
        break;
    case KNOB_BOOLEAN:
        json_put_bool(json, knob->name, *(const bool *)at);
        break;
    case KNOB_CHOICE:
        json_put_string(json, knob->name, *(const int *)at < 0 ? NULL : knob->choices[*(const int *)at]);
        break;
    case KNOB_PAIR:
        write_pair(json, knob->name, (const double *)at);
        break;
    case KNOB_BOUNDS:
        write_bounds(json, knob->name, (const struct objective_bounds *)at);
        break;
    }
}

static void write_item(struct json_write *json, const struct objective_section *section, const void *item)
{
    json_object_begin(json);
    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        if (strcmp(knob->section, section->name) == 0 && objective_knob_is_used(item, knob))
            write_knob(json, item, knob);
    }
    json_object_end(json);
}

static void write_section(struct json_write *json, const struct objective_knobs *knobs,
                          const struct objective_section *section)
{
    size_t count = section->is_list ? *(const size_t *)(const void *)((const char *)knobs + section->count_offset) : 1;
    const char *items = (const char *)knobs + section->offset;

    json_key(json, section->name);
    if (section->may_be_object && count == 0) {
        json_raw(json, TEXT_LITERAL("{\"method\":\"none\"}"));
        return;
    }
    bool as_list = section->is_list && !(section->may_be_object && count == 1);
    if (as_list)
        json_array_begin(json);
    for (size_t i = 0; i < count; i++)
        write_item(json, section, items + i * section->item_bytes);
    if (as_list)
        json_array_end(json);
}

void objective_json_write(struct json_write *json, const struct objective_knobs *knobs)
{
    json_object_begin(json);
    json_put_string(json, "preset", knobs->preset);
    for (size_t i = 0; i < objective_sections_count; i++)
        write_section(json, knobs, &objective_sections[i]);
    for (size_t i = 0; i < objective_knobs_count; i++)
        if (objective_knobs_table[i].section[0] == '\0')
            write_knob(json, knobs, &objective_knobs_table[i]);
    json_object_end(json);
}

/* --- overrides --- */

static void write_override(void *arg, const char *path)
{
    json_write_string(arg, path);
}

void objective_json_write_overrides(struct json_write *json, const struct objective_knobs *knobs)
{
    json_array_begin(json);
    objective_overrides(knobs, write_override, json);
    json_array_end(json);
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
    if (totals->rollouts != totals->sequences && !isnan(totals->rollouts))
        write_total(json, "rollouts", totals->rollouts);
}
