#include "verifiers/judge/read_private.h"

#include <math.h>

static bool is_same(const struct judge_rule *rule, const struct judge_reading *one, const struct judge_reading *other)
{
    return rule->label_count > 0 ? one->label == other->label : one->number == other->number;
}

void judge_search_add(struct judge_search *search, const struct judge_reading *reading)
{
    bool keeps = search->found && (search->rule->position == JUDGE_FIRST || search->rule->position == JUDGE_ONLY);

    if (search->found && search->rule->position == JUDGE_ONLY)
        search->fine = search->fine && reading && is_same(search->rule, &search->reading, reading);
    if (keeps)
        return;
    search->found = true;
    search->fine = reading != NULL;
    if (reading)
        search->reading = *reading;
}

void judge_search_add_label(struct judge_search *search, size_t label)
{
    judge_search_add(search, &(struct judge_reading){label, 0, search->rule->labels[label].score});
}

void judge_search_add_number(struct judge_search *search, double number)
{
    double minimum = search->rule->minimum;
    double maximum = search->rule->maximum;
    struct judge_reading reading = {0, number, (number - minimum) / (maximum - minimum)};

    judge_search_add(search, number >= minimum && number <= maximum ? &reading : NULL);
}

bool judge_read(const struct judge_rule *rule, struct text text, struct judge_reading *ret_reading)
{
    static void (*const searches[JUDGE_KINDS])(struct judge_search * search, struct text text) = {
        [JUDGE_YES_NO] = judge_search_words,       [JUDGE_LETTER] = judge_search_words,
        [JUDGE_BRACKETS] = judge_search_brackets,  [JUDGE_RATING] = judge_search_ratings,
        [JUDGE_JSON_SCORE] = judge_search_objects,
    };
    struct judge_search search = {.rule = rule};

    searches[rule->kind](&search, text);
    *ret_reading = search.reading;
    return search.found && search.fine;
}
