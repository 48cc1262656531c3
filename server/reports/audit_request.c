/* The body of an audit: what is asked, and the groups of one without a record. */
#include "server/reports/audit_private.h"

#include "server/base/cleanup.h"
#include "server/base/nearest.h"

#include <math.h>
#include <stdio.h>

static const char *const kinds[] = {"sweep", "adversarial", NULL};
#define FIELD(name) offsetof(struct audit_fields, name)

static const struct field request_fields[] = {
    {"kind", FIELD_CHOICE, 0, FIELD(kind), 0, 0, kinds},
    {"run", FIELD_TEXT, 0, FIELD(run), 0, 0, NULL},
    {"incarnation", FIELD_INT, 0, FIELD(incarnation), 0, (double)INT64_MAX, NULL},
    {"revision", FIELD_INT, 0, FIELD(revision), 0, (double)INT64_MAX, NULL},
    {"batch", FIELD_TEXT, 0, FIELD(batch), 0, 0, NULL},
    {"objective", FIELD_OBJECT, 0, FIELD(objective), 0, 0, NULL},
    {"groups", FIELD_ARRAY, 0, FIELD(groups), 0, 0, NULL},
    {"weights", FIELD_OBJECT, 0, FIELD(weights), 0, 0, NULL},
    {"sweep", FIELD_OBJECT, FIELD_REQUIRED, FIELD(sweep), 0, 0, NULL},
    {"truth", FIELD_TEXT, FIELD_REQUIRED, FIELD(truth), 0, 0, NULL},
    {"threshold", FIELD_DOUBLE, 0, FIELD(threshold), 0, 0, NULL},
};

int audit_refuse_memory(struct audit *audit)
{
    return call_refuse(audit->call, ERR_QUEUE_FULL, NULL, "there is no memory for this audit now");
}

/* The field that names the completions. */
static const char *path_of_members(const struct audit_fields *fields)
{
    if (fields->batch.data)
        return "batch";
    return fields->run.data ? "revision" : "groups";
}

int audit_refuse_scores(struct audit *audit)
{
    return call_refuse(audit->call, ERR_TOO_MANY_ROLLOUTS, path_of_members(&audit->fields),
                       "an audit takes at most %d scores, counting those that are missing", AUDIT_SCORES_MAX);
}

int audit_refuse_many(struct audit *audit)
{
    const struct audit_fields *fields = &audit->fields;

    return call_refuse(audit->call, ERR_TOO_MANY_ROLLOUTS, path_of_members(fields),
                       "an audit takes at most %d completions; %s", AUDIT_MEMBERS_MAX,
                       fields->batch.data ? "this batch has more"
                       : fields->run.data ? "name a batch of the run instead"
                                          : "send fewer at once");
}

/* --- what is asked --- */

struct sweep_fields {
    struct text verifier;
    json_t *weights;
};

static const struct field sweep_fields[] = {
    {"verifier", FIELD_TEXT, FIELD_REQUIRED, offsetof(struct sweep_fields, verifier), 0, 0, NULL},
    {"weights", FIELD_ARRAY, FIELD_REQUIRED, offsetof(struct sweep_fields, weights), 0, 0, NULL},
};

static int read_weight(struct call *call, const char *path, const json_t *value, double *ret_weight)
{
    *ret_weight = json_is_number(value) ? json_number_value(value) : NAN;
    if (fabs(*ret_weight) <= AUDIT_WEIGHT_LARGEST)
        return 0;
    return call_refuse(call, ERR_INVALID_FIELD, path, "expected a number from -1e9 to 1e9");
}

static int read_sweep(struct audit *audit)
{
    struct sweep_fields read = {TEXT_NONE, NULL};
    char path[PATH_BYTES];
    size_t i;
    const json_t *value;

    if (json_read_object(audit->input, audit->fields.sweep, "sweep", sweep_fields, ARRAY_LENGTH(sweep_fields), &read) <
        0)
        return -1;
    audit->verifier = read.verifier;
    if (json_array_size(read.weights) == 0 || json_array_size(read.weights) > AUDIT_WEIGHTS_MAX)
        return call_refuse(audit->call, ERR_INVALID_FIELD, "sweep.weights", "expected 1 to %d weights",
                           AUDIT_WEIGHTS_MAX);
    audit->rows[0].weight = NAN;
    audit->row_count = 1;
    json_array_foreach (read.weights, i, value) {
        path_index(path, "", "sweep.weights", i);
        if (read_weight(audit->call, path, value, &audit->rows[audit->row_count++].weight) < 0)
            return -1;
    }
    return 0;
}

static int refuse_together(struct audit *audit, const char *field, const char *other)
{
    return call_refuse(audit->call, ERR_INVALID_FIELD, field, "not beside `%s`: %s", other,
                       audit->fields.run.data ? "objective, groups and weights are those of the record"
                                              : "an audit of the record names its run");
}

/* Either the record or the request has the scores. */
static int check_forms(struct audit *audit)
{
    const struct audit_fields *fields = &audit->fields;

    if (fields->run.data) {
        if (fields->objective || fields->groups || fields->weights)
            return refuse_together(audit,
                                   fields->groups      ? "groups"
                                   : fields->objective ? "objective"
                                                       : "weights",
                                   "run");
        if (fields->batch.data && (fields->revision >= 0 || fields->incarnation >= 0))
            return call_refuse(audit->call, ERR_INVALID_FIELD, fields->revision >= 0 ? "revision" : "incarnation",
                               "not beside `batch`");
        if (!fields->batch.data && fields->revision < 0)
            return call_refuse(audit->call, ERR_MISSING_FIELD, "revision",
                               "an audit of a run names a revision or a batch");
        return 0;
    }
    if (fields->batch.data || fields->revision >= 0 || fields->incarnation >= 0)
        return call_refuse(audit->call, ERR_MISSING_FIELD, "run", "an audit of the record names its run");
    if (!fields->groups)
        return call_refuse(audit->call, ERR_MISSING_FIELD, "groups",
                           "expected a run with a revision or a batch, or groups with scores");
    if (!fields->weights)
        return call_refuse(audit->call, ERR_MISSING_FIELD, "weights",
                           "expected the weight of each score in the reward");
    return 0;
}

int audit_read(struct audit *audit)
{
    struct audit_fields *fields = &audit->fields;

    *fields = (struct audit_fields){.incarnation = -1, .revision = -1, .threshold = 1};
    if (json_read_object(audit->input, audit->input->root, "", request_fields, ARRAY_LENGTH(request_fields), fields) <
            0 ||
        read_sweep(audit) < 0 || check_forms(audit) < 0)
        return -1;
    for (size_t r = 0; r < audit->row_count; r++)
        buffer_init(&audit->rows[r].promoted, 2 * AUDIT_LISTED_BYTES);
    buffer_init(&audit->divergence, 4096);
    return 0;
}

/* --- a part that grows --- */

/* Room for one more. False: no memory. */
static bool grow(void *array, size_t *room, size_t count, size_t size_bytes)
{
    if (count < *room)
        return true;
    size_t wanted = *room ? *room * 2 : 16;
    void *larger = reallocarray(*(void **)array, wanted, size_bytes);
    if (!larger)
        return false;
    *(void **)array = larger;
    *room = wanted;
    return true;
}

int audit_name(struct audit *audit, struct text name, uint32_t *ret_number)
{
    const json_t *known = json_object_getn(audit->numbers, name.data, name.length_bytes);

    if (known) {
        *ret_number = (uint32_t)json_integer_value(known);
        return 0;
    }
    if (audit->name_count == AUDIT_NAMES_MAX)
        return call_refuse(audit->call, ERR_INVALID_FIELD, audit->fields.run.data ? "run" : "groups",
                           "there are more than %d names of scores", AUDIT_NAMES_MAX);
    *ret_number = (uint32_t)audit->name_count;
    audit->names = xrealloc(audit->names, (audit->name_count + 1) * sizeof *audit->names);
    audit->names[audit->name_count++] = xstrndup(name.data, name.length_bytes);
    json_object_setn_new(audit->numbers, name.data, name.length_bytes, json_integer(*ret_number));
    return 0;
}

static int check_name(struct audit *audit, uint32_t number, const char *path)
{
    const char *known[AUDIT_NAMES_MAX];
    char advice[ADVICE_BYTES];
    size_t count = 0;

    if (audit->seen[number])
        return 0;
    for (size_t k = 0; k < audit->name_count; k++)
        if (audit->seen[k])
            known[count++] = audit->names[k];
    names_advise(text_of(audit->names[number]), known, sizeof known[0], count, advice);
    return call_refuse(audit->call, ERR_INVALID_FIELD, path, "no completion has a score of this name; %s", advice);
}

int audit_check_names(struct audit *audit)
{
    char path[PATH_BYTES];
    const char *name;
    json_t *value;

    if (check_name(audit, audit->swept, "sweep.verifier") < 0 || check_name(audit, audit->truth, "truth") < 0)
        return -1;
    json_object_foreach (audit->fields.weights, name, value) {
        uint32_t number = (uint32_t)json_integer_value(json_object_get(audit->numbers, name));
        path_join(path, "weights", name);
        if (check_name(audit, number, path) < 0)
            return -1;
    }
    return 0;
}

static uint32_t task_number(struct audit *audit, struct text task)
{
    json_t *known = json_object_getn(audit->tasks, task.data, task.length_bytes);

    if (!known) {
        known = json_integer((json_int_t)json_object_size(audit->tasks));
        json_object_setn_new(audit->tasks, task.data, task.length_bytes, known);
    }
    return (uint32_t)json_integer_value(known);
}

int audit_add_group(struct audit *audit, struct audit_part *part, struct text task, struct audit_group **ret_group)
{
    if (!grow(&part->groups, &part->group_room, part->group_count, sizeof *part->groups))
        return audit_refuse_memory(audit);
    *ret_group = &part->groups[part->group_count++];
    **ret_group =
        (struct audit_group){.task = task, .task_number = task_number(audit, task), .first = part->member_count};
    return 0;
}

int audit_add_member(struct audit *audit, struct audit_part *part, struct audit_member **ret_member)
{
    if (audit->member_count + part->member_count == AUDIT_MEMBERS_MAX)
        return audit_refuse_many(audit);
    if (!grow(&part->members, &part->member_room, part->member_count, sizeof *part->members) ||
        !grow(&part->sequences, &part->sequence_room, part->member_count, sizeof *part->sequences))
        return audit_refuse_memory(audit);
    *ret_member = &part->members[part->member_count];
    **ret_member = (struct audit_member){
        .group = part->group_count - 1, .first_score = part->score_count, .sample_index = -1, .counted = true};
    part->sequences[part->member_count++] = (struct objective_sequence){.group = part->group_count - 1};
    part->groups[part->group_count - 1].count++;
    return 0;
}

int audit_add_score(struct audit *audit, struct audit_part *part, const struct audit_score *score)
{
    if (part->score_count == AUDIT_SCORES_MAX)
        return audit_refuse_scores(audit);
    if (!grow(&part->scores, &part->score_room, part->score_count, sizeof *part->scores))
        return audit_refuse_memory(audit);
    part->scores[part->score_count++] = *score;
    part->members[part->member_count - 1].score_count++;
    return 0;
}

void audit_part_finish(struct audit_part *part)
{
    for (size_t g = 0; g < part->group_count; g++)
        if (part->groups[g].id[0])
            free((char *)(uintptr_t)part->groups[g].task.data);
    for (size_t k = 0; k < part->kept_count; k++)
        store_group_finish(&part->kept[k]);
    free(part->kept);
    free(part->groups);
    free(part->members);
    free(part->sequences);
    free(part->scores);
    *part = (struct audit_part){0};
}
