/* GET /v1/runs/{run}/report. */
#include "server/api/routes.h"
#include "server/reports/report.h"

void get_report(struct call *call)
{
    report_answer(call);
}
