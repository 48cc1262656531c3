/* scorer: a server that gives numbers for texts and samples nothing: a reward model behind a small program of its own (OpenRLHF's
 * /get_reward, slime's /rm, TEI's /predict, …). Most of them list no models and tell nothing else about themselves, so a scorer is not
 * probed. Its calls are planned by the verifier that asks it (verifiers/judge/), so there is nothing to build here. */
#include "client/adapters/get.h"
#include "client/adapters/reply.h"

static const struct engine_get gets[] = {GET_END};

const struct engine_adapter adapter_scorer = {
    .kind = "scorer",
    .gets = gets,
    .only_by_settings = true,
};
