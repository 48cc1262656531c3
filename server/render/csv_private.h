/* csv: rollouts as lines of comma-separated values (RFC 4180): a text is quoted where it must be, null is nothing, an
 * empty text is "", and an object is its JSON. Pure, any thread. */
#ifndef SERVER_RENDER_CSV_PRIVATE_H
#define SERVER_RENDER_CSV_PRIVATE_H

#include "server/base/buffer.h"
#include "server/render/render.h"

#define CSV_ROW_BYTES_MAX ((size_t)1 << 30)

void csv_add_header(struct buffer *out, render_fields fields);
/* row: a rollout as render_rollout() writes it with these fields, alone. */
void csv_add_row(struct buffer *out, render_fields fields, struct text row);

#endif
