/* The count of each pair of reasons and scores. */
#include "server/reports/disagreements_private.h"

#include "server/base/cleanup.h"
#include "server/base/sum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BYTES (2 * VERIFY_CODE_BYTES + 80)

bool opinions_agree(const struct opinions *opinions)
{
    double a = opinions->a.score;
    double b = opinions->b.score;

    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return values_are_equal(fmin(a, b), fmax(a, b));
}

static struct opinion_pair *find(const struct opinion_pairs *pairs, const char *key)
{
    const json_t *place = json_object_get(pairs->places, key);

    return place && pairs->rows ? &pairs->rows[json_integer_value(place)] : NULL;
}

static struct opinion_pair *add_pair(struct opinion_pairs *pairs, const char *key, const struct opinions *opinions)
{
    if (pairs->count == pairs->room) {
        size_t room = pairs->room ? pairs->room * 2 : 64;
        struct opinion_pair *larger = reallocarray(pairs->rows, room, sizeof *larger);
        if (!larger)
            return NULL;
        pairs->rows = larger;
        pairs->room = room;
    }
    if (json_object_set_new(pairs->places, key, json_integer((json_int_t)pairs->count)) < 0)
        return NULL;
    pairs->rows[pairs->count] = (struct opinion_pair){.opinions = *opinions};
    return &pairs->rows[pairs->count++];
}

int opinion_pairs_add(struct opinion_pairs *pairs, const struct opinions *opinions, size_t place)
{
    char key[KEY_BYTES];

    snprintf(key, sizeof key, "%s\n%a\n%s\n%a", opinions->a.reason, opinions->a.score, opinions->b.reason,
             opinions->b.score);
    struct opinion_pair *pair = find(pairs, key);
    if (!pair)
        pair = add_pair(pairs, key, opinions);
    if (!pair)
        return -1;
    if (pair->n < DISAGREEMENTS_EXAMPLES_MAX)
        pair->examples[pair->n] = place;
    pair->n++;
    return 0;
}

/* --- the reply --- */

static int compare_pairs(const void *left, const void *right)
{
    const struct opinion_pair *a = left;
    const struct opinion_pair *b = right;
    bool a_agrees = opinions_agree(&a->opinions);
    bool b_agrees = opinions_agree(&b->opinions);

    if (a_agrees != b_agrees)
        return a_agrees - b_agrees;
    if (a->n != b->n)
        return a->n > b->n ? -1 : 1;
    return (a->examples[0] > b->examples[0]) - (a->examples[0] < b->examples[0]);
}

static void write_opinion(struct json_write *json, const char *name, const struct opinion *opinion)
{
    json_key(json, name);
    json_object_begin(json);
    json_put_string(json, "reason", opinion->reason);
    json_put_double(json, "score", opinion->score);
    json_object_end(json);
}

static void write_pair(struct json_write *json, const struct opinion_pair *pair, const struct picks *picks)
{
    char group_id[ID_BYTES];
    char id[ID_BYTES];

    json_object_begin(json);
    write_opinion(json, "a", &pair->opinions.a);
    write_opinion(json, "b", &pair->opinions.b);
    json_put_int(json, "n", (int64_t)pair->n);
    json_put_bool(json, "agree", opinions_agree(&pair->opinions));
    json_key(json, "rollouts");
    json_array_begin(json);
    for (size_t k = 0; k < pair->n && k < DISAGREEMENTS_EXAMPLES_MAX; k++) {
        const struct pick *pick = &picks->rows[pair->examples[k]];
        id_of_group(pick->batch_id, pick->group_index, group_id);
        id_of_rollout(group_id, pick->sample_index, id);
        json_write_string(json, id);
    }
    json_array_end(json);
    json_object_end(json);
}

void opinion_pairs_write(struct opinion_pairs *pairs, const struct picks *picks, struct json_write *json)
{
    size_t unlisted = 0;

    if (pairs->count > 0)
        qsort(pairs->rows, pairs->count, sizeof *pairs->rows, compare_pairs);
    json_key(json, "items");
    json_array_begin(json);
    for (size_t i = 0; i < pairs->count; i++)
        if (i < DISAGREEMENTS_LISTED_MAX)
            write_pair(json, &pairs->rows[i], picks);
        else
            unlisted += pairs->rows[i].n;
    json_array_end(json);
    json_put_int(json, "unlisted", (int64_t)unlisted);
}

void opinion_pairs_finish(struct opinion_pairs *pairs)
{
    json_decref(pairs->places);
    free(pairs->rows);
    *pairs = (struct opinion_pairs){0};
}
