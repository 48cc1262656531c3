/* Groups and scores that are on record. The scores of a revision are looked up rollout by rollout; then each batch is read and
 * computed by itself, group by group, so that no read is longer than a page or a group. */
#include "server/reports/audit_private.h"

#include "server/base/cleanup.h"
#include "server/spec/batch.h"
#include "server/spec/objective.h"
#include "server/store/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_ROWS 1000
#define PAGE_BYTES ((size_t)4 << 20)

/* A group that has a rollout of the revision. */
struct pick {
    char batch_id[ID_BYTES];
    int64_t group_index;
};

struct record_audit {
    struct audit *audit;
    struct store_reader *reader;
    struct pick *picks;
    size_t pick_count, pick_room;
};

static int refuse_store(struct audit *audit)
{
    return call_refuse(audit->call, ERR_STORE_UNAVAILABLE, NULL, "the database cannot be read");
}

/* --- one group --- */

/* Names the verifiers of a batch or a group. {id: true} of those that are gates. NULL: refused. */
static json_t *take_verifiers(struct audit *audit, struct text verifiers)
{
    json_auto_t *gates = json_object();
    uint32_t number;
    json_auto_t *list =
        verifiers.data ? json_loadb(verifiers.data, verifiers.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
    size_t i;
    const json_t *verifier;

    json_array_foreach (list, i, verifier) {
        const json_t *id = json_object_get(verifier, "id");
        struct text name = json_text_of(id ? id : json_object_get(verifier, "name"));
        if (!name.data)
            continue;
        if (audit_name(audit, name, &number) < 0)
            return NULL;
        audit->seen[number] = true;
        if (json_is_true(json_object_get(verifier, "gate")))
            json_object_setn_new(gates, name.data, name.length_bytes, json_true());
    }
    return TAKE_PTR(gates);
}

static int take_scores(struct audit *audit, struct audit_part *part, struct text text, bool is_reward,
                       const json_t *gates)
{
    json_auto_t *scores = text.data ? json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
    const char *name;
    json_t *entry;

    json_object_foreach (scores, name, entry) {
        const json_t *score = json_object_get(entry, "score");
        struct audit_score read = {.is_reward = is_reward,
                                   .gate = json_object_get(gates, name) != NULL,
                                   .score = json_is_number(score) ? json_number_value(score) : NAN,
                                   .weight = json_number_value(json_object_get(entry, "weight"))};
        if (audit_name(audit, text_of(name), &read.name) < 0 || audit_add_score(audit, part, &read) < 0)
            return -1;
        audit->seen[read.name] = true;
    }
    return 0;
}

/* A rollout whose verifiers failed has a reward by weights that leave them out; one that failed elsewhere never. */
static bool has_failed(const struct store_rollout *rollout)
{
    return rollout->state != STORE_ROLLOUT_SCORED && !text_equals(rollout->failure.stage, "verify");
}

static int take_rollout(struct audit *audit, struct audit_part *part, const struct store_rollout *rollout,
                        int64_t prompt_tokens, const json_t *gates)
{
    const struct audit_fields *fields = &audit->fields;
    struct audit_member *member;

    if (audit_add_member(audit, part, &member) < 0)
        return -1;
    member->sample_index = rollout->sample_index;
    member->failed = has_failed(rollout);
    member->counted = fields->batch.data ||
                      (rollout->policy_revision == fields->revision && rollout->incarnation == fields->incarnation);
    struct objective_sequence *sequence = &part->sequences[part->member_count - 1];
    *sequence = group_record_sequence(rollout);
    sequence->group = part->group_count - 1;
    sequence->prompt_tokens = prompt_tokens;
    return take_scores(audit, part, rollout->rewards, true, gates) < 0 ||
                   take_scores(audit, part, rollout->heldout, false, gates) < 0
               ? -1
               : 0;
}

/* The arrays of a group stay as long as the part, if the objective looks at them. */
static int keep_arrays(struct audit *audit, struct audit_part *part, struct store_group *group)
{
    if (part->kept_count == part->kept_room) {
        size_t room = part->kept_room ? part->kept_room * 2 : 16;
        struct store_group *larger = reallocarray(part->kept, room, sizeof *larger);
        if (!larger)
            return audit_refuse_memory(audit);
        part->kept = larger;
        part->kept_room = room;
    }
    part->kept[part->kept_count++] = *group;
    *group = (struct store_group){0};
    return 0;
}

static int take_group(struct audit *audit, struct audit_part *part, const struct store_group *group,
                      const json_t *batch_gates)
{
    json_auto_t *own_gates = group->verifiers.data ? take_verifiers(audit, group->verifiers) : NULL;
    int64_t prompt_tokens = group->prompt_ids ? (int64_t)group->prompt_id_count : -1;
    struct audit_group *added;

    if ((group->verifiers.data && !own_gates) || audit_add_group(audit, part, group->task, &added) < 0)
        return -1;
    added->task = (struct text){xstrndup(group->task.data, group->task.length_bytes), group->task.length_bytes};
    memcpy(added->id, group->id, ID_BYTES);
    for (size_t i = 0; i < group->rollout_count; i++)
        if (take_rollout(audit, part, &group->rollouts[i], prompt_tokens, own_gates ? own_gates : batch_gates) < 0)
            return -1;
    return 0;
}

static int read_group(struct record_audit *record, struct audit_part *part, const char *batch_id, int64_t index,
                      const json_t *gates)
{
    unsigned with = group_record_with(&part->knobs, false) | STORE_WITH_VERDICTS;
    _cleanup_(store_group_finish) struct store_group group = {0};
    char id[ID_BYTES];

    id_of_group(batch_id, index, id);
    if (store_read_group(record->reader, text_of(id), with, &group) != STORE_OK)
        return refuse_store(record->audit);
    record->audit->running_groups += group.state == STORE_GROUP_RUNNING;
    int result = 0;
    if (group.state == STORE_GROUP_COMPLETE)
        result = take_group(record->audit, part, &group, gates);
    if (result == 0 && with & STORE_WITH_ARRAYS)
        result = keep_arrays(record->audit, part, &group);
    return result;
}

/* --- one batch --- */

static int read_knobs(struct audit *audit, const struct store_batch *batch, struct objective_knobs *ret_knobs)
{
    struct objective_knobs knobs;

    if (objective_json_parse(batch->objective, &knobs) < 0)
        return call_refuse(audit->call, ERR_STATE_CONFLICT, audit->fields.batch.data ? "batch" : "revision",
                           "the recorded objective of the batch %s cannot be read by this version", batch->id);
    objective_at_sampling(&knobs, ret_knobs);
    return 0;
}

/* Selection of the groups of a batch that are read. */
struct wanted {
    const struct store_batch *batch;
    const struct pick *picks; /* NULL: all groups */
    size_t count;
    const json_t *gates;
};

static int read_wanted(struct record_audit *record, const struct wanted *wanted, size_t place, struct audit_part *part)
{
    int64_t index = wanted->picks ? wanted->picks[place].group_index : (int64_t)place;

    if (audit_go_on(record->audit) < 0)
        return -1;
    return read_group(record, part, wanted->batch->id, index, wanted->gates);
}

/* A rule over the whole batch has no advantages until its last group is closed. */
static int compute_together(struct record_audit *record, const struct wanted *wanted,
                            const struct objective_knobs *knobs)
{
    struct audit_part part = {.knobs = *knobs};
    size_t running = record->audit->running_groups;
    int result = 0;

    for (size_t g = 0; result == 0 && g < wanted->count; g++)
        result = read_wanted(record, wanted, g, &part);
    if (result == 0 && record->audit->running_groups == running)
        result = audit_compute(record->audit, &part);
    audit_part_finish(&part);
    return result;
}

/* A rule inside a group: so only one group's arrays are in memory. */
static int compute_one_by_one(struct record_audit *record, const struct wanted *wanted,
                              const struct objective_knobs *knobs)
{
    int result = 0;

    for (size_t g = 0; result == 0 && g < wanted->count; g++) {
        struct audit_part part = {.knobs = *knobs};
        result = read_wanted(record, wanted, g, &part);
        if (result == 0 && part.group_count > 0)
            result = audit_compute(record->audit, &part);
        audit_part_finish(&part);
    }
    return result;
}

static int compute_batch(struct record_audit *record, const struct store_batch *batch, const struct pick *picks,
                         size_t count)
{
    json_auto_t *gates = take_verifiers(record->audit, batch->verifiers);
    struct objective_knobs knobs;

    if (!gates || read_knobs(record->audit, batch, &knobs) < 0)
        return -1;
    bool together = objective_needs_whole_batch(&knobs);
    struct wanted wanted = {batch, picks, count, gates};
    if (together || !picks) {
        wanted.picks = NULL;
        wanted.count = (size_t)batch->group_count;
    }
    return together ? compute_together(record, &wanted, &knobs) : compute_one_by_one(record, &wanted, &knobs);
}

static int read_batch(struct record_audit *record, struct text id, struct store_batch *ret_batch)
{
    struct audit *audit = record->audit;
    enum store_status status = store_read_batch(record->reader, id, ret_batch);

    if (status == STORE_OK && text_same(ret_batch->run, audit->fields.run))
        return 0;
    if (status == STORE_OK || status == STORE_NOT_FOUND)
        return call_refuse(audit->call, ERR_NOT_FOUND, "batch", "this run has no batch of this id");
    return refuse_store(audit);
}

static int audit_batch(struct record_audit *record, struct text id, const struct pick *picks, size_t count)
{
    _cleanup_(store_batch_finish) struct store_batch batch = {0};

    return read_batch(record, id, &batch) < 0 ? -1 : compute_batch(record, &batch, picks, count);
}

/* --- the groups of a revision --- */

static int add_pick(struct record_audit *record, const struct store_rollout *rollout)
{
    if (record->pick_count == AUDIT_MEMBERS_MAX)
        return audit_refuse_many(record->audit);
    if (record->pick_count == record->pick_room) {
        size_t room = record->pick_room ? record->pick_room * 2 : 256;
        struct pick *larger = reallocarray(record->picks, room, sizeof *larger);
        if (!larger)
            return audit_refuse_memory(record->audit);
        record->picks = larger;
        record->pick_room = room;
    }
    struct pick *pick = &record->picks[record->pick_count];
    if (id_split_group(text_of(rollout->group_id), pick->batch_id, &pick->group_index))
        record->pick_count++;
    return 0;
}

static int compare_picks(const void *left, const void *right)
{
    const struct pick *a = left;
    const struct pick *b = right;
    int order = strcmp(a->batch_id, b->batch_id);

    return order ? order : (a->group_index > b->group_index) - (a->group_index < b->group_index);
}

static void sort_picks(struct record_audit *record)
{
    size_t count = 0;

    if (record->pick_count == 0)
        return;
    qsort(record->picks, record->pick_count, sizeof *record->picks, compare_picks);
    for (size_t i = 0; i < record->pick_count; i++)
        if (count == 0 || compare_picks(&record->picks[count - 1], &record->picks[i]) != 0)
            record->picks[count++] = record->picks[i];
    record->pick_count = count;
}

static struct store_rollout_filter filter_of(const struct audit *audit, int64_t incarnation)
{
    struct store_rollout_filter filter;

    store_rollout_filter_init(&filter);
    filter.run = audit->fields.run;
    filter.purpose = STORE_TRAIN;
    filter.incarnation = incarnation;
    filter.revision_min = filter.revision_max = audit->fields.revision;
    return filter;
}

static int find_picks(struct record_audit *record)
{
    static const struct store_page_limits limits = {.rows = PAGE_ROWS, .scanned = PAGE_ROWS, .bytes = PAGE_BYTES};
    struct store_rollout_filter filter = filter_of(record->audit, record->audit->fields.incarnation);
    char cursor[64] = "";
    int result = audit_go_on(record->audit);

    while (result == 0) {
        _cleanup_(store_rollouts_finish) struct store_rollouts page = {0};
        if (store_list_rollouts(record->reader, &filter, cursor[0] ? text_of(cursor) : TEXT_NONE, &limits, 0, &page) !=
            STORE_OK)
            return refuse_store(record->audit);
        for (size_t i = 0; result == 0 && i < page.count; i++)
            result = add_pick(record, &page.rollouts[i]);
        memcpy(cursor, page.next, sizeof cursor);
        if (!cursor[0])
            break;
        result = result == 0 ? audit_go_on(record->audit) : result;
    }
    sort_picks(record);
    return result;
}

/* Whether the incarnation has a rollout of the revision. -1: refused. */
static int has_revision(struct record_audit *record, int64_t incarnation)
{
    static const struct store_page_limits limits = {.rows = 1, .scanned = PAGE_ROWS, .bytes = PAGE_BYTES};
    struct store_rollout_filter filter = filter_of(record->audit, incarnation);
    char cursor[64] = "";
    bool found = false;

    do {
        _cleanup_(store_rollouts_finish) struct store_rollouts page = {0};
        if (store_list_rollouts(record->reader, &filter, cursor[0] ? text_of(cursor) : TEXT_NONE, &limits, 0, &page) !=
            STORE_OK)
            return refuse_store(record->audit);
        found = page.count > 0;
        memcpy(cursor, page.next, sizeof cursor);
    } while (!found && cursor[0] && audit_go_on(record->audit) == 0);
    return found || !cursor[0] ? found : -1;
}

/* The surviving line: a revision is that of its latest incarnation. */
static int find_incarnation(struct record_audit *record, int64_t newest)
{
    struct audit_fields *fields = &record->audit->fields;
    int64_t first = fields->incarnation >= 0 ? fields->incarnation : newest;
    int64_t last = fields->incarnation >= 0 ? fields->incarnation : 0;

    for (int64_t incarnation = first; incarnation >= last; incarnation--) {
        int found = has_revision(record, incarnation);
        if (found < 0)
            return -1;
        fields->incarnation = incarnation;
        if (found)
            return 0;
    }
    return call_refuse(record->audit->call, ERR_NOT_FOUND, "revision",
                       "this run has no training rollouts of this revision");
}

static int audit_revision(struct record_audit *record, int64_t newest)
{
    int result = 0;

    if (find_incarnation(record, newest) < 0 || find_picks(record) < 0)
        return -1;
    for (size_t i = 0, next; result == 0 && i < record->pick_count; i = next) {
        const char *batch_id = record->picks[i].batch_id;
        for (next = i + 1; next < record->pick_count && strcmp(record->picks[next].batch_id, batch_id) == 0; next++)
            ;
        result = audit_batch(record, text_of(batch_id), &record->picks[i], next - i);
    }
    return result;
}

/* --- the whole --- */

/* The run's incarnation of now. */
static int read_run(struct record_audit *record, int64_t *ret_incarnation)
{
    _cleanup_(store_run_detail_finish) struct store_run_detail run = {0};
    enum store_status status = store_read_run(record->reader, record->audit->fields.run, &run);

    if (status == STORE_NOT_FOUND)
        return call_refuse(record->audit->call, ERR_NOT_FOUND, "run", "there is no run of this name");
    if (status != STORE_OK)
        return refuse_store(record->audit);
    *ret_incarnation = run.run.incarnation;
    return 0;
}

int audit_record(struct audit *audit)
{
    struct record_audit record = {.audit = audit, .reader = audit->call->reader};
    int64_t incarnation = 0;

    if (run_name_check(audit->call, audit->fields.run) < 0)
        return -1;
    if (!record.reader)
        return refuse_store(audit);
    if (read_run(&record, &incarnation) < 0 || audit_name(audit, audit->verifier, &audit->swept) < 0 ||
        audit_name(audit, audit->fields.truth, &audit->truth) < 0)
        return -1;
    int result = audit->fields.batch.data ? audit_batch(&record, audit->fields.batch, NULL, 0)
                                          : audit_revision(&record, incarnation);
    free(record.picks);
    if (result == 0)
        result = audit_check_names(audit);
    return result == 0 ? audit_find_divergence(audit) : -1;
}
