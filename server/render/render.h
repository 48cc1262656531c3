/* render: the record as the JSON of the contract's section 3.
 *
 * Pure, except the stream of a batch, which reads the record group by group: a batch is never one buffer. Any thread,
 * one at a time. */
#ifndef SERVER_RENDER_RENDER_H
#define SERVER_RENDER_RENDER_H

#include "server/base/json_write.h"
#include "server/base/nearest.h"
#include "server/http/call.h"
#include "server/objective/objective.h"
#include "server/render/columns.h"
#include "server/store/store.h"

#include <jansson.h>

/* A set of members of the rollout object (render/rollout.c has the table) and of the group's `prompt_ids`. */
typedef uint64_t render_fields;
#define RENDER_TASK (UINT64_C(3) << 61) /* the task's prompt and reference: only where they are named */
#define RENDER_ALL (UINT64_MAX & ~RENDER_TASK)

/* The member of this name, 0 if there is none. */
render_fields render_field(struct text name);
/* Where there is none: the end of the search (base/nearest.h). */
void render_advise(struct text name, char ret_advice[ADVICE_BYTES]);
/* Members that are arrays of numbers, and the group's `prompt_ids`: what ?arrays= and `return` are about. */
render_fields render_arrays(void);
/* Members of a row of a list that names none: all but arrays, texts and verdicts. */
render_fields render_row(void);
/* Everything but the arrays that `return` on record leaves out (spec/returns.h). */
render_fields render_stored_returns(struct text returns);
/* Flags of enum store_with for the parts of the record that these fields need. */
unsigned render_with(render_fields fields, enum json_arrays arrays);

/* Terms of a batch that its rollouts are rendered with: its objective, and its totals once it has ended. */
struct render_terms {
    struct objective_knobs knobs;
    struct objective_totals totals;
    bool known;                  /* the objective can be read: there are surrogates */
    bool closed;                 /* there are totals: there are contributions */
    struct store_reader *reader; /* of a rollout outside its group, where its terms depend on the others; NULL: none */
};
void render_terms_init(struct render_terms *terms, const struct store_batch *batch);

struct render_scope {
    render_fields fields;
    enum json_arrays arrays;
    enum store_batch_state batch_state; /* says what a member without a row is: pending, or lost with its batch */
    const struct render_terms *terms;   /* NULL: no surrogates and no contributions */
    const struct store_group *group;    /* the rollout stands inside; set by render_group() */
    const bool *shown;                  /* [n] of the group: rollouts that are; NULL: all are */
    const struct store_lease_group *delivered; /* the group stands in this place of a lease; NULL: in none */
    bool with_delivery;                        /* a group alone says where it is on its way to the trainer: */
    const struct store_delivery *delivery;     /* NULL: it is never leased */
    struct render_columns *columns;            /* where arrays go in place of the JSON; NULL: into the JSON */
    bool skip_dropped;                         /* groups that a refill dropped are left out */
    bool alone; /* not inside its group or batch: says which run, batch, group and task it is of */
};

/* Members of an object that the caller has opened: those of the task that `fields` names. */
void render_task(struct json_write *json, render_fields fields, struct text prompt, struct text reference);
/* One object each. */
void render_rollout(struct json_write *json, const struct store_rollout *rollout, const struct render_scope *scope);
void render_group(struct json_write *json, const struct store_group *group, const struct render_scope *scope);
/* A group of the record on its way into parts of a reply. */
struct group_piece {
    char batch_id[ID_BYTES];
    int64_t index;       /* of the group; raised when it has ended */
    bool begun;          /* a part has its beginning */
    int64_t next_member; /* then: the sample_index of the next one */
};
/* Rollouts of the group until json->out holds room_bytes. 1: the group has ended; 0: there is more of it; -1: it cannot
 * be read. The writer is the same for all parts. */
int render_group_piece(struct json_write *json, struct store_reader *reader, size_t room_bytes,
                       const struct render_scope *scope, struct group_piece *piece);
/* Members of an object that the caller has opened: all of a batch but its groups. */
void render_batch_members(struct json_write *json, const struct store_batch *batch, const struct render_terms *terms,
                          const struct store_provenance *provenance);
/* A member of an object that the caller has opened: the distinct values. */
void render_provenance(struct json_write *json, const struct store_provenance *provenance);
/* The short form of lists. */
void render_batch_line(struct json_write *json, const struct store_batch *batch);

/* Members of an object that the caller has opened: a weight update. */
void update_write_record(struct json_write *json, const struct store_policy_update *record);

/* Answers with a batch from the record, streamed by groups; while it runs without them. 404 if there is none.
 * Honours ?arrays= and the request's `return`. */
void render_answer_batch(struct call *call, struct text batch_id);
/* The same in one piece, for a reply in tensors: its JSON without arrays, and they in columns (which the caller has
 * initialised; `arrays` is set here). 0; 1: the batch runs, and has none yet; -1: the call is refused, or its client
 * has gone. */
int render_batch_columns(struct call *call, struct text batch_id, struct render_columns *columns,
                         struct buffer *ret_json);

#endif
