/* Groups and scores that stand in the request. */
#include "server/reports/audit_private.h"

#include "server/base/cleanup.h"
#include "server/spec/objective.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct group_fields {
    struct text task;
    json_t *completions;
};

static const struct field group_fields[] = {
    {"task", FIELD_TEXT, FIELD_REQUIRED, offsetof(struct group_fields, task), 0, AUDIT_TASK_BYTES, NULL},
    {"completions", FIELD_ARRAY, FIELD_REQUIRED, offsetof(struct group_fields, completions), 0, 0, NULL},
};

struct completion_fields {
    struct text id;
    json_t *scores;
    int finish_reason;
    int64_t length, prompt_tokens, turns;
};

static const char *const finish_reasons[] = {"stop", "length", "abort", "tool_calls", NULL};
enum { FINISH_LENGTH = 1 };
#define LENGTH_MAX 0x1p53
#define ID_TEXT_BYTES 256
#define FIELD(name) offsetof(struct completion_fields, name)

static const struct field completion_fields[] = {
    {"id", FIELD_TEXT, 0, FIELD(id), 0, ID_TEXT_BYTES, NULL},
    {"scores", FIELD_OBJECT, FIELD_REQUIRED, FIELD(scores), 0, 0, NULL},
    {"finish_reason", FIELD_CHOICE, 0, FIELD(finish_reason), 0, 0, finish_reasons},
    {"length", FIELD_INT, 0, FIELD(length), 0, LENGTH_MAX, NULL},
    {"prompt_tokens", FIELD_INT, 0, FIELD(prompt_tokens), 0, LENGTH_MAX, NULL},
    {"turns", FIELD_INT, 0, FIELD(turns), 0, LENGTH_MAX, NULL},
};

/* --- the objective --- */

/* An estimator that needs tokens cannot be computed from scores. */
static const char *needs_tokens(const struct objective_knobs *knobs)
{
    if (objective_is_per_token(knobs) || knobs->advantage.estimator == OBJECTIVE_ESTIMATOR_OPO)
        return "advantage.estimator";
    for (size_t i = 0; i < knobs->shaping_count; i++)
        if (knobs->shaping[i].kind == OBJECTIVE_SHAPER_REPETITION)
            return "shaping";
    return NULL;
}

static bool shapes_lengths(const struct objective_knobs *knobs)
{
    for (size_t i = 0; i < knobs->shaping_count; i++)
        if (knobs->shaping[i].kind == OBJECTIVE_SHAPER_SOFT_OVERLONG ||
            knobs->shaping[i].kind == OBJECTIVE_SHAPER_LINEAR_LENGTH ||
            knobs->shaping[i].kind == OBJECTIVE_SHAPER_COSINE)
            return true;
    return false;
}

static int read_objective(struct audit *audit, struct objective_knobs *ret_knobs)
{
    struct objective_knobs knobs;
    struct objective_contradiction contradiction;
    char path[PATH_BYTES];

    if (objective_json_read(audit->input, audit->fields.objective, "objective", &knobs) < 0)
        return -1;
    if (objective_check_sampling(&knobs, &contradiction) < 0) {
        path_join(path, "objective", contradiction.path);
        return call_refuse(audit->call, ERR_OBJECTIVE_OPTIONS, path, "%s", contradiction.message);
    }
    objective_at_sampling(&knobs, ret_knobs);
    const char *unfit = needs_tokens(ret_knobs);
    if (!unfit)
        return 0;
    path_join(path, "objective", unfit);
    return call_refuse(audit->call, ERR_OBJECTIVE_OPTIONS, path,
                       "it needs the tokens of each completion; audit the record of a run, or leave it out");
}

/* --- scores --- */

static int add_score(struct audit *audit, struct audit_part *part, const char *name, double value)
{
    const json_t *weight = json_object_get(audit->fields.weights, name);
    struct audit_score score = {.score = value, .weight = json_number_value(weight), .is_reward = weight != NULL};

    if (audit_name(audit, text_of(name), &score.name) < 0)
        return -1;
    return audit_add_score(audit, part, &score);
}

static int read_score(struct audit *audit, struct audit_part *part, const char *path, const char *name,
                      const json_t *value)
{
    char where[PATH_BYTES];
    bool is_long = strlen(name) > AUDIT_NAME_BYTES;

    if (is_long || (!json_is_number(value) && !json_is_null(value))) {
        path_join(where, path, name);
        return is_long ? call_refuse(audit->call, ERR_INVALID_FIELD, where, "a name of a score has at most %d bytes",
                                     AUDIT_NAME_BYTES)
                       : call_refuse(audit->call, ERR_INVALID_FIELD, where,
                                     "expected a number, or null where there is no score");
    }
    if (add_score(audit, part, name, json_is_number(value) ? json_number_value(value) : NAN) < 0)
        return -1;
    audit->seen[part->scores[part->score_count - 1].name] = true;
    return 0;
}

/* A score of the reward that is not there is one that is missing. */
static int add_missing(struct audit *audit, struct audit_part *part, const json_t *scores)
{
    const char *name;
    json_t *value;

    json_object_foreach (audit->fields.weights, name, value)
        if (!json_object_get(scores, name) && add_score(audit, part, name, NAN) < 0)
            return -1;
    if (json_object_getn(scores, audit->verifier.data, audit->verifier.length_bytes) ||
        json_object_getn(audit->fields.weights, audit->verifier.data, audit->verifier.length_bytes))
        return 0;
    _cleanup_free_ char *swept = xstrndup(audit->verifier.data, audit->verifier.length_bytes);
    return add_score(audit, part, swept, NAN);
}

static int read_scores(struct audit *audit, struct audit_part *part, const char *path, json_t *scores)
{
    char where[PATH_BYTES];
    const char *name;
    json_t *value;

    path_join(where, path, "scores");
    json_object_foreach (scores, name, value)
        if (read_score(audit, part, where, name, value) < 0)
            return -1;
    return add_missing(audit, part, scores);
}

/* --- completions --- */

static int check_id(struct audit *audit, const char *path, struct text id, json_t *ids)
{
    char where[PATH_BYTES];

    if (!id.data)
        return 0;
    if (json_object_getn(ids, id.data, id.length_bytes)) {
        path_join(where, path, "id");
        return call_refuse(audit->call, ERR_INVALID_FIELD, where, "another completion of this group has this id");
    }
    json_object_setn_new(ids, id.data, id.length_bytes, json_true());
    return 0;
}

static int read_completion(struct audit *audit, struct audit_part *part, const json_t *value, const char *path,
                           json_t *ids)
{
    struct completion_fields read = {.finish_reason = -1, .length = -1, .prompt_tokens = -1, .turns = -1};
    struct audit_member *member;
    char where[PATH_BYTES];

    if (json_read_object(audit->input, value, path, completion_fields, ARRAY_LENGTH(completion_fields), &read) < 0 ||
        check_id(audit, path, read.id, ids) < 0 || audit_add_member(audit, part, &member) < 0)
        return -1;
    if (read.length < 0 && shapes_lengths(&part->knobs)) {
        path_join(where, path, "length");
        return call_refuse(audit->call, ERR_OBJECTIVE_OPTIONS, where, "the objective's shaping needs it");
    }
    struct objective_sequence *sequence = &part->sequences[part->member_count - 1];
    member->id = read.id;
    sequence->length = read.length;
    sequence->prompt_tokens = read.prompt_tokens;
    sequence->turns = read.turns;
    sequence->greedy_reward = NAN;
    sequence->finish_reason = read.finish_reason < 0                ? OBJECTIVE_FINISH_UNKNOWN
                              : read.finish_reason == FINISH_LENGTH ? OBJECTIVE_FINISH_LENGTH
                                                                    : OBJECTIVE_FINISH_OTHER;
    return read_scores(audit, part, path, read.scores);
}

static int read_group(struct audit *audit, struct audit_part *part, size_t index, const json_t *value)
{
    struct group_fields read = {TEXT_NONE, NULL};
    struct audit_group *group;
    char path[PATH_BYTES];
    char where[PATH_BYTES];
    size_t i;
    const json_t *completion;

    path_index(path, "", "groups", index);
    if (json_read_object(audit->input, value, path, group_fields, ARRAY_LENGTH(group_fields), &read) < 0 ||
        audit_add_group(audit, part, read.task, &group) < 0)
        return -1;
    if (json_array_size(read.completions) == 0) {
        path_join(where, path, "completions");
        return call_refuse(audit->call, ERR_INVALID_FIELD, where, "expected at least one completion");
    }
    json_auto_t *ids = json_object();
    json_array_foreach (read.completions, i, completion) {
        path_index(where, path, "completions", i);
        if (read_completion(audit, part, completion, where, ids) < 0)
            return -1;
    }
    return 0;
}

static int check_weights(struct audit *audit)
{
    char path[PATH_BYTES];
    const char *name;
    json_t *value;

    json_object_foreach (audit->fields.weights, name, value) {
        path_join(path, "weights", name);
        if (!json_is_number(value) || !(fabs(json_number_value(value)) <= AUDIT_WEIGHT_LARGEST))
            return call_refuse(audit->call, ERR_INVALID_FIELD, path, "expected a number from -1e9 to 1e9");
    }
    return 0;
}

int audit_read_groups(struct audit *audit, struct audit_part *part)
{
    size_t i;
    const json_t *value;

    if (read_objective(audit, &part->knobs) < 0 || check_weights(audit) < 0)
        return -1;
    if (json_array_size(audit->fields.groups) == 0)
        return call_refuse(audit->call, ERR_INVALID_FIELD, "groups", "expected at least one group");
    json_array_foreach (audit->fields.groups, i, value)
        if (read_group(audit, part, i, value) < 0)
            return -1;
    if (audit_name(audit, audit->verifier, &audit->swept) < 0 ||
        audit_name(audit, audit->fields.truth, &audit->truth) < 0)
        return -1;
    return audit_check_names(audit);
}
