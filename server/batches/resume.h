/* resume: unfinished batches continue after a start. Loop thread, which calls `done` when all are read back. */
#ifndef SERVER_BATCHES_RESUME_H
#define SERVER_BATCHES_RESUME_H

struct batches;

void resume_unfinished(struct batches *batches, void (*done)(void *arg), void *arg);
/* Frees the read-back under way; the next start repeats it. Only after the workers have ended. */
void resume_finish(struct batches *batches);

#endif
