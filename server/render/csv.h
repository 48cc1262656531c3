/* csv: the members of a rollout that have a column in comma-separated values. */
#ifndef SERVER_RENDER_CSV_H
#define SERVER_RENDER_CSV_H

#include "server/render/render.h"

/* Members that a column shows. */
render_fields csv_fields(void);

#endif
