/* The exchanges that real servers had (tests/fixtures/recorded/<server>.jsonl), held against expected.tsv, which was
 * decided by reading them. */
#include "support.h"

#include "client/probe/dialogue.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES (1 << 20)
#define EXCHANGES_MAX 256

struct recorded {
    char *name;    /* "vllm/n4" */
    char *kind;    /* of adapter, "probe", or "-" */
    char *outcome; /* words, see expected.tsv */
    json_t *json;
    const struct engine_adapter *adapter;
    int status;
    struct sample_request request;
    uint32_t *prompt_ids;
    char *options;
    struct body body;
};

/* --- reading ------------------------------------------------------------------------------------- */

/* Some recordings do not say, and one asked for none, which the service never does. */
static int64_t asked_tokens(const json_t *asked)
{
    static const char *const names[] = {"max_tokens", "max_completion_tokens", "n_predict"};

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (json_integer_value(json_object_get(asked, names[i])) > 0)
            return json_integer_value(json_object_get(asked, names[i]));
    return 128;
}

static double asked_number(const json_t *asked, const char *name, double otherwise)
{
    const json_t *value = json_object_get(asked, name);

    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static void read_sampling(struct recorded *recorded, const json_t *asked)
{
    static const char *const names[] = {"ignore_eos", "logit_bias", "post_sampling_probs"};
    struct sampling *sampling = &recorded->request.sampling;
    json_t *options = json_object();

    sampling->max_tokens = asked_tokens(asked);
    sampling->temperature = asked_number(asked, "temperature", 1);
    sampling->top_p = asked_number(asked, "top_p", 1);
    sampling->top_k = (int64_t)asked_number(asked, "top_k", 0);
    sampling->min_p = asked_number(asked, "min_p", 0);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (json_object_get(asked, names[i]))
            json_object_set(options, names[i], json_object_get(asked, names[i]));
    recorded->options = json_dumps(options, JSON_COMPACT);
    sampling->engine_options = text_of(recorded->options);
    json_decref(options);
}

static void read_prompt(struct recorded *recorded, const json_t *asked)
{
    const json_t *prompt =
        json_object_get(asked, "prompt") ? json_object_get(asked, "prompt") : json_object_get(asked, "token_ids");
    size_t count = json_array_size(prompt);

    recorded->request.prompt_ids = NULL;
    recorded->request.prompt = (struct text)TEXT_LITERAL("x");
    if (!count || !json_is_integer(json_array_get(prompt, 0)))
        return;
    recorded->prompt_ids = xcalloc(count, sizeof(*recorded->prompt_ids));
    for (size_t i = 0; i < count; i++)
        recorded->prompt_ids[i] = (uint32_t)json_integer_value(json_array_get(prompt, i));
    recorded->request.prompt_ids = recorded->prompt_ids;
    recorded->request.prompt_id_count = count;
}

static void read_body(struct recorded *recorded, const json_t *reply)
{
    const json_t *text = json_object_get(reply, "body_text");
    char *dumped;

    if (text) {
        recorded->body = body_of(json_string_value(text), json_string_length(text));
        return;
    }
    dumped = json_dumps(json_object_get(reply, "body"), JSON_ENCODE_ANY | JSON_COMPACT);
    recorded->body = body_of(dumped, strlen(dumped));
    free(dumped);
}

static void read_exchange(struct recorded *recorded, json_t *json)
{
    const json_t *request = json_object_get(json, "request"), *reply = json_object_get(json, "reply"),
                 *asked = json_object_get(request, "body"), *inner = json_object_get(asked, "sampling_params");

    recorded->json = json;
    recorded->adapter = engine_adapter_find(text_of(recorded->kind));
    recorded->status = (int)json_integer_value(json_object_get(reply, "status"));
    recorded->request = plain_request();
    read_sampling(recorded, inner ? inner : asked);
    recorded->request.seed = (uint64_t)json_integer_value(json_object_get(inner ? inner : asked, "seed"));
    if (strncmp(recorded->name, "vllm_processed/", 15) == 0)
        recorded->request.logprobs_mode = LOGPROBS_PROCESSED; /* its settings say so */
    read_prompt(recorded, asked);
    if (strcmp(json_string_value(json_object_get(request, "path")), "/apply-template") == 0 ||
        json_object_get(asked, "messages")) {
        recorded->request.prompt = TEXT_NONE;
        recorded->request.messages = (struct text)TEXT_LITERAL("[{\"role\":\"user\",\"content\":\"x\"}]");
    }
    read_body(recorded, reply);
}

/* --- one exchange -------------------------------------------------------------------------------- */

static bool outcome_is(const struct recorded *recorded, const char *word)
{
    return strncmp(recorded->outcome, word, strlen(word)) == 0;
}

/* Leaves the exchange at the step whose reply was recorded. */
static void begin(const struct recorded *recorded, struct exchange *exchange)
{
    static const char generated[] = "{\"choices\":[{\"index\":0,\"token_ids\":[7],\"finish_reason\":\"length\","
                                    "\"logprobs\":{\"content\":[{\"token_id\":7,\"logprob\":-1}]}}]}";
    const char *path = json_string_value(json_object_get(json_object_get(recorded->json, "request"), "path"));
    struct sample sample;
    struct sample_error error;

    exchange_init(exchange, recorded->adapter, &recorded->request);
    if (exchange_is_preparing(exchange) && strcmp(path, "/tokenize") != 0 && strcmp(path, "/apply-template") != 0)
        exchange->step = 1; /* its prompt was tokenized elsewhere */
    if (strcmp(path, "/detokenize") == 0)
        assert_int_equal(parse_bytes(exchange, 200, generated, strlen(generated), &sample, &error), EXCHANGE_NEXT);
}

static enum exchange_outcome parse(const struct recorded *recorded, size_t length_bytes, struct exchange *exchange,
                                   struct sample *ret_sample, struct sample_error *ret_error)
{
    enum exchange_outcome outcome;

    begin(recorded, exchange);
    outcome = parse_bytes(exchange, recorded->status, recorded->body.data, length_bytes, ret_sample, ret_error);
    if (outcome == EXCHANGE_NEXT && outcome_is(recorded, "sample"))
        outcome = parse_bytes(exchange, 200, "{\"prompt\":\"x\"}", 14, ret_sample, ret_error);
    return outcome;
}

/* --- what was decided ------------------------------------------------------------------------------ */

static void check_segments(const struct sample *sample, const char *words)
{
    char revision[64];
    size_t count;

    if (sscanf(words, " segments %zu revision %63s", &count, revision) != 2)
        count = 0;
    assert_int_equal(sample->segment_count, count);
    if (count)
        assert_true(text_equals(sample->engine_revision, revision));
}

static void check_sample(const struct recorded *recorded, const struct sample *sample)
{
    char finish[16], mode[16], seed[16], end[16];
    unsigned ids, first, last;
    double least, lowest = 0;
    int used = 0;

    assert_int_equal(sscanf(recorded->outcome, "sample %15s ids %u first %u last %u least %lf %15s %15s %15s%n", finish,
                            &ids, &first, &last, &least, mode, seed, end, &used),
                     8);
    assert_string_equal(finish_reason_names[sample->finish], finish);
    assert_int_equal(sample->id_count, ids);
    assert_int_equal(sample->ids[0], first);
    assert_int_equal(sample->ids[ids - 1], last);
    for (size_t i = 0; i < ids; i++)
        lowest = fmin(lowest, (double)sample->logprobs[i]);
    assert_true(fabs(lowest - least) < 1e-4);
    assert_string_equal(logprobs_mode_names[sample->logprobs_mode], mode);
    assert_int_equal(sample->seed_honoured, strcmp(seed, "seed") == 0);
    assert_int_equal(sample->eos_in_ids, strcmp(end, "eos") == 0);
    assert_true(sample->trainable);
    check_segments(sample, recorded->outcome + used);
}

static void check_text_alone(const struct recorded *recorded, const struct sample *sample)
{
    assert_string_equal(finish_reason_names[sample->finish], recorded->outcome + strlen("text "));
    assert_true(sample->text.length_bytes > 0);
    assert_false(sample->trainable);
    assert_null(sample->ids);
    assert_int_equal(sample->logprobs_mode, LOGPROBS_UNKNOWN);
}

static void check_error(const struct recorded *recorded, const struct sample_error *error)
{
    char said[128];

    snprintf(said, sizeof(said), "error %s %s %s", sample_failure_names[error->code],
             error->retryable ? "retry" : "final", error->resample ? "resample" : "same");
    assert_string_equal(said, recorded->outcome);
    assert_true(*error->message);
}

static void check_step(const struct recorded *recorded, const struct exchange *exchange)
{
    unsigned count = 0;

    if (sscanf(recorded->outcome, "prompt_ids %u", &count) == 1)
        assert_int_equal(exchange->prompt_id_count, count);
    else
        assert_true(exchange->rendered.length_bytes > 0);
}

static void check_detokenized(const struct recorded *recorded, const struct sample *sample)
{
    const json_t *body = json_object_get(json_object_get(recorded->json, "reply"), "body");

    assert_true(text_equals(sample->text, json_string_value(json_object_get(body, "prompt"))));
    assert_int_equal(sample->id_count, 1);
}

static void test_it_is_read_as_decided(void **state)
{
    const struct recorded *recorded = *state;
    bool is_step = outcome_is(recorded, "prompt_ids") || outcome_is(recorded, "rendered");
    struct exchange exchange;
    struct sample sample;
    struct sample_error error;
    enum exchange_outcome outcome = parse(recorded, recorded->body.length_bytes, &exchange, &sample, &error);

    if (outcome == EXCHANGE_ERROR && !outcome_is(recorded, "error"))
        fail_msg("%s: %s", sample_failure_names[error.code], error.message);
    assert_int_equal(outcome, outcome_is(recorded, "error") ? EXCHANGE_ERROR
                              : is_step                     ? EXCHANGE_NEXT
                                                            : EXCHANGE_SAMPLE);
    if (outcome_is(recorded, "error"))
        check_error(recorded, &error);
    else if (is_step)
        check_step(recorded, &exchange);
    else if (outcome_is(recorded, "detokenized"))
        check_detokenized(recorded, &sample);
    else if (outcome_is(recorded, "text"))
        check_text_alone(recorded, &sample);
    else
        check_sample(recorded, &sample);
    sample_finish(&sample);
    exchange_finish(&exchange);
}

static void test_cut_anywhere_the_same_is_asked_for_again(void **state)
{
    const struct recorded *recorded = *state;
    struct exchange exchange;
    struct sample sample;
    struct sample_error error;
    size_t step = recorded->body.length_bytes / 1000 + 1;

    for (size_t length = 0; length < recorded->body.length_bytes; length += step) {
        assert_int_equal(parse(recorded, length, &exchange, &sample, &error), EXCHANGE_ERROR);
        if (!outcome_is(recorded, "error"))
            assert_true(error.retryable && !error.resample);
        exchange_finish(&exchange);
    }
}

/* A probe that gets this reply on its path and nothing else. */
static void test_a_probe_learns_what_was_decided(void **state)
{
    const struct recorded *recorded = *state;
    const char *path = json_string_value(json_object_get(json_object_get(recorded->json, "request"), "path"));
    struct probe_rules rules = {
        .adapter = strcmp(path, "/weight_info") == 0 ? engine_adapter_find((struct text)TEXT_LITERAL("vllm")) : NULL,
        .url = "http://engine"};
    struct probe probe;
    struct engine_call call;
    char said[512];
    bool asked = false;

    probe_init(&probe, &rules);
    while (probe_build(&probe, &call)) {
        bool here = strcmp(call.path, path) == 0;
        struct engine_reply reply = {.status = here ? recorded->status : 404,
                                     .body = {recorded->body.data, here ? recorded->body.length_bytes : 0}};

        asked |= here;
        engine_call_finish(&call);
        if (!probe_take(&probe, &reply, NULL))
            break;
    }
    assert_true(asked);
    if (probe.facts.model[0])
        snprintf(said, sizeof(said), "model %s context %lld", probe.facts.model, (long long)probe.facts.context_tokens);
    else if (probe.facts.version[0])
        snprintf(said, sizeof(said), "version %s", probe.facts.version);
    else if (probe.facts.weight_version[0])
        snprintf(said, sizeof(said), "weight_version %s", probe.facts.weight_version);
    else
        snprintf(said, sizeof(said), "nothing");
    assert_string_equal(said, recorded->outcome);
    probe_finish(&probe);
}

/* --- the table ------------------------------------------------------------------------------------- */

static json_t *find_exchange(json_t *exchanges, const char *name)
{
    json_t *found = json_object_get(exchanges, name);

    if (!found) {
        fprintf(stderr, "%s is not recorded\n", name);
        abort();
    }
    return json_incref(found);
}

static json_t *read_exchanges(void)
{
    size_t count;
    char **paths = list_files(RECORDED_DIR, ".jsonl", &count), *line = xcalloc(1, LINE_BYTES);
    json_t *exchanges = json_object();

    for (size_t i = 0; i < count; i++) {
        FILE *file = fopen(paths[i], "r");

        while (file && fgets(line, LINE_BYTES, file)) {
            json_error_t error;
            json_t *one = json_loads(line, JSON_ALLOW_NUL, &error);

            if (!one) {
                fprintf(stderr, "%s: %s in %.60s\n", paths[i], error.text, line);
                abort();
            }
            json_object_set_new(exchanges, json_string_value(json_object_get(one, "name")), one);
        }
        fclose(file);
        free(paths[i]);
    }
    free(paths);
    free(line);
    return exchanges;
}

static size_t read_table(json_t *exchanges, struct recorded *recorded)
{
    FILE *file = fopen(RECORDED_DIR "/expected.tsv", "r");
    char line[1024], name[128], kind[32], outcome[256];
    size_t count = 0;

    while (file && fgets(line, sizeof(line), file)) {
        if (*line == '#' || sscanf(line, "%127[^\t\n]\t%31[^\t\n]\t%255[^\t\n]", name, kind, outcome) != 3)
            continue;
        recorded[count] = (struct recorded){.name = xstrdup(name), .kind = xstrdup(kind), .outcome = xstrdup(outcome)};
        read_exchange(&recorded[count], find_exchange(exchanges, name));
        count++;
    }
    fclose(file);
    return count;
}

static void test_every_exchange_is_decided(void **state)
{
    const struct recorded *recorded = *state;
    size_t count = 0, unread = 0;

    for (; recorded[count].name; count++)
        unread += !recorded[count].adapter;
    assert_int_equal(count, 184);
    assert_true(unread < count / 3);
    for (size_t i = 0; i < count; i++)
        if (!recorded[i].adapter && strcmp(recorded[i].kind, "-") != 0 && strcmp(recorded[i].kind, "probe") != 0)
            fail_msg("%s: no kind %s", recorded[i].name, recorded[i].kind);
}

static void forget(struct recorded *recorded)
{
    free(recorded->name);
    free(recorded->kind);
    free(recorded->outcome);
    free(recorded->prompt_ids);
    free(recorded->options);
    free(recorded->body.data);
    json_decref(recorded->json);
}

int main(void)
{
    static struct recorded recorded[EXCHANGES_MAX];
    static struct CMUnitTest tests[2 * EXCHANGES_MAX + 1];
    json_t *exchanges = read_exchanges();
    size_t count = read_table(exchanges, recorded), used = 1;
    int failed;

    tests[0] = (struct CMUnitTest){.name = xstrdup("every exchange is decided"),
                                   .test_func = test_every_exchange_is_decided,
                                   .initial_state = recorded};
    for (size_t i = 0; i < count; i++) {
        if (strcmp(recorded[i].kind, "probe") == 0)
            tests[used++] = (struct CMUnitTest){.name = xasprintf("a probe learns from %s", recorded[i].name),
                                                .test_func = test_a_probe_learns_what_was_decided,
                                                .initial_state = &recorded[i]};
        if (!recorded[i].adapter)
            continue;
        tests[used++] = (struct CMUnitTest){.name = xasprintf("%s is read as decided", recorded[i].name),
                                            .test_func = test_it_is_read_as_decided,
                                            .initial_state = &recorded[i]};
        tests[used++] = (struct CMUnitTest){.name = xasprintf("%s cut anywhere is asked for again", recorded[i].name),
                                            .test_func = test_cut_anywhere_the_same_is_asked_for_again,
                                            .initial_state = &recorded[i]};
    }
    failed = _cmocka_run_group_tests("recorded", tests, used, NULL, NULL);
    for (size_t i = 0; i < used; i++)
        free((char *)(uintptr_t)tests[i].name);
    for (size_t i = 0; i < count; i++)
        forget(&recorded[i]);
    json_decref(exchanges);
    return failed;
}
