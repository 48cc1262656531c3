/* report: the numbers by revision, evaluations, settings, alarms, limitations and notes of a run. */
#ifndef SERVER_REPORTS_REPORT_H
#define SERVER_REPORTS_REPORT_H

#include "server/base/json_write.h"
#include "server/http/call.h"
#include "server/store/journal.h"

/* GET /v1/runs/{run}/report. Worker thread, with its reader in the call; answers or refuses. */
void report_answer(struct call *call);

/* A note as an object of JSON, in a report and in the list of notes. */
void report_write_note(struct json_write *json, const struct store_note *note);

#endif
