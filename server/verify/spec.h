/* verify_spec: the `verifiers` of a request, read once; frames for the workers, verdicts out of their replies, the
 * reward.
 *
 * A list is immutable after reading and may be used by any thread for any number of completions; the last reference
 * frees it. Rule of the reward: reward = sum of weight * score over the verifiers that are not held out (INTERFACE
 * section 4). */
#ifndef SERVER_VERIFY_SPEC_H
#define SERVER_VERIFY_SPEC_H

#include "server/base/buffer.h"
#include "server/base/hash.h"
#include "server/base/json_write.h"
#include "server/input/input.h"
#include "verifiers/verifier.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct external;
struct verify_job;

struct verifier_spec {
    const struct verifier *verifier;
    const char *version;             /* the verifier's, or its external's */
    const struct external *external; /* the one that the options name; NULL: the verifier asks none */
    bool by_url;                     /* and it is a server */
    bool of_group;                   /* it judges all members of a group at once */
    size_t of; /* the place in the list, from 1 on, of the one whose score it depends on; 0: on none */
    char *id;
    double weight; /* 0 if heldout */
    bool heldout;
    bool gate;
    enum pieces_kind steps; /* PIECES_NONE: it judges the completion as a whole */
    json_t *options;        /* complete; read only */
    char *options_json; /* the same, keys sorted, compact: what options_sha256 is over; with steps "\n" and their name
                             * stand behind it */
    char options_sha256[SHA256_HEX_BYTES];
    json_t *reference;    /* its own, read only; NULL: the task's */
    char *reference_json; /* NULL as above */
};

struct verifier_list {
    unsigned references;        /* atomic */
    struct verifier_list *base; /* whose specs the first ones are; NULL: all are its own */
    size_t count;
    struct verifier_spec specs[];
};

/* value: the JSON array, path: its place ("verifiers", "groups[3].verifiers"). NULL with the call refused. An empty
 * list is fine. */
struct verifier_list *verifier_list_read(struct json_input *input, const json_t *value, const char *path);
struct verifier_list *verifier_list_ref(struct verifier_list *list);
void verifier_list_unref(struct verifier_list *list); /* NULL is fine */
static inline void verifier_list_unrefp(struct verifier_list **list)
{
    verifier_list_unref(*list);
}

/* Its programs are run here. */
static inline bool verifier_spec_runs_programs(const struct verifier_spec *spec)
{
    return spec->verifier->runs_programs && !spec->by_url;
}

/* It may have to ask a server before it can judge. */
static inline bool verifier_spec_asks(const struct verifier_spec *spec)
{
    return spec->verifier->plan && (spec->by_url || !spec->verifier->asks_external);
}

/* One of them does. */
static inline bool verifier_list_runs_programs(const struct verifier_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (verifier_spec_runs_programs(&list->specs[i]))
            return true;
    return false;
}

/* One of them judges whole groups. */
static inline bool verifier_list_has_group(const struct verifier_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->specs[i].of_group)
            return true;
    return false;
}

/* Likewise. */
static inline bool verifier_list_asks(const struct verifier_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (verifier_spec_asks(&list->specs[i]))
            return true;
    return false;
}

/* One of them grades steps. */
static inline bool verifier_list_grades_steps(const struct verifier_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->specs[i].steps)
            return true;
    return false;
}

/* The largest frame that its workers read. */
size_t verifier_list_frame_limit_bytes(const struct verifier_list *list);
/* True if the verifier needs a reference and has none of its own. */
bool verifier_needs_reference(const struct verifier_spec *spec);

/* Could every verifier of the list grade against this task's reference (NULL: none)? 0, or -1 with the index of the
 * first that could not and why. For "strict_references" (422 reference_unreadable). Does not complain about absent
 * references. */
int verifier_list_check_reference(const struct verifier_list *list, const json_t *reference, size_t *ret_index,
                                  struct verifier_problem *ret_problem);

/* --- rewards that come with the request (verify/given.c) --- */

struct given_reward {
    const char *name; /* 1 to 64 bytes */
    double weight;
};

/* A step of a completion, with its grade. */
struct verdict_step {
    uint32_t end;      /* index after its last token; 0: not known */
    uint32_t byte_end; /* in the text, behind its last byte; 0: not known */
    double score;      /* finite */
};

struct given_score {
    double score;                     /* NAN: null */
    const struct verdict_step *steps; /* one of their ends is known; NULL: it brings none */
    size_t step_count;
};

/* True if a verifier of the list has this id. */
bool verifier_list_has(const struct verifier_list *list, struct text id);
/* The verifiers of base (which it keeps) and then one `given` for each reward. */
struct verifier_list *verifier_list_with_given(struct verifier_list *base, const struct given_reward *rewards,
                                               size_t count);
/* True if that call would make such a list. */
bool verifier_list_gives(const struct verifier_list *list, const struct verifier_list *base,
                         const struct given_reward *rewards, size_t count);

/* --- one completion --- */

/* The input of a verdict. TEXT_NONE, NULL and -1: there is none. */
struct verify_subject {
    struct text completion;
    struct text prompt;
    struct text messages_json; /* without a prompt, what a user said last is one */
    struct text reference_json;
    int64_t completion_tokens;
    /* For externals alone. */
    struct text id;
    struct text task;
    struct text metadata_json;
    const uint32_t *completion_ids;
    size_t completion_id_count;
    struct text members_json; /* of a whole group: what verify_member_write() wrote of each, as an array */
};

/* Appends the whole frame, its length first. 0, or -1 if it would be larger than a worker reads (or than the buffer may be): failure
 * verifier_input_too_large. Any thread. */
int verify_request_build(const struct verifier_list *list, const struct verify_subject *subject, struct buffer *out);

/* {"id", "completion", "completion_ids"} of the subject: what a verifier of the whole group is told of one member. */
void verify_member_write(const struct verify_subject *subject, struct buffer *out);

#define VERIFY_CODE_BYTES 48

/* A verdict as the service keeps it. */
struct verdict_record {
    enum verdict_kind kind;
    double score; /* NAN if VERDICT_UNSCORED, finite otherwise */
    char reason[VERIFY_CODE_BYTES];
    char failure_code[VERIFY_CODE_BYTES]; /* "" if scored */
    char failure_message[VERDICT_MESSAGE_BYTES];
    bool retryable;
    char *detail_json;          /* NULL: null */
    struct verdict_step *steps; /* NULL: it grades none, or is unscored */
    size_t step_count;
    int64_t duration_us;
    char version[VERDICT_VERSION_BYTES]; /* "": that of its spec */
};

struct verdict_set {
    size_t count; /* as many as the list, in its order */
    struct verdict_record *verdicts;
};

/* Every verdict unscored with the same failure: a killed worker, a frame that is too large. */
void verdict_set_fail(const struct verifier_list *list, const char *code, const char *message, bool retryable,
                      struct verdict_set *ret_set);
/* Reads what came of a job: replies or failures, and the verdicts that were lost. No reply is believed: what does not fit
 * becomes VERDICT_UNSCORED with verifier_crashed. Any thread. */
void verdict_set_read(const struct verify_job *job, struct verdict_set *ret_set);
/* Appends what `given` says: the score, or for NAN unscored with not_given. */
void verdict_set_add_given(struct verdict_set *set, const struct given_score *given, size_t count);
/* The ends of all steps as indexes of tokens, by the bytes where each token ends (never falling; NULL: not known). A step's
 * end inside of a token moves to the end of that. Without them a verdict whose ends are bytes becomes unscored,
 * no_token_offsets. verify/steps.c */
void verdict_set_place_steps(struct verdict_set *set, const uint32_t *token_ends, size_t token_count);
void verdict_set_finish(struct verdict_set *set);
/* The result of a job on a whole group: one verdict for each of its members. Likewise. */
void verdict_set_read_members(const struct verify_job *job, size_t count, struct verdict_set *ret_set);
void verdict_records_free(struct verdict_record *records, size_t count); /* NULL is fine */
/* Counts those on programs in the metrics. */
void verdict_set_count(const struct verdict_set *set, const struct verifier_list *list);
/* The number of verdicts that reached a limit of the verifier. */
size_t verdict_set_undecided(const struct verdict_set *set);

/* {"id","name","version","options_sha256","score","verdict","reason","detail","steps","failure","duration_us"}; "steps":
 * [{"end","score","byte_end"}] where it grades them; an end that is not known is null */
void verdict_write(struct json_write *json, const struct verifier_spec *spec, const struct verdict_record *record);
/* The same of each, in a list. */
void verdict_set_write(struct json_write *json, const struct verifier_list *list, const struct verdict_set *set);

/* --- the reward --- */

enum reward_missing { REWARD_MISSING_NULL, REWARD_MISSING_SKIP };
extern const char *const reward_missing_names[]; /* "null", "skip", NULL: for FIELD_CHOICE */

/* Their rule for scores alone, of a verdict or of the record. Zero-initialised. */
struct reward_sum {
    double value;  /* of weight * score */
    double size;   /* of |weight * score| */
    size_t scored; /* of a weight other than 0 */
    size_t missing;
    bool shut; /* by a gate */
    bool held; /* by a gate without a score, which nothing opens */
};
/* Of each verifier that rewards. score: NAN: none. */
void reward_sum_add(struct reward_sum *sum, double score, double weight, bool gate);
/* NAN: none, because a score is missing. */
double reward_sum_value(const struct reward_sum *sum, enum reward_missing missing);

struct reward {
    double value;  /* NAN: none */
    bool rewarded; /* false: no verifier that rewards, so value is NAN without a failure */
    /* The verdict whose failure made it NAN; NULL otherwise. Points into the set. */
    const struct verdict_record *failure;
};

struct reward reward_combine(const struct verifier_list *list, const struct verdict_set *set,
                             enum reward_missing missing);

void rewards_write(struct json_write *json, const struct verifier_list *list,
                   const struct verdict_set *set); /* {"math":{"score","weight","gate"}} */
void heldout_write(struct json_write *json, const struct verifier_list *list,
                   const struct verdict_set *set); /* {"correct":{"score"}} */

/* {"stage":"verify","code","message","retryable","attempts":1}, or null for NULL */
void verify_failure_write(struct json_write *json, const struct verdict_record *failure);

/* --- what there is --- */

#define VERIFY_ITEMS_MAX 65536 /* of one POST /v1/verify */

struct verify_pool;
/* The reply to GET /v1/verifiers: each verifier with its options, the limits of a request, and whether programs run. code:
 * NULL: that is left out. */
void verifiers_write(struct json_write *json, const struct verify_pool *code);

#endif
