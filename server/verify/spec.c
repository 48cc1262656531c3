#include "server/verify/spec.h"
#include "server/base/json_big.h"

#include <math.h>
#include <stdio.h>

#include "server/settings/settings.h"
#include "server/verify/externals.h"
#include "server/verify/of_private.h"
#include "verifiers/registry.h"

#define WEIGHT_MAX 1e9
#define ID_TEXT_BYTES 64

struct verifier_fields {
    struct text name;
    struct text id;
    double weight; /* NAN: not given */
    bool heldout;
    bool gate;
    int steps; /* in step_names; -1: not given */
    json_t *options;
    json_t *reference;
};

static const char *const step_names[] = {"per_line", "per_paragraph", NULL};

static const struct field fields[] = {
    {"name", FIELD_TEXT, FIELD_REQUIRED, offsetof(struct verifier_fields, name), 0, ID_TEXT_BYTES, NULL},
    {"id", FIELD_TEXT, 0, offsetof(struct verifier_fields, id), 0, ID_TEXT_BYTES, NULL},
    {"weight", FIELD_DOUBLE, 0, offsetof(struct verifier_fields, weight), -WEIGHT_MAX, WEIGHT_MAX, NULL},
    {"heldout", FIELD_BOOL, 0, offsetof(struct verifier_fields, heldout), 0, 0, NULL},
    {"gate", FIELD_BOOL, 0, offsetof(struct verifier_fields, gate), 0, 0, NULL},
    {"steps", FIELD_CHOICE, FIELD_NULLABLE, offsetof(struct verifier_fields, steps), 0, 0, step_names},
    {"options", FIELD_OBJECT, 0, offsetof(struct verifier_fields, options), 0, 0, NULL},
    {"reference", FIELD_ANY, 0, offsetof(struct verifier_fields, reference), 0, 0, NULL},
};

static int refuse_name(struct call *call, const char *path, struct text name)
{
    char advice[ADVICE_BYTES];
    char where[PATH_BYTES];

    registry_advise(name, advice);
    path_join(where, path, "name");
    return call_refuse(call, ERR_INVALID_FIELD, where, "no verifier is called \"%.*s\"; %s", (int)name.length_bytes,
                       name.data, advice);
}

/* It becomes a key in replies and a C string in here. */
static bool id_is_printable(struct text id)
{
    for (size_t i = 0; i < id.length_bytes; i++)
        if ((unsigned char)id.data[i] < ' ' || id.data[i] == 0x7f)
            return false;
    return id.length_bytes > 0;
}

static int check_id(struct call *call, const char *path, const struct verifier_list *list, struct text id)
{
    char where[PATH_BYTES];

    path_join(where, path, "id");
    if (!id_is_printable(id))
        return call_refuse(call, ERR_INVALID_FIELD, where, "expected 1 to %d printable bytes", ID_TEXT_BYTES);
    for (size_t i = 0; i < list->count; i++)
        if (text_equals(id, list->specs[i].id))
            return call_refuse(call, ERR_INVALID_FIELD, where,
                               "another verifier of this list has the id \"%s\" already; the id defaults to the name",
                               list->specs[i].id);
    return 0;
}

static int check_weight(struct call *call, const char *path, const struct verifier_fields *read)
{
    char where[PATH_BYTES];

    if (read->heldout && !isnan(read->weight)) {
        path_join(where, path, "weight");
        return call_refuse(call, ERR_VERIFIER_OPTIONS, where,
                           "a held-out verifier is metric-only and has no weight; leave one of the two out");
    }
    if (read->heldout && read->gate) {
        path_join(where, path, "gate");
        return call_refuse(call, ERR_VERIFIER_OPTIONS, where, "a held-out verifier is no part of the reward: no gate");
    }
    return 0;
}

static int read_options(struct call *call, const char *path, const json_t *given, struct verifier_spec *spec)
{
    struct verifier_problem problem;
    char where[PATH_BYTES];
    uint8_t digest[SHA256_BYTES];

    spec->options = registry_fill_options(spec->verifier, given, &problem);
    if (!spec->options) {
        path_join(where, path, "options");
        if (problem.name[0])
            path_join(where, where, problem.name);
        return call_refuse(call, ERR_VERIFIER_OPTIONS, where, "%s", problem.message);
    }
    spec->options_json = json_big_dump(spec->options, JSON_COMPACT | JSON_SORT_KEYS);
    if (!spec->options_json)
        return call_refuse(call, ERR_INTERNAL, NULL, "the options do not fit into memory");
    _cleanup_free_ char *hashed =
        spec->steps ? xasprintf("%s\n%s", spec->options_json, pieces_kind_names[spec->steps]) : NULL;
    const char *text = hashed ? hashed : spec->options_json;
    sha256_of(text, strlen(text), digest);
    sha256_hex(digest, spec->options_sha256);
    return 0;
}

/* A program has no lines that could be run one by one. */
static int read_steps(struct call *call, const char *path, int steps, struct verifier_spec *spec)
{
    char where[PATH_BYTES];

    if (steps < 0)
        return 0;
    if (spec->verifier->runs_programs) {
        path_join(where, path, "steps");
        return call_refuse(call, ERR_VERIFIER_OPTIONS, where, "%s runs programs: it judges whole completions",
                           spec->verifier->name);
    }
    spec->steps = pieces_kind_of(text_of(step_names[steps]));
    return 0;
}

/* The option `name` of a verifier that asks one. */
static int find_external(struct call *call, const char *path, struct verifier_spec *spec)
{
    struct text name = option_text(spec->options, "name");
    char advice[ADVICE_BYTES];
    char where[PATH_BYTES];

    spec->version = spec->verifier->version;
    if (!spec->verifier->asks_external)
        return 0;
    spec->external = externals_find(name);
    if (spec->external) {
        spec->version = spec->external->version;
        spec->by_url = spec->external->settings->url;
        spec->of_group = spec->external->settings->of_group;
        return 0;
    }
    externals_advise(name, advice);
    path_join(where, path, "options.name");
    return call_refuse(call, ERR_VERIFIER_OPTIONS, where, "no external is called \"%.*s\"; %s", (int)name.length_bytes,
                       name.data, advice);
}

static int read_reference(struct call *call, const json_t *reference, struct verifier_spec *spec)
{
    if (!reference || json_is_null(reference))
        return 0;
    spec->reference = json_deep_copy(reference);
    spec->reference_json = spec->reference ? json_dumps(spec->reference, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    return spec->reference_json ? 0 : call_refuse(call, ERR_INTERNAL, NULL, "the reference does not fit into memory");
}

static int read_spec(struct json_input *input, const json_t *value, const char *path, struct verifier_list *list)
{
    struct verifier_fields read = {.weight = NAN, .steps = -1};
    struct verifier_spec *spec = &list->specs[list->count];
    struct text id;

    if (json_read_object(input, value, path, fields, ARRAY_LENGTH(fields), &read) < 0)
        return -1;
    spec->verifier = registry_find(read.name);
    if (!spec->verifier)
        return refuse_name(input->call, path, read.name);
    id = read.id.data ? read.id : read.name;
    if (check_id(input->call, path, list, id) < 0 || check_weight(input->call, path, &read) < 0)
        return -1;
    list->count++; /* from here on the list frees it */
    spec->id = xstrndup(id.data, id.length_bytes);
    spec->heldout = read.heldout;
    spec->gate = read.gate;
    spec->weight = read.heldout ? 0 : isnan(read.weight) ? 1 : read.weight;
    if (read_steps(input->call, path, read.steps, spec) < 0 ||
        read_options(input->call, path, read.options, spec) < 0 || find_external(input->call, path, spec) < 0)
        return -1;
    return read_reference(input->call, read.reference, spec);
}

struct verifier_list *verifier_list_read(struct json_input *input, const json_t *value, const char *path)
{
    _cleanup_(verifier_list_unrefp) struct verifier_list *list = NULL;
    size_t count = json_array_size(value);
    char where[PATH_BYTES];

    if (!json_is_array(value)) {
        call_refuse(input->call, ERR_INVALID_FIELD, path, "expected a list of verifiers");
        return NULL;
    }
    if (count > VERIFIER_LIST_LIMIT) {
        call_refuse(input->call, ERR_INVALID_FIELD, path, "expected at most %d verifiers", VERIFIER_LIST_LIMIT);
        return NULL;
    }
    list = xcalloc(1, sizeof *list + count * sizeof list->specs[0]);
    list->references = 1;
    for (size_t i = 0; i < count; i++) {
        path_index(where, "", path, i);
        if (read_spec(input, json_array_get(value, i), where, list) < 0)
            return NULL;
    }
    if (of_find(input->call, path, list) < 0)
        return NULL;
    return TAKE_PTR(list);
}

struct verifier_list *verifier_list_ref(struct verifier_list *list)
{
    __atomic_add_fetch(&list->references, 1, __ATOMIC_RELAXED);
    return list;
}

void verifier_list_unref(struct verifier_list *list)
{
    if (!list || __atomic_sub_fetch(&list->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = list->base ? list->base->count : 0; i < list->count; i++) {
        free(list->specs[i].id);
        free(list->specs[i].options_json);
        free(list->specs[i].reference_json);
        json_decref(list->specs[i].options);
        json_decref(list->specs[i].reference);
    }
    verifier_list_unref(list->base);
    free(list);
}

size_t verifier_list_frame_limit_bytes(const struct verifier_list *list)
{
    return verifier_list_runs_programs(list) ? VERIFIER_PROGRAM_FRAME_LIMIT_BYTES : VERIFIER_FRAME_LIMIT_BYTES;
}

bool verifier_needs_reference(const struct verifier_spec *spec)
{
    return spec->verifier->needs_reference && !spec->reference;
}

static int check_reference(const struct verifier_spec *spec, const json_t *wanted, struct verifier_problem *ret_problem)
{
    const struct verifier *verifier = spec->verifier;

    if (!verifier->runs_programs && !verifier->reads_big_numbers && json_big_is_in(wanted))
        return verifier_refuse(ret_problem, "", "%s reads whole numbers of at most 63 bits", verifier->name);
    return verifier->check_reference ? verifier->check_reference(wanted, spec->options, ret_problem) : 0;
}

int verifier_list_check_reference(const struct verifier_list *list, const json_t *reference, size_t *ret_index,
                                  struct verifier_problem *ret_problem)
{
    *ret_problem = (struct verifier_problem){"", ""};
    for (size_t i = 0; i < list->count; i++) {
        const struct verifier_spec *spec = &list->specs[i];
        const json_t *wanted = spec->reference ? spec->reference : reference;

        if (!wanted || json_is_null(wanted) || check_reference(spec, wanted, ret_problem) == 0)
            continue;
        *ret_index = i;
        return -1;
    }
    return 0;
}
