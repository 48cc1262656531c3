/* render_columns: the arrays of a batch one behind the other, for a reply in tensors in place of JSON arrays.
 *
 * A row of a column is a token: of all rollouts in the order of the reply for five of them, of all prompts for
 * prompt_ids. A null of JSON (no log-probability, no advantage) is NAN in a column. Any thread, one at a time. */
#ifndef SERVER_RENDER_COLUMNS_H
#define SERVER_RENDER_COLUMNS_H

#include "server/base/buffer.h"
#include "server/spec/returns.h"
#include "server/store/store.h"

struct render_columns {
    unsigned arrays;      /* set of enum returns_array: the columns that are filled */
    size_t maximum_bytes; /* of all of them together */
    size_t bytes;
    int64_t tokens;
    int64_t prompt_tokens;
    struct buffer cu_seqlens; /* int64_t[rollouts + 1] */
    struct buffer cu_prompts; /* int64_t[groups + 1] */
    struct buffer columns[RETURNS_COUNT];
};

/* Bytes of one value of each column. */
extern const size_t render_column_widths[RETURNS_COUNT];

/* maximum_bytes: of all columns together; the one that would be beyond it fails. */
void render_columns_init(struct render_columns *columns, unsigned arrays, size_t maximum_bytes);
void render_columns_finish(struct render_columns *columns);
bool render_columns_failed(const struct render_columns *columns);

/* surrogates, contributions: NULL: none. */
void render_columns_add_rollout(struct render_columns *columns, const struct store_rollout *rollout,
                                const double *surrogates, const double *contributions);
void render_columns_add_group(struct render_columns *columns, const struct store_group *group);

#endif
