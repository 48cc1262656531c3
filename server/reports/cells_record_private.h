/* cells_record: rows of the record as cells take them. Pure; texts stay the row's. */
#ifndef SERVER_REPORTS_CELLS_RECORD_PRIVATE_H
#define SERVER_REPORTS_CELLS_RECORD_PRIVATE_H

#include "server/reports/cells.h"
#include "server/store/store.h"

/* All parts except those that depend on a verdict. */
struct cell_rollout cell_of_record(const struct store_rollout *rollout);
struct cell_sums cell_sums_of_rollup(const struct store_rollup *rollup);

#endif
