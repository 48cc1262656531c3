/* rollout_query: the query parameters that choose rollouts: the filters and orders of GET /v1/rollouts,
 * for every route that takes them. Pure, any thread. */
#ifndef SERVER_SPEC_ROLLOUT_QUERY_H
#define SERVER_SPEC_ROLLOUT_QUERY_H

#include "server/http/call.h"
#include "server/store/rollout_filter.h"

#include <jansson.h>

/* call_check_query() for the filters and the parameters that the route has beside them (NULL-terminated). */
int rollout_query_check(struct call *call, const char *const *own);

/* The texts of *ret_filter are the call's. 0, or -1 with the call refused. */
int rollout_query_read(struct call *call, struct store_rollout_filter *ret_filter);
/* The same filters as members of a JSON object, beside those of `own` (NULL-terminated): texts and times as texts, numbers as
 * numbers, flags as true and false. The texts of *ret_filter are the object's. */
int rollout_query_read_members(struct call *call, json_t *object, const char *const *own,
                               struct store_rollout_filter *ret_filter);
/* `order` and `order_by` of lists, after the filters: an order by a value needs a run and one revision. */
int rollout_query_read_order(struct call *call, struct store_rollout_filter *filter);
/* Every `tag.NAME` alone; their texts are the call's. 0, or -1 with the call refused. */
int query_read_tags(struct call *call, struct store_tag ret_tags[STORE_TAGS_MAX], size_t *ret_count);
/* `by` alone: one `tag.NAME` that splits an answer. ret_name: without "tag."; TEXT_NONE: there is none. 0, or -1 with the
 * call refused. */
int query_read_split(struct call *call, struct text *ret_name);
/* `order` alone. */
int query_read_descending(struct call *call, bool *descending);

#endif
