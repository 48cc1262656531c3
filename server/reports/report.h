/* report: what a run is on record: its numbers by revision, evaluations, settings, limitations, and what was said of it. */
#ifndef SERVER_REPORTS_REPORT_H
#define SERVER_REPORTS_REPORT_H

#include "server/http/call.h"

/* GET /v1/runs/{run}/report. Worker thread, with its reader in the call; answers or refuses. */
void report_answer(struct call *call);

#endif
