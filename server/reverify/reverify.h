/* reverify: stored rollouts are judged once more, beside their first verdicts.
 *
 * A reverification is on record before anybody is told of it. Its rollouts are read page by page, each page in a read
 * transaction of its own; a page's verdicts come on record together with the place of the next page, in one transaction.
 * So a start resumes it where it was: a rollout is judged twice at most, and counted once. Its jobs are those of the
 * spare lane (verify/pool.h): live batches come first. Loop thread, unless marked "worker". */
#ifndef SERVER_REVERIFY_REVERIFY_H
#define SERVER_REVERIFY_REVERIFY_H

#include "server/base/ids.h"
#include "server/input/input.h"
#include "server/store/rollout_filter.h"
#include "server/verify/spec.h"

struct loop;
struct pool;
struct reverify;
struct settings;
struct store;
struct verify_pool;
struct workers;

/* --- what is asked ------------------------------------------------------------------------------------------- */

struct reverify_request {
    struct json_input input; /* the filter's texts live there */
    struct store_rollout_filter filter;
    struct verifier_list *verifiers;
    char *text; /* JSON, as on record */
    int64_t rollouts;
    int64_t last_rollout; /* seq of the last of them; 0: there are none */
};

/* Worker. Reads the call's body. NULL: the call is refused. */
struct reverify_request *reverify_request_read(struct call *call);
/* Worker, with its reader in the call. Counts the rollouts. 0, or -1 with the call refused: there is no such run, or they
 * are more than reverify_limit. */
int reverify_request_count(struct call *call, struct reverify_request *request);
void reverify_request_destroy(struct reverify_request *request); /* NULL is fine */
/* The pools that its judges are asked in. 0, or -1 with the call refused. */
int reverify_check_judges(struct pool *engines, struct call *call, const struct reverify_request *request);

/* --- what runs ------------------------------------------------------------------------------------------------ */

/* Parts of the service that are used; they outlive it, except the store, the workers and the pool at the end. */
struct reverify_uses {
    const struct settings *settings;
    struct loop *loop;
    struct workers *workers;
    struct store *store;
    struct verify_pool *pool;
};

struct reverify *reverify_create(const struct reverify_uses *uses);
/* When the store, the workers and the pool are gone; what was under way continues at the next start. NULL is fine. */
void reverify_destroy(struct reverify *all);
/* Once, after a start: those on record that run. */
void reverify_resume(struct reverify *all);
/* One more would be too many. */
bool reverify_is_full(const struct reverify *all);
/* It is on record. The request is taken. One that is here already is left as it is. */
void reverify_begin(struct reverify *all, const char *id, struct reverify_request *request);
/* Its end is on record: nothing more is judged for it. Also of one that is not here. */
void reverify_stop(struct reverify *all, const char *id);
/* The place of each is from 0 on. False: there is none at this place. */
bool reverify_at(const struct reverify *all, size_t place, const char **ret_id, const char **ret_run);

#endif
