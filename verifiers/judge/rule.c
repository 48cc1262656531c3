#include "verifiers/judge/rule.h"

#include "server/base/clock.h"
#include "server/base/nearest.h"
#include "verifiers/judge/reward.h"
#include "verifiers/judge/template.h"
#include "verifiers/text/pattern.h"

#include <math.h>

#define JUDGE_PATTERN_BYTES 4096
#define CHAT_ENDPOINT "/v1/chat/completions"

const char *const judge_kind_names[JUDGE_KINDS + 1] = {
    [JUDGE_YES_NO] = "yes_no",         [JUDGE_LETTER] = "letter", [JUDGE_BRACKETS] = "brackets",
    [JUDGE_JSON_SCORE] = "json_score", [JUDGE_RATING] = "rating", [JUDGE_REWARD_MODEL] = "reward_model",
};

const char *const judge_position_names[JUDGE_POSITIONS + 1] = {
    [JUDGE_ONLY] = "only",
    [JUDGE_FIRST] = "first",
    [JUDGE_LAST] = "last",
    [JUDGE_LAST_WORD] = "last_word",
};

/* --- parse --- */

#define OF(kind) (1U << (kind))
#define OF_LABELS (OF(JUDGE_YES_NO) | OF(JUDGE_LETTER) | OF(JUDGE_BRACKETS))
#define OF_NUMBERS (OF(JUDGE_JSON_SCORE) | OF(JUDGE_RATING))
#define OF_ALL (OF(JUDGE_KINDS) - 1)

/* The keys of `parse`, their types and the kinds that have them. */
static const struct parse_key {
    const char *name;
    json_type type; /* JSON_REAL: any number */
    unsigned kinds;
} parse_keys[] = {
    {"kind", JSON_STRING, OF_ALL},
    {"position", JSON_STRING, OF_LABELS | OF_NUMBERS},
    {"labels", JSON_OBJECT, OF_LABELS},
    {"field", JSON_STRING, OF(JUDGE_JSON_SCORE)},
    {"min", JSON_REAL, OF_NUMBERS},
    {"max", JSON_REAL, OF_NUMBERS},
    {"pattern", JSON_STRING, OF(JUDGE_RATING)},
    {"payload", JSON_STRING, OF(JUDGE_REWARD_MODEL)},
    {"path", JSON_STRING, OF(JUDGE_REWARD_MODEL)},
    {"index", JSON_INTEGER, OF(JUDGE_REWARD_MODEL)},
    {"label", JSON_STRING, OF(JUDGE_REWARD_MODEL)},
};

static const struct parse_key *find_key(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(parse_keys); i++)
        if (strcmp(parse_keys[i].name, name) == 0)
            return &parse_keys[i];
    return NULL;
}

static int refuse_key(const char *name, struct verifier_problem *ret_problem)
{
    char advice[ADVICE_BYTES];

    names_advise(text_of(name), parse_keys, sizeof parse_keys[0], ARRAY_LENGTH(parse_keys), advice);
    return verifier_refuse(ret_problem, "parse", "%.64s is no key of it; %s", name, advice);
}

static bool is_of_type(const json_t *value, json_type type)
{
    return type == JSON_REAL ? json_is_number(value) && isfinite(json_number_value(value)) : json_typeof(value) == type;
}

static int check_keys(const json_t *parse, enum judge_kind kind, struct verifier_problem *ret_problem)
{
    static const char *const types[] = {
        [JSON_STRING] = "a text", [JSON_OBJECT] = "an object", [JSON_REAL] = "a number", [JSON_INTEGER] = "an integer"};
    const char *name;
    const json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)parse, name, value) {
        const struct parse_key *key = find_key(name);
        if (!key)
            return refuse_key(name, ret_problem);
        if (!(key->kinds & OF(kind)))
            return verifier_refuse(ret_problem, "parse", "%s is no key of the kind %s", name, judge_kind_names[kind]);
        if (!is_of_type(value, key->type))
            return verifier_refuse(ret_problem, "parse", "%s must be %s", name, types[key->type]);
    }
    return 0;
}

/* The place of a word in a list, or -1 with the problem. */
static int find_word(struct text word, const char *const *words, const char *what, struct verifier_problem *ret_problem)
{
    char advice[ADVICE_BYTES];

    for (int i = 0; words[i]; i++)
        if (text_equals(word, words[i]))
            return i;
    names_advise_list(word, words, advice);
    return verifier_refuse(ret_problem, "parse", "%s is none of its choices; %s", what, advice);
}

static int read_kind(const json_t *parse, struct judge_rule *rule, struct verifier_problem *ret_problem)
{
    int kind = find_word(json_text_of(json_object_get(parse, "kind")), judge_kind_names, "kind", ret_problem);

    if (kind >= 0)
        rule->kind = (enum judge_kind)kind;
    return kind < 0 ? -1 : 0;
}

static int read_position(const json_t *parse, struct judge_rule *rule, struct verifier_problem *ret_problem)
{
    const json_t *given = json_object_get(parse, "position");
    int position;

    rule->position = rule->kind == JUDGE_BRACKETS ? JUDGE_LAST : JUDGE_ONLY;
    if (!given)
        return 0;
    position = find_word(json_text_of(given), judge_position_names, "position", ret_problem);
    if (position < 0)
        return -1;
    rule->position = (enum judge_position)position;
    if (rule->position == JUDGE_LAST_WORD && rule->kind != JUDGE_YES_NO)
        return verifier_refuse(ret_problem, "parse", "position last_word is for the kind yes_no");
    return 0;
}

/* --- labels --- */

static bool is_letter(struct text name)
{
    char byte = name.length_bytes == 1 ? name.data[0] : ' ';
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
}

static bool is_in_brackets(struct text name)
{
    return name.length_bytes >= 3 && name.length_bytes <= JUDGE_LABEL_BYTES && name.data[0] == '[' &&
           name.data[name.length_bytes - 1] == ']';
}

static bool is_yes_or_no(struct text name)
{
    return text_equals(name, "yes") || text_equals(name, "no");
}

/* The form of a label of each kind. */
static const struct {
    bool (*fits)(struct text name);
    const char *form;
} label_forms[] = {
    [JUDGE_YES_NO] = {is_yes_or_no, "yes and no"},
    [JUDGE_LETTER] = {is_letter, "single letters or digits"},
    [JUDGE_BRACKETS] = {is_in_brackets, "at most 64 bytes that begin with [ and end with ]"},
};

static bool holds(struct text whole, struct text part)
{
    return whole.length_bytes >= part.length_bytes &&
           memmem(whole.data, whole.length_bytes, part.data, part.length_bytes) != NULL;
}

static int add_label(struct judge_rule *rule, struct text name, const json_t *score,
                     struct verifier_problem *ret_problem)
{
    if (rule->label_count == JUDGE_LABELS_MAX)
        return verifier_refuse(ret_problem, "parse", "labels has more than %d", JUDGE_LABELS_MAX);
    if (!label_forms[rule->kind].fits(name))
        return verifier_refuse(ret_problem, "parse", "labels of the kind %s are %s", judge_kind_names[rule->kind],
                               label_forms[rule->kind].form);
    if (!json_is_number(score) || !(fabs(json_number_value(score)) <= VERDICT_SCORE_MAX))
        return verifier_refuse(ret_problem, "parse", "labels must map each label to a number, from -1e100 to 1e100");
    for (size_t i = 0; i < rule->label_count; i++)
        if (holds(name, rule->labels[i].name) || holds(rule->labels[i].name, name))
            return verifier_refuse(ret_problem, "parse", "no label may stand in another one");
    rule->labels[rule->label_count] = (struct judge_label){name, json_number_value(score), rule->label_count};
    rule->label_count++;
    return 0;
}

static int read_labels(const json_t *parse, struct judge_rule *rule, struct verifier_problem *ret_problem)
{
    const json_t *labels = json_object_get(parse, "labels");
    const char *name;
    size_t name_bytes;
    const json_t *score;

    if (!(OF(rule->kind) & OF_LABELS))
        return 0;
    if (!labels && rule->kind == JUDGE_YES_NO) {
        rule->labels[0] = (struct judge_label){TEXT_LITERAL("yes"), 1, 0};
        rule->labels[1] = (struct judge_label){TEXT_LITERAL("no"), 0, 1};
        rule->label_count = 2;
        return 0;
    }
    json_object_keylen_foreach((json_t *)(uintptr_t)labels, name, name_bytes,
                               score) if (add_label(rule, (struct text){name, name_bytes}, score, ret_problem) <
                                          0) return -1;
    if (rule->label_count < 2)
        return verifier_refuse(ret_problem, "parse", "labels must have at least two labels and their scores");
    return 0;
}

/* --- numbers --- */

static int read_numbers(const json_t *parse, struct judge_rule *rule, struct verifier_problem *ret_problem)
{
    const json_t *minimum = json_object_get(parse, "min");
    const json_t *maximum = json_object_get(parse, "max");
    const json_t *field = json_object_get(parse, "field");

    if (!(OF(rule->kind) & OF_NUMBERS))
        return 0;
    if (rule->kind == JUDGE_RATING && (!minimum || !maximum))
        return verifier_refuse(ret_problem, "parse", "the kind rating needs min and max");
    rule->minimum = minimum ? json_number_value(minimum) : 0;
    rule->maximum = maximum ? json_number_value(maximum) : 1;
    rule->field = field ? json_text_of(field) : TEXT_LITERAL("score");
    if (!(rule->minimum < rule->maximum) || !isfinite(rule->maximum - rule->minimum))
        return verifier_refuse(ret_problem, "parse", "min must be less than max");
    if (rule->field.length_bytes == 0 || rule->field.length_bytes > JUDGE_LABEL_BYTES)
        return verifier_refuse(ret_problem, "parse", "field must have 1 to %d bytes", JUDGE_LABEL_BYTES);
    return 0;
}

static int read_pattern(const json_t *parse, struct judge_rule *rule, struct verifier_problem *ret_problem)
{
    char problem[PATTERN_PROBLEM_BYTES];
    _cleanup_(pattern_destroyp) struct pattern *pattern = NULL;

    if (rule->kind != JUDGE_RATING)
        return 0;
    rule->pattern = json_text_of(json_object_get(parse, "pattern"));
    if (rule->pattern.length_bytes == 0 || rule->pattern.length_bytes > JUDGE_PATTERN_BYTES)
        return verifier_refuse(ret_problem, "parse", "the kind rating needs a pattern of 1 to %d bytes",
                               JUDGE_PATTERN_BYTES);
    pattern = pattern_create(rule->pattern, problem);
    if (!pattern)
        return verifier_refuse(ret_problem, "parse", "pattern: %s", problem);
    if (pattern_group_count(pattern) != 1)
        return verifier_refuse(ret_problem, "parse", "pattern must have one group, the number");
    return 0;
}

/* --- a reward model --- */

static bool is_pointer(struct text path)
{
    return path.length_bytes == 0 || path.data[0] == '/';
}

static int read_reward(const json_t *parse, struct judge_rule *rule, struct verifier_problem *ret_problem)
{
    const json_t *payload = json_object_get(parse, "payload");
    const json_t *index = json_object_get(parse, "index");
    int place;

    if (rule->kind != JUDGE_REWARD_MODEL)
        return 0;
    place = payload ? find_word(json_text_of(payload), reward_payload_names, "payload", ret_problem) : 0;
    if (place < 0)
        return -1;
    rule->payload = reward_payload_at((size_t)place);
    rule->path = json_text_of(json_object_get(parse, "path"));
    rule->label = json_text_of(json_object_get(parse, "label"));
    rule->has_index = index != NULL;
    rule->index = json_integer_value(index);
    if (rule->path.data && !is_pointer(rule->path))
        return verifier_refuse(ret_problem, "parse", "path must be a JSON pointer: it begins with /");
    if (rule->label.data && !reward_takes_label(rule->payload))
        return verifier_refuse(ret_problem, "parse", "label is for the payload tei");
    return 0;
}

static int read_parse(const json_t *options, struct judge_rule *rule, struct verifier_problem *ret_problem)
{
    static int (*const readers[])(const json_t *parse, struct judge_rule *rule,
                                  struct verifier_problem *ret_problem) = {read_position, read_labels, read_numbers,
                                                                           read_pattern, read_reward};
    const json_t *parse = json_object_get(options, "parse");

    if (read_kind(parse, rule, ret_problem) < 0 || check_keys(parse, rule->kind, ret_problem) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LENGTH(readers); i++)
        if (readers[i](parse, rule, ret_problem) < 0)
            return -1;
    return 0;
}

/* --- the question --- */

static bool is_role(struct text role)
{
    static const char *const roles[] = {"system", "user", "assistant", "developer"};

    for (size_t i = 0; i < ARRAY_LENGTH(roles); i++)
        if (text_equals(role, roles[i]))
            return true;
    return false;
}

static int read_template(const json_t *options, struct judge_rule *rule, struct verifier_problem *ret_problem)
{
    const json_t *given = json_object_get(options, "template");
    const json_t *message;
    size_t i;

    if (json_is_null(given)) {
        rule->marks = 1U << MARK_PROMPT | 1U << MARK_COMPLETION | 1U << MARK_REFERENCE;
        return 0;
    }
    if (rule->payload)
        return verifier_refuse(ret_problem, "template", "a reward model has none");
    rule->template = json_text_of(given);
    rule->messages = json_is_array(given) ? given : NULL;
    rule->marks = rule->template.data ? template_marks(rule->template) : 0;
    json_array_foreach (rule->messages, i, message) {
        rule->marks |= template_marks(json_text_of(json_object_get(message, "content")));
        if (!is_role(json_text_of(json_object_get(message, "role"))))
            return verifier_refuse(ret_problem, "template", "a role must be system, user, assistant or developer");
    }
    if (!(rule->marks & (1U << MARK_COMPLETION | 1U << MARK_STEP)))
        return verifier_refuse(ret_problem, "template", "neither {completion} nor {step} stands in it");
    return 0;
}

static bool is_endpoint(struct text path)
{
    if (path.length_bytes < 2 || path.data[0] != '/' || holds(path, TEXT_LITERAL("..")))
        return false;
    for (size_t i = 0; i < path.length_bytes; i++)
        if (path.data[i] <= ' ' || path.data[i] > '~' || strchr("\\#?\"<>{}|^`", path.data[i]))
            return false;
    return true;
}

static bool has_timeout(const json_t *options)
{
    int64_t timeout_us;

    return duration_parse(option_text(options, "timeout"), &timeout_us) && timeout_us >= 1000 &&
           timeout_us <= INT64_C(3600000000);
}

static int read_question(const json_t *options, struct judge_rule *rule, struct verifier_problem *ret_problem)
{
    struct text endpoint = option_text(options, "endpoint");

    rule->raw = option_is(options, "values", "raw");
    rule->temperature = option_number(options, "temperature", 0);
    rule->seed = (int64_t)option_number(options, "seed", 0);
    rule->max_tokens = (int64_t)option_number(options, "max_tokens", -1);
    rule->endpoint = endpoint.data   ? endpoint
                     : rule->payload ? text_of(reward_endpoint(rule->payload))
                                     : TEXT_LITERAL(CHAT_ENDPOINT);
    if (!is_endpoint(rule->endpoint))
        return verifier_refuse(ret_problem, "endpoint", "must be a path: / and printable ASCII, without .. ? #");
    if (!has_timeout(options))
        return verifier_refuse(ret_problem, "timeout", "must be a duration from 1ms to 1h, like 30s");
    return read_template(options, rule, ret_problem);
}

/* --- several replies --- */

static size_t find_label(const struct judge_rule *rule, struct text name)
{
    size_t i = 0;

    while (i < rule->label_count && !text_same(rule->labels[i].name, name))
        i++;
    return i;
}

static bool is_one_to_one(const struct judge_rule *rule)
{
    bool taken[JUDGE_LABELS_MAX] = {false};

    for (size_t i = 0; i < rule->label_count; i++) {
        if (taken[rule->labels[i].swapped])
            return false;
        taken[rule->labels[i].swapped] = true;
    }
    return true;
}

static int read_label_map(const json_t *map, struct judge_rule *rule, struct verifier_problem *ret_problem)
{
    const char *name;
    size_t name_bytes;
    const json_t *value;

    if (json_object_size(map) > 0 && rule->label_count == 0)
        return verifier_refuse(ret_problem, "swap", "an object maps labels, and the kind %s has none",
                               judge_kind_names[rule->kind]);
    json_object_keylen_foreach((json_t *)(uintptr_t)map, name, name_bytes, value)
    {
        size_t from = find_label(rule, (struct text){name, name_bytes});
        size_t to = find_label(rule, json_text_of(value));
        if (from == rule->label_count || to == rule->label_count)
            return verifier_refuse(ret_problem, "swap", "maps labels of `parse` to labels of `parse`");
        rule->labels[from].swapped = to;
    }
    return is_one_to_one(rule) ? 0 : verifier_refuse(ret_problem, "swap", "two labels would become one");
}

static int read_swap(const json_t *options, struct judge_rule *rule, struct verifier_problem *ret_problem)
{
    const json_t *swap = json_object_get(options, "swap");
    unsigned both = 1U << MARK_COMPLETION | 1U << MARK_REFERENCE;

    rule->swap = !json_is_false(swap);
    if (!rule->swap)
        return 0;
    if (rule->payload)
        return verifier_refuse(ret_problem, "swap", "a reward model is asked once");
    if ((rule->marks & both) != both)
        return verifier_refuse(ret_problem, "swap", "{completion} and {reference} must stand in the template");
    return read_label_map(swap, rule, ret_problem);
}

static int read_votes(const json_t *options, struct judge_rule *rule, struct verifier_problem *ret_problem)
{
    rule->votes = (size_t)option_number(options, "votes", 1);
    rule->mean = option_is(options, "combine", "mean");
    rule->disagree = option_is(options, "disagree", "mean")  ? JUDGE_MEAN
                     : option_is(options, "disagree", "min") ? JUDGE_MIN
                                                             : JUDGE_UNSCORED;
    if (rule->votes > 1 && rule->payload)
        return verifier_refuse(ret_problem, "votes", "a reward model is asked once");
    if (rule->votes > 1 && !rule->mean && rule->label_count == 0)
        return verifier_refuse(ret_problem, "combine", "numbers have no majority: mean");
    if (rule->votes > 1 && !rule->mean && rule->swap && rule->disagree == JUDGE_MEAN)
        return verifier_refuse(ret_problem, "combine",
                               "the mean of two labels is no label that could be voted for: mean");
    return 0;
}

int judge_rule_read(const json_t *options, struct judge_rule *ret_rule, struct verifier_problem *ret_problem)
{
    *ret_rule = (struct judge_rule){.kind = JUDGE_YES_NO};
    if (read_parse(options, ret_rule, ret_problem) < 0 || read_question(options, ret_rule, ret_problem) < 0 ||
        read_swap(options, ret_rule, ret_problem) < 0)
        return -1;
    return read_votes(options, ret_rule, ret_problem);
}
