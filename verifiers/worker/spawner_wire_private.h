/* The fixed messages between the service and its spawner, and how the one starts the other. */
#ifndef VERIFIERS_WORKER_SPAWNER_WIRE_PRIVATE_H
#define VERIFIERS_WORKER_SPAWNER_WIRE_PRIVATE_H

#include <stdint.h>

#define SPAWNER_ARGV0 "rolloutd-spawner"
#define SPAWNER_ARGV1 "--serve-descriptor-3"
#define SPAWNER_FD 3

enum spawner_order_kind { SPAWNER_ORDER_MAKE = 1, SPAWNER_ORDER_KILL };

struct spawner_order {
    uint32_t kind;
    uint32_t id;
};

struct spawner_report {
    uint32_t kind; /* enum spawner_event_kind: MADE (with a descriptor), FAILED, ENDED */
    uint32_t id;
    int32_t value; /* errno or wait status */
};

#endif
