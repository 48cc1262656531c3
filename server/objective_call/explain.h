/* objective_explain: POST /v1/objective?explain=<sequence>,<token>: one token's arithmetic, step by step.
 *
 * Nothing is computed twice in another way: every number is read from the arrays of the evaluation, or from the same
 * evaluation with one knob switched off (no importance and no selection; no KL), whose difference is that knob's share.
 * So the steps multiply out to the numbers of the ordinary reply. Formulas are those of KNOBS. One thread at a time. */
#ifndef SERVER_OBJECTIVE_CALL_EXPLAIN_H
#define SERVER_OBJECTIVE_CALL_EXPLAIN_H

#include "server/objective_call/objective_call.h"

/* Reads ?explain= once the sequences are known, and asks for every array. 0, or -1 with the call refused. */
int objective_explain_read(struct objective_call *objective);

/* Writes the reply: objective, losses, totals, the explanation, notes. request: as it was evaluated. */
void objective_explain_write(struct objective_call *objective, const struct objective_request *request,
                             const struct objective_result *result);

#endif
