/* judges: the pools of engines that verifiers ask, checked with the request. Loop thread. */
#ifndef SERVER_VERIFY_JUDGES_H
#define SERVER_VERIFY_JUDGES_H

#include "client/pool/pool.h"
#include "server/verify/spec.h"

/* Has every verifier of the list that asks a pool of engines one with an engine in it, and another than `own`
 * (TEXT_NONE: none), whose policy would grade itself? 0, or -1 with the index of the first that has not and why. */
int judges_check(struct pool *engines, const struct verifier_list *list, struct text own, size_t *ret_index,
                 struct verifier_problem *ret_problem);

/* The same for an item of POST /v1/verify: it has no group, so that no verifier of the list may judge a whole one. */
int judges_check_item(struct pool *engines, const struct verifier_list *list, size_t *ret_index,
                      struct verifier_problem *ret_problem);

#endif
