/* resume: unfinished batches go on after a start. Loop thread; `done` is called there when all have been read back. */
#ifndef SERVER_BATCHES_RESUME_H
#define SERVER_BATCHES_RESUME_H

#include "server/api/server.h"

void resume_unfinished(struct server *server, void (*done)(struct server *server));

#endif
