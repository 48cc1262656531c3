/* Leases end by UTC: one timer for the earliest of all open ones. */
#include "server/delivery/delivery_private.h"

#include "server/base/clock.h"

#define LOOK_AT_CLOCK_US (10 * US_PER_S) /* UTC may be set: no timer is longer */

static void timer_expired(void *arg)
{
    expiry_look(arg);
}

static void expired(struct store_op *op)
{
    struct delivery *delivery = op->context;
    if (store_desk_send_again(&delivery->expiry))
        return;
    delivery->expiring = false;
    if (op->status == STORE_OK && op->expire_leases.next_expiry_us >= 0)
        delivery_expires(delivery, op->expire_leases.next_expiry_us);
    if (op->status == STORE_OK && op->expire_leases.returned > 0)
        waiting_wake_all(delivery);
    expiry_look(delivery);
}

/* Until it has come back, leases that were taken meanwhile are noted in next_us. */
static void send(struct delivery *delivery)
{
    delivery->expiring = true;
    delivery->next_us = NEVER_US;
    delivery->expiry.loop = delivery->uses.loop;
    delivery->expiry.store = delivery->uses.store;
    delivery->expiry.op = (struct store_op){.kind = STORE_EXPIRE_LEASES, .done = expired, .context = delivery};
    store_desk_send(&delivery->expiry);
}

void expiry_look(struct delivery *delivery)
{
    struct loop *loop = delivery->uses.loop;
    if (delivery->expiring || delivery->next_us == NEVER_US)
        return;
    int64_t left_us = delivery->next_us - clock_utc_us();
    if (left_us <= 0)
        send(delivery);
    else
        loop_timer_set(loop, &delivery->timer,
                       loop_now_us(loop) + (left_us < LOOK_AT_CLOCK_US ? left_us : LOOK_AT_CLOCK_US), timer_expired,
                       delivery);
}

void delivery_expires(struct delivery *delivery, int64_t expires_at_us)
{
    if (expires_at_us < delivery->next_us)
        delivery->next_us = expires_at_us;
    expiry_look(delivery);
}

void expiry_finish(struct delivery *delivery)
{
    loop_timer_clear(delivery->uses.loop, &delivery->timer);
    if (delivery->expiring)
        store_desk_drop(&delivery->expiry);
}
