/* calls: requests to servers that verifiers have to ask before they can judge: a judge among the engines, a reward
 * function of the settings that has a URL.
 *
 * A text worker says what is to be asked (verifiers/verifier.h); here it is sent, bytes and nothing else, and what comes
 * back is put into the request that the text workers then judge. All calls of a verdict go out together, as far as their
 * pool lets them: limits in flight, repeats with growing pauses, breakers and the budget for repeats are those of
 * client/pool. A pool's places go to the run that has fewest calls in flight. A verdict's time begins with its first
 * call that is sent and bounds all of its calls, repeats included; what waits for a place is not counted. Calls that
 * wait while none of their pool's succeeds fail after engine.down_timeout.
 *
 * A failed call is no verdict: the verifier is told its code. Loop thread only. */
#ifndef SERVER_VERIFY_CALLS_H
#define SERVER_VERIFY_CALLS_H

#include "client/pool/pool.h"
#include "client/transport/transport.h"
#include "server/runtime/loop.h"
#include "server/runtime/workers.h"
#include "server/verify/spec.h"

struct settings;
struct verify_calls;
struct verify_pool;

/* Parts of the service that are used; they outlive the calls, except the transport and the workers at the end. */
struct verify_calls_uses {
    const struct settings *settings;
    struct loop *loop;
    struct workers *workers;
    struct transport *transport;
    struct pool *engines; /* judges are among them; those of the externals are made here */
    /* A call ended there, failed or not. Not for externals. NULL: nobody is told. */
    void (*called)(void *arg, const struct engine *engine, enum engine_state before, bool failed);
    void *called_arg;
};

/* For the jobs of this pool and of those that are joined to it. */
struct verify_calls *verify_calls_create(const struct verify_calls_uses *uses, struct verify_pool *text);
/* Calls that are still there are dropped. When the transport and the workers are gone; NULL is fine. */
void verify_calls_destroy(struct verify_calls *calls);

/* The longest that the calls for one completion may take once each is sent; 0: the list makes none. ret_share_us: what
 * one of many completions adds to their time, where they are asked about side by side. Any thread. */
int64_t verify_calls_time_us(const struct verifier_list *list, int64_t *ret_share_us);

/* One run's calls to one pool. */
struct verify_calls_share {
    const char *run; /* NULL: what belongs to none */
    const char *pool;
    bool external; /* the pool is the external of this name */
    size_t waiting, in_flight;
};
/* The place of each is from 0 on. False: there is none at this place. */
bool verify_calls_share(const struct verify_calls *calls, size_t place, struct verify_calls_share *ret_share);
void verify_calls_count(const struct verify_calls *calls, size_t *ret_waiting, size_t *ret_in_flight);

#endif
