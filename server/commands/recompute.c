#include "server/commands/recompute_private.h"

#include "server/base/cleanup.h"
#include "server/record/group_record.h"
#include "server/spec/objective.h"
#include "server/spec/refill.h"
#include "server/store/store.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCHES_AT_ONCE 100
#define GROUPS_AT_ONCE 1000
#define PROBLEMS_MAX 20
#define TOLERANCE 1e-12 /* of the larger one: the last bits are the machine's */

struct recomputing {
    struct store_reader *reader;
    struct buffer *problems;
    struct recompute_report *report;
    const struct store_batch *batch;
    struct objective_knobs knobs; /* as they are at sampling time */
};

/* Closed groups that are computed together. */
struct together {
    struct group_record *records;
    char (*ids)[ID_BYTES];
    size_t count, room;
};

static void together_finish(struct together *together)
{
    for (size_t i = 0; i < together->count; i++)
        group_record_finish(&together->records[i]);
    free(together->records);
    free(together->ids);
    *together = (struct together){0};
}

static bool is_same(double left, double right)
{
    if (isnan(left) || isnan(right))
        return isnan(left) && isnan(right);
    return fabs(left - right) <= TOLERANCE * fmax(1, fmax(fabs(left), fabs(right)));
}

/* --- one computation --- */

static void tell(struct recomputing *self, const char *group_id, int64_t sample_index, double recorded, double computed)
{
    if (self->batch->arithmetic_version != OBJECTIVE_ARITHMETIC_VERSION) {
        self->report->older++;
        return;
    }
    if (self->report->wrong++ < PROBLEMS_MAX)
        buffer_append_format(self->problems,
                             "an advantage differs from that of its rewards: %s sample %" PRId64 ": %.17g, not %.17g\n",
                             group_id, sample_index, recorded, computed);
}

/* The first token whose advantage differs; the count if none does. NULL on one side: all its tokens have the one number. */
static size_t find_difference(const struct objective_sequence *recorded, const struct objective_sequence *computed)
{
    size_t t = 0;
    while (t < computed->tokens &&
           is_same(recorded->token_advantages ? recorded->token_advantages[t] : recorded->advantage,
                   computed->advantages[t]))
        t++;
    return t;
}

/* Of a rule that gives each token its own. True: none differs. */
static bool compare_tokens(struct recomputing *self, const struct together *together, size_t group, size_t member,
                           const struct objective_sequence *computed)
{
    const struct group_record *record = &together->records[group];
    const struct objective_sequence *recorded = &record->sequences[member];
    size_t t = computed->tokens;

    if (computed->advantages && !computed->untrainable && !isnan(recorded->reward) && !isnan(computed->advantage))
        t = find_difference(recorded, computed);
    if (t < computed->tokens)
        tell(self, together->ids[group], record->sample_index[member],
             recorded->token_advantages ? recorded->token_advantages[t] : recorded->advantage, computed->advantages[t]);
    return t == computed->tokens;
}

/* Only the first differing member of a group is reported. */
static void compare(struct recomputing *self, const struct together *together,
                    const struct objective_sequence *computed)
{
    for (size_t g = 0; g < together->count; computed += together->records[g++].count) {
        const struct group_record *record = &together->records[g];
        self->report->groups++;
        self->report->rollouts += (int64_t)record->count;
        for (size_t k = 0; k < record->count; k++) {
            double recorded = record->sequences[k].advantage;
            double now = isnan(record->sequences[k].reward) ? NAN : computed[k].advantage;
            if (!is_same(recorded, now)) {
                tell(self, together->ids[g], record->sample_index[k], recorded, now);
                break;
            }
            if (!compare_tokens(self, together, g, k, &computed[k]))
                break;
        }
    }
}

static size_t members_of(const struct together *together)
{
    size_t count = 0;
    for (size_t g = 0; g < together->count; g++)
        count += together->records[g].count;
    return count;
}

/* As batches/closing_group.c did it. */
static void compute(struct recomputing *self, const struct together *together)
{
    struct objective_error error;
    size_t at = 0;
    _cleanup_free_ struct objective_sequence *sequences = xcalloc(members_of(together) + 1, sizeof(*sequences));
    _cleanup_free_ struct objective_group *groups = xcalloc(together->count + 1, sizeof(*groups));
    for (size_t g = 0; g < together->count; g++)
        for (size_t k = 0; k < together->records[g].count; k++) {
            sequences[at] = together->records[g].sequences[k];
            sequences[at].advantage = NAN;
            sequences[at].logprobs = (struct objective_values){0};
            sequences[at++].group = g;
        }
    struct objective_request request = {.knobs = &self->knobs,
                                        .sequences = sequences,
                                        .sequence_count = at,
                                        .groups = groups,
                                        .group_count = together->count,
                                        .score_count = GROUP_RECORD_SCORES};
    _cleanup_free_ double *of_tokens = graded_steps_room(&self->knobs, sequences, at);
    (void)of_tokens; /* the sequences point into it */
    if (objective_advantages(&request, &error) < 0)
        for (size_t i = 0; i < at; i++)
            sequences[i].advantage = NAN; /* none was stored */
    compare(self, together, sequences);
}

/* --- one batch --- */

static int add_group(struct recomputing *self, struct together *together, const char *id, json_t *names)
{
    if (together->count == together->room) {
        together->room = together->room ? 2 * together->room : 16;
        together->records = xrealloc(together->records, together->room * sizeof(*together->records));
        together->ids = xrealloc(together->ids, together->room * sizeof(*together->ids));
    }
    memcpy(together->ids[together->count], id, ID_BYTES);
    enum store_status status =
        group_record_read(self->reader, text_of(id), &self->knobs, false, names, &together->records[together->count]);
    together->count++;
    return status == STORE_OK ? 0 : -1;
}

/* Group by group, unless the estimator looks at the whole batch. */
static int walk_groups(struct recomputing *self, bool whole)
{
    struct together together = {0};
    json_auto_t *names = json_object();
    int result = 0;
    for (int64_t from = 0; result == 0;) {
        _cleanup_(store_groups_finish) struct store_groups page = {0};
        if (store_read_groups(self->reader, text_of(self->batch->id), from, GROUPS_AT_ONCE, 0, &page) != STORE_OK)
            result = -1;
        if (result < 0 || page.count == 0)
            break;
        for (size_t i = 0; i < page.count && result == 0; i++) {
            if (page.groups[i].state != STORE_GROUP_COMPLETE || page.groups[i].dropped)
                continue; /* a dropped one has no advantages: store_verify() looks for some */
            result = add_group(self, &together, page.groups[i].id, names);
            if (result < 0 || whole)
                continue;
            compute(self, &together);
            together_finish(&together);
            json_object_clear(names);
        }
        from = page.groups[page.count - 1].index + 1;
    }
    if (result == 0 && whole)
        compute(self, &together);
    together_finish(&together);
    return result;
}

/* --- groups that a refill dropped --- */

static int recompute_drop(struct recomputing *self, const struct refill_spec *refill, const char *id)
{
    _cleanup_(store_group_finish) struct store_group group = {0};
    if (store_read_group(self->reader, text_of(id), STORE_WITH_VERDICTS, &group) != STORE_OK)
        return -1;
    _cleanup_free_ double *values = xcalloc(group.rollout_count + 1, sizeof(*values));
    for (size_t i = 0; i < group.rollout_count; i++) {
        const struct store_rollout *rollout = &group.rollouts[i];
        values[i] = rollout->state == STORE_ROLLOUT_SCORED
                        ? refill_metric(refill, rollout->reward, rollout->rewards, rollout->heldout)
                        : (double)NAN;
    }
    bool flat = refill_is_flat(refill, &self->knobs, values, group.rollout_count);
    bool wrong = group.dropped ? !flat : flat && refill->exhausted != REFILL_DELIVER;
    if (wrong && self->report->wrong++ < PROBLEMS_MAX)
        buffer_append_format(self->problems, "a group was %s against the rule of its refill: %s\n",
                             group.dropped ? "dropped" : "delivered", id);
    return 0;
}

static int recompute_drops(struct recomputing *self)
{
    struct refill_spec refill;
    const struct store_batch *batch = self->batch;
    json_auto_t *summary =
        batch->summary.data ? json_loadb(batch->summary.data, batch->summary.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
    if (refill_read_summary(summary, &refill) < 0)
        return 0;
    for (int64_t from = 0; from < batch->group_count;) {
        _cleanup_(store_groups_finish) struct store_groups page = {0};
        if (store_read_groups(self->reader, text_of(batch->id), from, GROUPS_AT_ONCE, 0, &page) != STORE_OK)
            return -1;
        if (page.count == 0)
            break;
        for (size_t i = 0; i < page.count; i++)
            if (page.groups[i].state == STORE_GROUP_COMPLETE && recompute_drop(self, &refill, page.groups[i].id) < 0)
                return -1;
        from = page.groups[page.count - 1].index + 1;
    }
    return 0;
}

static int recompute_batch(struct recomputing *self, const char *id)
{
    struct objective_knobs knobs;
    _cleanup_(store_batch_finish) struct store_batch batch = {0};
    enum store_status status = store_read_batch(self->reader, text_of(id), &batch);
    if (status != STORE_OK || batch.state == STORE_BATCH_RUNNING)
        return status == STORE_OK || status == STORE_NOT_FOUND ? 0 : -1;
    self->batch = &batch;
    self->report->batches++;
    if (objective_json_parse(batch.objective, &knobs) < 0) {
        self->report->unread++;
        self->batch = NULL;
        return 0;
    }
    objective_at_sampling(&knobs, &self->knobs);
    bool whole = objective_needs_whole_batch(&self->knobs);
    int result = whole && batch.state != STORE_BATCH_COMPLETE ? 0 : walk_groups(self, whole);
    if (result == 0)
        result = recompute_drops(self);
    self->batch = NULL; /* it goes now */
    return result;
}

static int walk_batches(struct recomputing *self)
{
    static const struct store_page_limits limits = {
        .rows = BATCHES_AT_ONCE, .scanned = BATCHES_AT_ONCE, .bytes = (size_t)64 << 20};
    char cursor[64] = "";
    int result = 0;
    do {
        _cleanup_(store_batches_finish) struct store_batches page = {0};
        if (store_list_batches(self->reader, TEXT_NONE, -1, false, cursor[0] ? text_of(cursor) : TEXT_NONE, &limits,
                               &page) != STORE_OK)
            return -1;
        for (size_t i = 0; i < page.count && result == 0; i++)
            result = recompute_batch(self, page.batches[i].id);
        memcpy(cursor, page.next, sizeof(cursor));
    } while (result == 0 && cursor[0]);
    return result;
}

int recompute_advantages(const char *path, struct buffer *problems, struct recompute_report *ret_report,
                         char message[512])
{
    struct recomputing self = {.problems = problems, .report = ret_report};
    *ret_report = (struct recompute_report){0};
    self.reader = store_reader_open(path, message);
    if (!self.reader)
        return -1;
    int result = walk_batches(&self);
    if (result < 0)
        snprintf(message, 512, "the database %s cannot be read", path);
    store_reader_destroy(self.reader);
    return result;
}
