/* render_lease: leases, and where a group is on its way to the trainer, as the JSON of the contract's section 6.
 *
 * Workers. A lease is read once, its groups part by part: a lease is never one buffer, but as tensors. */
#ifndef SERVER_RENDER_LEASE_H
#define SERVER_RENDER_LEASE_H

#include "server/base/json_write.h"
#include "server/http/call.h"
#include "server/render/columns.h"
#include "server/render/share.h"
#include "server/store/store.h"

/* `delivery`, a member of an object that the caller has opened: of a group (NULL: it is never leased), or groups by state
 * (NULL: not known). */
void render_delivery(struct json_write *json, const struct store_delivery *delivery);
void render_delivery_counts(struct json_write *json, const struct store_delivery_counts *counts);
/* Members of an object that the caller has opened: a lease without its groups and their totals. */
void render_lease_members(struct json_write *json, const struct store_lease *lease);
/* One object, for lists. */
void render_lease_line(struct json_write *json, const struct store_lease *lease);

/* Answers with a lease from the record, groups in the order of its delivery: one object, or a line for each group by
 * Accept. lease_id TEXT_NONE: nothing was ready. Honours ?arrays= and each batch's `return`. `share`: of that rank alone, with the
 * totals of the whole lease; NULL: of all. 404 if the run has none. */
void render_answer_lease(struct call *call, struct text run, struct text lease_id, const struct lease_share *share);
/* The same in one piece, for a reply in tensors: its JSON without arrays, and they in columns (which the caller has
 * initialised; `arrays` is set here to what at least one batch returns). 0, or -1: the call is refused, or its client
 * has gone. */
int render_lease_columns(struct call *call, struct text run, struct text lease_id, const struct lease_share *share,
                         struct render_columns *columns, struct buffer *ret_json);

#endif
