/* Shared by the routes on which trainers ask a reward server. A protocol reads samples. They become the items of a verify, or,
 * where the request names a run, a score on record. The protocol writes their outcomes. */
#ifndef SERVER_API_COMPAT_PRIVATE_H
#define SERVER_API_COMPAT_PRIVATE_H

#include "server/input/input.h"
#include "server/verify/spec.h"

#include <stdbool.h>
#include <stddef.h>

/* One completion that is to be judged. Its texts and values are the request's, or the intake's. */
struct compat_sample {
    struct text completion;
    struct text prompt;      /* TEXT_NONE: none that is one text */
    const json_t *asked;     /* the prompt as it came, in any form; NULL: none */
    const json_t *verifiers; /* of its label; NULL: the route's */
    const json_t *reference; /* NULL: none */
};

struct protocol;

/* The members of a reply beside the verdicts. */
struct rewards {
    const struct protocol *protocol;
    size_t count; /* samples */
    json_t *body; /* nemo_gym says again what it was asked; NULL: nothing */
    bool is_one;  /* openrlhf: a number is asked for, not a list */
};

/* A request while it is read. */
struct intake {
    struct json_input *input;
    struct rewards *rewards;
    struct compat_sample *samples; /* [rewards->count] */
    struct buffer text;            /* of nemo_gym's completion */
    json_t *own;                   /* labels that were texts of JSON; NULL: none */
    size_t own_bytes;              /* that these hold of the memory of trees (input/memory.h) */
};

/* Room for so many samples, which intake_add() fills in order. */
void intake_begin(struct intake *intake, size_t count);
/* label: NULL: none. One that brings verifiers becomes these and its reference. 0, or -1 with the call refused. */
int intake_add(struct intake *intake, const struct compat_sample *sample, const json_t *label);

/* The outcome of one sample. */
struct outcome {
    double value; /* NAN: it has no reward */
    char code[VERIFY_CODE_BYTES];
    char message[VERDICT_MESSAGE_BYTES];
    json_t *components; /* scores by verifier; owned */
};
void outcome_finish(struct outcome *outcome);
/* An outcome without reward and failure gets the code no_reward. */
void outcome_settle(struct outcome *outcome);

/* Samples that were graded. */
struct graded {
    const struct rewards *rewards;
    struct call *call;
    bool (*find)(const struct graded *graded, size_t index,
                 struct outcome *ret_outcome); /* false: the call is refused */
    const void *of;                            /* find()'s */
};

struct protocol {
    const char *setting;                        /* its name */
    const char *path;                           /* of its route */
    size_t offset;                              /* of its value in the settings, a text */
    int (*read)(struct intake *intake);         /* 0, or -1 with the call refused */
    void (*write)(const struct graded *graded); /* fills the reply */
};
extern const struct protocol compat_openrlhf, compat_slime, compat_nemo_gym;

/* api/compat_record.c, worker: the call becomes a score of these samples under the run of ?run=. list: the route's
 * verifiers, as values and as read. rewards: the call's from now on. Refuses, or leaves the loop part to create_batch(). */
char *compat_score_body(const struct intake *intake, struct text run, const json_t *list,
                        const struct verifier_list *shared);
void compat_record(struct call *call, char *body, struct rewards *rewards);
/* 0, or -1 with the call refused: ?run= names none that is there. */
int compat_check_run(struct call *call, struct text run);
void rewards_destroy(void *about);

#endif
