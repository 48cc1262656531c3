/* Shared by the files of the probe. */
#ifndef CLIENT_PROBE_DIALOGUE_PRIVATE_H
#define CLIENT_PROBE_DIALOGUE_PRIVATE_H

#include "client/probe/dialogue.h"

enum probe_phase { PROBE_PHASE_GETS, PROBE_PHASE_TOKENS, PROBE_PHASE_QUESTIONS, PROBE_PHASE_OVER };

/* The questions, in the order in which they are put. */
enum probe_question {
    QUESTION_SEED,
    QUESTION_OTHER_SEED,
    QUESTION_SEED_AGAIN,
    QUESTION_SEED_THIRD,
    QUESTION_LIKELIEST,
    QUESTION_LIKELIEST_HOTTER,
    QUESTION_TWO,
};

/* probe/gets.c */
/* Moves to the GET that comes next (probe->get): of its kind; where that is not known, of the kinds in turn. False:
 * there is none. */
bool gets_next(struct probe *probe);
void gets_read(struct probe *probe, const struct engine_reply *reply);
/* The GETs and the replies of an engine that was not recognised. */
void gets_say_stranger(const struct probe *probe, char ret_why[SAMPLE_MESSAGE_BYTES]);

/* probe/samples.c */
bool tokens_build(const struct probe *probe, struct engine_call *ret_call); /* false: this kind cannot be asked */
void tokens_read(struct probe *probe, const struct engine_reply *reply);
bool questions_build(struct probe *probe, struct engine_call *ret_call);
/* False: that was the last one. */
bool questions_take(struct probe *probe, const struct engine_reply *reply);

#endif
