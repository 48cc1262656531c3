/* The fixed messages between the service and its spawner, and how the one starts the other. */
#ifndef VERIFIERS_WORKER_SPAWNER_WIRE_PRIVATE_H
#define VERIFIERS_WORKER_SPAWNER_WIRE_PRIVATE_H

#include "verifiers/sandbox/probe.h"

#include <stdint.h>

#define SPAWNER_ARGV0 "rolloutd-spawner"
#define SPAWNER_ARGV1 "--serve-descriptor-3"
#define SPAWNER_FD 3

enum spawner_order_kind { SPAWNER_ORDER_MAKE = 1, SPAWNER_ORDER_KILL, SPAWNER_ORDER_PROBE };

struct spawner_order {
    uint32_t kind;
    uint32_t id;
    uint32_t worker_kind;            /* enum worker_kind, of SPAWNER_ORDER_MAKE */
    struct sandbox_settings sandbox; /* of a code worker, and of SPAWNER_ORDER_PROBE */
};

struct spawner_report {
    uint32_t kind; /* enum spawner_event_kind: MADE (with descriptors), FAILED, ENDED, SLOT_ENDED, PROBED */
    uint32_t id;
    int32_t value; /* errno or wait status */
    struct sandbox_report probed;
};

#endif
