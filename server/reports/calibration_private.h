/* Shared by the answer and the alarms. */
#ifndef SERVER_REPORTS_CALIBRATION_PRIVATE_H
#define SERVER_REPORTS_CALIBRATION_PRIVATE_H

#include "server/base/names.h"
#include "server/reports/calibration.h"

#include <stdbool.h>

enum calibration_cell { TRUE_POSITIVE, FALSE_POSITIVE, FALSE_NEGATIVE, TRUE_NEGATIVE, UNSCORED, CALIBRATION_CELLS };

/* One label. */
struct calibration_row {
    uint32_t verifier; /* in `verifiers` */
    uint32_t reason;   /* in `reasons` */
    int64_t revision;
    enum calibration_cell cell;
};

struct calibration {
    struct names verifiers;
    struct names reasons; /* "": none */
    struct calibration_row *rows;
    size_t count, room;
    bool too_many; /* the rows are the first CALIBRATION_LABELS_MAX */
};

/* NOT_FOUND: no such run. Finish after any status. */
enum store_status calibration_read(struct store_reader *reader, const struct calibration_query *query,
                                   struct calibration *ret_calibration);
void calibration_finish(struct calibration *calibration);

struct calibration_counts {
    int64_t cells[CALIBRATION_CELLS];
};
int64_t calibration_labels(const struct calibration_counts *counts); /* with a score */
/* NAN: of nothing. */
double calibration_precision(const struct calibration_counts *counts);
double calibration_recall(const struct calibration_counts *counts);

#endif
