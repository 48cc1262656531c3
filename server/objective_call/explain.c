#include "server/objective_call/explain.h"

#include "server/base/number.h"
#include "server/spec/objective.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- formulas: A advantage, lp lo lr lb log-probability now, old, reference, rollout; x = lp - lo, r = exp(x) ----- */

struct formula {
    const char *name;
    const char *value;
    const char *derivative; /* by lp; NULL: not used */
};

static const struct formula estimators[] = {
    {"grpo", "(R - mean) / (std + eps), std by `scale`; 0 where the rewards are equal", NULL},
    {"reward", "R", NULL},
    {"rloo", "R - mean of the others", NULL},
    {"loo_mean_loo_std", "(R - mean of the others) / (sample std of the others + eps)", NULL},
    {"maxrl", "(R - mean) / (mean + eps)", NULL},
    {"grpo_passk", "best member: (R1 - R2) / (std + eps); all others 0", NULL},
    {"opo", "R - sum(n R) / sum(n) over the group", NULL},
    {"gpg", "alpha (R - mean) / f_norm, alpha = B / number of R other than 0", NULL},
    {"remax", "sum of the token rewards from here on - greedy_reward", NULL},
    {"reward_to_go", "G_t = reward_t + gamma G_(t+1)", NULL},
    {"reinforce_plus_plus", "reward_to_go, whitened over all trainable tokens of the request", NULL},
    {"reinforce_plus_plus_baseline", "R - mean, whitened over all trainable tokens of the request", NULL},
    {"reinforce_plus_plus_baseline_sequence", "(R - mean) / (std of all R - mean, + eps)", NULL},
    {"gdpo", "each reward normalised in its group, S = weighted sum, (S - mean S) / (std S + eps_batch)", NULL},
    {"normalization", "(R - mean) / (std + eps), each by its own level", NULL},
    {"process", "sum of the normalised rewards of the steps that end after this token", NULL},
    {"ema_baseline", "R - b, then b = decay b + (1 - decay) R", NULL},
    {"optimal_token_baseline", "G_t - sum(G_t W_t) / (sum(W_t) + eps) over the group", NULL},
};

static const struct formula kls[] = {
    {"k1", "d = lp - lr", "1"},
    {"abs", "|d|, d = lp - lr", "sign(d)"},
    {"k2", "d^2 / 2, d = lp - lr", "d"},
    {"k3", "e^(-d) + d - 1, d = lp - lr", "1 - e^(-d)"},
    {"k1_plus", "d = lp - lr", "d (that of k2)"},
    {"k3_plus", "e^(-d) + d - 1, d = lp - lr", "d (that of k2)"},
};

static const struct formula modes[] = {
    {"seq_mean_token_mean", "1 / (n N)", NULL},
    {"token_mean", "1 / T", NULL},
    {"token_sum", "1", NULL},
    {"seq_mean_token_sum", "1 / N", NULL},
    {"seq_mean_token_sum_norm", "1 / (N max_len)", NULL},
    {"seq_sum_token_sum_norm", "1 / max_len", NULL},
    {"prompt_mean", "1 / (P * trainable tokens of the group)", NULL},
    {"rollout_mean", "1 / (rollouts * trainable tokens of the rollout)", NULL},
    {"constant", "1 / denominator", NULL},
    {"group_mean_seq_mean_token_mean", "1 / (P G n), G members of the group with a reward", NULL},
};

static const struct formula unknown = {"", "as this kind defines it", "as this kind defines it"};

static const struct formula *find_formula(const struct formula *table, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (name && strcmp(table[i].name, name) == 0)
            return &table[i];
    return &unknown;
}

static struct formula find_loss(const char *name)
{
    for (size_t i = 0; i < OBJECTIVE_LOSS_COUNT; i++)
        if (name && strcmp(objective_loss_texts[i].name, name) == 0)
            return (struct formula){name, objective_loss_texts[i].value, objective_loss_texts[i].derivative};
    return unknown;
}

/* --- what is asked for ------------------------------------------------------------------------------------ */

static int refuse(struct objective_call *objective, const char *message)
{
    return call_refuse(objective->call, ERR_INVALID_FIELD, "explain", "%s", message);
}

static bool read_index(struct text text, size_t *ret_index)
{
    struct number number;
    const char *end = text.data + text.length_bytes;
    if (text.length_bytes == 0 || number_parse(text.data, end, &number) != end || !number.is_integer ||
        number.integer < 0)
        return false;
    *ret_index = (size_t)number.integer;
    return true;
}

static bool find_sequence(const struct objective_call *objective, struct text name, size_t *ret_index)
{
    if (read_index(name, ret_index))
        return *ret_index < objective->count;
    for (size_t i = 0; i < objective->count; i++) {
        *ret_index = i;
        if (objective->items[i].rollout.data && text_same(objective->items[i].rollout, name))
            return true;
    }
    return false;
}

int objective_explain_read(struct objective_call *objective)
{
    struct text asked = call_query(objective->call, "explain");
    const char *comma = asked.data ? memrchr(asked.data, ',', asked.length_bytes) : NULL;
    size_t sequence;
    size_t token;

    if (!asked.data)
        return 0;
    if (!comma)
        return refuse(objective, "expected <sequence>,<token>, or the id of a rollout and a token");
    size_t before_bytes = (size_t)(comma - asked.data);
    if (!find_sequence(objective, (struct text){asked.data, before_bytes}, &sequence))
        return refuse(objective, "no sequence of this request has this index, or is this rollout");
    if (!read_index((struct text){comma + 1, asked.length_bytes - before_bytes - 1}, &token) ||
        token >= objective->sequences[sequence].tokens)
        return refuse(objective, "the sequence has no token of this index; they count from 0");
    objective->explain = true;
    objective->explain_sequence = sequence;
    objective->explain_token = token;
    objective->returns = (1U << ARRAY_COUNT) - 1;
    objective->arrays = JSON_ARRAYS_PLAIN;
    objective->keep = objective->narrow = false;
    objective->sequences[sequence].importance =
        objective_allocate(objective, objective->sequences[sequence].tokens, sizeof(double));
    return objective->sequences[sequence].importance ? 0 : -1;
}

/* --- the same evaluation with a knob switched off ------------------------------------------------------------- */

struct token_terms {
    double surrogate;
    double gradient;
};

static void strip_outputs(struct objective_sequence *sequence)
{
    sequence->advantages = sequence->importance = NULL;
    sequence->surrogates = sequence->contributions = sequence->dloss_dlogp = NULL;
    sequence->ratios = sequence->weights = sequence->kl = NULL;
    sequence->clipped = NULL;
    sequence->selected = NULL;
}

/* NAN in both if it cannot be evaluated so. */
static struct token_terms evaluate_with(struct objective_call *objective, const struct objective_request *request,
                                        const struct objective_knobs *knobs)
{
    struct token_terms terms = {NAN, NAN};
    struct objective_request changed = *request;
    struct objective_result result;
    struct objective_error error;
    size_t tokens = objective->sequences[objective->explain_sequence].tokens;
    struct objective_sequence *sequences = objective_allocate(objective, objective->count, sizeof *sequences);
    struct objective_group *groups = objective_allocate(objective, objective->group_count, sizeof *groups);
    double *outputs = objective_allocate(objective, 2 * tokens, sizeof *outputs);

    if (!sequences || !groups || !outputs)
        return terms;
    memcpy(sequences, objective->sequences, objective->count * sizeof *sequences);
    memcpy(groups, objective->groups, objective->group_count * sizeof *groups);
    for (size_t i = 0; i < objective->count; i++)
        strip_outputs(&sequences[i]);
    sequences[objective->explain_sequence].surrogates = outputs;
    sequences[objective->explain_sequence].dloss_dlogp = outputs + tokens;
    changed.knobs = knobs;
    changed.sequences = sequences;
    changed.groups = groups;
    changed.baselines = NULL;
    if (objective_evaluate(&changed, &result, &error) == 0)
        terms = (struct token_terms){outputs[objective->explain_token], outputs[tokens + objective->explain_token]};
    return terms;
}

/* The knobs with `section` replaced by `value` (which this takes), by way of their echo. */
static bool change_knobs(const json_t *echo, const char *section, json_t *value, struct objective_knobs *ret_knobs)
{
    json_auto_t *copy = json_copy((json_t *)(uintptr_t)echo);
    json_object_set_new(copy, section, value);
    _cleanup_free_ char *dumped = json_dumps(copy, JSON_COMPACT | JSON_REAL_PRECISION(17));
    return dumped && objective_json_parse(text_of(dumped), ret_knobs) == 0;
}

/* --- writing ---------------------------------------------------------------------------------------------- */

struct explanation {
    struct objective_call *objective;
    const struct objective_request *request;
    const struct objective_result *result;
    const json_t *knobs; /* the echo */
    struct json_write *json;
    struct objective_sequence sequence; /* as evaluated */
    size_t token;
    double policy_term;
    double contribution;
    double gradient;
    double weight;
    double kl;
};

static const char *kind_of(const struct explanation *explanation, const char *section, const char *selector)
{
    return json_string_value(json_object_get(json_object_get(explanation->knobs, section), selector));
}

static void step(struct explanation *explanation, const char *name, const char *formula, double value)
{
    json_object_begin(explanation->json);
    json_put_string(explanation->json, "step", name);
    json_put_string(explanation->json, "formula", formula);
    json_put_double(explanation->json, "value", value);
    json_object_end(explanation->json);
}

static double value_at(struct objective_values values, size_t token)
{
    return values.f64 ? values.f64[token] : values.f32 ? (double)values.f32[token] : NAN;
}

static void write_reward(struct explanation *explanation)
{
    const struct objective_item *item = &explanation->objective->items[explanation->objective->explain_sequence];
    const struct objective_group *group = &explanation->request->groups[explanation->sequence.group];
    bool rewarded = item->has_reward || explanation->objective->stored;
    const char *estimator = kind_of(explanation, "advantage", "estimator");
    const double *by_token = explanation->sequence.advantages; /* NULL: one for the whole sequence */
    bool shaped = json_array_size(json_object_get(explanation->knobs, "shaping")) > 0;

    if (rewarded) {
        step(explanation, "reward", explanation->objective->stored ? "R, from the record" : "R, as given",
             explanation->sequence.reward);
        if (shaped)
            step(explanation, "shaped_reward", "R after `shaping`", explanation->sequence.shaped_reward);
        step(explanation, "group_judged", "members of the group that have a reward; a rollout is one",
             (double)group->rewarded);
        step(explanation, "group_mean", "mean of R over them", group->mean);
        step(explanation, "group_deviation", "deviation of R over them, by `ddof`", group->std);
    }
    step(explanation, "advantage",
         rewarded ? find_formula(estimators, ARRAY_LENGTH(estimators), estimator)->value : "A, as given",
         by_token ? by_token[explanation->token] : explanation->sequence.advantage);
}

static bool is_trainable(const struct explanation *explanation)
{
    const struct objective_sequence *sequence = &explanation->sequence;
    bool counts = explanation->weight != 0 || explanation->contribution != 0 || explanation->gradient != 0;
    return sequence->rewarded && !sequence->untrainable && (!sequence->mask || sequence->mask[explanation->token]) &&
           counts;
}

/* The stored form rounds what it gets to what the record holds; the engine's own numbers are the record's. */
static const char *origin(const struct explanation *explanation, const char *given, const char *rounded)
{
    return explanation->objective->stored ? rounded : given;
}

static const char *origin_of_old(const struct explanation *explanation)
{
    const struct objective_call *objective = explanation->objective;
    const struct objective_sequence *sequence = &explanation->sequence;

    if (objective->items[objective->explain_sequence].has_old_logprobs)
        return origin(explanation, "lo, as given", "lo, as given and rounded to float32 like the record");
    if (objective->stored)
        return "lo = lb, the engine's, from the record";
    return sequence->rollout_logprobs.f64 || sequence->rollout_logprobs.f32 ? "lo = lb" : "lo = lp";
}

static void write_ratio(struct explanation *explanation)
{
    const struct objective_sequence *sequence = &explanation->sequence;
    size_t token = explanation->token;
    const char *anchor = kind_of(explanation, "loss", "anchor");
    bool rollout = anchor && strcmp(anchor, "rollout") == 0;
    double logprob = value_at(sequence->logprobs, token);
    double old = value_at(rollout ? sequence->rollout_logprobs : sequence->old_logprobs, token);

    step(explanation, "logprob",
         origin(explanation, "lp, as given", "lp, as given and rounded to float32 like the record"), logprob);
    if (rollout)
        step(explanation, "rollout_logprob", origin(explanation, "lb, as given", "lb, the engine's, from the record"),
             old);
    else
        step(explanation, "old_logprob", origin_of_old(explanation), old);
    step(explanation, "log_ratio", rollout ? "x = lp - lb" : "x = lp - lo", isnan(old) ? 0 : logprob - old);
    step(explanation, "ratio", "r = exp(x), or the ratio of the sequence for kinds that have one",
         isinf(sequence->ratios[token]) ? NAN : sequence->ratios[token]);
    step(explanation, "clip", "0 no bound acts, 1 the upper one, -1 the lower one, 2 dual_c", sequence->clipped[token]);
}

/* vespo reads the importance itself: it has no weight beside it. */
static bool takes_importance(const struct explanation *explanation)
{
    const char *kind = kind_of(explanation, "loss", "kind");
    return kind && strcmp(kind, "vespo") == 0;
}

/* Before importance and selection. */
static double raw_term(const struct explanation *explanation)
{
    struct objective_knobs knobs;
    json_auto_t *echo = json_copy((json_t *)(uintptr_t)explanation->knobs);
    if (!takes_importance(explanation))
        json_object_set_new(echo, "importance", json_pack("{s:s}", "method", "none"));
    if (!change_knobs(echo, "selection", json_pack("{s:s}", "method", "none"), &knobs))
        return NAN;
    return -evaluate_with(explanation->objective, explanation->request, &knobs).surrogate + 0.0;
}

static void write_policy(struct explanation *explanation)
{
    const char *kind = kind_of(explanation, "loss", "kind");
    struct formula formula = find_loss(kind);
    double raw = raw_term(explanation);
    double importance = takes_importance(explanation) ? 1 : explanation->sequence.importance[explanation->token];
    double rest = explanation->policy_term - raw * importance;
    bool has_rest = fabs(rest) > 1e-12 * (fabs(raw * importance) + fabs(explanation->policy_term));

    step(explanation, "token_loss", formula.value, raw);
    step(explanation, "importance_weight", "weight of the off-policy correction, 0 where it rejects", importance);
    if (has_rest)
        step(explanation, "selection_term", "what selection adds, or takes away", rest);
    step(explanation, "selected", "0: dropped by selection, importance or the loss' own trust region; else 1",
         explanation->sequence.selected[explanation->token]);
    step(explanation, "policy_term",
         has_rest ? "token_loss * importance_weight + selection_term" : "token_loss * importance_weight",
         explanation->policy_term);
}

/* 0 where the KL is no part of this token's loss. */
static double beta_of(const struct explanation *explanation)
{
    const json_t *kl = json_object_get(explanation->knobs, "kl");
    const char *place = kind_of(explanation, "kl", "in");
    bool skipped = json_is_true(json_object_get(kl, "skip_zero_variance")) &&
                   explanation->request->groups[explanation->sequence.group].zero_variance;
    if (skipped || (place && strcmp(place, "reward") == 0))
        return 0;
    return json_number_value(json_object_get(explanation->knobs, "beta"));
}

static void write_kl(struct explanation *explanation)
{
    const struct formula *formula = find_formula(kls, ARRAY_LENGTH(kls), kind_of(explanation, "kl", "estimator"));
    const char *ratio = kind_of(explanation, "kl", "ratio");
    char text[96];

    if (beta_of(explanation) == 0)
        return;
    snprintf(text, sizeof text, "%s%s", formula->value, ratio && strcmp(ratio, "none") != 0 ? "; times r" : "");
    step(explanation, "ref_logprob",
         origin(explanation, "lr, as given", "lr, as given and rounded to float32 like the record"),
         value_at(explanation->sequence.ref_logprobs, explanation->token));
    step(explanation, "kl", text, explanation->kl);
    step(explanation, "beta", "weight of the KL term", beta_of(explanation));
}

static void write_weight(struct explanation *explanation)
{
    const char *mode = kind_of(explanation, "aggregation", "mode");
    const struct objective_totals *totals = &explanation->result->totals;
    step(explanation, "n", "trainable tokens of the sequence", (double)explanation->sequence.trainable_tokens);
    step(explanation, "T", "trainable tokens", totals->tokens);
    step(explanation, "N", "sequences", totals->sequences);
    step(explanation, "P", "groups", totals->groups);
    step(explanation, "weight", find_formula(modes, ARRAY_LENGTH(modes), mode)->value, explanation->weight);
}

/* The remainder where a loss has terms beside the policy term (positive_nll, kl_tau). */
static void write_contribution(struct explanation *explanation)
{
    double beta = beta_of(explanation);
    double terms = explanation->weight * (explanation->policy_term + (beta != 0 ? beta * explanation->kl : 0));
    double rest = explanation->contribution - terms;
    bool has_rest = fabs(rest) > 1e-12 * (fabs(terms) + fabs(explanation->contribution));
    char formula[96];

    if (has_rest)
        step(explanation, "other_terms", "terms of this loss beside the policy term", rest);
    snprintf(formula, sizeof formula, "weight * (policy_term%s)%s", beta != 0 ? " + beta * kl" : "",
             has_rest ? " + other_terms" : "");
    step(explanation, "contribution", formula, explanation->contribution);
}

static void gradient_step(struct explanation *explanation, const char *name, const char *factors,
                          const struct formula *formula, double value)
{
    char text[256];
    snprintf(text, sizeof text, "%s * (%s)", factors, formula->derivative);
    step(explanation, name, text, value);
}

static void write_gradient(struct explanation *explanation)
{
    static const char policy_factors[] = "weight * importance_weight";
    struct formula loss = find_loss(kind_of(explanation, "loss", "kind"));
    const struct formula *kl = find_formula(kls, ARRAY_LENGTH(kls), kind_of(explanation, "kl", "estimator"));
    struct objective_knobs knobs;

    if (beta_of(explanation) == 0 || !change_knobs(explanation->knobs, "beta", json_real(0), &knobs)) {
        gradient_step(explanation, "gradient", policy_factors, &loss, explanation->gradient);
        return;
    }
    double policy = evaluate_with(explanation->objective, explanation->request, &knobs).gradient;
    gradient_step(explanation, "policy_gradient", policy_factors, &loss, policy);
    gradient_step(explanation, "kl_gradient", "weight * beta", kl, explanation->gradient - policy);
    step(explanation, "gradient", "policy_gradient + kl_gradient: the derivative of the loss by lp",
         explanation->gradient);
}

static void write_steps(struct explanation *explanation)
{
    write_reward(explanation);
    step(explanation, "trainable",
         "1; 0 if the token is masked, or its sequence has no reward, is not trainable or dropped: then all below is 0",
         is_trainable(explanation));
    if (is_trainable(explanation)) {
        write_ratio(explanation);
        write_policy(explanation);
        write_kl(explanation);
        write_weight(explanation);
        write_contribution(explanation);
        write_gradient(explanation);
    } else {
        step(explanation, "contribution", "0", explanation->contribution);
        step(explanation, "gradient", "0", explanation->gradient);
    }
    step(explanation, "loss", "sum of the contributions of all tokens", explanation->result->loss);
}

static void write_explanation(struct explanation *explanation)
{
    struct objective_call *objective = explanation->objective;
    const struct objective_item *item = &objective->items[objective->explain_sequence];
    struct json_write *json = explanation->json;

    json_key(json, "explanation");
    json_object_begin(json);
    json_put_int(json, "sequence", (int64_t)objective->explain_sequence);
    if (item->rollout.data)
        json_put_text(json, "rollout", item->rollout);
    json_put_text(json, "group", item->group);
    json_put_int(json, "token", (int64_t)explanation->token);
    json_key(json, "steps");
    json_array_begin(json);
    write_steps(explanation);
    json_array_end(json);
    json_object_end(json);
}

static json_t *read_echo(const struct objective_knobs *knobs, struct buffer *ret_text)
{
    struct json_write json;
    buffer_init(ret_text, (size_t)1 << 20);
    json_write_init(&json, ret_text);
    objective_json_write(&json, knobs);
    return json_loadb(ret_text->data, ret_text->length_bytes, 0, NULL);
}

void objective_explain_write(struct objective_call *objective, const struct objective_request *request,
                             const struct objective_result *result)
{
    const struct objective_sequence *sequence = &objective->sequences[objective->explain_sequence];
    size_t token = objective->explain_token;
    _cleanup_buffer_ struct buffer text;
    struct json_write json;
    json_auto_t *echo = read_echo(&objective->knobs, &text);
    struct explanation explanation = {.objective = objective,
                                      .request = request,
                                      .result = result,
                                      .knobs = echo,
                                      .json = &json,
                                      .sequence = *sequence,
                                      .token = token,
                                      .policy_term = -sequence->surrogates[token] + 0.0,
                                      .contribution = sequence->contributions[token],
                                      .gradient = sequence->dloss_dlogp[token],
                                      .weight = sequence->weights[token],
                                      .kl = sequence->kl[token]};

    json_write_init(&json, &objective->call->reply.body);
    json_object_begin(&json);
    json_put_raw(&json, "objective", buffer_text(&text));
    json_put_double(&json, "loss", result->loss);
    json_put_double(&json, "policy_loss", result->policy_loss);
    json_put_double(&json, "kl_loss", result->kl_loss);
    json_key(&json, "totals");
    json_object_begin(&json);
    objective_json_write_totals(&json, &result->totals);
    json_object_end(&json);
    write_explanation(&explanation);
    objective_write_notes(&json, objective);
    json_object_end(&json);
}
