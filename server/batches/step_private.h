/* step: works off the events posted to live batches, and carries out the actions of their machines (batch.h). Loop
 * thread. */
#ifndef SERVER_BATCHES_STEP_PRIVATE_H
#define SERVER_BATCHES_STEP_PRIVATE_H

/* arg: the batches. All events, in the order of their batches; then the dispatcher, if it was woken; until nothing is
 * left. A batch that has ended is destroyed here and nowhere else. */
void batches_step(void *arg);

#endif
