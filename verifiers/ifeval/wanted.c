#include "verifiers/ifeval/instruction.h"

#include "server/base/nearest.h"
#include "verifiers/ifeval/language.h"
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/python_literal_private.h"

#include <math.h>

#define WHOLE_MAX 1000000000

/* Where something is wrong. */
struct place {
    size_t index; /* of the instruction */
    const struct instruction *instruction;
    const struct kwarg_rule *rule;
    struct verifier_problem *problem;
};

static int refuse(const struct place *place, const char *what)
{
    return verifier_refuse(place->problem, "", "kwargs[%zu] of %s: %s %s", place->index, place->instruction->id,
                           place->rule->name, what);
}

/* --- values --- */

static bool is_whole(const json_t *value, double minimum)
{
    double number = json_number_value(value);

    return json_is_number(value) && trunc(number) == number && number >= minimum && number <= WHOLE_MAX;
}

static int read_whole(const json_t *value, double minimum, const struct place *place, struct kwarg *ret_kwarg)
{
    if (!is_whole(value, minimum))
        return refuse(place, minimum > 0 ? "must be a whole number from 1" : "must be a whole number from 0");
    ret_kwarg->whole = (int64_t)json_number_value(value);
    return 0;
}

static int read_count(const json_t *value, const struct place *place, struct kwarg *ret_kwarg)
{
    return read_whole(value, 0, place, ret_kwarg);
}

static int read_place(const json_t *value, const struct place *place, struct kwarg *ret_kwarg)
{
    return read_whole(value, 1, place, ret_kwarg);
}

static int read_percent(const json_t *value, const struct place *place, struct kwarg *ret_kwarg)
{
    ret_kwarg->number = json_number_value(value);
    if (!json_is_number(value) || !(ret_kwarg->number >= 0 && ret_kwarg->number <= 100))
        return refuse(place, "must be a number from 0 to 100");
    return 0;
}

static int read_text(const json_t *value, const struct place *place, struct kwarg *ret_kwarg)
{
    ret_kwarg->text = text_stripped(json_text_of(value));
    return ret_kwarg->text.length_bytes ? 0 : refuse(place, "must be a text that is not blank");
}

static int read_raw(const json_t *value, const struct place *place, struct kwarg *ret_kwarg)
{
    ret_kwarg->text = json_text_of(value);
    return text_is_blank(ret_kwarg->text) ? refuse(place, "must be a text that is not blank") : 0;
}

static int read_word(const json_t *value, const struct place *place, struct kwarg *ret_kwarg)
{
    if (json_array_size(value) == 1)
        value = json_array_get(value, 0);
    return read_text(value, place, ret_kwarg);
}

static int read_words(const json_t *value, const struct place *place, struct kwarg *ret_kwarg)
{
    size_t i;
    const json_t *word;

    ret_kwarg->list = value;
    if (json_array_size(value) == 0)
        return refuse(place, "must be a list of texts");
    json_array_foreach (value, i, word)
        if (json_string_length(word) == 0)
            return refuse(place, "must be a list of texts, none of them empty");
    return 0;
}

static int read_letter(const json_t *value, const struct place *place, struct kwarg *ret_kwarg)
{
    ret_kwarg->text = json_text_of(value);
    return characters_count(ret_kwarg->text) == 1 ? 0 : refuse(place, "must be one character");
}

static int read_relation(const json_t *value, const struct place *place, struct kwarg *ret_kwarg)
{
    struct text text = json_text_of(value);

    if (text_equals(text, "less than"))
        ret_kwarg->whole = RELATION_LESS_THAN;
    else if (text_equals(text, "at least"))
        ret_kwarg->whole = RELATION_AT_LEAST;
    else
        return refuse(place, "must be \"less than\" or \"at least\"");
    return 0;
}

static int read_language(const json_t *value, const struct place *place, struct kwarg *ret_kwarg)
{
    ret_kwarg->text = json_text_of(value);
    return language_is_known(ret_kwarg->text) ? 0 : refuse(place, "is no language code that is known");
}

static int read_ignored(const json_t *value, const struct place *place, struct kwarg *ret_kwarg)
{
    (void)place;
    ret_kwarg->text = json_text_of(value);
    return 0;
}

static int (*const readers[KWARG_KINDS])(const json_t *value, const struct place *place, struct kwarg *ret_kwarg) = {
    [KWARG_NONE] = read_ignored,      [KWARG_COUNT] = read_count,   [KWARG_PLACE] = read_place,
    [KWARG_PERCENT] = read_percent,   [KWARG_TEXT] = read_text,     [KWARG_WORD] = read_word,
    [KWARG_WORDS] = read_words,       [KWARG_LETTER] = read_letter, [KWARG_RELATION] = read_relation,
    [KWARG_LANGUAGE] = read_language, [KWARG_PROMPT] = read_raw,    [KWARG_RAW] = read_raw,
    [KWARG_IGNORED] = read_ignored,
};

/* --- instructions --- */

struct prompt {
    struct text text;
    bool any; /* there will be one */
};

static int read_absent(const struct place *place, const struct prompt *prompt, struct kwarg *ret_kwarg)
{
    if (place->rule->kind == KWARG_RELATION)
        ret_kwarg->whole = RELATION_EXACTLY;
    if (place->rule->optional)
        return 0;
    if (place->rule->kind != KWARG_PROMPT)
        return refuse(place, "is missing");
    ret_kwarg->text = prompt->text;
    return prompt->any || !text_is_blank(prompt->text) ? 0 : refuse(place, "is missing, and there is no prompt");
}

static const struct kwarg_rule *find_rule(const struct instruction *instruction, const char *name)
{
    for (const struct kwarg_rule *rule = instruction->kwargs; rule->name; rule++)
        if (strcmp(rule->name, name) == 0)
            return rule;
    return NULL;
}

static int check_names(const json_t *given, const struct place *place)
{
    const char *name;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)given, name, value) {
        struct kwarg_rule unknown = {name};
        struct place there = {place->index, place->instruction, &unknown, place->problem};
        if (!json_is_null(value) && !find_rule(place->instruction, name))
            return refuse(&there, "is no kwarg of it");
    }
    return 0;
}

/* Checks of several values together. */
static int check_together(const struct wanted *wanted, struct place *place)
{
    const struct kwarg_rule *rule = wanted->instruction->kwargs;

    for (size_t i = 0; rule[i].name && rule[i + 1].name; i++) {
        bool pair =
            (strcmp(rule[i].name, "num_paragraphs") == 0 && wanted->kwarg[i + 1].whole > wanted->kwarg[i].whole) ||
            (strcmp(rule[i].name, "min_words") == 0 && wanted->kwarg[i + 1].whole < wanted->kwarg[i].whole) ||
            (strcmp(rule[i].name, "n_start") == 0 && wanted->kwarg[i + 1].whole < wanted->kwarg[i].whole);
        place->rule = &rule[i + 1];
        if (pair)
            return refuse(place, "cannot be met beside the other");
    }
    return 0;
}

static int read_instruction(const json_t *given, const struct prompt *prompt, struct place *place,
                            struct wanted *ret_wanted)
{
    if (given && !json_is_object(given) && !json_is_null(given))
        return verifier_refuse(place->problem, "", "kwargs[%zu] must be an object or null", place->index);
    if (check_names(given, place) < 0)
        return -1;
    *ret_wanted = (struct wanted){.instruction = place->instruction};
    for (size_t i = 0; place->instruction->kwargs[i].name; i++) {
        const json_t *value = json_object_get(given, place->instruction->kwargs[i].name);
        bool absent = !value || json_is_null(value);
        place->rule = &place->instruction->kwargs[i];
        if (absent ? read_absent(place, prompt, &ret_wanted->kwarg[i]) < 0
                   : readers[place->rule->kind](value, place, &ret_wanted->kwarg[i]) < 0)
            return -1;
    }
    return check_together(ret_wanted, place);
}

static const struct instruction *find_instruction(struct text id)
{
    for (size_t i = 0; i < instruction_count; i++)
        if (text_equals(id, instructions[i].id))
            return &instructions[i];
    return NULL;
}

static int refuse_id(const json_t *id, size_t index, struct verifier_problem *ret_problem)
{
    const char *near;

    if (!json_is_string(id))
        return verifier_refuse(ret_problem, "", "instruction_id_list[%zu] must be a text", index);
    near = nearest_name(json_string_value(id), instructions, sizeof instructions[0], instruction_count);
    return verifier_refuse(ret_problem, "", "instruction_id_list[%zu] is no instruction: %.60s%s%s", index,
                           json_string_value(id), near ? "; did you mean " : "", near ? near : "");
}

/* --- references --- */

static int read_list(const json_t *ids, const json_t *kwargs, const struct prompt *prompt, struct wanted_list *ret_list,
                     struct verifier_problem *ret_problem)
{
    size_t i;
    const json_t *id;

    json_array_foreach (ids, i, id) {
        struct place place = {i, find_instruction(json_text_of(id)), NULL, ret_problem};
        if (!place.instruction)
            return refuse_id(id, i, ret_problem);
        if (read_instruction(json_array_get(kwargs, i), prompt, &place, &ret_list->item[i]) < 0)
            return -1;
        ret_list->count++;
    }
    return 0;
}

/* JSON, or the same as Python writes it. NULL: neither. */
static json_t *load_text(struct text text)
{
    json_t *loaded = json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL);
    _cleanup_buffer_ struct buffer out;

    buffer_init(&out, 6 * text.length_bytes + 16);
    if (!loaded && python_append_json(text, &out))
        loaded = json_loadb(buffer_text(&out).data, out.length_bytes, JSON_ALLOW_NUL, NULL);
    return loaded;
}

/* The object in a list of one, in a text. */
static const json_t *unwrap(const json_t *reference, struct wanted_list *list)
{
    if (json_is_string(reference))
        reference = list->owned = load_text(json_text_of(reference));
    if (json_array_size(reference) == 1)
        reference = json_array_get(reference, 0);
    return reference;
}

static int check_lists(const json_t *ids, const json_t *kwargs, struct verifier_problem *ret_problem)
{
    size_t count = json_array_size(ids);

    if (count == 0 || count > INSTRUCTIONS_MAX)
        return verifier_refuse(ret_problem, "", "instruction_id_list must be a list of 1 to %d texts",
                               INSTRUCTIONS_MAX);
    if (kwargs && !json_is_null(kwargs) && json_array_size(kwargs) != count)
        return verifier_refuse(ret_problem, "", "kwargs must be a list of as many objects as there are instructions");
    return 0;
}

int wanted_read(const json_t *reference, struct text prompt, bool any_prompt, struct wanted_list *ret_list,
                struct verifier_problem *ret_problem)
{
    struct prompt from_prompt = {prompt, any_prompt};
    const json_t *object;
    const json_t *ids;
    const json_t *kwargs;

    ret_list->count = 0;
    ret_list->owned = NULL;
    object = unwrap(reference, ret_list);
    if (!json_is_object(object))
        return verifier_refuse(ret_problem, "", "expected an object with instruction_id_list and kwargs");
    ids = json_object_get(object, "instruction_id_list");
    if (!ids)
        ids = json_object_get(object, "instruction_id");
    kwargs = json_object_get(object, "kwargs");
    if (check_lists(ids, kwargs, ret_problem) < 0)
        return -1;
    return read_list(ids, kwargs, &from_prompt, ret_list, ret_problem);
}

void wanted_finish(struct wanted_list *list)
{
    json_decref(list->owned);
    list->owned = NULL;
}
