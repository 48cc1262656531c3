/* logprobs: the distribution of an engine's log-probabilities, and its effect on importance ratios. Pure.
 *
 * The ratio of two policies is right only if both log-probabilities are of the distribution that was sampled from. An
 * engine tells those of the model ("raw") or those behind temperature and filters ("processed"), and no engine says
 * which; the two are the same where nothing stands between the model and the sample. */
#ifndef CLIENT_ADAPTERS_LOGPROBS_H
#define CLIENT_ADAPTERS_LOGPROBS_H

#include "client/adapters/adapter.h"

/* Changes between the model's distribution and the sample. */
enum sampling_change {
    SAMPLING_TEMPERATURE = 1 << 0,
    SAMPLING_FILTER = 1 << 1,     /* top_p, top_k, min_p and their kin: some tokens cannot be sampled */
    SAMPLING_PENALTY = 1 << 2,    /* depends on the tokens sampled before */
    SAMPLING_BIAS = 1 << 3,       /* logit_bias, forbidden tokens, suppressed ends */
    SAMPLING_CONSTRAINT = 1 << 4, /* a grammar, a schema */
    SAMPLING_IGNORE_EOS = 1 << 5, /* vLLM samples beyond the end of sequence, llama.cpp forbids it */
    SAMPLING_UNKNOWN = 1 << 6,    /* an engine_option that this table does not know */
};

/* Bits of the above; 0: none. */
unsigned sampling_changes(const struct sampling *sampling);

/* The mode of this exchange's log-probabilities, from the engine's kind, its settings and the request. */
enum logprobs_mode exchange_logprobs_mode(const struct exchange *exchange);

/* Faults of ratios made of such log-probabilities after `changes` (sampling_changes()): `ret_notes` gets at most
 * LOGPROBS_NOTES_MAX texts, each to be read behind "n rollouts". Returns how many; 0: no fault. */
#define LOGPROBS_NOTES_MAX 8
size_t logprobs_notes(unsigned changes, enum logprobs_mode mode, const char *ret_notes[LOGPROBS_NOTES_MAX]);

#endif
