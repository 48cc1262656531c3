/* manifest_hold: the check of a request against its run's manifest.
 *
 * A worker looks at the manifest on record and refuses early. A manifest that came meanwhile is looked at again inside
 * the store's transaction, by the guard of the operation. */
#ifndef SERVER_SPEC_MANIFEST_HOLD_H
#define SERVER_SPEC_MANIFEST_HOLD_H

#include "server/spec/manifest.h"

/* The request that is checked against a manifest. It must not move until the operation is handed back. */
struct manifest_hold {
    const struct batch_spec *spec; /* NULL: an objective call */
    struct text objective;         /* JSON, of an objective call */
    int64_t version;               /* of the manifest that it agreed with; 0: none */
    struct manifest_difference difference;
};

/* Worker: `run` is asked for its manifest. 0; -1: it is contradicted, or the record cannot be read, and the call is
 * refused. A run that is not there has none. */
int manifest_look(struct call *call, struct text run, struct manifest_hold *hold);
/* For the operation; `hold` is its argument. */
struct store_manifest_guard manifest_guard(struct manifest_hold *hold);
/* 409. -1 always. */
int manifest_refuse_difference(struct call *call, const struct manifest_difference *difference);

#endif
