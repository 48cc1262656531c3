/* Health, readiness, metrics, the contract, what is pending. Loop thread. */
#ifndef SERVER_API_SERVICE_H
#define SERVER_API_SERVICE_H

#include "server/api/server.h"
#include "server/http/http.h"

void get_health(struct server *server, struct request *request);
void get_ready(struct server *server, struct request *request);
void get_metrics(struct server *server, struct request *request);
void get_openapi(struct server *server, struct request *request);
void get_pending(struct server *server, struct request *request);

/* Brings the gauges up to date; also called now and then by the loop. */
void service_set_gauges(struct server *server);

#endif
