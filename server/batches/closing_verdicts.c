/* Statistics of each verifier over a batch, from the verdicts on record. */
#include "server/base/json_scan.h"
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
static struct verifier_tally *find_verifier(struct verdict_tally *tally, struct text id, size_t place)
{
    if (place < tally->count && text_equals(id, tally->verifiers[place].id))
        return &tally->verifiers[place];
    for (size_t i = 0; i < tally->count; i++)
        if (text_equals(id, tally->verifiers[i].id))
            return &tally->verifiers[i];
    tally->verifiers = xrealloc(tally->verifiers, (tally->count + 1) * sizeof(tally->verifiers[0]));
    tally->verifiers[tally->count] = (struct verifier_tally){.id = xstrndup(id.data, id.length_bytes)};
    return &tally->verifiers[tally->count++];
}

/* The last place is for all reasons that found none. */
static void count_reason(struct verifier_tally *verifier, struct text code)
{
    size_t i = 0;

    while (i < verifier->reason_count && !text_equals(code, verifier->reasons[i].code))
        i++;
    if (i >= REASONS_MAX - 1) {
        i = REASONS_MAX - 1;
        code = TEXT_LITERAL(OTHER_REASONS);
    }
    if (i == verifier->reason_count)
        verifier->reasons[verifier->reason_count++] = (struct reason){xstrndup(code.data, code.length_bytes), 0};
    verifier->reasons[i].count++;
}

/* score: NAN: none. */
static void count_score(struct verifier_tally *verifier, double score)
{
    double step = score - verifier->running_mean;

    if (isnan(score)) {
        verifier->unscored++;
        return;
    }
    verifier->scored++;
    precise_sum_add(&verifier->sum, score);
    verifier->running_mean += step / (double)verifier->scored;
    verifier->squares += step * (score - verifier->running_mean);
}

/* --- one rollout --- */

struct said {
    struct text id;
    struct text reason; /* TEXT_NONE: none */
    double score;       /* NAN: none */
};

static void count_said(struct verdict_tally *tally, const struct said *said, size_t place)
{
    struct verifier_tally *verifier = find_verifier(tally, said->id, place);

    count_score(verifier, said->score);
    if (said->reason.data)
        count_reason(verifier, said->reason);
}

/* The text of a plain string: false for an escape in it, and for anything else. */
static bool scan_plain(struct json_scan *scan, struct text *ret_text)
{
    struct text raw = json_scan_raw(scan);

    if (!raw.data || raw.length_bytes < 2 || raw.data[0] != '"' || memchr(raw.data, '\\', raw.length_bytes))
        return false;
    *ret_text = (struct text){raw.data + 1, raw.length_bytes - 2};
    return true;
}

static bool scan_verdict(struct json_scan *scan, struct said *ret_said)
{
    struct text key;
    bool plain = json_scan_object(scan);

    *ret_said = (struct said){.score = NAN};
    while (plain && json_scan_member(scan, &key)) {
        if (text_equals(key, "id"))
            plain = scan_plain(scan, &ret_said->id);
        else if (text_equals(key, "reason"))
            plain = scan_plain(scan, &ret_said->reason);
        else if (text_equals(key, "score") && !json_scan_null(scan))
            plain = json_scan_number(scan, &ret_said->score);
        else if (!text_equals(key, "score"))
            json_scan_skip(scan);
    }
    return plain && ret_said->id.data;
}

/* False: something in it is not plain, and nothing is counted. Five times as fast as with all values. */
static bool add_plain(struct verdict_tally *tally, struct text json)
{
    _cleanup_free_ struct said *said = NULL;
    struct json_scan scan;
    size_t count = 0;
    bool plain;

    json_scan_init(&scan, json);
    plain = json_scan_array(&scan);
    while (plain && json_scan_element(&scan)) {
        said = xrealloc(said, (count + 1) * sizeof(said[0]));
        plain = scan_verdict(&scan, &said[count++]);
    }
    if (!plain || !json_scan_end(&scan))
        return false;
    for (size_t i = 0; i < count; i++)
        count_said(tally, &said[i], i);
    return true;
}

static struct text text_in(const json_t *verdict, const char *key)
{
    const json_t *value = json_object_get(verdict, key);

    return json_is_string(value) ? text_of(json_string_value(value)) : TEXT_NONE;
}

static void add_rollout(struct verdict_tally *tally, struct text json)
{
    size_t i;
    const json_t *verdict;

    if (!json.data || add_plain(tally, json))
        return;
    json_auto_t *verdicts = json_loadb(json.data, json.length_bytes, JSON_ALLOW_NUL, NULL);
    json_array_foreach (verdicts, i, verdict) {
        const json_t *score = json_object_get(verdict, "score");
        struct said said = {text_in(verdict, "id"), text_in(verdict, "reason"),
                            json_is_number(score) ? json_number_value(score) : NAN};
        if (said.id.data)
            count_said(tally, &said, i);
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
