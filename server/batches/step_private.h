/* step: works off what was posted to live batches, and carries out what their machines (batch.h) decide. Loop thread. */
#ifndef SERVER_BATCHES_STEP_PRIVATE_H
#define SERVER_BATCHES_STEP_PRIVATE_H

/* arg: the batches. All events, in the order of their batches; then the dispatcher, if it was woken; until nothing is
 * left. A batch that has ended is destroyed here and nowhere else. */
void batches_step(void *arg);

#endif
