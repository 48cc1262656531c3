/* Rewards that a request brings itself: kept as verdicts of the verifier `given`. */
#include "server/verify/spec.h"

#include <math.h>
#include <stdio.h>

/* In no registry: nothing is judged. */
static const struct verifier given_verifier = {
    .name = "given", .version = "1", .help = "a score that the request brought along"};

bool verifier_list_has(const struct verifier_list *list, struct text id)
{
    for (size_t i = 0; i < list->count; i++)
        if (text_equals(id, list->specs[i].id))
            return true;
    return false;
}

struct verifier_list *verifier_list_with_given(struct verifier_list *base, const struct given_reward *rewards,
                                               size_t count)
{
    uint8_t digest[SHA256_BYTES];
    if (count == 0)
        return verifier_list_ref(base);
    struct verifier_list *list = xcalloc(1, sizeof *list + (base->count + count) * sizeof list->specs[0]);
    list->references = 1;
    list->base = verifier_list_ref(base);
    list->count = base->count + count;
    for (size_t i = 0; i < base->count; i++)
        list->specs[i] = base->specs[i];
    for (size_t i = 0; i < count; i++) {
        struct verifier_spec *spec = &list->specs[base->count + i];
        spec->verifier = &given_verifier;
        spec->version = given_verifier.version;
        spec->id = xstrdup(rewards[i].name);
        spec->weight = rewards[i].weight;
        spec->options_json = xstrdup("{}");
        sha256_of("{}", 2, digest);
        sha256_hex(digest, spec->options_sha256);
    }
    return list;
}

bool verifier_list_gives(const struct verifier_list *list, const struct verifier_list *base,
                         const struct given_reward *rewards, size_t count)
{
    if (count == 0)
        return list == base;
    if (list->base != base || list->count != base->count + count)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct verifier_spec *spec = &list->specs[base->count + i];
        if (strcmp(spec->id, rewards[i].name) != 0 || spec->weight != rewards[i].weight)
            return false;
    }
    return true;
}

static void add_given(const struct given_score *given, struct verdict_record *record)
{
    bool scored = isfinite(given->score) != 0;

    *record = (struct verdict_record){.kind = scored ? VERDICT_SCORED : VERDICT_UNSCORED, .score = given->score};
    snprintf(record->reason, sizeof record->reason, "%s", scored ? "given" : "not_given");
    if (!scored) {
        snprintf(record->failure_code, sizeof record->failure_code, "not_given");
        snprintf(record->failure_message, sizeof record->failure_message, "the request gives null for this reward");
    } else if (given->steps) {
        record->steps = xcalloc(given->step_count + 1, sizeof record->steps[0]);
        record->step_count = given->step_count;
        memcpy(record->steps, given->steps, given->step_count * sizeof record->steps[0]);
    }
}

void verdict_set_add_given(struct verdict_set *set, const struct given_score *given, size_t count)
{
    set->verdicts = xrealloc(set->verdicts, (set->count + count + 1) * sizeof set->verdicts[0]);
    for (size_t i = 0; i < count; i++)
        add_given(&given[i], &set->verdicts[set->count++]);
}
