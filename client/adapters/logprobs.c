#include "client/adapters/logprobs.h"
#include "client/adapters/reply.h"

#include <math.h>

/* --- between model and sample --------------------------------------------------------------------------- */

/* engine_options by name; at `off` the option changes nothing. An empty value or false never does. */
static const struct {
    const char *name;
    unsigned change;
    double off;
} known_options[] = {
    {"repetition_penalty", SAMPLING_PENALTY, 1},
    {"repeat_penalty", SAMPLING_PENALTY, 1},
    {"presence_penalty", SAMPLING_PENALTY, 0},
    {"frequency_penalty", SAMPLING_PENALTY, 0},
    {"dry_multiplier", SAMPLING_PENALTY, 0},
    {"typical_p", SAMPLING_FILTER, 1},
    {"top_n_sigma", SAMPLING_FILTER, -1},
    {"xtc_probability", SAMPLING_FILTER, 0},
    {"mirostat", SAMPLING_FILTER, 0},
    {"top_a", SAMPLING_FILTER, 0},
    {"dynatemp_range", SAMPLING_TEMPERATURE, 0},
    {"logit_bias", SAMPLING_BIAS, NAN},
    {"bad_words", SAMPLING_BIAS, NAN},
    {"allowed_token_ids", SAMPLING_BIAS, NAN},
    {"min_tokens", SAMPLING_BIAS, 0},
    {"min_new_tokens", SAMPLING_BIAS, 0},
    {"ignore_eos", SAMPLING_IGNORE_EOS, NAN},
    {"custom_logit_processor", SAMPLING_BIAS, NAN},
    {"logits_processors", SAMPLING_BIAS, NAN},
    {"grammar", SAMPLING_CONSTRAINT, NAN},
    {"json_schema", SAMPLING_CONSTRAINT, NAN},
    {"regex", SAMPLING_CONSTRAINT, NAN},
    {"ebnf", SAMPLING_CONSTRAINT, NAN},
    {"structural_tag", SAMPLING_CONSTRAINT, NAN},
    {"structured_outputs", SAMPLING_CONSTRAINT, NAN},
    {"response_format", SAMPLING_CONSTRAINT, NAN},
    {"guided_json", SAMPLING_CONSTRAINT, NAN},
    {"guided_regex", SAMPLING_CONSTRAINT, NAN},
    {"guided_choice", SAMPLING_CONSTRAINT, NAN},
    {"guided_grammar", SAMPLING_CONSTRAINT, NAN},
    /* about the work, not the distribution */
    {"cache_prompt", 0, NAN},
    {"id_slot", 0, NAN},
    {"priority", 0, NAN},
    {"post_sampling_probs", 0, NAN},
    {"skip_special_tokens", 0, NAN},
    {"spaces_between_special_tokens", 0, NAN},
    {"include_stop_str_in_output", 0, NAN},
    {"no_stop_trim", 0, NAN},
};

/* null, false, "", [] and {} switch an option off. */
static bool is_nothing(struct text value)
{
    static const char *const nothings[] = {"null", "false", "\"\"", "[]", "{}"};

    for (size_t i = 0; i < ARRAY_LENGTH(nothings); i++)
        if (text_equals(value, nothings[i]))
            return true;
    return false;
}

static bool is_number(struct text value, double wanted)
{
    struct json_scan scan;
    double number;

    json_scan_init(&scan, value);
    return json_scan_peek(&scan) == JSON_KIND_NUMBER && json_scan_number(&scan, &number) && number == wanted;
}

static unsigned option_change(struct text name, struct text value)
{
    for (size_t i = 0; i < ARRAY_LENGTH(known_options); i++)
        if (text_equals(name, known_options[i].name))
            return is_number(value, known_options[i].off) ? 0 : known_options[i].change;
    return SAMPLING_UNKNOWN;
}

unsigned sampling_changes(const struct sampling *sampling)
{
    unsigned changes = fabs(sampling->temperature - 1) < 1e-9 ? 0 : SAMPLING_TEMPERATURE;
    struct json_scan scan;
    struct text name;

    if (sampling->top_p < 1 || sampling->top_k > 0 || sampling->min_p > 0)
        changes |= SAMPLING_FILTER;
    if (!sampling->engine_options.data)
        return changes;
    json_scan_init(&scan, sampling->engine_options);
    for (json_scan_object(&scan); json_scan_member(&scan, &name);) {
        struct text value = json_scan_raw(&scan);

        if (!is_nothing(value))
            changes |= option_change(name, value);
    }
    return changes;
}

/* --- raw or processed --------------------------------------------------------------------- */

enum logprobs_mode exchange_logprobs_mode(const struct exchange *exchange)
{
    const struct sample_request *request = exchange->request;
    enum logprobs_source source = exchange->adapter->logprobs;
    unsigned changes = sampling_changes(&request->sampling);

    if (source == LOGPROBS_OF_MODEL)
        return options_have(request->sampling.engine_options, "post_sampling_probs") ? LOGPROBS_PROCESSED
                                                                                     : LOGPROBS_RAW;
    if (request->logprobs_mode != LOGPROBS_UNKNOWN)
        return request->logprobs_mode;
    if (!(changes & ~(unsigned)SAMPLING_IGNORE_EOS))
        return LOGPROBS_RAW;
    return source == LOGPROBS_BEHIND_TEMPERATURE && changes == SAMPLING_TEMPERATURE ? LOGPROBS_PROCESSED
                                                                                    : LOGPROBS_UNKNOWN;
}

/* --- effect on ratios ------------------------------------------------------------------------ */

#define KNOWN_CHANGE (SAMPLING_TEMPERATURE | SAMPLING_FILTER | SAMPLING_PENALTY | SAMPLING_BIAS | SAMPLING_CONSTRAINT)
#define UNKNOWN_OPTIONS                                                                                                \
    "were sampled with engine_options that are not known here: importance ratios are right only if none of them "      \
    "changes what is sampled"
#define IGNORED_END                                                                                                    \
    "were sampled with ignore_eos: where the engine forbids the end of sequence (llama.cpp does), importance ratios "  \
    "leave it out"

static const struct {
    enum logprobs_mode mode;
    unsigned change;
    const char *note;
} rules[] = {
    {LOGPROBS_RAW, SAMPLING_TEMPERATURE,
     "have raw log-probabilities and were sampled at a temperature other than 1: importance ratios leave it out"},
    {LOGPROBS_RAW, SAMPLING_FILTER,
     "have raw log-probabilities behind top_p, top_k, min_p or another filter: what was kept was likelier than they "
     "say, "
     "importance ratios are wrong"},
    {LOGPROBS_RAW, SAMPLING_PENALTY,
     "have raw log-probabilities and were sampled with a penalty: importance ratios leave it out"},
    {LOGPROBS_RAW, SAMPLING_BIAS,
     "have raw log-probabilities and were sampled with a logit bias or forbidden tokens: importance ratios leave it "
     "out"},
    {LOGPROBS_RAW, SAMPLING_CONSTRAINT,
     "have raw log-probabilities and were sampled under a grammar: importance ratios leave it out"},
    {LOGPROBS_PROCESSED, SAMPLING_TEMPERATURE,
     "have log-probabilities behind a temperature other than 1: ratios are right only against a trainer's that divides "
     "by "
     "it, too"},
    {LOGPROBS_PROCESSED, SAMPLING_FILTER,
     "have log-probabilities behind top_p, top_k, min_p or another filter: a trainer's over all tokens are of another "
     "distribution, importance ratios are wrong"},
    {LOGPROBS_PROCESSED, SAMPLING_PENALTY | SAMPLING_BIAS | SAMPLING_CONSTRAINT,
     "have log-probabilities behind a penalty, a bias or a grammar that a trainer's do not know: importance ratios are "
     "wrong"},
    {LOGPROBS_UNKNOWN, KNOWN_CHANGE,
     "have log-probabilities of which nobody knows whether temperature and filters are in them (logprobs_mode "
     "unknown): "
     "importance ratios cannot be trusted"},
    {LOGPROBS_RAW, SAMPLING_IGNORE_EOS, IGNORED_END},
    {LOGPROBS_PROCESSED, SAMPLING_IGNORE_EOS, IGNORED_END},
    {LOGPROBS_RAW, SAMPLING_UNKNOWN, UNKNOWN_OPTIONS},
    {LOGPROBS_PROCESSED, SAMPLING_UNKNOWN, UNKNOWN_OPTIONS},
    {LOGPROBS_UNKNOWN, SAMPLING_UNKNOWN, UNKNOWN_OPTIONS},
};

size_t logprobs_notes(unsigned changes, enum logprobs_mode mode, const char *ret_notes[LOGPROBS_NOTES_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_LENGTH(rules) && count < LOGPROBS_NOTES_MAX; i++)
        if (rules[i].mode == mode && (rules[i].change & changes))
            ret_notes[count++] = rules[i].note;
    return count;
}
