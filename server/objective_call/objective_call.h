/* objective_call: one POST /v1/objective between its parts: the request as read (objective_call/request.c), the record
 * looked up for its rollouts (objective_call/record.c), the reply (objective_call/reply.c). One thread at a time. */
#ifndef SERVER_OBJECTIVE_CALL_OBJECTIVE_CALL_H
#define SERVER_OBJECTIVE_CALL_OBJECTIVE_CALL_H

#include "server/base/buffer.h"
#include "server/base/ids.h"
#include "server/base/json_write.h"
#include "server/input/input.h"
#include "server/objective/objective.h"
#include "server/objective_call/safetensors.h"
#include "server/spec/pass_at.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store_reader;
struct store_rollout;
struct objective_kept;
struct objective_tensors;

/* Arrays with a value for each token, in the order of the reply; the bits of `returns`. */
enum objective_array {
    ARRAY_SURROGATES,
    ARRAY_CONTRIBUTIONS,
    ARRAY_DLOSS_DLOGP,
    ARRAY_RATIOS,
    ARRAY_WEIGHTS,
    ARRAY_CLIPPED,
    ARRAY_KL,
    ARRAY_SELECTED,
    ARRAY_COUNT
};
extern const char *const objective_array_names[ARRAY_COUNT];

/* One of `sequences`, as it was written. */
struct objective_item {
    struct text rollout; /* the stored form: an id. TEXT_NONE: stateless */
    struct text group;
    struct text rollout_name; /* stateless: whose samples share a denominator. TEXT_NONE: its own */
    struct text agent;
    json_t *rewards; /* by name; NULL: none */
    bool has_reward; /* reward, rewards, token_rewards or step_rewards */
    bool has_advantage;
    bool has_old_logprobs; /* the request brings them */
    const char *recorded;  /* a field that the stored form has from the record; NULL: none is given */
    struct numbers mask, rollout_logprobs;
};

struct objective_call {
    struct call *call;
    struct json_input input;
    struct objective_tensors *tensors; /* the request came as safetensors; NULL: as JSON */
    struct objective_knobs knobs;
    bool has_objective;                   /* the request brings one */
    struct objective_item *items;         /* [count] */
    struct objective_sequence *sequences; /* [count]; what is evaluated */
    size_t count;
    struct text *group_names; /* [group_count], in order of first appearance */
    struct objective_group *groups;
    size_t group_count;
    size_t rollout_count;     /* 0: every sequence is its own */
    struct text *agent_names; /* [agent_count], in order of first appearance */
    size_t agent_count;
    double *baselines;  /* ema_baseline: one for each agent, one at least */
    size_t score_count; /* names of gdpo */
    struct objective_totals totals;
    bool has_totals;
    bool advantages_given;         /* by the request, or found in the record */
    bool record_given;             /* shaped rewards and groups' statistics are the record's */
    bool stored;                   /* the stored form */
    bool by_token;                 /* `advantage` of the reply is an array */
    bool rollout_against_logprobs; /* metrics.rollout compares with logprobs: no old_logprobs came */
    json_t *group_sizes;           /* NULL: none */
    int64_t pass_at[PASS_AT_MAX];
    size_t pass_at_count;

    char *outputs;        /* the arrays of the reply, as the data of a safetensors file; NULL: not yet, or given away */
    size_t outputs_bytes; /* of the file */

    bool narrow;                                      /* its doubles are floats */
    double *scratch;                                  /* narrow: where a sequence's doubles are until they are floats */
    size_t beyond_float_sequence, beyond_float_token; /* the first number that no float holds */
    const char *beyond_float;                         /* its array; NULL: there is none */

    unsigned returns; /* bits of enum objective_array */
    int arrays;       /* enum json_arrays */

    bool explain; /* one token's arithmetic is asked for */
    size_t explain_sequence;
    size_t explain_token;

    /* how the call is kept: stored form only */
    bool keep;
    struct text run;        /* of its rollouts */
    int64_t optimizer_step; /* -1: not said */
    int64_t ppo_epoch;
    int64_t part;
    struct objective_slice *slices; /* [slice_count]; NULL: it is not kept */
    size_t *samples;                /* [slice_count]: a sequence of each */
    size_t slice_count;

    struct buffer notes;             /* JSON texts, separated by commas */
    struct objective_memory *memory; /* what was allocated on the way */
    struct store_results *results;   /* what the record gave */
};

/* The arrays of the request are not needed any more: their memory can hold the reply. */
void objective_call_release(struct objective_call *objective);

/* Reads body and query. 0, or -1 with the call refused. objective_call_finish() is needed either way. */
int objective_request_read(struct objective_call *objective, struct call *call);
void objective_call_finish(struct objective_call *objective);

/* Stored form: looks up every rollout, fills its sequence, finds its advantage. 0, or -1 with the call refused. */
int objective_record_fill(struct objective_call *objective, struct store_reader *reader);
/* The rollout of sequence `index`. */
const struct store_rollout *objective_rollout(const struct objective_call *objective, size_t index);

/* objective_keep.c: which sequences are summed together, if the call is kept. 0, or -1 with the call refused. */
int objective_number_slices(struct objective_call *objective);
/* Makes the copy of a call that is put on record, with everything that it points to. */
struct objective_kept *objective_keep(const struct objective_call *objective, const struct objective_result *result);
void store_results_destroy(struct store_results *results);

/* objective_call/inputs.c: 400 for a log-probability that no policy has, 422 for what is not finite, wherever a token of the
 * sequence is trainable. Of an objective_call, before the sequence is evaluated. 0, or -1 with the call refused. */
int objective_check_inputs(void *context, size_t index);

/* objective_call/outputs.c: the arrays of a reply, in the order of a file. */
struct objective_output {
    enum objective_array which; /* ARRAY_COUNT: the advantage, which is a number unless it differs by token */
    const char *name;
    enum safetensors_type type;
    size_t offset; /* of the pointer in struct objective_sequence */
};
enum { OBJECTIVE_OUTPUTS = ARRAY_COUNT + 1 };
extern const struct objective_output objective_outputs[OBJECTIVE_OUTPUTS];
bool objective_output_is_wanted(const struct objective_call *objective, size_t output);
enum safetensors_type objective_output_type(const struct objective_call *objective, size_t output); /* in the reply */
/* Room for those that the reply carries, before the evaluation. 0, or -1 with the call refused. */
int objective_outputs_prepare(struct objective_call *objective);
/* narrow: for each sequence as soon as it is evaluated, its doubles into the reply. */
void objective_outputs_narrow(void *context, size_t index);
/* Then, when all are: 422 where one is beyond float. */
int objective_outputs_check(struct objective_call *objective);

void objective_reply_write(struct objective_call *objective, const struct objective_request *request,
                           const struct objective_result *result);

/* 422 for a knob that needs the whole request, if this may be a part of one. */
int objective_check_totals(struct objective_call *objective);
/* objective_call/sequence.c: item `index` and its sequence from its JSON. */
int objective_read_sequence(struct objective_call *objective, size_t index, const json_t *object);
/* Rollouts and agents, by their names. */
int objective_number_others(struct objective_call *objective);
/* Names each group's number by its name's first appearance: item i gets sequences[i].group. */
int objective_number_groups(struct objective_call *objective);
/* gdpo: the scores of every sequence by the names of all. */
int objective_read_scores(struct objective_call *objective);

/* calloc that lives as long as the objective_call. NULL: no memory (the call is refused then). */
void *objective_allocate(struct objective_call *objective, size_t count, size_t size_bytes);
void objective_note(struct objective_call *objective, const char *text); /* once each */
/* objective_call/reply.c: all of them, as the member "notes" of the open object. */
void objective_write_notes(struct json_write *json, const struct objective_call *objective);

/* `sequences[index].field`, or with [token]; then refuses. */
#define NO_TOKEN SIZE_MAX
int objective_refuse(struct objective_call *objective, enum error_code code, size_t index, const char *field,
                     size_t token, const char *message);

#endif
