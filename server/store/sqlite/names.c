#include "server/store/store.h"

#include <math.h>

const char *const store_purpose_names[] = {PURPOSE_WORDS(WORD_TEXT) NULL};
const char *const store_deliver_names[] = {"reply", "lease", NULL};
const char *const store_batch_state_names[] = {BATCH_STATE_WORDS(WORD_TEXT) NULL};
const char *const store_group_state_names[] = {"running", "complete", NULL};
const char *const store_rollout_state_names[] = {ROLLOUT_STATE_WORDS(WORD_TEXT) NULL};
const char *const store_logprobs_mode_names[] = {LOGPROBS_MODE_WORDS(WORD_TEXT) NULL};
const char *const store_route_names[] = {"batches", "score",  "policy", "begin", "commit",
                                         "cancel",  "attach", "leases", NULL};
const char *const store_delivery_state_names[] = {DELIVERY_STATE_WORDS(WORD_TEXT) NULL};
const char *const store_lease_state_names[] = {LEASE_STATE_WORDS(WORD_TEXT) NULL};
const char *const store_on_stale_names[] = {ON_STALE_WORDS(WORD_TEXT) NULL};
const char *const store_update_mode_names[] = {UPDATE_MODE_WORDS(WORD_TEXT) NULL};
const char *const store_update_state_names[] = {"open", "committed", "cancelled", "expired", NULL};
const char *const store_reverify_state_names[] = {REVERIFY_STATE_WORDS(WORD_TEXT) NULL};
const char *const store_deletion_reason_names[] = {DELETION_REASON_WORDS(WORD_TEXT) NULL};
const char *const store_objective_mean_names[] = {"kl", "kl_policy", "kl_engine", "entropy", "logprob_gap", NULL};

int store_name_index(const char *const *names, struct text word)
{
    for (int i = 0; names[i]; i++)
        if (text_equals(word, names[i]))
            return i;
    return -1;
}

void store_rollout_init(struct store_rollout *rollout)
{
    *rollout = (struct store_rollout){
        .group_rewarded = -1,
        .advantage = NAN,
        .shaped_reward = NAN,
        .duplicate = STORE_KNOWN_UNKNOWN,
        .reward = NAN,
        .incarnation = -1,
        .revision_at_end = -1,
        .seed_sent = -1,
        .seed_honoured = STORE_KNOWN_UNKNOWN,
        .eos_in_ids = STORE_KNOWN_UNKNOWN,
        .trainable = true,
    };
}

void store_rollout_filter_init(struct store_rollout_filter *filter)
{
    *filter = (struct store_rollout_filter){
        .state = -1,
        .purpose = -1,
        .incarnation = -1,
        .revision_min = -1,
        .revision_max = -1,
        .reward_min = NAN,
        .reward_max = NAN,
        .advantage_min = NAN,
        .advantage_max = NAN,
        .heldout_min = NAN,
        .since_us = -1,
        .until_us = -1,
        .straddles = -1,
        .trainable = -1,
        .seed_honoured = -1,
        .duplicate = -1,
    };
}
