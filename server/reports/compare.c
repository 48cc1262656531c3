#include "server/reports/compare_private.h"

#include "server/base/cleanup.h"
#include "server/base/json_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const compare_budget_names[] = {"completion_tokens", "rollouts", "revisions", NULL};

/* ---- one run ----------------------------------------------------------------------------------------------- */

static void put_mean(struct json_write *json, const char *name, const struct clustered_mean *mean)
{
    json_key(json, name);
    json_object_begin(json);
    json_put_double(json, "mean", mean->mean);
    json_put_double(json, "se", mean->se);
    json_put_int(json, "scored", (int64_t)mean->count);
    json_object_end(json);
}

static bool same_part(const struct cell_part *left, struct text right)
{
    return left->kind == CELL_NULL ? !right.data : right.data && text_same(left->text, right);
}

/* value, verifier: TEXT_NONE: every group, the reward. */
static size_t find_cell(const struct cells *cells, struct text value, struct text verifier)
{
    struct cell_key key;
    for (size_t cell = 0; cell < cells_count(cells); cell++) {
        cells_key(cells, cell, &key);
        if (same_part(&key.parts[COMPARE_VALUE], value) && same_part(&key.parts[COMPARE_VERIFIER], verifier))
            return cell;
    }
    return CELLS_NONE;
}

/* Whether the cell is of the value and of a verifier. */
static bool is_heldout(const struct cells *cells, size_t cell, struct text value, struct cell_key *ret_key)
{
    cells_key(cells, cell, ret_key);
    return same_part(&ret_key->parts[COMPARE_VALUE], value) && ret_key->parts[COMPARE_VERIFIER].kind == CELL_TEXT;
}

static void put_heldout(struct json_write *json, const struct cells *cells, struct text value)
{
    struct cell_key key;
    struct cell_numbers numbers;
    json_key(json, "heldout");
    json_object_begin(json);
    for (size_t cell = 0; cell < cells_count(cells); cell++) {
        if (!is_heldout(cells, cell, value, &key))
            continue;
        struct text verifier = key.parts[COMPARE_VERIFIER].text;
        _cleanup_free_ char *name = xstrndup(verifier.data, verifier.length_bytes);
        cells_numbers(cells, cell, &numbers);
        put_mean(json, name, &numbers.score);
    }
    json_object_end(json);
}

static struct cell_numbers numbers_of(const struct cells *cells, struct text value)
{
    struct cell_numbers numbers = {.reward = {.mean = NAN, .se = NAN}};
    size_t cell = find_cell(cells, value, TEXT_NONE);
    if (cell != CELLS_NONE)
        cells_numbers(cells, cell, &numbers);
    return numbers;
}

static void put_counts(struct json_write *json, const struct cell_numbers *numbers)
{
    json_put_int(json, "n", numbers->n);
    json_put_int(json, "scored", numbers->scored);
    json_put_int(json, "failed", numbers->failed);
    json_put_int(json, "cancelled", numbers->cancelled);
}

static void put_side(struct json_write *json, const char *name, const struct compare_side *side)
{
    struct cell_numbers numbers = numbers_of(side->cells, TEXT_NONE);
    json_key(json, name);
    json_object_begin(json);
    json_put_text(json, "run", side->run);
    json_put_int(json, "batches", side->batches);
    json_put_int(json, "groups", side->groups);
    put_counts(json, &numbers);
    json_put_int(json, "completion_tokens", side->within.counts[COMPARE_TOKENS]);
    json_put_int(json, "revisions", side->within.counts[COMPARE_REVISIONS]);
    put_mean(json, "reward", &numbers.reward);
    put_heldout(json, side->cells, TEXT_NONE);
    json_object_end(json);
}

/* ---- both, task by task ------------------------------------------------------------------------------------ */

/* Tasks of both, in order of their names. */
static struct paired_difference pair_tasks(const struct cells *a, size_t cell_a, const struct cells *b, size_t cell_b,
                                           bool of_score)
{
    size_t count_a = cell_a == CELLS_NONE ? 0 : cells_tasks(a, cell_a);
    size_t count_b = cell_b == CELLS_NONE ? 0 : cells_tasks(b, cell_b);
    _cleanup_free_ double *left = xcalloc(count_a + 1, sizeof(*left));
    _cleanup_free_ double *right = xcalloc(count_a + 1, sizeof(*right));
    struct cell_task task_a;
    struct cell_task task_b;
    size_t paired = 0;
    for (size_t i = 0, k = 0; i < count_a && k < count_b;) {
        cells_task(a, cell_a, i, &task_a);
        cells_task(b, cell_b, k, &task_b);
        int order = cell_text_order(task_a.task, task_b.task);
        i += order <= 0;
        k += order >= 0;
        if (order != 0)
            continue;
        left[paired] = of_score ? task_a.score_mean : task_a.reward_mean;
        right[paired++] = of_score ? task_b.score_mean : task_b.reward_mean;
    }
    return paired_difference(paired, left, right);
}

static void put_difference(struct json_write *json, const char *name, const struct paired_difference *difference)
{
    json_key(json, name);
    json_object_begin(json);
    json_put_double(json, "mean", difference->mean);
    json_put_double(json, "se", difference->se);
    json_put_int(json, "tasks", (int64_t)difference->tasks);
    json_object_end(json);
}

static void put_differences(struct json_write *json, const struct cells *a, const struct cells *b, struct text value)
{
    struct cell_key key;
    struct paired_difference pairs =
        pair_tasks(a, find_cell(a, value, TEXT_NONE), b, find_cell(b, value, TEXT_NONE), false);
    json_key(json, "difference");
    json_object_begin(json);
    put_difference(json, "reward", &pairs);
    json_key(json, "heldout");
    json_object_begin(json);
    for (size_t cell = 0; cell < cells_count(a); cell++) {
        if (!is_heldout(a, cell, value, &key))
            continue;
        struct text verifier = key.parts[COMPARE_VERIFIER].text;
        size_t other = find_cell(b, value, verifier);
        _cleanup_free_ char *name = xstrndup(verifier.data, verifier.length_bytes);
        pairs = pair_tasks(a, cell, b, other, true);
        if (other != CELLS_NONE)
            put_difference(json, name, &pairs);
    }
    json_object_end(json);
    json_object_end(json);
}

/* ---- value by value of a tag --------------------------------------------------------------------------------- */

static void put_part_side(struct json_write *json, const char *name, const struct cells *cells, struct text value)
{
    struct cell_numbers numbers = numbers_of(cells, value);
    json_key(json, name);
    json_object_begin(json);
    json_put_int(json, "groups", numbers.groups);
    put_counts(json, &numbers);
    json_put_int(json, "completion_tokens", numbers.tokens_sum);
    put_mean(json, "reward", &numbers.reward);
    put_heldout(json, cells, value);
    json_object_end(json);
}

static void put_part(struct json_write *json, const struct comparison *comparison, struct text value)
{
    const struct cells *a = comparison->sides[0].cells;
    const struct cells *b = comparison->sides[1].cells;
    struct text split = comparison->query->split;
    char name[sizeof "tag." + STORE_TAG_NAME_BYTES];
    snprintf(name, sizeof name, "tag.%.*s", (int)split.length_bytes, split.data);
    json_object_begin(json);
    json_key(json, "key");
    json_object_begin(json);
    json_put_text(json, name, value.length_bytes ? (struct text){value.data + 1, value.length_bytes - 1} : TEXT_NONE);
    json_object_end(json);
    put_part_side(json, "a", a, value);
    put_part_side(json, "b", b, value);
    put_differences(json, a, b, value);
    json_object_end(json);
}

/* The value of the first cell at *place or behind it that is of one. False: there is none. */
static bool find_value(const struct cells *cells, size_t *place, struct text *ret_value)
{
    struct cell_key key;
    for (; *place < cells_count(cells); ++*place) {
        cells_key(cells, *place, &key);
        *ret_value = key.parts[COMPARE_VALUE].text;
        if (key.parts[COMPARE_VALUE].kind == CELL_TEXT && key.parts[COMPARE_VERIFIER].kind == CELL_NULL)
            return true;
    }
    return false;
}

/* Cells are in order of their values. */
static void put_parts(struct json_write *json, const struct comparison *comparison)
{
    size_t places[2] = {0};
    struct text values[2];
    json_key(json, "parts");
    json_array_begin(json);
    for (;;) {
        bool in_a = find_value(comparison->sides[0].cells, &places[0], &values[0]);
        bool in_b = find_value(comparison->sides[1].cells, &places[1], &values[1]);
        if (!in_a && !in_b)
            break;
        int order = in_a && in_b ? cell_text_order(values[0], values[1]) : in_a ? -1 : 1;
        put_part(json, comparison, values[order > 0]);
        places[0] += order <= 0;
        places[1] += order >= 0;
    }
    json_array_end(json);
}

/* ---- the whole --------------------------------------------------------------------------------------------- */

static void write_reply(const struct comparison *comparison)
{
    struct json_write json;
    json_write_init(&json, &comparison->call->reply.body);
    json_object_begin(&json);
    json_key(&json, "budget");
    json_object_begin(&json);
    json_put_string(&json, "by", compare_budget_names[comparison->query->budget]);
    json_put_int(&json, "value", comparison->value);
    json_object_end(&json);
    put_side(&json, "a", &comparison->sides[0]);
    put_side(&json, "b", &comparison->sides[1]);
    put_differences(&json, comparison->sides[0].cells, comparison->sides[1].cells, TEXT_NONE);
    if (comparison->query->split.data)
        put_parts(&json, comparison);
    json_key(&json, "ignored");
    settings_write(&json, comparison->ignored);
    json_object_end(&json);
    call_answer_json(comparison->call, 200);
}

/* 0, or -1 with the call refused: the runs are not alike. */
static int check_settings(struct comparison *comparison)
{
    json_auto_t *differences = compare_differences(comparison);
    _cleanup_buffer_ struct buffer text = {0};
    struct json_write json;
    if (json_array_size(differences) == 0)
        return 0;
    buffer_init(&text, (size_t)16 << 20);
    json_write_init(&json, &text);
    settings_write(&json, differences);
    call_refuse(comparison->call, ERR_NOT_COMPARABLE, NULL,
                "the runs differ in %zu settings; ignore=KEY,KEY says which may differ", json_array_size(differences));
    return call_add_to_refusal(comparison->call, "differences", buffer_text(&text));
}

static int compare(struct comparison *comparison)
{
    enum compare_budget budget = comparison->query->budget;
    if (compare_measure(comparison, &comparison->sides[0], "a") < 0 ||
        compare_measure(comparison, &comparison->sides[1], "b") < 0 || check_settings(comparison) < 0)
        return -1;
    int64_t a = comparison->sides[0].total.counts[budget];
    int64_t b = comparison->sides[1].total.counts[budget];
    comparison->value = a < b ? a : b;
    for (size_t i = 0; i < 2; i++) {
        struct compare_side *side = &comparison->sides[i];
        if (compare_take(comparison, side) < 0)
            return -1;
        if (cells_close(side->cells) < 0)
            return call_refuse(comparison->call, ERR_QUEUE_FULL, NULL, "there is no memory for this comparison now");
    }
    return 0;
}

void compare_answer(struct call *call, const struct compare_query *query)
{
    struct comparison comparison = {.call = call, .query = query, .ignored = json_array()};
    bool ready = true;
    for (size_t i = 0; i < 2; i++) {
        struct compare_side *side = &comparison.sides[i];
        *side = (struct compare_side){.run = query->runs[i], .settings = json_object(), .cells = cells_create()};
        ready = ready && side->cells;
    }
    if (!call->reader)
        call_refuse_unreadable(call);
    else if (!ready)
        call_refuse(call, ERR_QUEUE_FULL, NULL, "there is no memory for this comparison now");
    else if (compare(&comparison) == 0)
        write_reply(&comparison);
    for (size_t i = 0; i < 2; i++) {
        json_decref(comparison.sides[i].settings);
        cells_destroy(comparison.sides[i].cells);
        free(comparison.sides[i].total.weights);
        free(comparison.sides[i].within.weights);
    }
    json_decref(comparison.ignored);
}
