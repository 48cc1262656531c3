#include "server/base/nearest.h"

#include "server/base/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_BYTES = 32, LIST_BYTES = 512 };

/* Letters of either case are the same, and so are the marks between words. */
static char folded(char c)
{
    return c == '-' ? '_' : (char)tolower((unsigned char)c);
}

static size_t distance(const char *left, const char *right)
{
    size_t row[LONGEST_BYTES + 1];
    size_t right_length = strlen(right);
    for (size_t j = 0; j <= right_length; j++)
        row[j] = j;
    for (size_t i = 0; left[i]; i++) {
        size_t diagonal = row[0]++;
        for (size_t j = 0; j < right_length; j++) {
            size_t changed = diagonal + (folded(left[i]) != folded(right[j]));
            size_t inserted = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = changed < inserted ? changed : inserted;
        }
    }
    return row[right_length];
}

static const char *name_at(const void *rows, size_t row_bytes, size_t index)
{
    return *(const char *const *)((const char *)rows + index * row_bytes);
}

static size_t shared_start(const char *left, const char *right)
{
    size_t length = 0;
    while (left[length] && folded(left[length]) == folded(right[length]))
        length++;
    return length;
}

/* "token" begins "token_mask" and ends nowhere in a word; "tokens" does not. */
static bool is_first_word(const char *word, const char *name)
{
    size_t length = strlen(word);
    return shared_start(word, name) == length && name[length] && !isalnum((unsigned char)name[length]);
}

/* The first name that begins with it, or that it begins with. */
static const char *longer_or_shorter(const char *name, const void *rows, size_t row_bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *candidate = name_at(rows, row_bytes, i);
        size_t length = shared_start(name, candidate);
        if (length >= 3 && (!name[length] || is_first_word(candidate, name)))
            return candidate;
    }
    return NULL;
}

const char *nearest_name(const char *name, const void *rows, size_t row_bytes, size_t count)
{
    const char *nearest = NULL;
    size_t length = strnlen(name, LONGEST_BYTES + 1);
    size_t bound = length / 3 + 2; /* a swap of two letters counts as two */
    if (length > LONGEST_BYTES || length < 2)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const char *candidate = name_at(rows, row_bytes, i);
        if (strlen(candidate) > LONGEST_BYTES)
            continue;
        size_t apart = distance(name, candidate);
        if (apart < bound && apart < length) {
            nearest = candidate;
            bound = apart;
        }
    }
    return nearest ? nearest : longer_or_shorter(name, rows, row_bytes, count);
}

/* --- names of other services ---------------------------------------------------------------------------------- */

/* Names that trainers, engines and data sets use, with the names used here. A name may have several rows: the first
 * whose meaning is among the known names counts. */
static const struct {
    const char *foreign;
    const char *ours;
} foreign_names[] = {
    {"answer", "reference"},
    {"answers", "reference"},
    {"expected", "reference"},
    {"expected_answer", "reference"},
    {"gold", "reference"},
    {"ground_truth", "reference"},
    {"label", "reference"},
    {"labels", "reference"},
    {"reference_answer", "reference"},
    {"solution", "reference"},
    {"target", "reference"},
    {"input_ids", "prompt_ids"},
    {"input", "prompt"},
    {"prompt_token_ids", "prompt_ids"},
    {"problem", "prompt"},
    {"query", "prompt"},
    {"question", "prompt"},
    {"conversation", "messages"},
    {"prompts", "groups"},
    {"tasks", "groups"},
    {"task_id", "task"},
    {"uid", "task"},
    {"max_completion_tokens", "max_tokens"},
    {"max_length", "max_tokens"},
    {"max_new_tokens", "max_tokens"},
    {"max_response_length", "max_tokens"},
    {"best_of", "n"},
    {"n_samples", "n"},
    {"group_size", "n"},
    {"num_generations", "n"},
    {"num_return_sequences", "n"},
    {"num_generations", "sampling"},
    {"num_samples", "n"},
    {"stop_sequences", "stop"},
    {"stop_strings", "stop"},
    {"extra_body", "engine_options"},
    {"repetition_penalty", "engine_options"},
    {"presence_penalty", "engine_options"},
    {"frequency_penalty", "engine_options"},
    {"length_penalty", "engine_options"},
    {"logit_bias", "engine_options"},
    {"min_tokens", "engine_options"},
    {"min_new_tokens", "engine_options"},
    {"ignore_eos", "engine_options"},
    {"skip_special_tokens", "engine_options"},
    {"guided_json", "engine_options"},
    {"response_format", "engine_options"},
    {"graders", "verifiers"},
    {"reward_funcs", "verifiers"},
    {"model_version", "policy_revision"},
    {"revision", "policy_revision"},
    {"version", "policy_revision"},
    {"step", "policy_revision"},
    {"weight_version", "policy_revision"},
    {"timeout", "deadline"},
    {"responses", "completions"},
    {"samples", "completions"},
    {"completion", "text"},
    {"output", "text"},
    {"output", "completion"},
    {"response", "text"},
    {"response", "completion"},
    {"text", "completion"},
    {"text", "prompt"},
    {"output_ids", "completion_ids"},
    {"response_ids", "completion_ids"},
    {"token_ids", "completion_ids"},
    {"log_probs", "logprobs"},
    {"logps", "logprobs"},
    {"per_token_logps", "logprobs"},
    {"old_log_probs", "old_logprobs"},
    {"old_per_token_logps", "old_logprobs"},
    {"ref_log_prob", "ref_logprobs"},
    {"ref_per_token_logps", "ref_logprobs"},
    {"rollout_log_probs", "rollout_logprobs"},
    {"sampling_per_token_logps", "rollout_logprobs"},
    {"loss_mask", "mask"},
    {"loss_mask", "completion_mask"},
    {"response_mask", "mask"},
    {"response_mask", "completion_mask"},
    {"completion_mask", "mask"},
    {"mask", "completion_mask"},
    {"score", "reward"},
    {"advantages", "advantage"},
    {"adv_estimator", "advantage"},
    {"cliprange", "epsilon"},
    {"clip_range", "epsilon"},
    {"clip_ratio", "epsilon"},
    {"epsilon_high", "eps_high"},
    {"clip_ratio_high", "eps_high"},
    {"clip_ratio_low", "eps_low"},
    {"kl_coef", "beta"},
    {"kl_loss_coef", "beta"},
    {"beta", "objective"},
    {"eps_high", "loss"},
    {"eps_low", "loss"},
    {"n", "sampling"},
    {"max_tokens", "sampling"},
    {"temperature", "sampling"},
    {"top_p", "sampling"},
    {"top_k", "sampling"},
    {"stop", "sampling"},
};

static const char *translate(struct text name, const void *rows, size_t row_bytes, size_t count)
{
    for (size_t f = 0; f < ARRAY_LENGTH(foreign_names); f++) {
        if (!text_equals(name, foreign_names[f].foreign))
            continue;
        for (size_t i = 0; i < count; i++)
            if (strcmp(name_at(rows, row_bytes, i), foreign_names[f].ours) == 0)
                return name_at(rows, row_bytes, i);
    }
    return NULL;
}

void names_advise(struct text name, const void *rows, size_t row_bytes, size_t count, char ret_advice[ADVICE_BYTES])
{
    char copy[LONGEST_BYTES + 2];
    size_t length = 0;
    snprintf(copy, sizeof(copy), "%.*s", (int)(name.length_bytes < sizeof(copy) ? name.length_bytes : sizeof(copy)),
             name.data ? name.data : "");
    const char *meant = translate(name, rows, row_bytes, count);
    if (!meant)
        meant = nearest_name(copy, rows, row_bytes, count);
    ret_advice[0] = '\0';
    if (meant)
        length = (size_t)snprintf(ret_advice, ADVICE_BYTES, "did you mean \"%s\"? ", meant);
    for (size_t i = 0; i < count && length < ADVICE_BYTES; i++)
        length += (size_t)snprintf(ret_advice + length, ADVICE_BYTES - length, "%s%s",
                                   i ? ", " : "known are: ", name_at(rows, row_bytes, i));
}

void names_advise_list(struct text name, const char *const *list, char ret_advice[ADVICE_BYTES])
{
    size_t count = 0;
    while (list[count])
        count++;
    names_advise(name, list, sizeof(*list), count, ret_advice);
}

/* --- a list that is made ------------------------------------------------------------------------------ */

void name_list_add(struct name_list *list, struct text name)
{
    if (list->count == NAME_LIST_MAX || list->bytes + name.length_bytes > LIST_BYTES)
        return;
    for (size_t i = 0; i < list->count; i++)
        if (text_equals(name, list->names[i]))
            return;
    list->names[list->count++] = xstrndup(name.data, name.length_bytes);
    list->bytes += name.length_bytes + 2;
}

void name_list_finish(struct name_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
}

void name_list_advise(struct text name, const struct name_list *list, char ret_advice[ADVICE_BYTES])
{
    names_advise(name, list->names, sizeof(*list->names), list->count, ret_advice);
}
