/* rollout: one answer to a prompt: its row, the rows of a batch or a group, lists by filters. */
#ifndef STORE_ROLLOUT_H
#define STORE_ROLLOUT_H

#include "server/base/ids.h"
#include "server/store/provenance.h"
#include "server/store/read.h"
#include "server/store/tags.h"

#include <stdbool.h>
#include <stdint.h>

struct store_failure { /* code TEXT_NONE: no failure */
    struct text stage; /* sample, verify, store */
    struct text code;
    struct text message; /* cut at 512 bytes when stored */
    bool retryable;
    int64_t attempts;
};

/* A run of tokens with one advantage. */
struct store_advantage {
    uint32_t end; /* index after its last token; it begins where the run before it ends, the first at 0 */
    double advantage;
};

/* The verdicts of one reverification on a rollout. */
struct store_later {
    char id[ID_BYTES]; /* the reverification's */
    int64_t at_us;
    struct text verdicts; /* JSON */
    double reward;        /* NAN: none */
};

/* A rollout as it is written and as it is read. */
struct store_rollout {
    /* set when read */
    int64_t seq; /* order of insertion */
    char id[ID_BYTES];
    char group_id[ID_BYTES];
    char batch_id[ID_BYTES];
    struct text run;
    struct text task;
    int64_t draw;
    struct text tags;          /* the group's: canonical JSON (tags.h); TEXT_NONE: none */
    struct text pass_verifier; /* its batch's; TEXT_NONE: none */
    int64_t group_rewarded;    /* members of its group with a reward; -1: that is not closed */
    bool group_zero_variance;
    enum store_purpose purpose;
    int64_t created_at_us;
    double advantage; /* NAN until the group is closed */
    double shaped_reward;
    enum store_known duplicate; /* repeats an earlier member of its group; unknown until that is closed */

    /* written and read */
    int64_t incarnation; /* of the run, at dispatch. Written: what is below the batch's stands for the batch's */
    int64_t sample_index;
    enum store_rollout_state state;
    double reward; /* NAN: none. Only a scored one may have one */
    struct store_failure failure;
    struct text engine;
    struct text engine_revision;
    struct text engine_model; /* these three as they were when it was sent; TEXT_NONE: the engine does not say */
    struct text engine_version;
    struct text tokenizer_sha256; /* hexadecimal */
    struct text rolloutd_version; /* that stores it */
    int64_t policy_revision;
    int64_t revision_at_end; /* -1: never came to an end */
    bool straddles;
    int64_t resample;
    int64_t attempts;
    uint64_t seed;     /* 63 bits */
    int64_t seed_sent; /* -1: none was sent */
    enum store_known seed_honoured;
    struct text finish_reason;
    bool trainable;
    enum store_known eos_in_ids;
    enum store_logprobs_mode logprobs_mode;
    int64_t
        completion_tokens; /* read: also without arrays. Written: token_count if completion_ids are given, else this */
    int64_t trainable_tokens; /* read only: mask 1, if trainable */
    int64_t queued_us;
    int64_t engine_us;
    int64_t verify_us;

    /* read only with STORE_WITH_TEXT */
    struct text text;
    struct text packed_text; /* written only: `text` by store_pack(), and kept instead of it; TEXT_NONE: not packed */
    int64_t text_replaced;   /* broken bytes that became U+FFFD */

    /* read only with STORE_WITH_SEGMENTS; JSON: which weights made which tokens, if there is more than one */
    struct text segments;

    /* read only with STORE_WITH_TASK; JSON, TEXT_NONE: not on record */
    struct text prompt; /* a string, or the messages of a chat; null: the group has ids alone */
    struct text reference;
    struct text metadata; /* read only with STORE_WITH_METADATA: the group's, TEXT_NONE: none */

    /* read only with STORE_WITH_LATER: in the order of the reverifications */
    const struct store_later *later;
    size_t later_count;

    /* read only with STORE_WITH_VERDICTS; JSON */
    struct text verdicts;
    struct text rewards;
    struct text heldout;

    /* read only with STORE_WITH_ARRAYS */
    const uint32_t *completion_ids; /* NULL: the engine gave none */
    const float *logprobs;          /* NULL: none; 0 where the mask is 0 (the store sees to it) */
    const uint8_t *completion_mask; /* NULL: all ones */
    size_t token_count;
    /* Set with its group's advantages: each token's, 0 where the mask is 0. NULL: all tokens have `advantage`. */
    const struct store_advantage *advantages;
    size_t advantage_count;
};

/* Everything unknown or none: NAN, -1, TEXT_NONE, trainable; state scored. Start from here before filling one in. */
void store_rollout_init(struct store_rollout *rollout);

/* STORE_WITH_ALL: all of the rollout's own. STORE_WITH_TASK: its task's prompt and reference, too.
 * STORE_WITH_LATER: the verdicts of reverifications. */
enum store_with {
    STORE_WITH_TEXT = 1,
    STORE_WITH_ARRAYS = 2,
    STORE_WITH_VERDICTS = 4,
    STORE_WITH_SEGMENTS = 8,
    STORE_WITH_ALL = 15,
    STORE_WITH_TASK = 16,
    STORE_WITH_METADATA = 32,
    STORE_WITH_LATER = 64,
};

/* One row. The first writer wins: the same member again is EXISTS. STATE_CONFLICT: its batch is no longer running. */
struct store_insert_rollout {
    const char *group_id;
    const struct store_rollout *rollout;
    const uint32_t *prompt_ids; /* of the group, from the engine; kept if the group has none yet. May be NULL */
    size_t prompt_id_count;
    const struct store_settings *settings; /* in force now; NULL: not known */
    /* out */
    int64_t seq;
};

struct store_rollouts {
    struct store_rollout *rollouts;
    size_t count;
    char next[64];  /* cursor of the next page; empty: no more */
    size_t scanned; /* rows that were looked at */
    size_t bytes;   /* that the page takes */
    struct store_memory *memory;
};
/* count is 1 after OK. */
enum store_status store_read_rollout(struct store_reader *reader, struct text rollout_id, unsigned with,
                                     struct store_rollouts *ret_rollout);
void store_rollouts_finish(struct store_rollouts *rollouts);

/* The rows of a batch or of one group, with what resuming, closing and the objective need; in order of group and
 * sample_index. */
struct store_member {
    int64_t group_index;
    int64_t sample_index;
    enum store_rollout_state state;
    double reward;
    double shaped_reward;
    double advantage;
    bool trainable;
    int64_t trainable_tokens;
    int64_t completion_tokens;
    int64_t policy_revision;
    int64_t incarnation;
    enum store_logprobs_mode logprobs_mode;
    struct text finish_reason;
    struct text failure_code;
    struct text heldout; /* JSON */
};
struct store_members {
    struct store_member *members;
    size_t count;
    struct store_memory *memory;
};
enum store_status store_read_batch_members(struct store_reader *reader, struct text batch_id,
                                           struct store_members *ret_members);
enum store_status store_read_group_members(struct store_reader *reader, struct text group_id,
                                           struct store_members *ret_members);
void store_members_finish(struct store_members *members);

#endif
