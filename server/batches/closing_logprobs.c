/* Notes about rollouts whose log-probabilities make importance ratios wrong, with the reason. */
#include "server/batches/closing_private.h"

#include "client/adapters/logprobs.h"
#include "server/spec/batch.h"

#include <stdio.h>

#define NOTES_MAX 32 /* more than all rules together */

struct counts {
    const char *notes[NOTES_MAX];
    size_t rollouts[NOTES_MAX];
    size_t count;
};

/* The same options, read once: most groups have the batch's. */
struct known_changes {
    struct sampling sampling;
    unsigned changes;
    bool is_known;
};

static unsigned changes_of(struct known_changes *known, const struct sampling *sampling)
{
    const struct sampling *last = &known->sampling;

    if (known->is_known && last->engine_options.data == sampling->engine_options.data &&
        last->temperature == sampling->temperature && last->top_p == sampling->top_p &&
        last->top_k == sampling->top_k && last->min_p == sampling->min_p)
        return known->changes;
    *known = (struct known_changes){.sampling = *sampling, .changes = sampling_changes(sampling), .is_known = true};
    return known->changes;
}

static void count_note(struct counts *counts, const char *note)
{
    size_t i = 0;

    while (i < counts->count && counts->notes[i] != note)
        i++;
    if (i == NOTES_MAX)
        return;
    if (i == counts->count)
        counts->notes[counts->count++] = note;
    counts->rollouts[i]++;
}

static enum logprobs_mode mode_of(const struct store_member *member)
{
    static const enum logprobs_mode modes[] = {[STORE_LOGPROBS_UNKNOWN] = LOGPROBS_UNKNOWN,
                                               [STORE_LOGPROBS_RAW] = LOGPROBS_RAW,
                                               [STORE_LOGPROBS_PROCESSED] = LOGPROBS_PROCESSED};
    return modes[member->logprobs_mode];
}

void close_note_logprobs(struct json_write *json, const struct batch_spec *spec, const struct store_members *members)
{
    struct counts counts = {.count = 0};
    struct known_changes known = {.is_known = false};
    char line[320];

    if (spec->origin != BATCH_SAMPLED)
        return; /* sampled elsewhere, by unknown settings */
    for (size_t i = 0; i < members->count; i++) {
        const struct store_member *member = &members->members[i];
        const char *notes[LOGPROBS_NOTES_MAX];
        size_t count = 0;

        if (member->trainable)
            count =
                logprobs_notes(changes_of(&known, &spec->groups[member->group_index].sampling), mode_of(member), notes);
        for (size_t k = 0; k < count; k++)
            count_note(&counts, notes[k]);
    }
    for (size_t i = 0; i < counts.count; i++) {
        snprintf(line, sizeof(line), "%zu rollouts %s", counts.rollouts[i], counts.notes[i]);
        json_write_string(json, line);
    }
}
