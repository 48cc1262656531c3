/* Where a run's reward went up while the truth went down. */
#include "server/reports/audit_private.h"

#include "server/base/cleanup.h"
#include "server/base/json_write.h"
#include "server/store/rollout_filter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_ROWS 1000
#define PAGE_BYTES ((size_t)4 << 20)
#define REVISIONS_LOOKED_AT 3

struct history_row {
    int64_t revision, incarnation;
    uint32_t task;
    double reward, truth;
};

struct history {
    struct audit *audit;
    struct history_row *rows;
    size_t count, room;
    json_t *tasks;
};

/* One revision of the surviving line. */
struct revision_means {
    int64_t revision;
    struct clustered_mean reward, truth;
};

/* --- reading --- */

static double score_in(struct text text, struct text name)
{
    json_auto_t *scores = text.data ? json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
    const json_t *score = json_object_get(json_object_getn(scores, name.data, name.length_bytes), "score");

    return json_is_number(score) ? json_number_value(score) : NAN;
}

static uint32_t task_of(struct history *history, struct text task)
{
    json_t *known = json_object_getn(history->tasks, task.data, task.length_bytes);

    if (!known) {
        known = json_integer((json_int_t)json_object_size(history->tasks));
        json_object_setn_new(history->tasks, task.data, task.length_bytes, known);
    }
    return (uint32_t)json_integer_value(known);
}

static int add_row(struct history *history, const struct store_rollout *rollout)
{
    struct text truth = history->audit->fields.truth;

    if (history->count == history->room) {
        size_t room = history->room ? history->room * 2 : 1024;
        struct history_row *larger = reallocarray(history->rows, room, sizeof *larger);
        if (!larger)
            return audit_refuse_memory(history->audit);
        history->rows = larger;
        history->room = room;
    }
    double heldout = score_in(rollout->heldout, truth);
    history->rows[history->count++] =
        (struct history_row){.revision = rollout->policy_revision,
                             .incarnation = rollout->incarnation,
                             .task = task_of(history, rollout->task),
                             .reward = rollout->reward,
                             .truth = isnan(heldout) ? score_in(rollout->rewards, truth) : heldout};
    return 0;
}

static int read_history(struct history *history)
{
    static const struct store_page_limits limits = {.rows = PAGE_ROWS, .scanned = PAGE_ROWS, .bytes = PAGE_BYTES};
    struct audit *audit = history->audit;
    struct store_rollout_filter filter;
    char cursor[64] = "";
    int result;

    store_rollout_filter_init(&filter);
    filter.run = audit->fields.run;
    filter.purpose = STORE_TRAIN;
    do {
        _cleanup_(store_rollouts_finish) struct store_rollouts page = {0};
        if ((result = audit_go_on(audit)) < 0)
            break;
        if (store_list_rollouts(audit->call->reader, &filter, cursor[0] ? text_of(cursor) : TEXT_NONE, &limits,
                                STORE_WITH_VERDICTS, &page) != STORE_OK)
            return call_refuse(audit->call, ERR_STORE_UNAVAILABLE, NULL, "the database cannot be read");
        audit->history_too_long = history->count + page.count > AUDIT_HISTORY_MAX;
        for (size_t i = 0; result == 0 && !audit->history_too_long && i < page.count; i++)
            result = add_row(history, &page.rollouts[i]);
        memcpy(cursor, page.next, sizeof cursor);
    } while (result == 0 && cursor[0] && !audit->history_too_long);
    return result;
}

/* --- revisions --- */

/* By revision, each in its latest incarnation first, then by task. */
static int compare_rows(const void *left, const void *right)
{
    const struct history_row *a = left;
    const struct history_row *b = right;

    if (a->revision != b->revision)
        return a->revision < b->revision ? -1 : 1;
    if (a->incarnation != b->incarnation)
        return a->incarnation > b->incarnation ? -1 : 1;
    return (a->task > b->task) - (a->task < b->task);
}

/* Room for one revision's numbers. */
struct columns {
    double *rewards, *truths;
    uint32_t *tasks;
    struct task_scratch *scratch;
};

static void finish_columns(struct columns *columns)
{
    free(columns->rewards);
    free(columns->truths);
    free(columns->tasks);
    free(columns->scratch);
}

/* Rows of one revision from `at` on. Returns where the next one begins. Its tasks are numbered anew, so that a revision
 * of few tasks does not cost as much as the run has. */
static size_t measure(const struct history *history, const struct columns *columns, size_t at,
                      struct revision_means *ret_means)
{
    const struct history_row *first = &history->rows[at];
    uint32_t last_task = first->task;
    size_t tasks = 1;
    size_t n = 0;

    for (; at < history->count && history->rows[at].revision == first->revision; at++) {
        const struct history_row *row = &history->rows[at];
        if (row->incarnation != first->incarnation)
            continue;
        tasks += row->task != last_task;
        last_task = row->task;
        columns->rewards[n] = row->reward;
        columns->truths[n] = row->truth;
        columns->tasks[n++] = (uint32_t)(tasks - 1);
    }
    ret_means->revision = first->revision;
    ret_means->reward = clustered_mean(n, columns->rewards, columns->tasks, tasks, columns->scratch);
    ret_means->truth = clustered_mean(n, columns->truths, columns->tasks, tasks, columns->scratch);
    return at;
}

/* --- the rule --- */

/* Rounding is no difference. False for NAN. */
static bool is_at_least(double value, double other)
{
    return value >= other || values_are_equal(value, other);
}

/* The reward rose, in no step downwards and in whole by more than two errors; the truth fell, in no step upwards. */
static bool diverges(const struct revision_means *means)
{
    const struct revision_means *last = &means[REVISIONS_LOOKED_AT - 1];
    double rise = last->reward.mean - means[0].reward.mean;
    double error = hypot(last->reward.se, means[0].reward.se);

    for (size_t k = 1; k < REVISIONS_LOOKED_AT; k++)
        if (!is_at_least(means[k].reward.mean, means[k - 1].reward.mean) ||
            !is_at_least(means[k - 1].truth.mean, means[k].truth.mean))
            return false;
    return rise > 2 * error && !is_at_least(means[0].reward.mean, last->reward.mean) &&
           !is_at_least(last->truth.mean, means[0].truth.mean);
}

static void write_point(struct json_write *json, const char *name, int64_t revision, struct clustered_mean mean)
{
    json_key(json, name);
    json_object_begin(json);
    json_put_int(json, "revision", revision);
    json_put_double(json, "mean", mean.mean);
    json_put_double(json, "se", mean.se);
    json_object_end(json);
}

static void write_divergence(struct audit *audit, const struct revision_means *means)
{
    const struct revision_means *last = &means[REVISIONS_LOOKED_AT - 1];
    struct json_write json;

    json_write_init(&json, &audit->divergence);
    json_object_begin(&json);
    json_put_int(&json, "revision", means[0].revision);
    json_key(&json, "reward");
    json_object_begin(&json);
    write_point(&json, "from", means[0].revision, means[0].reward);
    write_point(&json, "to", last->revision, last->reward);
    json_object_end(&json);
    json_key(&json, "truth");
    json_object_begin(&json);
    write_point(&json, "from", means[0].revision, means[0].truth);
    write_point(&json, "to", last->revision, last->truth);
    json_object_end(&json);
    json_object_end(&json);
}

static int look(struct history *history)
{
    struct columns columns = {.rewards = calloc(history->count + 1, sizeof(double)),
                              .truths = calloc(history->count + 1, sizeof(double)),
                              .tasks = calloc(history->count + 1, sizeof(uint32_t)),
                              .scratch = calloc(history->count + 1, sizeof(struct task_scratch))};
    struct revision_means means[REVISIONS_LOOKED_AT];
    size_t known = 0;
    bool room = columns.rewards && columns.truths && columns.tasks && columns.scratch;

    qsort(history->rows, history->count, sizeof *history->rows, compare_rows);
    for (size_t at = 0; room && at < history->count;) {
        if (known == REVISIONS_LOOKED_AT)
            memmove(means, means + 1, --known * sizeof *means);
        at = measure(history, &columns, at, &means[known++]);
        if (known == REVISIONS_LOOKED_AT && diverges(means)) {
            write_divergence(history->audit, means);
            break;
        }
    }
    finish_columns(&columns);
    return room ? 0 : audit_refuse_memory(history->audit);
}

int audit_find_divergence(struct audit *audit)
{
    struct history history = {.audit = audit, .tasks = json_object()};
    int result = read_history(&history);

    if (result == 0 && !audit->history_too_long && history.count > 0)
        result = look(&history);
    free(history.rows);
    json_decref(history.tasks);
    return result;
}
