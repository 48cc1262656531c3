/* resume: unfinished batches go on after a start. Loop thread; `done` is called there when all have been read back. */
#ifndef SERVER_BATCHES_RESUME_H
#define SERVER_BATCHES_RESUME_H

struct batches;

void resume_unfinished(struct batches *batches, void (*done)(void *arg), void *arg);
/* What is being read back is left to the next start. When the workers have ended. */
void resume_finish(struct batches *batches);

#endif
