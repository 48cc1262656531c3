/* pass@k and maj@k of a closed batch. */
#include "server/spec/pass_at.h"

#include "server/base/cleanup.h"
#include "server/input/input.h"
#include "server/objective/objective.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_VOTE = -1, CORRECT = 0 }; /* wrong answers count from 1 */

struct pass_tally {
    const struct pass_spec *spec;
    size_t count; /* groups so far */
    struct text *tasks;
    double *values[2][PASS_AT_MAX]; /* pass, maj: [group_count]; NAN: too few judged members */
    size_t too_few;
    bool has_answers;
};

int pass_at_read(struct call *call, const json_t *list, int64_t ret_k[PASS_AT_MAX], size_t *ret_count)
{
    char path[PATH_BYTES];

    if (json_array_size(list) > PASS_AT_MAX)
        return call_refuse(call, ERR_INVALID_FIELD, "pass_at", "at most %d values are expected", PASS_AT_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *k = json_array_get(list, i);
        path_index(path, "", "pass_at", i);
        if (!json_whole(k, &ret_k[i]) || ret_k[i] < 1)
            return call_refuse(call, ERR_INVALID_FIELD, path, "expected an integer of at least 1");
    }
    *ret_count = json_array_size(list);
    return 0;
}

struct pass_tally *pass_tally_create(const struct pass_spec *spec, size_t group_count)
{
    struct pass_tally *tally = xcalloc(1, sizeof(*tally));

    tally->spec = spec;
    tally->tasks = xcalloc(group_count + 1, sizeof(*tally->tasks));
    for (size_t which = 0; which < 2; which++)
        for (size_t i = 0; i < spec->count; i++)
            tally->values[which][i] = xcalloc(group_count + 1, sizeof(double));
    return tally;
}

void pass_tally_destroy(struct pass_tally *tally)
{
    if (!tally)
        return;
    for (size_t which = 0; which < 2; which++)
        for (size_t i = 0; i < tally->spec->count; i++)
            free(tally->values[which][i]);
    free(tally->tasks);
    free(tally);
}

/* --- one group ----------------------------------------------------------------------------------------- */

/* The judged members: what each voted for. */
struct votes {
    int *votes; /* NO_VOTE, CORRECT, or a wrong answer's number */
    size_t count;
    json_t *wrong; /* {answer: its number} */
};

static const json_t *find_verdict(const json_t *verdicts, struct text id)
{
    size_t index;
    const json_t *verdict;

    json_array_foreach (verdicts, index, verdict) {
        const json_t *own = json_object_get(verdict, "id");
        if (json_is_string(own) && text_same((struct text){json_string_value(own), json_string_length(own)}, id))
            return verdict;
    }
    return NULL;
}

static int wrong_vote(struct votes *votes, const json_t *answer)
{
    if (!json_is_string(answer))
        return NO_VOTE;
    json_t *known = json_object_getn(votes->wrong, json_string_value(answer), json_string_length(answer));
    if (!known) {
        known = json_integer((json_int_t)json_object_size(votes->wrong) + 1);
        json_object_setn_new(votes->wrong, json_string_value(answer), json_string_length(answer), known);
    }
    return (int)json_integer_value(known);
}

static void add_vote(struct pass_tally *tally, struct votes *votes, double score, const json_t *answer)
{
    if (isnan(score))
        return;
    bool correct = score >= tally->spec->threshold;
    tally->has_answers = tally->has_answers || json_is_string(answer);
    votes->votes[votes->count++] = correct ? CORRECT : wrong_vote(votes, answer);
}

static json_t *load(struct text json)
{
    return json.data ? json_loadb(json.data, json.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
}

static void add_member(struct pass_tally *tally, struct votes *votes, const struct store_rollout *rollout)
{
    json_auto_t *heldout = tally->spec->verifier.data ? NULL : load(rollout->heldout);
    void *first = json_object_iter(heldout);
    if (!tally->spec->verifier.data && !first) {
        add_vote(tally, votes, rollout->reward, NULL);
        return;
    }
    struct text id =
        first ? (struct text){json_object_iter_key(first), json_object_iter_key_len(first)} : tally->spec->verifier;
    json_auto_t *verdicts = load(rollout->verdicts);
    const json_t *verdict = find_verdict(verdicts, id);
    const json_t *score = json_object_get(verdict, "score");
    add_vote(tally, votes, json_is_number(score) ? json_number_value(score) : NAN,
             json_object_get(json_object_get(verdict, "detail"), "extracted"));
}

static double pass_of(const struct votes *votes, int64_t k)
{
    struct objective_group group = {.rewarded = votes->count};
    const struct objective_request request = {.groups = &group, .group_count = 1};

    for (size_t i = 0; i < votes->count; i++)
        group.correct += votes->votes[i] == CORRECT;
    return objective_pass_at_k(&request, (uint64_t)k);
}

/* counts: room for one number for each answer. */
static double majority_of(const struct votes *votes, size_t k, size_t *counts)
{
    size_t answers = json_object_size(votes->wrong) + 1;
    size_t most = 0;
    int winner = NO_VOTE;

    if (votes->count < k)
        return NAN;
    memset(counts, 0, answers * sizeof(*counts));
    for (size_t i = 0; i < k; i++)
        if (votes->votes[i] != NO_VOTE && ++counts[votes->votes[i]] > most)
            most = counts[votes->votes[i]];
    for (size_t i = 0; i < k && winner == NO_VOTE; i++)
        if (votes->votes[i] != NO_VOTE && counts[votes->votes[i]] == most)
            winner = votes->votes[i];
    return winner == CORRECT ? 1 : 0;
}

void pass_tally_add(struct pass_tally *tally, struct text task, const struct store_rollout *rollouts, size_t count)
{
    struct votes votes = {.votes = xcalloc(count + 1, sizeof(int)), .wrong = json_object()};
    size_t *counts = xcalloc(count + 2, sizeof(*counts));
    bool too_few = false;

    for (size_t i = 0; i < count; i++)
        add_member(tally, &votes, &rollouts[i]);
    for (size_t i = 0; i < tally->spec->count; i++) {
        int64_t k = tally->spec->k[i];
        bool enough = (uint64_t)k <= votes.count;
        tally->values[0][i][tally->count] = enough ? pass_of(&votes, k) : NAN;
        tally->values[1][i][tally->count] = enough ? majority_of(&votes, (size_t)k, counts) : NAN;
        too_few = too_few || !enough;
    }
    tally->too_few += too_few;
    tally->tasks[tally->count++] = task;
    json_decref(votes.wrong);
    free(votes.votes);
    free(counts);
}

const double *pass_tally_passes(const struct pass_tally *tally, size_t place)
{
    return tally->values[0][place];
}

const double *pass_tally_majorities(const struct pass_tally *tally, size_t place)
{
    return tally->has_answers ? tally->values[1][place] : NULL;
}

/* --- over groups --------------------------------------------------------------------------------------- */

struct estimate {
    double mean, se; /* NAN: over nothing, or over one task */
    size_t groups, tasks;
};

static int compare_tasks(const void *left, const void *right, void *tasks)
{
    const struct text a = ((const struct text *)tasks)[*(const size_t *)left];
    const struct text b = ((const struct text *)tasks)[*(const size_t *)right];
    size_t both = a.length_bytes < b.length_bytes ? a.length_bytes : b.length_bytes;
    int order = both ? memcmp(a.data, b.data, both) : 0;
    return order ? order : (a.length_bytes > b.length_bytes) - (a.length_bytes < b.length_bytes);
}

/* order: group indexes by task. */
static void add_clusters(const struct pass_tally *tally, const double *values, const size_t *order,
                         struct estimate *estimate)
{
    double squares = 0;
    double cluster = 0;
    const size_t *last = NULL;

    for (size_t i = 0; i < tally->count; i++) {
        if (isnan(values[order[i]]))
            continue;
        if (last && compare_tasks(last, &order[i], tally->tasks) != 0) {
            squares += cluster * cluster;
            cluster = 0;
            estimate->tasks++;
        }
        cluster += values[order[i]] - estimate->mean;
        last = &order[i];
    }
    squares += cluster * cluster;
    estimate->tasks += last != NULL;
    if (estimate->tasks > 1)
        estimate->se = sqrt(squares) / (double)estimate->groups;
}

static struct estimate estimate_of(const struct pass_tally *tally, const double *values, const size_t *order)
{
    struct estimate estimate = {.mean = NAN, .se = NAN};
    double sum = 0;

    for (size_t g = 0; g < tally->count; g++) {
        if (isnan(values[g]))
            continue;
        sum += values[g];
        estimate.groups++;
    }
    if (estimate.groups == 0)
        return estimate;
    estimate.mean = sum / (double)estimate.groups;
    add_clusters(tally, values, order, &estimate);
    return estimate;
}

static void write_estimates(const struct pass_tally *tally, double *const *values, const size_t *order,
                            struct json_write *json)
{
    char name[24];

    json_object_begin(json);
    for (size_t i = 0; i < tally->spec->count; i++) {
        struct estimate estimate = estimate_of(tally, values[i], order);
        snprintf(name, sizeof(name), "%lld", (long long)tally->spec->k[i]);
        json_key(json, name);
        json_object_begin(json);
        json_put_double(json, "mean", estimate.mean);
        json_put_double(json, "se", estimate.se);
        json_put_int(json, "groups", (int64_t)estimate.groups);
        json_put_int(json, "tasks", (int64_t)estimate.tasks);
        json_object_end(json);
    }
    json_object_end(json);
}

void pass_tally_write(const struct pass_tally *tally, struct json_write *json)
{
    size_t *order = xcalloc(tally->count + 1, sizeof(*order));

    for (size_t g = 0; g < tally->count; g++)
        order[g] = g;
    qsort_r(order, tally->count, sizeof(*order), compare_tasks, tally->tasks);
    json_key(json, "pass_at_k");
    write_estimates(tally, tally->values[0], order, json);
    if (tally->has_answers) {
        json_key(json, "maj_at_k");
        write_estimates(tally, tally->values[1], order, json);
    } else
        json_put_null(json, "maj_at_k");
    free(order);
}

size_t pass_tally_short(const struct pass_tally *tally)
{
    return tally->too_few;
}
