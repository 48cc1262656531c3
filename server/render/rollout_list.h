/* rollout_list: rollouts of the record by a filter: a page of rows, or an export of lines. Each part is made of short
 * reads, so that a client that reads slowly holds neither a reader nor a snapshot. */
#ifndef SERVER_RENDER_ROLLOUT_LIST_H
#define SERVER_RENDER_ROLLOUT_LIST_H

#include "server/render/render.h"
#include "server/store/rollout_filter.h"

enum rollout_list_form {
    ROLLOUT_LIST_PAGE, /* {"items":[…],"next":…}: at most RECORD_LIST_BYTES_MAX, and scan_budget rows are looked at */
    ROLLOUT_LIST_LINES, /* a line for each rollout, then {"end":{"rows":…,"next":…}} */
    ROLLOUT_LIST_CSV,   /* the flat columns (render/csv.h), then "# end,ROWS", and the cursor where there is more */
};

struct rollout_list_spec {
    enum rollout_list_form form;
    struct store_rollout_filter filter; /* texts: the call's */
    render_fields fields;
    enum json_arrays arrays;
    struct text cursor; /* where it begins; TEXT_NONE: at the beginning */
    int64_t limit;      /* rows */
};
void rollout_list_answer(struct call *call, const struct rollout_list_spec *spec);

/* Rows are mostly of few batches: the terms of the last one are kept. */
struct render_terms_cache {
    char batch_id[ID_BYTES];
    struct render_terms terms;
};
/* A rollout that stands outside its batch. scope: `terms` is set here. 0; -1: the record cannot be read. */
int render_rollout_alone(struct json_write *json, struct store_reader *reader, const struct store_rollout *rollout,
                         const struct render_scope *scope, struct render_terms_cache *cache);

#endif
