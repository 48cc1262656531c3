/* The numbers of cells, when all rollouts are added. */
#include "server/reports/cells_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- order --- */

int cell_text_order(struct text left, struct text right)
{
    size_t least = left.length_bytes < right.length_bytes ? left.length_bytes : right.length_bytes;
    int order = least ? memcmp(left.data, right.data, least) : 0;
    return order ? order : (left.length_bytes > right.length_bytes) - (left.length_bytes < right.length_bytes);
}

static int compare_parts(const struct cell_part *left, const struct cell_part *right)
{
    if (left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    if (left->kind == CELL_TEXT)
        return cell_text_order(left->text, right->text);
    return left->kind == CELL_NUMBER ? (left->number > right->number) - (left->number < right->number) : 0;
}

static int compare_cells(const void *left, const void *right, void *arg)
{
    const struct cells *cells = arg;
    struct cell_key a;
    struct cell_key b;

    cell_key_read(names_key(&cells->cells.names, *(const uint32_t *)left), &a);
    cell_key_read(names_key(&cells->cells.names, *(const uint32_t *)right), &b);
    for (size_t i = 0; i < a.count && i < b.count; i++) {
        int order = compare_parts(&a.parts[i], &b.parts[i]);
        if (order)
            return order;
    }
    return 0;
}

static int compare_pairs(const void *left, const void *right, void *arg)
{
    const struct cells *cells = arg;
    const struct cell_pair *a = left;
    const struct cell_pair *b = right;

    if (a->cell != b->cell)
        return a->cell < b->cell ? -1 : 1;
    return cell_text_order(names_key(&cells->tasks, a->task), names_key(&cells->tasks, b->task));
}

static int compare_failures(const void *left, const void *right, void *arg)
{
    const struct cells *cells = arg;
    const struct cell_failure_pair *a = left;
    const struct cell_failure_pair *b = right;

    if (a->cell != b->cell)
        return a->cell < b->cell ? -1 : 1;
    return cell_text_order(names_key(&cells->codes, a->code), names_key(&cells->codes, b->code));
}

static int order_cells(struct cells *cells)
{
    size_t count = cells->cells.names.count;

    cells->order = calloc(count + 1, sizeof *cells->order);
    if (!cells->order)
        return -1;
    for (size_t i = 0; i < count; i++)
        cells->order[i] = (uint32_t)i;
    qsort_r(cells->order, count, sizeof *cells->order, compare_cells, cells);
    return 0;
}

static int order_pairs(struct cells *cells)
{
    struct cell_pair *pairs = (struct cell_pair *)(void *)cells->pairs.rows;
    size_t count = cells->pairs.names.count;
    size_t largest = 0;

    if (count > 0)
        qsort_r(pairs, count, sizeof *pairs, compare_pairs, cells);
    for (size_t i = 0; i < count; i++) {
        struct cell *cell = cell_at(cells, pairs[i].cell);
        if (cell->pair_count++ == 0)
            cell->first_pair = i;
        largest = cell->pair_count > largest ? cell->pair_count : largest;
    }
    cells->scratch = calloc(largest + 1, sizeof *cells->scratch);
    return cells->scratch ? 0 : -1;
}

static int order_failures(struct cells *cells)
{
    struct cell_failure_pair *failures = (struct cell_failure_pair *)(void *)cells->failures.rows;
    size_t count = cells->failures.names.count;

    cells->failure_texts = calloc(count + 1, sizeof *cells->failure_texts);
    if (!cells->failure_texts)
        return -1;
    if (count > 0)
        qsort_r(failures, count, sizeof *failures, compare_failures, cells);
    for (size_t i = 0; i < count; i++) {
        struct cell *cell = cell_at(cells, failures[i].cell);
        if (cell->failure_count++ == 0)
            cell->first_failure = i;
        cells->failure_texts[i] = (struct cell_failure){names_key(&cells->codes, failures[i].code), failures[i].count};
    }
    return 0;
}

static void count_groups(struct cells *cells)
{
    const struct cell_group_pair *members = (const struct cell_group_pair *)(const void *)cells->members.rows;

    for (size_t i = 0; i < cells->members.names.count; i++) {
        struct cell *cell = cell_at(cells, members[i].cell);
        cell->groups++;
        cell->judged_groups += members[i].state >= CELL_GROUP_VARIED;
        cell->zero_variance_groups += members[i].state == CELL_GROUP_ZERO_VARIANCE;
    }
}

static void count_steps(struct cells *cells)
{
    const struct cell_step *steps = (const struct cell_step *)(const void *)cells->steps.rows;

    for (size_t i = 0; i < cells->steps.names.count; i++) {
        struct cell *cell = cell_at(cells, steps[i].cell);
        precise_sum_add(&cell->loss, precise_sum_value(&steps[i].loss));
        cell->steps++;
    }
}

int cells_close(struct cells *cells)
{
    if (cells->failed || order_cells(cells) < 0 || order_pairs(cells) < 0 || order_failures(cells) < 0)
        return -1;
    count_groups(cells);
    count_steps(cells);
    return 0;
}

/* --- numbers --- */

size_t cells_count(const struct cells *cells)
{
    return cells->cells.names.count;
}

void cells_key(const struct cells *cells, size_t cell, struct cell_key *ret_key)
{
    cell_key_read(names_key(&cells->cells.names, cells->order[cell]), ret_key);
}

static const struct cell_pair *pairs_of(const struct cells *cells, const struct cell *cell)
{
    return (const struct cell_pair *)(const void *)cells->pairs.rows + cell->first_pair;
}

static struct task_scratch take_reward(const struct cell_pair *pair)
{
    return pair->reward;
}

static struct task_scratch take_score(const struct cell_pair *pair)
{
    return pair->score;
}

static struct task_scratch take_tokens(const struct cell_pair *pair)
{
    return (struct task_scratch){.count = pair->reward.count, .sum = {.sum = (double)pair->judged_tokens}};
}

static struct clustered_mean mean_of(const struct cells *cells, const struct cell *cell,
                                     struct task_scratch (*take)(const struct cell_pair *), double minimum,
                                     double maximum)
{
    const struct cell_pair *pairs = pairs_of(cells, cell);

    for (size_t i = 0; i < cell->pair_count; i++)
        cells->scratch[i] = take(&pairs[i]);
    return clustered_mean_of_sums(cell->pair_count, cells->scratch, minimum, maximum);
}

static double quotient(double sum, int64_t count)
{
    double value = count > 0 ? sum / (double)count : NAN;
    return isfinite(value) ? value : NAN;
}

static void put_objective(const struct cells *cells, const struct cell_objective *objective,
                          struct cell_numbers *numbers)
{
    for (size_t k = 0; k < STORE_OBJECTIVE_MEANS; k++)
        numbers->objective[k] = quotient(precise_sum_value(&objective->sums[k]), objective->sum_tokens[k]);
    numbers->clip_fraction = quotient((double)objective->clips, objective->tokens);
    numbers->kl_estimator = objective->estimator == NAMES_NONE || objective->several_estimators
                                ? TEXT_NONE
                                : names_key(&cells->estimators, objective->estimator);
}

void cells_numbers(const struct cells *cells, size_t cell, struct cell_numbers *ret_numbers)
{
    const struct cell *own = cell_at(cells, cells->order[cell]);

    *ret_numbers =
        (struct cell_numbers){.n = own->n,
                              .scored = own->scored,
                              .failed = own->failed,
                              .cancelled = own->cancelled,
                              .groups = own->groups,
                              .judged_groups = own->judged_groups,
                              .zero_variance_groups = own->zero_variance_groups,
                              .reward = mean_of(cells, own, take_reward, own->reward_min, own->reward_max),
                              .score = mean_of(cells, own, take_score, own->score_min, own->score_max),
                              .tokens = mean_of(cells, own, take_tokens, NAN, NAN),
                              .reward_min = own->reward_min,
                              .reward_max = own->reward_max,
                              .tokens_sum = own->tokens,
                              .tokens_max = own->tokens_max,
                              .truncated = own->truncated,
                              .straddles = own->straddles,
                              .duplicates = own->duplicates,
                              .decided = own->decided,
                              .solved = own->solved,
                              .engine_us = own->engine_us,
                              .staleness = quotient(precise_sum_value(&own->staleness), own->staleness_count),
                              .failures = cells->failure_texts + own->first_failure,
                              .failure_count = own->failure_count,
                              .loss = quotient(precise_sum_value(&own->loss), own->steps)};
    ret_numbers->judged = (int64_t)ret_numbers->reward.count;
    put_objective(cells, &own->objective, ret_numbers);
}

/* --- tasks --- */

size_t cells_tasks(const struct cells *cells, size_t cell)
{
    return cell_at(cells, cells->order[cell])->pair_count;
}

static double mean_of_task(const struct task_scratch *sum)
{
    double mean = sum->count ? precise_sum_mean(&sum->sum, (double)sum->count) : NAN;
    return isfinite(mean) ? mean : NAN;
}

void cells_task(const struct cells *cells, size_t cell, size_t place, struct cell_task *ret_task)
{
    const struct cell_pair *pair = pairs_of(cells, cell_at(cells, cells->order[cell])) + place;

    *ret_task = (struct cell_task){.task = names_key(&cells->tasks, pair->task),
                                   .n = pair->n,
                                   .judged = (int64_t)pair->reward.count,
                                   .reward_mean = mean_of_task(&pair->reward),
                                   .scores = (int64_t)pair->score.count,
                                   .score_mean = mean_of_task(&pair->score),
                                   .tokens_mean = quotient((double)pair->judged_tokens, (int64_t)pair->reward.count),
                                   .decided = pair->decided,
                                   .solved = pair->solved};
}

/* --- groups --- */

static int compare_members(const void *left, const void *right, void *arg)
{
    const struct cells *cells = arg;
    const struct cell_group_pair *a = left;
    const struct cell_group_pair *b = right;

    if (a->cell != b->cell)
        return a->cell < b->cell ? -1 : 1;
    return cell_text_order(names_key(&cells->groups, a->group), names_key(&cells->groups, b->group));
}

size_t cells_groups(struct cells *cells, size_t cell)
{
    struct cell_group_pair *members = (struct cell_group_pair *)(void *)cells->members.rows;
    size_t count = cells->members.names.count;

    if (!cells->groups_in_order && count > 0) {
        qsort_r(members, count, sizeof *members, compare_members, cells);
        for (size_t i = 0; i < count; i++) {
            struct cell *own = cell_at(cells, members[i].cell);
            if (own->group_count++ == 0)
                own->first_group = i;
        }
    }
    cells->groups_in_order = true;
    return cell_at(cells, cells->order[cell])->group_count;
}

struct text cells_group(const struct cells *cells, size_t cell, size_t place)
{
    const struct cell_group_pair *members = (const struct cell_group_pair *)(const void *)cells->members.rows;
    const struct cell *own = cell_at(cells, cells->order[cell]);

    return names_key(&cells->groups, members[own->first_group + place].group);
}
