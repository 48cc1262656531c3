/* Routes about the service itself. Loop thread. */
#ifndef SERVER_API_SERVICE_H
#define SERVER_API_SERVICE_H

#include "server/api/server.h"

/* Brings the gauges up to date; also called now and then by the loop. */
void service_set_gauges(struct server *server);

#endif
