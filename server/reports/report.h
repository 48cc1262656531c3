/* report: the numbers by revision, evaluations, settings, alarms, limitations and notes of a run. */
#ifndef SERVER_REPORTS_REPORT_H
#define SERVER_REPORTS_REPORT_H

#include "server/http/call.h"

/* GET /v1/runs/{run}/report. Worker thread, with its reader in the call; answers or refuses. */
void report_answer(struct call *call);

#endif
