/* reverification: stored rollouts that are judged once more, and what those verdicts were. They stand beside the first ones. */
#ifndef STORE_REVERIFICATION_H
#define STORE_REVERIFICATION_H

#include "server/base/hash.h"
#include "server/base/ids.h"
#include "server/base/sum.h"
#include "server/base/words.h"
#include "server/store/read.h"

#include <stdbool.h>
#include <stdint.h>

#define STORE_REVERIFY_STATE(name, word) STORE_REVERIFY_##name,
enum store_reverify_state { REVERIFY_STATE_WORDS(STORE_REVERIFY_STATE) };
extern const char *const store_reverify_state_names[];

struct store_reverification {
    int64_t seq;
    char id[ID_BYTES];
    struct text run;
    struct text request; /* JSON, as posted */
    enum store_reverify_state state;
    int64_t created_at_us;
    int64_t ended_at_us;  /* -1: it runs */
    int64_t last_rollout; /* seq of the last one that it judges */
    int64_t rollouts;
    int64_t judged;
    int64_t unscored; /* verdicts */
    int64_t flipped;  /* verdicts with another score than the first one of the same id */
    int64_t rewarded; /* rollouts with a reward before and after: those of the sums */
    struct precise_sum reward_from;
    struct precise_sum reward_to;
    struct text place;        /* cursor of the next page of rollouts; TEXT_NONE: the first */
    struct text failure_code; /* TEXT_NONE: none */
    struct text failure_message;
};

/* ---- written ----------------------------------------------------------------------------------------------- */

/* A reverification that runs. NOT_FOUND: no such run. EXISTS: its key has made the one whose id is out.
 * IDEMPOTENCY_CONFLICT: with another body. */
struct store_create_reverification {
    char id[ID_BYTES]; /* in; out after EXISTS: that one's */
    struct text run;
    struct text key; /* TEXT_NONE: none */
    uint8_t request_sha256[SHA256_BYTES];
    struct text request;
    int64_t last_rollout;
    int64_t rollouts;
    /* out */
    enum store_reverify_state state;
};

struct store_verdict_flip {
    struct text verifier; /* its id */
    struct text from_version;
    double from_score;
    struct text to_version;
    double to_score;
};

/* One rollout, judged once more. */
struct store_judged {
    int64_t rollout_seq;
    struct text verdicts; /* JSON */
    int64_t unscored;     /* of them */
    double reward_from;   /* NAN: none, as of the next */
    double reward;
    const struct store_verdict_flip *flips;
    size_t flip_count;
};

/* A page of them, all or none. A rollout that is on record for this reverification already stays as it is and is not
 * counted again. NOT_FOUND: there is none of this id. STATE_CONFLICT: it has ended. */
struct store_record_judged {
    char id[ID_BYTES];
    const struct store_judged *rows;
    size_t count;
    struct text place; /* the next page; TEXT_NONE: there is none, and it is complete */
};

/* NOT_FOUND: there is none of this id. EXISTS: it has ended before; `state` is that of the record. */
struct store_end_reverification {
    char id[ID_BYTES];
    enum store_reverify_state state; /* in: CANCELLED or FAILED; out */
    struct text failure_code;        /* TEXT_NONE: none */
    struct text failure_message;
};

/* ---- read ------------------------------------------------------------------------------------------------- */

struct store_flip {
    int64_t seq;
    char rollout_id[ID_BYTES];
    struct text verifier;
    struct text from_version;
    double from_score;
    struct text to_version;
    double to_score;
};
struct store_reverifications {
    struct store_reverification *items;
    size_t count;
    struct store_flip *flips; /* of the first one */
    size_t flip_count;
    char next[64]; /* cursor of the next flips, or reverifications; empty: no more */
    struct store_memory *memory;
};
/* One, with a page of its flips in the order in which they were found. */
enum store_status store_read_reverification(struct store_reader *reader, struct text id, struct text cursor,
                                            size_t limit, struct store_reverifications *ret_found);
/* The newest first. run TEXT_NONE: of all runs. NOT_FOUND: no such run. */
enum store_status store_list_reverifications(struct store_reader *reader, struct text run, struct text cursor,
                                             size_t limit, struct store_reverifications *ret_found);
/* Those that run, the oldest first. */
enum store_status store_running_reverifications(struct store_reader *reader, struct store_reverifications *ret_found);
void store_reverifications_finish(struct store_reverifications *found);

#endif
