/* Whether an engine keeps its word: the tokens of a fixed text, and a handful of tiny samples that are compared. */
#include "client/adapters/reply.h"
#include "client/probe/dialogue_private.h"
#include "server/base/hash.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const logprobs_kind_names[] = {
    [LOGPROBS_KIND_UNKNOWN] = "unknown",
    [LOGPROBS_KIND_RAW] = "raw",
    [LOGPROBS_KIND_TEMPERATURE] = "after_temperature",
    [LOGPROBS_KIND_PROCESSED] = "processed",
    [LOGPROBS_KIND_LOGITS] = "logits",
};

#define ROUNDS 2 /* of the questions, where an answer could not be read */

/* Several scripts, white space, digits and marks: two tokenizers that agree on this are one, for our purposes. No words
 * that tokenizers keep for themselves: some read those in a text and some do not. */
static const char tokenized_text[] =
    "Zürich, 漢字 и 🦙:\n\tif (x1 != 0) { return 1234567890 * y; }  don't   e^{-i\\pi}";
/* Anything may follow, so that equal samples of unequal seeds mean something. */
static const char prompt_text[] = "A list of random words:";

/* --- the tokens of a text -------------------------------------------------------------------------- */

static struct text model_of(const struct probe *probe)
{
    if (probe->rules.model.data)
        return probe->rules.model;
    return probe->facts.model[0] ? text_of(probe->facts.model) : TEXT_NONE;
}

bool tokens_build(const struct probe *probe, struct engine_call *ret_call)
{
    const struct tokenize_words *words = &probe->facts.adapter->tokenize;
    struct json_write json;

    if (!words->text_key)
        return false;
    ret_call->method = "POST";
    ret_call->path = "/tokenize";
    json_write_init(&json, &ret_call->body);
    json_object_begin(&json);
    put_optional_text(&json, "model", model_of(probe));
    json_put_string(&json, words->text_key, tokenized_text);
    json_put_bool(&json, words->special_key, false);
    json_object_end(&json);
    return true;
}

void tokens_read(struct probe *probe, const struct engine_reply *reply)
{
    struct exchange exchange = {.step = 0};
    struct sample_error error = {0};
    struct buffer listed;
    uint8_t digest[SHA256_BYTES];
    char id[16];

    if (!status_is_success(reply->status) || exchange_take_prompt_ids(&exchange, reply, &error) != EXCHANGE_NEXT)
        return;
    buffer_init(&listed, 16 * PROBE_REPLY_BYTES);
    for (size_t i = 0; i < exchange.prompt_id_count; i++) {
        int length = snprintf(id, sizeof(id), "%s%u", i ? "," : "", exchange.prompt_ids[i]);
        buffer_append(&listed, id, (size_t)length);
    }
    if (!listed.failed) {
        sha256_of(listed.data, listed.length_bytes, digest);
        sha256_hex(digest, probe->facts.tokenizer_sha256);
    }
    buffer_finish(&listed);
    free(exchange.prompt_ids);
}

/* --- questions -------------------------------------------------------------------------------------- */

static const struct {
    uint64_t seed;
    int64_t max_tokens;
    int64_t top_k;
    double temperature;
} questions[] = {
    [QUESTION_SEED] = {1001, PROBE_TOKENS, 0, 1},
    [QUESTION_OTHER_SEED] = {2002, PROBE_TOKENS, 0, 1},
    [QUESTION_SEED_AGAIN] = {1001, PROBE_TOKENS, 0, 1},
    [QUESTION_SEED_THIRD] = {1001, PROBE_TOKENS, 0, 1},
    [QUESTION_LIKELIEST] = {1001, 1, 1, 1},
    [QUESTION_LIKELIEST_HOTTER] = {1001, 1, 1, 2},
    [QUESTION_TWO] = {1001, 1, 0, 1},
};
_Static_assert(ARRAY_LENGTH(questions) == PROBE_QUESTIONS, "an answer for each question");

/* {"model":…,"prompt":…,"n":2,"max_tokens":1,"temperature":1} in the words of the kind. */
static bool build_two(const struct probe *probe, struct engine_call *ret_call)
{
    const struct two_samples_words *words = &probe->facts.adapter->two_samples;
    struct json_write json;

    if (!words->path)
        return false;
    ret_call->method = "POST";
    ret_call->path = words->path;
    json_write_init(&json, &ret_call->body);
    json_object_begin(&json);
    put_optional_text(&json, "model", model_of(probe));
    json_put_string(&json, words->prompt_key, prompt_text);
    if (words->sampling_key) {
        json_key(&json, words->sampling_key);
        json_object_begin(&json);
    }
    json_put_int(&json, "n", 2);
    json_put_int(&json, words->max_tokens_key, 1);
    json_put_double(&json, "temperature", 1);
    if (words->sampling_key)
        json_object_end(&json);
    json_object_end(&json);
    return true;
}

static void open_exchange(struct probe *probe)
{
    probe->request = (struct sample_request){
        .prompt = text_of(prompt_text),
        .sampling = {.max_tokens = questions[probe->step].max_tokens,
                     .temperature = questions[probe->step].temperature,
                     .top_p = 1,
                     .top_k = questions[probe->step].top_k},
        .model = model_of(probe),
        .seed = questions[probe->step].seed + 10000 * probe->round,
    };
    exchange_init(&probe->exchange, probe->facts.adapter, &probe->request);
    probe->exchange_open = true;
}

/* The next question that this kind of engine can be asked. */
bool questions_build(struct probe *probe, struct engine_call *ret_call)
{
    struct sample_error error;

    for (; probe->step < PROBE_QUESTIONS; probe->step++) {
        if (probe->step == QUESTION_TWO)
            return build_two(probe, ret_call);
        if (!probe->exchange_open)
            open_exchange(probe);
        if (exchange_build(&probe->exchange, ret_call, &error))
            return true;
        probe_finish(probe);
    }
    return false;
}

/* --- answers ------------------------------------------------------------------------------------------ */

static void keep_answer(struct probe_answer *answer, const struct sample *sample)
{
    *answer = (struct probe_answer){.given = true, .has_ids = sample->ids, .first_logprob = NAN};
    snprintf(answer->text, sizeof(answer->text), "%.*s",
             (int)(sample->text.length_bytes < 90 ? sample->text.length_bytes : 90),
             sample->text.data ? sample->text.data : "");
    answer->count = sample->id_count < PROBE_TOKENS ? sample->id_count : PROBE_TOKENS;
    for (size_t i = 0; i < answer->count && sample->ids; i++) {
        answer->ids[i] = sample->ids[i];
        if (sample->logprobs && i == 0)
            answer->first_logprob = (double)sample->logprobs[0];
        if (sample->logprobs)
            answer->sum_logprob += (double)sample->logprobs[i];
    }
}

/* Above 0: whatever these are, they are no logarithms of probabilities. */
static bool is_about_logits(const struct sample_error *error)
{
    return error->code == SAMPLE_INVALID_REPLY && strstr(error->message, "above 0");
}

static void note_refusal(struct probe *probe, const struct sample_error *error)
{
    struct engine_capabilities *capabilities = &probe->facts.capabilities;

    if (is_about_logits(error))
        capabilities->logprobs_kind = LOGPROBS_KIND_LOGITS;
    snprintf(capabilities->note, sizeof(capabilities->note), "%.159s", error->message);
}

static size_t count_elements(struct json_scan *scan)
{
    size_t count = 0;

    for (json_scan_array(scan); json_scan_element(scan); count++)
        json_scan_skip(scan);
    return count;
}

/* The number of samples in a reply: an array of them, or {"choices":[…]}. */
static size_t count_samples(struct text body)
{
    struct json_scan scan;
    struct text key;
    size_t count = 1;

    json_scan_init(&scan, body);
    if (json_scan_peek(&scan) == JSON_KIND_ARRAY) {
        count = count_elements(&scan);
    } else {
        for (json_scan_object(&scan); json_scan_member(&scan, &key);) {
            if (text_equals(key, "choices") && json_scan_peek(&scan) == JSON_KIND_ARRAY)
                count = count_elements(&scan);
            else
                json_scan_skip(&scan);
        }
    }
    return json_scan_end(&scan) ? count : 0;
}

static void take_two(struct probe *probe, const struct engine_reply *reply)
{
    size_t count = status_is_success(reply->status) ? count_samples(reply->body) : 0;

    if (count || reply->status == 400 || reply->status == 422)
        probe->facts.capabilities.n = count == 2 ? CAPABILITY_YES : CAPABILITY_NO;
}

/* An answer that cannot be read (half a character, say) is asked for once more with other seeds: all of them, because
 * they are compared. */
static bool wants_another_round(const struct probe *probe, const struct sample_error *error)
{
    return error->code == SAMPLE_INVALID_REPLY && !is_about_logits(error) && probe->step <= QUESTION_SEED_THIRD &&
           probe->round + 1 < ROUNDS;
}

bool questions_take(struct probe *probe, const struct engine_reply *reply)
{
    struct sample sample;
    struct sample_error error;
    enum exchange_outcome outcome;

    if (probe->step == QUESTION_TWO) {
        take_two(probe, reply);
        return false;
    }
    outcome = exchange_parse(&probe->exchange, reply, &sample, &error);
    if (outcome == EXCHANGE_NEXT)
        return true;
    probe_finish(probe);
    if (outcome == EXCHANGE_SAMPLE) {
        keep_answer(&probe->answers[probe->step], &sample);
        sample_finish(&sample);
    } else {
        note_refusal(probe, &error);
    }
    if (outcome == EXCHANGE_ERROR && wants_another_round(probe, &error)) {
        probe->round++;
        probe->step = QUESTION_SEED;
        memset(probe->answers, 0, sizeof(probe->answers));
        return true;
    }
    if (outcome == EXCHANGE_ERROR && error.code != SAMPLE_INVALID_REPLY && error.code != SAMPLE_EMPTY_COMPLETION) {
        probe->in_vain = error.retryable;
        return false; /* it refuses: more of the same would only disturb it */
    }
    probe->step++;
    return probe->step < QUESTION_TWO || (probe->step == QUESTION_TWO && probe->facts.adapter->two_samples.path);
}

/* --- conclusions ------------------------------------------------------------------------------------------ */

static bool answers_equal(const struct probe_answer *left, const struct probe_answer *right)
{
    if (left->has_ids != right->has_ids)
        return false;
    if (!left->has_ids)
        return strcmp(left->text, right->text) == 0;
    return left->count == right->count && memcmp(left->ids, right->ids, left->count * sizeof(left->ids[0])) == 0;
}

static enum capability conclude_seeds(const struct probe_answer *answers, char *note, size_t note_bytes)
{
    const struct probe_answer *first = &answers[QUESTION_SEED];
    const struct probe_answer *other = &answers[QUESTION_OTHER_SEED];

    if (!first->given || !answers[QUESTION_SEED_AGAIN].given)
        return CAPABILITY_UNKNOWN;
    if (!answers_equal(first, &answers[QUESTION_SEED_AGAIN]) ||
        (answers[QUESTION_SEED_THIRD].given && !answers_equal(first, &answers[QUESTION_SEED_THIRD]))) {
        snprintf(note, note_bytes, "the same seed gave other tokens");
        return CAPABILITY_NO;
    }
    if (!other->given || !answers[QUESTION_SEED_THIRD].given)
        return CAPABILITY_UNKNOWN;
    if (!answers_equal(first, other))
        return CAPABILITY_YES;
    if (first->has_ids && first->sum_logprob > log(0.5)) {
        snprintf(note, note_bytes, "this model says the same whatever the seed, so nothing can be told about seeds");
        return CAPABILITY_UNKNOWN;
    }
    snprintf(note, note_bytes, "another seed gave the same tokens");
    return CAPABILITY_NO;
}

/* The most likely token at temperature 1 and 2 under top_k 1. Of the model itself: the same number. After the
 * temperature: another one. After the filter: it is the only one left, so 0, unless it was certain anyway, which the
 * answers to the other questions would show. */
static enum logprobs_kind conclude_logprobs(const struct probe_answer *answers)
{
    const double same = 0.01;
    const double different = 0.05;
    const double certain = 1e-5;
    double cold = answers[QUESTION_LIKELIEST].first_logprob;
    double hot = answers[QUESTION_LIKELIEST_HOTTER].first_logprob;
    bool open = false;

    if (!answers[QUESTION_LIKELIEST].has_ids || !answers[QUESTION_LIKELIEST_HOTTER].has_ids || isnan(cold) ||
        isnan(hot) || answers[QUESTION_LIKELIEST].ids[0] != answers[QUESTION_LIKELIEST_HOTTER].ids[0])
        return LOGPROBS_KIND_UNKNOWN;
    for (int question = QUESTION_SEED; question <= QUESTION_SEED_THIRD; question++)
        open = open || (answers[question].has_ids && answers[question].first_logprob < -0.001);
    if (fabs(cold) < certain && fabs(hot) < certain)
        return open ? LOGPROBS_KIND_PROCESSED : LOGPROBS_KIND_UNKNOWN;
    if (fabs(cold - hot) < same)
        return cold < -different ? LOGPROBS_KIND_RAW : LOGPROBS_KIND_UNKNOWN;
    return fabs(cold - hot) > different ? LOGPROBS_KIND_TEMPERATURE : LOGPROBS_KIND_UNKNOWN;
}

void probe_conclude(const struct probe_answer answers[PROBE_QUESTIONS], struct engine_capabilities *capabilities)
{
    char note[sizeof(capabilities->note)] = "";

    for (size_t i = 0; i < QUESTION_TWO; i++) {
        if (answers[i].given && answers[i].has_ids)
            capabilities->ids = capabilities->logprobs = CAPABILITY_YES;
        else if (answers[i].given && capabilities->ids == CAPABILITY_UNKNOWN)
            capabilities->ids = capabilities->logprobs = CAPABILITY_NO;
    }
    capabilities->seeds = conclude_seeds(answers, note, sizeof(note));
    if (capabilities->logprobs_kind != LOGPROBS_KIND_LOGITS)
        capabilities->logprobs_kind = conclude_logprobs(answers);
    if (note[0])
        snprintf(capabilities->note, sizeof(capabilities->note), "%s", note);
}
