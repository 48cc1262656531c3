/* Adding to cells. */
#include "server/reports/cells_private.h"

#include "server/base/buffer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BYTES_MAX ((size_t)1 << 20)

struct cell_part cell_number(int64_t number)
{
    return number < 0 ? (struct cell_part){.kind = CELL_NULL}
                      : (struct cell_part){.kind = CELL_NUMBER, .number = number};
}

struct cell_part cell_text(struct text text)
{
    return text.data ? (struct cell_part){.kind = CELL_TEXT, .text = text} : (struct cell_part){.kind = CELL_NULL};
}

void cell_rollout_init(struct cell_rollout *rollout)
{
    *rollout = (struct cell_rollout){.reward = NAN, .score = NAN, .solved = -1, .staleness = NAN};
}

struct cells *cells_create(void)
{
    return calloc(1, sizeof(struct cells));
}

static void table_finish(struct cell_table *table)
{
    names_finish(&table->names);
    free(table->rows);
}

void cells_destroy(struct cells *cells)
{
    if (!cells)
        return;
    names_finish(&cells->tasks);
    names_finish(&cells->groups);
    names_finish(&cells->codes);
    names_finish(&cells->estimators);
    table_finish(&cells->cells);
    table_finish(&cells->pairs);
    table_finish(&cells->members);
    table_finish(&cells->failures);
    table_finish(&cells->steps);
    free(cells->order);
    free(cells->failure_texts);
    free(cells->scratch);
    free(cells);
}

void cells_destroyp(struct cells **cells)
{
    cells_destroy(*cells);
}

/* --- keys --- */

static struct text cell_key_write(const struct cell_key *key, struct buffer *out)
{
    for (size_t i = 0; i < key->count; i++) {
        const struct cell_part *part = &key->parts[i];
        buffer_append_byte(out, (char)part->kind);
        if (part->kind == CELL_NUMBER)
            buffer_append(out, &part->number, sizeof part->number);
        if (part->kind != CELL_TEXT)
            continue;
        buffer_append(out, &part->text.length_bytes, sizeof part->text.length_bytes);
        if (part->text.length_bytes)
            buffer_append(out, part->text.data, part->text.length_bytes);
    }
    return buffer_text(out);
}

void cell_key_read(struct text bytes, struct cell_key *ret_key)
{
    const char *at = bytes.data;

    *ret_key = (struct cell_key){0};
    while (at < bytes.data + bytes.length_bytes) {
        struct cell_part *part = &ret_key->parts[ret_key->count++];
        part->kind = (enum cell_part_kind) * at++;
        if (part->kind == CELL_NUMBER) {
            memcpy(&part->number, at, sizeof part->number);
            at += sizeof part->number;
        } else if (part->kind == CELL_TEXT) {
            memcpy(&part->text.length_bytes, at, sizeof part->text.length_bytes);
            part->text.data = at + sizeof part->text.length_bytes;
            at = part->text.data + part->text.length_bytes;
        }
    }
}

/* --- tables --- */

/* The row of a key; a new one is zero. NULL: no memory. */
static void *row_of(struct cells *cells, struct cell_table *table, size_t row_bytes, struct text key, bool *ret_new)
{
    size_t count = table->names.count;
    uint32_t number = names_number(&table->names, key);

    *ret_new = number != NAMES_NONE && table->names.count > count;
    if (*ret_new && count == table->room) {
        size_t room = table->room ? 2 * table->room : 16;
        char *rows = reallocarray(table->rows, room, row_bytes);
        if (rows) {
            memset(rows + table->room * row_bytes, 0, (room - table->room) * row_bytes);
            table->rows = rows;
            table->room = room;
        }
    }
    /* After a failure names may have more numbers than there are rows. */
    if (number == NAMES_NONE || number >= table->room) {
        cells->failed = true;
        return NULL;
    }
    return table->rows + number * row_bytes;
}

static struct text pair_key(const uint32_t pair[2])
{
    return (struct text){(const char *)pair, 2 * sizeof *pair};
}

static uint32_t number_of(struct cells *cells, struct names *names, struct text key)
{
    uint32_t number = names_number(names, key);
    cells->failed |= number == NAMES_NONE;
    return number;
}

static struct cell_pair *pair_of(struct cells *cells, size_t cell, struct text task)
{
    const uint32_t key[] = {(uint32_t)cell, number_of(cells, &cells->tasks, task)};
    bool is_new = false;
    struct cell_pair *pair = NULL;

    if (key[1] != NAMES_NONE)
        pair = row_of(cells, &cells->pairs, sizeof *pair, pair_key(key), &is_new);
    if (is_new && pair) {
        pair->cell = key[0];
        pair->task = key[1];
    }
    return pair;
}

size_t cells_find(struct cells *cells, const struct cell_key *key)
{
    _cleanup_buffer_ struct buffer bytes = {0};
    bool is_new = false;
    struct cell *cell = NULL;

    buffer_init(&bytes, KEY_BYTES_MAX);
    struct text text = cell_key_write(key, &bytes);
    if (!bytes.failed)
        cell = row_of(cells, &cells->cells, sizeof *cell, text, &is_new);
    if (!cell) {
        cells->failed = true;
        return CELLS_NONE;
    }
    if (is_new) {
        cell->reward_min = cell->reward_max = cell->score_min = cell->score_max = NAN;
        cell->tokens_max = -1;
        cell->objective.estimator = NAMES_NONE;
    }
    return (size_t)(cell - cell_at(cells, 0));
}

/* --- rollouts --- */

/* fmin() and fmax() take the number where one is NAN. */
static void add_value(struct task_scratch *sum, double value, double *minimum, double *maximum)
{
    if (isnan(value))
        return;
    sum->count++;
    precise_sum_add(&sum->sum, value);
    *minimum = fmin(*minimum, value);
    *maximum = fmax(*maximum, value);
}

static void count_rollout(struct cell *cell, const struct cell_rollout *rollout)
{
    bool judged = !isnan(rollout->reward);

    cell->n++;
    cell->scored += rollout->state == CELL_SCORED;
    cell->failed += rollout->state == CELL_FAILED;
    cell->cancelled += rollout->state == CELL_CANCELLED;
    cell->tokens += rollout->tokens;
    cell->tokens_max = rollout->tokens > cell->tokens_max ? rollout->tokens : cell->tokens_max;
    cell->truncated += judged && rollout->truncated;
    cell->straddles += rollout->straddles;
    cell->duplicates += rollout->duplicate;
    cell->decided += rollout->solved >= 0;
    cell->solved += rollout->solved > 0;
    cell->engine_us += rollout->engine_us;
    if (!isnan(rollout->staleness)) {
        precise_sum_add(&cell->staleness, rollout->staleness);
        cell->staleness_count++;
    }
}

void cells_add(struct cells *cells, size_t cell, const struct cell_rollout *rollout)
{
    struct cell_pair *pair = cell != CELLS_NONE ? pair_of(cells, cell, rollout->task) : NULL;

    if (!pair)
        return;
    struct cell *own = cell_at(cells, cell);
    count_rollout(own, rollout);
    add_value(&pair->reward, rollout->reward, &own->reward_min, &own->reward_max);
    add_value(&pair->score, rollout->score, &own->score_min, &own->score_max);
    pair->n++;
    pair->judged_tokens += isnan(rollout->reward) ? 0 : rollout->tokens;
    pair->decided += rollout->solved >= 0;
    pair->solved += rollout->solved > 0;
    cells_add_group(cells, cell, rollout->group, rollout->group_state);
    if (rollout->failure.data)
        cells_add_failures(cells, cell, rollout->failure, 1);
}

void cells_add_group(struct cells *cells, size_t cell, struct text group, enum cell_group state)
{
    const uint32_t key[] = {(uint32_t)cell, number_of(cells, &cells->groups, group)};
    bool is_new;

    if (cell == CELLS_NONE || key[1] == NAMES_NONE)
        return;
    struct cell_group_pair *member = row_of(cells, &cells->members, sizeof *member, pair_key(key), &is_new);
    if (!member)
        return;
    member->cell = key[0];
    member->group = key[1];
    if (is_new || member->state == CELL_GROUP_RUNNING) /* it may be closed while its members are read */
        member->state = state;
}

void cells_add_failures(struct cells *cells, size_t cell, struct text code, int64_t count)
{
    const uint32_t key[] = {(uint32_t)cell, number_of(cells, &cells->codes, code)};
    bool is_new;

    if (cell == CELLS_NONE || key[1] == NAMES_NONE)
        return;
    struct cell_failure_pair *failure = row_of(cells, &cells->failures, sizeof *failure, pair_key(key), &is_new);
    if (!failure)
        return;
    failure->cell = key[0];
    failure->code = key[1];
    failure->count += count;
}

/* --- sums of rollouts --- */

static void add_sum(struct task_scratch *to, const struct task_scratch *from)
{
    to->count += from->count;
    precise_sum_add(&to->sum, from->sum.sum);
    precise_sum_add(&to->sum, from->sum.lost);
}

static void count_sums(struct cell *cell, const struct cell_sums *sums)
{
    cell->n += sums->n;
    cell->scored += sums->scored;
    cell->failed += sums->failed;
    cell->cancelled += sums->cancelled;
    cell->groups += sums->groups;
    cell->judged_groups += sums->judged_groups;
    cell->zero_variance_groups += sums->zero_variance_groups;
    cell->tokens += sums->tokens;
    if (sums->n > 0 && sums->tokens_max > cell->tokens_max)
        cell->tokens_max = sums->tokens_max;
    cell->truncated += sums->truncated;
    cell->straddles += sums->straddles;
    cell->duplicates += sums->duplicates;
    cell->decided += sums->decided;
    cell->solved += sums->solved;
    cell->engine_us += sums->engine_us;
    cell->staleness_count += sums->ended;
    precise_sum_add(&cell->staleness, (double)sums->staleness);
    if (sums->reward.count > 0) {
        cell->reward_min = fmin(cell->reward_min, sums->reward_min);
        cell->reward_max = fmax(cell->reward_max, sums->reward_max);
    }
    if (sums->score.count > 0) {
        cell->score_min = fmin(cell->score_min, sums->score_min);
        cell->score_max = fmax(cell->score_max, sums->score_max);
    }
}

void cells_add_sums(struct cells *cells, size_t cell, struct text task, const struct cell_sums *sums)
{
    struct cell_pair *pair = cell != CELLS_NONE ? pair_of(cells, cell, task) : NULL;

    if (!pair)
        return;
    count_sums(cell_at(cells, cell), sums);
    pair->n += sums->n;
    pair->judged_tokens += sums->judged_tokens;
    pair->decided += sums->decided;
    pair->solved += sums->solved;
    add_sum(&pair->reward, &sums->reward);
    add_sum(&pair->score, &sums->score);
}

/* --- objective calls --- */

static void add_loss(struct cells *cells, size_t cell, const struct store_objective_sum *sum)
{
    const int64_t key[] = {(int64_t)cell, sum->incarnation, sum->optimizer_step};
    bool is_new;

    if (sum->ppo_epoch != 0 || isnan(sum->slice.loss))
        return;
    struct cell_step *step =
        row_of(cells, &cells->steps, sizeof *step, (struct text){(const char *)key, sizeof key}, &is_new);
    if (!step)
        return;
    step->cell = (uint32_t)cell;
    precise_sum_add(&step->loss, sum->slice.loss);
}

static void add_estimator(struct cells *cells, struct cell_objective *objective, struct text estimator)
{
    uint32_t number = number_of(cells, &cells->estimators, estimator);

    objective->several_estimators |= objective->estimator != NAMES_NONE && objective->estimator != number;
    objective->estimator = number;
}

void cells_add_objective(struct cells *cells, size_t cell, const struct store_objective_sum *sum)
{
    const struct store_objective_slice *slice = &sum->slice;

    if (cell == CELLS_NONE)
        return;
    struct cell_objective *objective = &cell_at(cells, cell)->objective;
    objective->kept = true;
    objective->clips += slice->clip_low + slice->clip_high;
    objective->tokens += slice->tokens;
    for (size_t k = 0; k < STORE_OBJECTIVE_MEANS; k++) {
        if (slice->means[k].tokens == 0)
            continue;
        precise_sum_add(&objective->sums[k], slice->means[k].sum);
        objective->sum_tokens[k] += slice->means[k].tokens;
    }
    if (slice->means[STORE_OBJECTIVE_KL].tokens > 0 && sum->kl_estimator.data)
        add_estimator(cells, objective, sum->kl_estimator);
    add_loss(cells, cell, sum);
}
