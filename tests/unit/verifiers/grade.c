#include "tests/unit/verifiers/grade.h"

#include "server/base/json_big.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* *ret_filled: all options of the verifier; owned. */
static struct verdict grade_input(const struct verifier *verifier, const json_t *given, struct verifier_input input,
                                  json_t **ret_filled)
{
    struct verifier_problem problem;
    struct verdict verdict;

    assert_non_null(verifier);
    input.options = *ret_filled = registry_fill_options(verifier, given, &problem);
    if (!input.options)
        fail_msg("options of %s: %s %s", verifier->name, problem.name, problem.message);
    registry_grade(verifier, &input, &verdict);
    return verdict;
}

struct verdict grade_beside(const char *name, const char *options, const char *reference, struct text prompt,
                            struct text completion)
{
    json_t *given = options ? json_loads(options, JSON_ALLOW_NUL, NULL) : NULL;
    json_t *wanted = reference ? json_loads(reference, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
    struct verifier_input input = {completion, prompt, wanted, NULL, -1, -1};
    struct verdict verdict;
    json_t *filled;

    assert_true(!options || given);
    verdict = grade_input(registry_find(text_of(name)), given, input, &filled);
    json_decref(given);
    json_decref(wanted);
    json_decref(filled);
    return verdict;
}

static const json_t *find_beside(const struct case_of_file *one, struct text id)
{
    size_t i;
    const json_t *entry;

    json_array_foreach (one->beside, i, entry) {
        const json_t *own = json_object_get(entry, "id");
        struct text known = json_text_of(own ? own : json_object_get(entry, "name"));
        if (known.data && text_same(id, known))
            return entry;
    }
    return NULL;
}

/* As the service does it (server/verify/of.c). */
static void settle(const struct verifier *verifier, const json_t *filled, const struct verdict *of,
                   struct verdict *verdict)
{
    if (verdict->kind == VERDICT_UNSCORED)
        return;
    if (of->kind == VERDICT_UNSCORED) {
        verdict_fail(verdict, "of_unscored", "%s", of->failure_code);
        return;
    }
    struct settled settled = verifier->settle(filled, verdict->score, of->score);
    verdict_set_score(verdict, settled.score, settled.reason ? settled.reason : verdict->reason);
}

struct verdict grade_case(const struct case_of_file *one)
{
    const struct verifier *verifier = registry_find(text_of(one->name));
    struct verifier_input input = {one->completion, one->prompt, one->reference, NULL, one->completion_tokens, -1};
    json_t *filled;
    struct verdict verdict = grade_input(verifier, one->options, input, &filled);
    struct text id = verifier->settle ? option_text(filled, "of") : TEXT_NONE;

    if (id.data) {
        const json_t *entry = find_beside(one, id);
        const json_t *own = json_object_get(entry, "reference");
        json_t *others;
        assert_non_null(entry);
        input.reference = own ? own : one->reference;
        struct verdict of = grade_input(registry_find(json_text_of(json_object_get(entry, "name"))),
                                        json_object_get(entry, "options"), input, &others);
        settle(verifier, filled, &of, &verdict);
        verdict_finish(&of);
        json_decref(others);
    }
    json_decref(filled);
    return verdict;
}

struct verdict grade_text(const char *name, const char *options, const char *reference, struct text completion)
{
    return grade_beside(name, options, reference, TEXT_NONE, completion);
}

struct verdict grade(const char *name, const char *options, const char *reference, const char *completion)
{
    return grade_text(name, options, reference, text_of(completion));
}

void expect(const char *name, const char *options, const char *reference, const char *completion, double score,
            const char *reason)
{
    struct verdict verdict = grade(name, options, reference, completion);

    if (verdict.kind == VERDICT_UNSCORED || verdict.score != score || (reason && strcmp(reason, verdict.reason) != 0))
        fail_msg("%s of %s against %s: score %g, %s %s; expected %g, %s", name, completion, reference, verdict.score,
                 verdict_kind_names[verdict.kind], verdict.reason, score, reason ? reason : "any reason");
    verdict_finish(&verdict);
}

/* --- case files --- */

static bool map_math(const json_t *line, struct case_of_file *one)
{
    one->name = "math";
    one->category = json_string_value(json_object_get(line, "category"));
    one->options = json_object();
    json_object_update(one->options, json_object_get(line, "options"));
    json_object_set(one->options, "extract", json_object_get(line, "extract"));
    one->reference = json_object_get(line, "gold");
    one->prompt = json_text_of(json_object_get(line, "prompt"));
    one->completion = json_text_of(json_object_get(line, "completion"));
    one->score = strcmp(json_string_value(json_object_get(line, "expected")), "correct") == 0;
    return true;
}

static bool map_format(const json_t *line, struct case_of_file *one)
{
    static const char *const others[] = {"json_schema", "cosine", "overlong", "repetition"};
    const char *kind = json_string_value(json_object_get(line, "kind"));
    const json_t *params = json_object_get(line, "params");

    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        if (strcmp(kind, others[i]) == 0)
            return false;
    one->category = kind;
    one->name = strcmp(kind, "regex") == 0 ? "regex" : "format";
    one->options = json_deep_copy(params);
    if (strcmp(kind, "regex") != 0)
        json_object_set_new(one->options, "template", json_string(kind));
    else if (strcmp(json_string_value(json_object_get(params, "mode")), "full") == 0)
        json_object_set_new(one->options, "mode", json_string("fullmatch"));
    one->completion = json_text_of(json_object_get(line, "text"));
    one->score = json_number_value(json_object_get(line, "expected"));
    return true;
}

/* Of "correct", "incorrect", "unscored" or a number; any other text fails the test. */
static double score_expected(const char *name, const char *id, const json_t *expected)
{
    static const struct {
        const char *word;
        double score;
    } words[] = {{"correct", 1}, {"incorrect", 0}, {"unscored", NAN}};

    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        if (text_equals(json_text_of(expected), words[i].word))
            return words[i].score;
    if (!json_is_number(expected))
        fail_msg("tests/cases/own/%s.jsonl: \"expected\" of case %s is none of correct, incorrect, unscored, a score",
                 name, id ? id : "without an id");
    return json_number_value(expected);
}

/* Reads a case of tests/cases/own: the verifier's name is the file's. */
static bool map_own(const char *name, const json_t *line, struct case_of_file *one)
{
    one->name = one->category = name;
    one->options = json_deep_copy(json_object_get(line, "options"));
    one->reference = json_object_get(line, "reference");
    one->completion = json_text_of(json_object_get(line, "completion"));
    if (json_object_get(line, "completion_tokens"))
        one->completion_tokens = json_integer_value(json_object_get(line, "completion_tokens"));
    one->beside = json_object_get(line, "beside");
    one->score = score_expected(name, one->id, json_object_get(line, "expected"));
    one->reason = json_string_value(json_object_get(line, "reason"));
    return true;
}

/* Cases of the project's own have the common form. */
static bool map_choice(const json_t *line, struct case_of_file *one)
{
    const json_t *policy = json_object_get(line, "policy");

    if (!policy)
        return map_own("choice", line, one);
    one->name = "choice";
    one->category = json_string_value(json_object_get(line, "category"));
    one->options = json_deep_copy(policy);
    json_object_set(one->options, "mode", json_object_get(line, "mode"));
    json_object_set(one->options, "letters", json_object_get(line, "letters"));
    if (json_is_object(json_object_get(line, "texts")))
        json_object_set(one->options, "texts", json_object_get(line, "texts"));
    one->reference = json_object_get(line, "gold");
    one->completion = json_text_of(json_object_get(line, "completion"));
    one->score = strcmp(json_string_value(json_object_get(line, "expected")), "correct") == 0;
    return true;
}

static bool map_countdown(const json_t *line, struct case_of_file *one)
{
    one->name = one->category = "countdown";
    one->options = json_deep_copy(json_object_get(line, "options"));
    one->reference = line; /* it has numbers and target beside all else */
    one->completion = json_text_of(json_object_get(line, "completion"));
    one->score = strcmp(json_string_value(json_object_get(line, "expected")), "correct") == 0;
    return true;
}

static const struct {
    const char *name;
    bool (*map)(const json_t *line, struct case_of_file *one);
} files_of_a_format_of_their_own[] = {
    {"math", map_math}, {"format", map_format}, {"countdown", map_countdown}, {"choice", map_choice}};

/* The cases of regex are in the file of format; the own ones of choice have the common form. */
static bool has_file_of_another_format(const char *name)
{
    bool has = strcmp(name, "regex") == 0;

    if (strcmp(name, "choice") == 0)
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(files_of_a_format_of_their_own); i++)
        has |= strcmp(files_of_a_format_of_their_own[i].name, name) == 0;
    return has;
}

static bool map_case(const char *name, const json_t *line, struct case_of_file *one)
{
    for (size_t i = 0; i < ARRAY_LENGTH(files_of_a_format_of_their_own); i++)
        if (strcmp(files_of_a_format_of_their_own[i].name, name) == 0)
            return files_of_a_format_of_their_own[i].map(line, one);
    return map_own(name, line, one);
}

size_t each_own_file(void (*check)(const struct case_of_file *one, void *arg), void *arg)
{
    char path[512];
    size_t count = 0;

    for (size_t i = 0; i < verifier_count; i++) {
        if (verifiers[i]->runs_programs || verifiers[i]->asks_engine || has_file_of_another_format(verifiers[i]->name))
            continue;
        snprintf(path, sizeof path, "own/%s", verifiers[i]->name);
        count += each_case(path, check, arg);
    }
    return count;
}

size_t each_case(const char *file, void (*check)(const struct case_of_file *one, void *arg), void *arg)
{
    char path[512];
    const char *slash = strrchr(file, '/');
    char *line = NULL;
    size_t room = 0;
    size_t count = 0;
    FILE *stream;

    snprintf(path, sizeof path, "%s/%s.jsonl", getenv("CASES"), file);
    stream = fopen(path, "r");
    if (!stream)
        fail_msg("there are no cases in tests/cases/%s.jsonl: write them there, one a line (CONTRIBUTING.md)", file);
    for (size_t number = 1; getline(&line, &room, stream) > 0; number++) {
        json_error_t error;
        json_t *root = json_big_load(text_of(line), JSON_ALLOW_NUL, &error);
        struct case_of_file one = {.id = json_string_value(json_object_get(root, "id")), .completion_tokens = -1};

        if (!root)
            fail_msg("tests/cases/%s.jsonl, line %zu: %s", file, number, error.text);
        if (map_case(slash ? slash + 1 : file, root, &one)) {
            check(&one, arg);
            count++;
        }
        json_decref(one.options);
        json_decref(root);
    }
    free(line);
    fclose(stream);
    return count;
}
