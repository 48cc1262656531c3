#include "tests/unit/objective/vectors.h"

#include <stdio.h>

json_t *vectors;

/* --- knobs --- */

static const struct objective_knob *find_knob(const char *section, const char *name)
{
    for (size_t i = 0; i < objective_knobs_count; i++)
        if (strcmp(objective_knobs_table[i].section, section) == 0 && strcmp(objective_knobs_table[i].name, name) == 0)
            return &objective_knobs_table[i];
    fail_msg("no knob %s.%s", section, name);
    return NULL;
}

void set_choice(void *item, const char *section, const char *name, const char *value)
{
    const struct objective_knob *knob = find_knob(section, name);
    int *target = (int *)(void *)((char *)item + knob->offset), before = *target;

    for (int i = 0; knob->choices[i]; i++) {
        if (strcmp(knob->choices[i], value) != 0)
            continue;
        *target = i;
        if (knob->flags & KNOB_SELECTOR)
            objective_kind_chosen(item, knob, before);
        return;
    }
    fail_msg("%s.%s has no value %s", section, name, value);
}

static void set_bounds(struct objective_bounds *bounds, const json_t *value)
{
    *bounds = (struct objective_bounds){NAN, NAN, NAN};
    if (json_is_number(value))
        bounds->number = json_number_value(value);
    else
        assert_int_equal(sscanf(json_string_value(value), "%lf_%lf", &bounds->low, &bounds->high), 2);
}

static void set_knob(void *item, const char *section, const char *name, const json_t *value)
{
    const struct objective_knob *knob = find_knob(section, name);
    char *target = (char *)item + knob->offset;

    if (knob->type == KNOB_NUMBER)
        *(double *)(void *)target = json_number_value(value);
    else if (knob->type == KNOB_INTEGER)
        *(int *)(void *)target = (int)json_integer_value(value);
    else if (knob->type == KNOB_BOOLEAN)
        *(bool *)target = json_is_true(value);
    else if (knob->type == KNOB_CHOICE)
        set_choice(item, section, name, json_string_value(value));
    else if (knob->type == KNOB_PAIR)
        fill_numbers((double *)(void *)target, value);
    else if (knob->type == KNOB_BOUNDS)
        set_bounds((struct objective_bounds *)(void *)target, value);
}

void set_knobs(void *item, const char *section, const json_t *params)
{
    const char *name;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)params, name, value) {
        if (!json_is_null(value))
            set_knob(item, section, name, value);
    }
}

/* --- reading --- */

const json_t *at(const json_t *value, const char *path)
{
    char *copy = strdup(path), *rest = NULL;
    const json_t *found = value;

    for (char *name = strtok_r(copy, ".", &rest); name && found; name = strtok_r(NULL, ".", &rest))
        found = json_object_get(found, name);
    free(copy);
    if (!found)
        fail_msg("%s has no %s", json_string_value(json_object_get(value, "id")), path);
    return found;
}

double number_at(const json_t *value, const char *path)
{
    return json_number_value(at(value, path));
}

void fill_numbers(double *ret_values, const json_t *list)
{
    for (size_t t = 0; t < json_array_size(list); t++)
        ret_values[t] = json_number_value(json_array_get(list, t));
}

size_t add_lists(struct scene *scene, size_t group, const json_t *logp, const json_t *old, const json_t *mask)
{
    size_t index = scene_add(scene, group, NAN, json_array_size(logp));
    struct line *line = &scene->lines[index];

    scene->sequences[index].rewarded = true;
    fill_numbers(line->logprobs, logp);
    fill_numbers(line->old, old ? old : logp);
    for (size_t t = 0; mask && t < json_array_size(mask); t++)
        line->mask[t] = json_integer_value(json_array_get(mask, t)) != 0;
    return index;
}

size_t group_number(struct scene *scene, const json_t *groups, size_t index)
{
    const char *name = json_string_value(json_array_get(groups, index));

    for (size_t i = 0; groups && i < index; i++)
        if (strcmp(json_string_value(json_array_get(groups, i)), name) == 0)
            return scene->sequences[i].group;
    return groups ? scene->request.group_count - (scene->request.sequence_count == 0) : 0;
}

/* --- running and comparing --- */

static const char *id_of(const json_t *one)
{
    return json_string_value(json_object_get(one, "id"));
}

void vector_run(struct scene *scene, const json_t *one)
{
    struct objective_contradiction contradiction;

    if (objective_settle(&scene->knobs, &contradiction) < 0)
        fail_msg("%s: %s %s", id_of(one), contradiction.path, contradiction.message);
    if (scene_run(scene) < 0)
        fail_msg("%s: %s %s", id_of(one), scene->error.field ? scene->error.field : "", scene->error.message);
}

/* The file's own tolerance: relative 1e-12, absolute 1e-15, and 1e-6 of numbers below that. */
static bool is_close(double got, double want)
{
    if (want != 0 && fabs(want) < 1e-15)
        return fabs(got - want) <= 1e-6 * fabs(want);
    return fabs(got - want) <= fmax(1e-12 * fabs(want), 1e-15);
}

void same_number(const json_t *one, const char *what, double got, const json_t *want)
{
    if (json_is_null(want) ? !isnan(got) && got != 0 : !is_close(got, json_number_value(want)))
        fail_msg("%s: %s is %.17g, expected %.17g", id_of(one), what, got, json_number_value(want));
}

void same_numbers(const json_t *one, const char *what, const double *got, const json_t *want)
{
    for (size_t t = 0; t < json_array_size(want); t++)
        same_number(one, what, got[t], json_array_get(want, t));
}
