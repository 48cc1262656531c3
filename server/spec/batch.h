/* batch_spec: one request of POST /v1/batches or POST /v1/score, read, checked and complete. Immutable after
 * reading; any thread.
 *
 * The same function reads the body when it arrives and again when an unfinished batch is resumed after a restart. */
#ifndef SERVER_SPEC_BATCH_H
#define SERVER_SPEC_BATCH_H

#include "client/adapters/adapter.h"
#include "server/http/call.h"
#include "server/input/input.h"
#include "server/objective/objective.h"
#include "server/spec/pass_at.h"
#include "server/spec/refill.h"
#include "server/store/store.h"
#include "server/verify/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A completion that the request brings itself. */
struct completion_spec {
    struct text text;           /* TEXT_NONE: none */
    struct text packed_text;    /* batch_spec_make_contents(): as the record keeps it; TEXT_NONE: plain */
    const uint32_t *ids;        /* NULL: none, and no log-probabilities: part of no loss */
    const float *logprobs;      /* finite; 0 where the mask is 0 */
    const uint8_t *mask;        /* NULL: all ones */
    const uint32_t *token_ends; /* [token_count]: bytes of the text; NULL: not said */
    size_t token_count;
    struct text finish_reason; /* TEXT_NONE: not said, as the next three */
    struct text engine;
    int64_t seed;                    /* -1 */
    struct store_failure failure;    /* code TEXT_NONE: none. It is stored as failed */
    struct verifier_list *verifiers; /* the group's, and a `given` for each of the next */
    const struct given_score *given; /* [given_count] */
    size_t given_count;
};

struct group_spec {
    struct text task;
    int64_t draw;
    int64_t first_sample_index;
    int64_t n;
    struct text prompt;   /* one of the three */
    struct text messages; /* JSON */
    struct text tools;    /* beside messages, JSON; TEXT_NONE: none */
    uint32_t *prompt_ids;
    size_t prompt_id_count;
    struct text reference_json; /* TEXT_NONE: none */
    struct sampling sampling;
    struct text sampling_json;           /* the overrides; TEXT_NONE: none */
    struct verifier_list *verifiers;     /* its own reference */
    struct text verifiers_json;          /* the overrides; TEXT_NONE: none */
    struct text metadata_json;           /* TEXT_NONE: none */
    int64_t set_task_seq;                /* of the task of a set that it was made of; 0: none */
    struct store_data_source source;     /* its set */
    struct text tags_json;               /* canonical (store/tags.h); TEXT_NONE: none */
    struct store_content prompt_content; /* batch_spec_make_contents() */
    struct store_content reference_content;
    struct completion_spec *completions; /* [completion_count] = [n], or NULL: sampled here */
    size_t completion_count;
    struct lean_member *given; /* [given_count]: completions with arrays, if the body is STORE_CODEC_LEAN */
    size_t given_count;
};

enum batch_origin {
    BATCH_SAMPLED, /* POST /v1/batches */
    BATCH_GIVEN,   /* POST /v1/score: the completions come with the request */
};

struct batch_spec {
    enum batch_origin origin;
    bool store; /* false: leaves no trace */
    struct text run;
    int64_t policy_revision; /* -1: the run's current */
    uint64_t seed;
    int purpose; /* enum store_purpose */
    int deliver; /* enum store_deliver */
    struct text model;
    struct text pool; /* whose engines may sample; TEXT_NONE: the default one */
    int64_t n;
    struct sampling sampling;
    struct verifier_list *verifiers;
    int missing; /* enum reward_missing */
    struct objective_knobs objective;
    int64_t deadline_us; /* from admission */
    int64_t rollout_timeout_us;
    int64_t max_staleness; /* -1: none */
    bool strict_references;
    struct pass_spec pass;

    struct refill_spec refill;

    struct group_spec *groups; /* `groups`, and behind them the reserve in its order */
    size_t group_count;
    size_t first_group_count; /* without the reserve */
    size_t rollout_count;     /* of all of them */

    struct text sampling_json; /* every knob */
    struct text objective_json;
    struct text verifiers_json;
    struct text metadata_json; /* TEXT_NONE: none */
    struct text returns_json;  /* the list `return`; TEXT_NONE: everything */

    char *body;           /* as posted; NULL once it is packed */
    struct buffer packed; /* the body as the record keeps it; empty: `body` itself */
    enum store_codec body_codec;
    size_t body_bytes;
    size_t set_bytes; /* taken from task sets */
    uint8_t body_sha256[SHA256_BYTES];

    struct json_input input; /* the texts above point into it */
    void **owned;            /* and into these */
    size_t owned_count;
    size_t owned_capacity;
};

/* Reads call->body (and consumes it). NULL with the call refused. */
struct batch_spec *batch_spec_read(struct call *call);
struct batch_spec *score_spec_read(struct call *call); /* POST /v1/score */
void batch_spec_destroy(struct batch_spec *spec);      /* NULL is fine */
/* The body in the form of the record takes its place, if it is smaller. Any thread; some nanoseconds a byte. */
void batch_spec_pack_body(struct batch_spec *spec);
/* spec/lean_body.c: the body of a score to spec->packed as STORE_CODEC_LEAN, and the groups' `given`. False: neither. */
bool batch_spec_pack_lean(struct batch_spec *spec);
/* Prompts, references and texts of completions in the form of the record. Any thread; some nanoseconds a byte. */
void batch_spec_make_contents(struct batch_spec *spec);
void batch_spec_drop_body(struct batch_spec *spec); /* once it is stored */

/* 0, or -1 with the call refused: 1 to 128 of A-Z a-z 0-9 . _ - */
int run_name_check(struct call *call, struct text run);

/* Approximate memory of the specification while its batch is live. */
size_t batch_spec_bytes(const struct batch_spec *spec);

/* spec/groups.c: reads spec->groups from both arrays; reserve: NULL: none. 0, or -1 with the call refused. */
int batch_spec_read_groups(struct batch_spec *spec, json_t *groups, json_t *reserve);
/* spec/contents.c: a group as the record takes it; it points into the spec. Contents must be made before. */
void batch_spec_new_group(const struct group_spec *group, struct store_new_group *ret_group);
/* Reads one `sampling` object over what *sampling and *n hold. */
int batch_spec_read_sampling(struct batch_spec *spec, const json_t *object, const char *path, struct sampling *sampling,
                             int64_t *n);
/* spec->sampling and spec->n as JSON, every knob. */
struct text batch_spec_write_sampling(struct batch_spec *spec);
/* chat_template_kwargs with something in them. */
bool sampling_has_template_options(const struct sampling *sampling);
/* A list of token ids, checked, as packed integers that the spec owns. 0, or -1 with the call refused. */
int batch_spec_read_ids(struct batch_spec *spec, const struct numbers *numbers, const char *path, uint32_t **ret_ids);
/* spec/completions.c: reads a group's `completions`. 0, or -1 with the call refused. */
int score_read_completions(struct batch_spec *spec, const json_t *list, const char *path, struct group_spec *group);
/* Of a body that was accepted before: which kind of request it was. */
bool score_brings_completions(struct text body);
/* Memory that lives as long as the spec. */
void *batch_spec_own(struct batch_spec *spec, void *memory);
struct text batch_spec_own_buffer(struct batch_spec *spec, struct buffer *buffer);
/* A JSON value as compact text; TEXT_NONE for NULL. */
struct text batch_spec_dump(struct batch_spec *spec, const json_t *value);

#endif
