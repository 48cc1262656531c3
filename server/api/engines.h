/* /v1/engines: which engines there are, how they are, and more or fewer of them while the service runs. */
#ifndef SERVER_API_ENGINES_H
#define SERVER_API_ENGINES_H

#include "server/api/server.h"
#include "server/http/http.h"

void list_engines(void *owner, struct request *request);  /* loop */
void get_engine(void *owner, struct request *request);    /* loop */
void parse_engine(struct call *call);                     /* worker */
void put_engine(void *owner, struct request *request);    /* loop */
void delete_engine(void *owner, struct request *request); /* loop */

#endif
