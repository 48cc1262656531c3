#include "verifiers/registry.h"

#include <math.h>

#include "server/base/json_big.h"

const struct verifier *registry_find(struct text name)
{
    for (size_t i = 0; i < verifier_count; i++)
        if (text_equals(name, verifiers[i]->name))
            return verifiers[i];
    return NULL;
}

void registry_advise(struct text name, char ret_advice[ADVICE_BYTES])
{
    _cleanup_free_ const char **names = xcalloc(verifier_count, sizeof *names);

    for (size_t i = 0; i < verifier_count; i++)
        names[i] = verifiers[i]->name;
    names_advise(name, names, sizeof names[0], verifier_count, ret_advice);
}

static const struct verifier_option *find_option(const struct verifier *verifier, const char *name)
{
    for (size_t i = 0; i < verifier->option_count; i++)
        if (strcmp(verifier->options[i].name, name) == 0)
            return &verifier->options[i];
    return NULL;
}

static bool is_choice(const struct verifier_option *option, struct text text)
{
    for (const char *const *choice = option->choices; *choice; choice++)
        if (text_equals(text, *choice))
            return true;
    return false;
}

static int check_texts(const struct verifier_option *option, const json_t *value, struct verifier_problem *ret_problem)
{
    double count = (double)json_array_size(value);
    size_t i;
    const json_t *element;

    json_array_foreach (value, i, element)
        if (!json_is_string(element))
            return verifier_refuse(ret_problem, option->name, "must be a list of strings");
    if (count < option->minimum || count > option->maximum)
        return verifier_refuse(ret_problem, option->name, "must have %g to %g elements", option->minimum,
                               option->maximum);
    return 0;
}

static int check_range(const struct verifier_option *option, const json_t *value, struct verifier_problem *ret_problem)
{
    double number = json_number_value(value);

    if (!isfinite(number) || number < option->minimum || number > option->maximum)
        return verifier_refuse(ret_problem, option->name, "must be from %g to %g", option->minimum, option->maximum);
    return 0;
}

static int check_text(const struct verifier_option *option, const json_t *value, struct verifier_problem *ret_problem)
{
    double length_bytes = (double)json_string_length(value);

    if (length_bytes < option->minimum || length_bytes > option->maximum)
        return verifier_refuse(ret_problem, option->name, "must have %g to %g bytes", option->minimum, option->maximum);
    return 0;
}

/* A text, or messages: {"role": text, "content": text} each. */
static int check_messages(const struct verifier_option *option, const json_t *value,
                          struct verifier_problem *ret_problem)
{
    double length_bytes = (double)json_string_length(value);
    size_t i;
    const json_t *message;

    json_array_foreach (value, i, message) {
        const json_t *content = json_object_get(message, "content");
        if (json_object_size(message) != 2 || !json_is_string(json_object_get(message, "role")) ||
            !json_is_string(content))
            return verifier_refuse(ret_problem, option->name, "each message must have a role and a content, two texts");
        length_bytes += (double)json_string_length(content);
    }
    if (length_bytes < option->minimum || length_bytes > option->maximum)
        return verifier_refuse(ret_problem, option->name, "must have %g to %g bytes", option->minimum, option->maximum);
    return 0;
}

static int refuse_choice(const struct verifier_option *option, struct text given, struct verifier_problem *ret_problem)
{
    char advice[ADVICE_BYTES];

    names_advise_list(given, option->choices, advice);
    return verifier_refuse(ret_problem, option->name, "is none of its choices; %s", advice);
}

static int check_choice(const struct verifier_option *option, const json_t *value, struct verifier_problem *ret_problem)
{
    if (!is_choice(option, json_text_of(value)))
        return refuse_choice(option, json_text_of(value), ret_problem);
    return 0;
}

static bool is_bool(const json_t *value)
{
    return json_is_boolean(value);
}

static bool is_integer(const json_t *value)
{
    double number = json_number_value(value);
    return json_is_integer(value) || (json_is_real(value) && trunc(number) == number && fabs(number) < 0x1p53);
}

static bool is_number(const json_t *value)
{
    return json_is_number(value);
}

static bool is_string(const json_t *value)
{
    return json_is_string(value);
}

static bool is_array(const json_t *value)
{
    return json_is_array(value);
}

static bool is_object(const json_t *value)
{
    return json_is_object(value);
}

static bool is_any(const json_t *value)
{
    return value != NULL;
}

static bool is_string_or_array(const json_t *value)
{
    return json_is_string(value) || json_is_array(value);
}

static bool is_bool_or_object(const json_t *value)
{
    return json_is_boolean(value) || json_is_object(value);
}

/* Rules for the values of each kind, with their further checks. */
static const struct {
    bool (*fits)(const json_t *value);
    int (*check)(const struct verifier_option *option, const json_t *value, struct verifier_problem *ret_problem);
} kind_checks[OPTION_KINDS] = {
    [OPTION_BOOL] = {is_bool, NULL},
    [OPTION_INT] = {is_integer, check_range},
    [OPTION_NUMBER] = {is_number, check_range},
    [OPTION_TEXT] = {is_string, check_text},
    [OPTION_CHOICE] = {is_string, check_choice},
    [OPTION_TEXTS] = {is_array, check_texts},
    [OPTION_OBJECT] = {is_object, NULL},
    [OPTION_ANY] = {is_any, NULL},
    [OPTION_MESSAGES] = {is_string_or_array, check_messages},
    [OPTION_SWITCH] = {is_bool_or_object, NULL},
};

static bool may_be_null(const struct verifier_option *option)
{
    return option->fallback && strcmp(option->fallback, "null") == 0;
}

static int check_value(const struct verifier_option *option, const json_t *value, struct verifier_problem *ret_problem)
{
    if (json_is_null(value) && may_be_null(option))
        return 0;
    if (!kind_checks[option->kind].fits(value))
        return verifier_refuse(ret_problem, option->name, "must be of type %s", option_kind_names[option->kind]);
    return kind_checks[option->kind].check ? kind_checks[option->kind].check(option, value, ret_problem) : 0;
}

static int refuse_option(const struct verifier *verifier, const char *name, struct verifier_problem *ret_problem)
{
    char advice[ADVICE_BYTES];

    if (verifier->option_count == 0)
        return verifier_refuse(ret_problem, name, "is no option of %s, which has none", verifier->name);
    names_advise(text_of(name), verifier->options, sizeof verifier->options[0], verifier->option_count, advice);
    return verifier_refuse(ret_problem, name, "is no option of %s; %s", verifier->name, advice);
}

static int check_names(const struct verifier *verifier, const json_t *options, struct verifier_problem *ret_problem)
{
    const char *name;
    const json_t *value;

    if (options && !json_is_object(options))
        return verifier_refuse(ret_problem, "", "must be an object");
    json_object_foreach ((json_t *)(uintptr_t)options, name, value) {
        if (!find_option(verifier, name))
            return refuse_option(verifier, name, ret_problem);
    }
    return 0;
}

/* 3.0 is the option 3, and hashed like it. */
static json_t *value_of(const struct verifier_option *option, const json_t *given)
{
    bool with_a_point = option->kind == OPTION_INT && json_is_real(given);
    return with_a_point ? json_integer((json_int_t)json_number_value(given)) : json_deep_copy(given);
}

static int fill_option(const struct verifier_option *option, const json_t *options, json_t *filled,
                       struct verifier_problem *ret_problem)
{
    const json_t *given = json_object_get(options, option->name);

    if (!given && !option->fallback)
        return verifier_refuse(ret_problem, option->name, "is required");
    if (given && check_value(option, given, ret_problem) < 0)
        return -1;
    json_object_set_new(filled, option->name,
                        given ? value_of(option, given) : json_loads(option->fallback, JSON_DECODE_ANY, NULL));
    return 0;
}

json_t *registry_fill_options(const struct verifier *verifier, const json_t *options,
                              struct verifier_problem *ret_problem)
{
    json_t *filled;

    *ret_problem = (struct verifier_problem){"", ""};
    if (check_names(verifier, options, ret_problem) < 0)
        return NULL;
    filled = json_object();
    for (size_t i = 0; i < verifier->option_count; i++) {
        if (fill_option(&verifier->options[i], options, filled, ret_problem) < 0) {
            json_decref(filled);
            return NULL;
        }
    }
    if (verifier->check_options && verifier->check_options(filled, ret_problem) < 0) {
        json_decref(filled);
        return NULL;
    }
    return filled;
}

static bool has_reference(const struct verifier_input *input)
{
    return input->reference && !json_is_null(input->reference);
}

/* False: there is none to grade against, as *verdict says. */
static bool check_reference(const struct verifier *verifier, const struct verifier_input *input,
                            struct verdict *verdict)
{
    *verdict = (struct verdict){.kind = VERDICT_UNSCORED};
    if (verifier->needs_reference && !has_reference(input)) {
        verdict_fail(verdict, "reference_unreadable", "%s needs a reference and there is none", verifier->name);
        return false;
    }
    if (!verifier->runs_programs && !verifier->reads_big_numbers && json_big_is_in(input->reference)) {
        verdict_fail(verdict, "reference_unreadable", "%s reads whole numbers of at most 63 bits", verifier->name);
        return false;
    }
    return true;
}

static void check_score(const struct verifier *verifier, struct verdict *verdict)
{
    if (verdict->kind != VERDICT_UNSCORED && !(fabs(verdict->score) <= VERDICT_SCORE_MAX))
        verdict_fail(verdict, "verifier_crashed", "%s gave a score that is not finite or beyond 1e100", verifier->name);
}

static size_t bytes_of(const json_t *calls)
{
    const json_t *call;
    size_t bytes = 0;
    size_t i;

    json_array_foreach (calls, i, call)
        bytes += json_string_length(json_object_get(call, "body"));
    return bytes;
}

bool registry_plan(const struct verifier *verifier, const struct verifier_input *input, json_t *calls,
                   struct verdict *ret_verdict)
{
    if (!check_reference(verifier, input, ret_verdict))
        return false;
    if (!verifier->plan(input, calls, ret_verdict)) {
        check_score(verifier, ret_verdict);
        return false;
    }
    if (json_array_size(calls) <= VERIFIER_CALLS_MAX && bytes_of(calls) <= VERIFIER_CALLS_BYTES)
        return true;
    verdict_finish(ret_verdict);
    verdict_fail(ret_verdict, "verifier_input_too_large", "%s would make %zu calls with %zu bytes; at most %d with %zu",
                 verifier->name, json_array_size(calls), bytes_of(calls), VERIFIER_CALLS_MAX, VERIFIER_CALLS_BYTES);
    return false;
}

void registry_grade(const struct verifier *verifier, const struct verifier_input *input, struct verdict *ret_verdict)
{
    if (!check_reference(verifier, input, ret_verdict))
        return;
    verifier->grade(input, ret_verdict);
    check_score(verifier, ret_verdict);
}
