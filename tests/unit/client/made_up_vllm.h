/* An engine that is made up: a function from a request to a reply, with the faults that its struct says. */
#ifndef TESTS_CLIENT_MADE_UP_VLLM_H
#define TESTS_CLIENT_MADE_UP_VLLM_H

#include "client/pool/pool.h"

enum seeds { SEEDS_HONOURED, SEEDS_IGNORED, SEEDS_CONSTANT };

/* A made-up vLLM. */
struct vllm {
    const char *model;
    const char *adapter; /* served beside it; NULL: lora-a */
    const char *version;
    const char *weights; /* NULL: it does not say */
    const char *tokens;  /* of the test text; NULL: no such route */
    enum seeds seeds;
    enum logprobs_kind kind;
    bool no_ids;
    bool one_only;  /* gives one sample where two are asked for */
    double certain; /* log-probability of each token of a constant engine */
    int status;     /* of every sample; 0: 200 */
    bool silent;    /* no sample is ever answered */
    unsigned asked; /* samples so far */
};

extern const struct vllm honest_vllm;

/* The status; 0: no reply. */
int vllm_answer(struct vllm *vllm, const struct engine_call *call, char *out, size_t size);

/* Of engines at "http://a", "http://b" …: vllms[0], vllms[1] … answer. Probes ask for samples, and are due every 30 s. */
struct pool *pool_with(const struct pool_engine *engines, size_t count);
/* All probes that are due. */
void probe_all(struct pool *pool, struct vllm *vllms, int64_t now_us);
/* Faults in a row, until it is DOWN. */
void break_it(struct pool *pool, struct engine *engine, int64_t now_us);

#endif
