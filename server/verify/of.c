#include "server/verify/of_private.h"

#include <math.h>
#include <stdio.h>

#include "server/verify/spec.h"

/* --- reading --- */

static int refuse_at(struct call *call, const char *path, size_t index, const char *name, const char *why)
{
    char where[PATH_BYTES];

    path_index(where, "", path, index);
    path_join(where, where, name);
    return call_refuse(call, ERR_VERIFIER_OPTIONS, where, "%s", why);
}

static int refuse(struct call *call, const char *path, size_t index, const char *why)
{
    return refuse_at(call, path, index, "options.of", why);
}

static int find_one(struct call *call, const char *path, struct verifier_list *list, size_t index)
{
    struct verifier_spec *spec = &list->specs[index];
    struct text wanted = spec->verifier->settle ? option_text(spec->options, "of") : TEXT_NONE;
    size_t other = 0;

    if (!wanted.data)
        return 0;
    if (spec->steps)
        return refuse_at(call, path, index, "steps", "a step has no other verifier's score; leave out this or `of`");
    while (other < list->count && !text_equals(wanted, list->specs[other].id))
        other++;
    if (other == list->count)
        return refuse(call, path, index, "no verifier of this list has this id");
    if (other == index)
        return refuse(call, path, index, "is the verifier itself; it must name another one of the list");
    if (list->specs[other].heldout)
        return refuse(call, path, index, "names a held-out verifier, which may not steer the reward");
    spec->of = other + 1;
    return 0;
}

/* How many must be settled before it, it among them; more than there are: names in a ring. */
static size_t depth_of(const struct verifier_list *list, size_t index)
{
    size_t depth = 0;

    for (size_t of = list->specs[index].of; of && depth <= list->count; of = list->specs[of - 1].of)
        depth++;
    return depth;
}

int of_find(struct call *call, const char *path, struct verifier_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (find_one(call, path, list, i) < 0)
            return -1;
    for (size_t i = 0; i < list->count; i++)
        if (depth_of(list, i) > list->count)
            return refuse(call, path, i, "leads back to itself through the `of` of other verifiers");
    return 0;
}

/* --- settling --- */

static void fail(struct verdict_record *record, const char *code, bool retryable, const char *why)
{
    record->kind = VERDICT_UNSCORED;
    record->score = NAN;
    record->retryable = retryable;
    snprintf(record->reason, sizeof record->reason, "%s", code);
    snprintf(record->failure_code, sizeof record->failure_code, "%s", code);
    snprintf(record->failure_message, sizeof record->failure_message, "%s", why);
}

static void settle_one(const struct verifier_spec *spec, const struct verifier_spec *other,
                       const struct verdict_record *of, struct verdict_record *record)
{
    char why[VERDICT_MESSAGE_BYTES];
    struct settled settled;

    if (record->kind == VERDICT_UNSCORED)
        return;
    if (of->kind == VERDICT_UNSCORED) {
        snprintf(why, sizeof why, "the verifier \"%s\" that `of` names has no score: %s", other->id, of->failure_code);
        fail(record, "of_unscored", of->retryable, why);
        return;
    }
    settled = spec->verifier->settle(spec->options, record->score, of->score);
    if (!isfinite(settled.score)) { /* from a worker that is not to be believed */
        fail(record, "verifier_crashed", true, "the score is not finite");
        return;
    }
    record->kind = VERDICT_SCORED;
    record->score = settled.score;
    if (settled.reason)
        snprintf(record->reason, sizeof record->reason, "%s", settled.reason);
}

void of_settle(const struct verifier_list *list, struct verdict_set *set)
{
    bool more = true;

    for (size_t depth = 1; more; depth++) {
        more = false;
        for (size_t i = 0; i < list->count; i++) {
            const struct verifier_spec *spec = &list->specs[i];
            size_t own = spec->of ? depth_of(list, i) : 0;
            if (own == depth)
                settle_one(spec, &list->specs[spec->of - 1], &set->verdicts[spec->of - 1], &set->verdicts[i]);
            more = more || own > depth;
        }
    }
}
