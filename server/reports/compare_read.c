/* The groups of a run in order of creation, batch by batch: once for their costs, once for those within the budget. */
#include "server/reports/compare_private.h"

#include "server/base/cleanup.h"
#include "server/store/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BATCHES = 32 };

/* One whole group. */
struct whole_group {
    const struct store_group *group;
    const struct store_member *members;
    size_t count;
};

static json_t *load(struct text text)
{
    return text.data ? json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
}

/* ---- the costs of a group ---------------------------------------------------------------------------------- */

static bool has_weights(const struct compare_spent *spent, const struct compare_weights *weights)
{
    for (int64_t i = spent->counts[COMPARE_REVISIONS]; i-- > 0;)
        if (spent->weights[i].incarnation == weights->incarnation && spent->weights[i].revision == weights->revision)
            return true;
    return false;
}

static void add_weights(struct compare_spent *spent, const struct compare_weights *weights)
{
    size_t count = (size_t)spent->counts[COMPARE_REVISIONS];
    if (has_weights(spent, weights))
        return;
    if (count == spent->weights_room) {
        spent->weights_room = count ? 2 * count : 64;
        spent->weights = xrealloc(spent->weights, spent->weights_room * sizeof(*spent->weights));
    }
    spent->weights[count] = *weights;
    spent->counts[COMPARE_REVISIONS]++;
}

static struct compare_weights weights_of(const struct store_member *member)
{
    return (struct compare_weights){member->incarnation, member->policy_revision};
}

static int64_t tokens_of(const struct whole_group *group)
{
    int64_t tokens = 0;
    for (size_t i = 0; i < group->count; i++)
        tokens += group->members[i].completion_tokens;
    return tokens;
}

static void spend(struct compare_spent *spent, const struct whole_group *group)
{
    spent->counts[COMPARE_TOKENS] += tokens_of(group);
    spent->counts[COMPARE_ROLLOUTS] += (int64_t)group->count;
    for (size_t i = 0; i < group->count; i++) {
        struct compare_weights weights = weights_of(&group->members[i]);
        add_weights(spent, &weights);
    }
}

/* Weights that nothing was spent on yet: members of one group may have several. */
static int64_t new_weights(const struct compare_spent *spent, const struct whole_group *group)
{
    int64_t count = 0;
    for (size_t i = 0; i < group->count; i++) {
        struct compare_weights weights = weights_of(&group->members[i]);
        size_t same = 0;
        while (same < i && (group->members[same].incarnation != weights.incarnation ||
                            group->members[same].policy_revision != weights.revision))
            same++;
        count += same == i && !has_weights(spent, &weights);
    }
    return count;
}

static bool fits(const struct compare_spent *spent, const struct whole_group *group, enum compare_budget budget,
                 int64_t value)
{
    switch (budget) {
    case COMPARE_TOKENS:
        return spent->counts[budget] + tokens_of(group) <= value;
    case COMPARE_ROLLOUTS:
        return spent->counts[budget] + (int64_t)group->count <= value;
    case COMPARE_REVISIONS:
        break;
    }
    return spent->counts[COMPARE_REVISIONS] + new_weights(spent, group) <= value;
}

/* Whether no later incarnation spent anything on the member's revision. */
static bool survives(const struct compare_spent *spent, const struct store_member *member)
{
    for (int64_t i = spent->counts[COMPARE_REVISIONS]; i-- > 0;)
        if (spent->weights[i].revision == member->policy_revision &&
            spent->weights[i].incarnation > member->incarnation)
            return false;
    return true;
}

static bool is_rewound(const struct compare_spent *spent)
{
    for (int64_t i = 1; i < spent->counts[COMPARE_REVISIONS]; i++)
        if (spent->weights[i].incarnation != spent->weights[0].incarnation)
            return true;
    return false;
}

/* ---- the numbers of a group -------------------------------------------------------------------------------- */

static void add_score(struct cells *cells, struct text value, const char *verifier, struct cell_rollout *rollout)
{
    const struct cell_key key = {
        .count = COMPARE_KEY,
        .parts = {[COMPARE_VALUE] = cell_text(value), [COMPARE_VERIFIER] = cell_text(text_of(verifier))}};
    cells_add(cells, cells_find(cells, &key), rollout);
}

/* value: TEXT_NONE: that of no tag. */
static void add_member(struct cells *cells, struct text value, const struct whole_group *group,
                       const struct store_member *member)
{
    static const enum cell_state states[] = {[STORE_ROLLOUT_SCORED] = CELL_SCORED,
                                             [STORE_ROLLOUT_FAILED] = CELL_FAILED,
                                             [STORE_ROLLOUT_CANCELLED] = CELL_CANCELLED};
    json_auto_t *heldout = load(member->heldout);
    struct cell_rollout rollout;
    const char *verifier;
    json_t *entry;
    cell_rollout_init(&rollout);
    rollout.task = group->group->task;
    rollout.group = text_of(group->group->id);
    rollout.state = states[member->state];
    rollout.reward = member->reward;
    rollout.tokens = member->completion_tokens;
    add_score(cells, value, NULL, &rollout);
    json_object_foreach (heldout, verifier, entry) {
        json_t *score = json_object_get(entry, "score");
        rollout.score = json_is_number(score) ? json_number_value(score) : NAN;
        add_score(cells, value, verifier, &rollout);
    }
}

/* ---- batches ----------------------------------------------------------------------------------------------- */

struct walk {
    struct comparison *comparison;
    struct compare_side *side;
    enum walk_purpose {
        WALK_MEASURES, /* the whole run */
        WALK_CUTS,     /* costs within the budget */
        WALK_TAKES     /* numbers of the groups within it */
    } purpose;
    const struct compare_spent *line; /* says which members survive; NULL: all */
    bool ended;                       /* the budget is spent */
    char *last;                       /* texts of the batch before, whose settings are known */
};

static void take_members(struct walk *walk, const struct whole_group *group, struct text value)
{
    for (size_t i = 0; i < group->count; i++)
        if (!walk->line || survives(walk->line, &group->members[i]))
            add_member(walk->side->cells, value, group, &group->members[i]);
}

static void take_group(struct walk *walk, const struct whole_group *group)
{
    struct text split = walk->comparison->query->split;
    _cleanup_buffer_ struct buffer value = {0};
    walk->side->groups++;
    take_members(walk, group, TEXT_NONE);
    if (!split.data)
        return;
    buffer_init(&value, STORE_TAG_VALUE_BYTES + 1);
    buffer_append_byte(&value, '=');
    take_members(walk, group,
                 store_tag_find(group->group->tags, split, &value) ? buffer_text(&value) : TEXT_LITERAL(""));
}

/* False: the group does not fit any more. */
static bool visit_group(struct walk *walk, const struct whole_group *group)
{
    const struct compare_query *query = walk->comparison->query;
    struct compare_side *side = walk->side;
    if (walk->purpose == WALK_MEASURES) {
        spend(&side->total, group);
        return true;
    }
    if (!fits(&side->within, group, query->budget, walk->comparison->value))
        return false;
    spend(&side->within, group);
    if (walk->purpose == WALK_TAKES && store_tags_are(group->group->tags, query->tags, query->tag_count))
        take_group(walk, group);
    return true;
}

/* Members are in the order of their groups; a group that is not closed counts for nothing. */
static void visit_groups(struct walk *walk, const struct store_groups *groups, const struct store_members *members)
{
    size_t begin = 0;
    bool any = false;
    for (size_t g = 0; g < groups->count && !walk->ended; g++) {
        size_t end = begin;
        while (end < members->count && members->members[end].group_index == groups->groups[g].index)
            end++;
        struct whole_group group = {&groups->groups[g], members->members + begin, end - begin};
        begin = end;
        if (group.count == 0 || groups->groups[g].state != STORE_GROUP_COMPLETE)
            continue;
        walk->ended = !visit_group(walk, &group);
        any |= !walk->ended;
    }
    walk->side->batches += walk->purpose == WALK_TAKES && any;
}

static int visit_members(struct walk *walk, const struct store_batch_settings *batch)
{
    _cleanup_(store_groups_finish) struct store_groups groups = {0};
    _cleanup_(store_members_finish) struct store_members members = {0};
    struct store_reader *reader = walk->comparison->call->reader;
    if (store_read_groups(reader, text_of(batch->id), 0, 100000, 0, &groups) != STORE_OK ||
        store_read_batch_members(reader, text_of(batch->id), &members) != STORE_OK)
        return call_refuse_unreadable(walk->comparison->call);
    visit_groups(walk, &groups, &members);
    return 0;
}

/* Null stands for a task of no set, so that it is a value like any other. */
static void note_data(struct walk *walk, const struct store_batch_settings *batch)
{
    static const char *const keys[] = {"set", "sha256", "split"};
    for (size_t i = 0; i < batch->source_count; i++) {
        json_auto_t *tree = settings_tree_of_data(&batch->sources[i]);
        json_t *data = json_object_get(tree, "data");
        for (size_t k = 0; k < ARRAY_LENGTH(keys); k++)
            if (!json_object_get(data, keys[k]))
                json_object_set_new(data, keys[k], json_null());
        compare_add_settings(walk->side, tree);
    }
}

static void note_settings(struct walk *walk, const struct store_batch_settings *batch)
{
    char *texts = xasprintf("%.*s/%.*s/%.*s", (int)batch->objective.length_bytes, batch->objective.data,
                            (int)batch->sampling.length_bytes, batch->sampling.data, (int)batch->verifiers.length_bytes,
                            batch->verifiers.data);
    bool known = walk->last && strcmp(texts, walk->last) == 0;
    free(walk->last);
    walk->last = texts;
    if (!known) {
        json_auto_t *tree = settings_tree_of_record(batch, NULL);
        compare_add_settings(walk->side, tree);
    }
    note_data(walk, batch);
    for (size_t i = 0; i < batch->override_count; i++) {
        json_auto_t *tree = settings_tree_of_record(batch, &batch->overrides[i]);
        compare_add_settings(walk->side, tree);
    }
}

static int visit_page(struct walk *walk, const struct store_settings_page *page)
{
    for (size_t i = 0; i < page->count && !walk->ended; i++) {
        const struct store_batch_settings *batch = &page->batches[i];
        if (batch->purpose != STORE_TRAIN)
            continue;
        if (atomic_load_explicit(&walk->comparison->call->abandoned, memory_order_relaxed))
            return call_refuse_unreadable(walk->comparison->call);
        if (walk->purpose == WALK_MEASURES)
            note_settings(walk, batch);
        if (visit_members(walk, batch) < 0)
            return -1;
    }
    return 0;
}

static int walk_batches(struct walk *walk)
{
    int64_t after = 0;
    for (bool more = true; more && !walk->ended;) {
        _cleanup_(store_settings_page_finish) struct store_settings_page page = {0};
        if (store_list_settings(walk->comparison->call->reader, walk->side->run, after, PAGE_BATCHES, &page) !=
            STORE_OK)
            return call_refuse_unreadable(walk->comparison->call);
        if (visit_page(walk, &page) < 0)
            return -1;
        more = page.count == PAGE_BATCHES;
        after = page.count ? page.batches[page.count - 1].seq : after;
    }
    return 0;
}

static int add_manifest(struct comparison *comparison, struct compare_side *side, const char *parameter)
{
    _cleanup_(store_manifest_finish) struct store_manifest manifest = {0};
    enum store_status status = store_read_manifest(comparison->call->reader, side->run, &manifest);
    if (status == STORE_NOT_FOUND)
        return call_refuse(comparison->call, ERR_NOT_FOUND, parameter, "there is no run of this name");
    if (status != STORE_OK)
        return call_refuse_unreadable(comparison->call);
    json_auto_t *frozen = load(manifest.frozen);
    json_auto_t *declared = json_object();
    static const char *const names[] = {"data", "evaluation"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (json_object_get(frozen, names[i]))
            json_object_set(declared, names[i], json_object_get(frozen, names[i]));
    compare_add_settings(side, declared);
    return 0;
}

int compare_measure(struct comparison *comparison, struct compare_side *side, const char *parameter)
{
    struct walk walk = {.comparison = comparison, .side = side};
    if (add_manifest(comparison, side, parameter) < 0)
        return -1;
    int result = walk_batches(&walk);
    free(walk.last);
    return result;
}

/* Revisions that a rewind left behind count as spent; the surviving line is that of the groups within the budget. */
int compare_take(struct comparison *comparison, struct compare_side *side)
{
    struct walk cut = {.comparison = comparison, .side = side, .purpose = WALK_CUTS};
    struct walk take = {.comparison = comparison, .side = side, .purpose = WALK_TAKES};
    struct compare_spent line = {0};
    if (is_rewound(&side->total)) {
        if (walk_batches(&cut) < 0)
            return -1;
        line = side->within;
        side->within = (struct compare_spent){0};
        take.line = &line;
    }
    int result = walk_batches(&take);
    free(line.weights);
    return result;
}
