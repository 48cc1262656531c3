/* resume: unfinished batches go on after a start. Loop thread; `done` is called there when all have been read back. */
#ifndef SERVER_BATCHES_RESUME_H
#define SERVER_BATCHES_RESUME_H

struct batches;

void resume_unfinished(struct batches *batches, void (*done)(void *arg), void *arg);
/* Frees the read-back under way; the next start repeats it. Only after the workers have ended. */
void resume_finish(struct batches *batches);

#endif
