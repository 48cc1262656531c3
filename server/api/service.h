/* Health, readiness, metrics, the contract, what is pending. Loop thread. */
#ifndef SERVER_API_SERVICE_H
#define SERVER_API_SERVICE_H

#include "server/api/server.h"
#include "server/http/http.h"

void get_health(void *owner, struct request *request);
void get_ready(void *owner, struct request *request);
void get_metrics(void *owner, struct request *request);
void get_openapi(void *owner, struct request *request);
void get_pending(void *owner, struct request *request);

/* Brings the gauges up to date; also called now and then by the loop. */
void service_set_gauges(struct server *server);

#endif
