/* Statistics of each verifier over a batch, from the verdicts on record. */
#include "server/base/sum.h"
#include "server/batches/closing_private.h"

#include <jansson.h>
#include <math.h>

#define REASONS_MAX 64 /* of one verifier; others are counted together */
#define OTHER_REASONS "other"

struct reason {
    char *code;
    size_t count;
};

struct verifier_tally {
    char *id;
    struct precise_sum sum;
    double running_mean; /* of Welford's sum of squares: equal scores give exactly 0 */
    double squares;
    size_t scored;
    size_t unscored;
    struct reason reasons[REASONS_MAX];
    size_t reason_count;
};

struct verdict_tally {
    struct verifier_tally *verifiers; /* in the order of their first verdict */
    size_t count;
};

struct verdict_tally *verdict_tally_create(void)
{
    return xcalloc(1, sizeof(struct verdict_tally));
}

void verdict_tally_destroy(struct verdict_tally *tally)
{
    if (!tally)
        return;
    for (size_t i = 0; i < tally->count; i++) {
        free(tally->verifiers[i].id);
        for (size_t k = 0; k < tally->verifiers[i].reason_count; k++)
            free(tally->verifiers[i].reasons[k].code);
    }
    free(tally->verifiers);
    free(tally);
}

/* Verdicts of one list come in its order, so that it mostly stands where it did the last time: at `place`. */
static struct verifier_tally *find_verifier(struct verdict_tally *tally, const char *id, size_t place)
{
    if (place < tally->count && strcmp(tally->verifiers[place].id, id) == 0)
        return &tally->verifiers[place];
    for (size_t i = 0; i < tally->count; i++)
        if (strcmp(tally->verifiers[i].id, id) == 0)
            return &tally->verifiers[i];
    tally->verifiers = xrealloc(tally->verifiers, (tally->count + 1) * sizeof(tally->verifiers[0]));
    tally->verifiers[tally->count] = (struct verifier_tally){.id = xstrdup(id)};
    return &tally->verifiers[tally->count++];
}

/* The last place is for all reasons that found none. */
static void count_reason(struct verifier_tally *verifier, const char *code)
{
    size_t i = 0;

    while (i < verifier->reason_count && strcmp(verifier->reasons[i].code, code) != 0)
        i++;
    if (i >= REASONS_MAX - 1) {
        i = REASONS_MAX - 1;
        code = OTHER_REASONS;
    }
    if (i == verifier->reason_count)
        verifier->reasons[verifier->reason_count++] = (struct reason){xstrdup(code), 0};
    verifier->reasons[i].count++;
}

static void count_score(struct verifier_tally *verifier, const json_t *score)
{
    double value = json_number_value(score);
    double step = value - verifier->running_mean;

    if (!json_is_number(score)) {
        verifier->unscored++;
        return;
    }
    verifier->scored++;
    precise_sum_add(&verifier->sum, value);
    verifier->running_mean += step / (double)verifier->scored;
    verifier->squares += step * (value - verifier->running_mean);
}

static void add_rollout(struct verdict_tally *tally, struct text json)
{
    json_auto_t *verdicts = json.data ? json_loadb(json.data, json.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
    size_t i;
    const json_t *verdict;

    json_array_foreach (verdicts, i, verdict) {
        const char *id = json_string_value(json_object_get(verdict, "id"));
        const char *reason = json_string_value(json_object_get(verdict, "reason"));
        if (!id)
            continue;
        struct verifier_tally *verifier = find_verifier(tally, id, i);
        count_score(verifier, json_object_get(verdict, "score"));
        if (reason)
            count_reason(verifier, reason);
    }
}

void verdict_tally_add(struct verdict_tally *tally, const struct store_rollout *rollouts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_rollout(tally, rollouts[i].verdicts);
}

static void write_verifier(const struct verifier_tally *verifier, struct json_write *json)
{
    double count = (double)verifier->scored;

    json_object_begin(json);
    json_put_double(json, "mean", verifier->scored ? precise_sum_mean(&verifier->sum, count) : NAN);
    json_put_double(json, "std", verifier->scored > 1 ? sqrt(verifier->squares / (count - 1)) : NAN);
    json_put_int(json, "scored", (int64_t)verifier->scored);
    json_put_int(json, "unscored", (int64_t)verifier->unscored);
    json_key(json, "reasons");
    json_object_begin(json);
    for (size_t i = 0; i < verifier->reason_count; i++)
        json_put_int(json, verifier->reasons[i].code, (int64_t)verifier->reasons[i].count);
    json_object_end(json);
    json_object_end(json);
}

void verdict_tally_write(const struct verdict_tally *tally, struct json_write *json)
{
    json_key(json, "verifiers");
    json_object_begin(json);
    for (size_t i = 0; i < tally->count; i++) {
        json_key(json, tally->verifiers[i].id);
        write_verifier(&tally->verifiers[i], json);
    }
    json_object_end(json);
}
