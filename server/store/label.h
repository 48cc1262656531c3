/* label: somebody's word on whether a completion is right, beside the verdict of one verifier. */
#ifndef STORE_LABEL_H
#define STORE_LABEL_H

#include "server/store/read.h"

#include <stdbool.h>
#include <stdint.h>

/* (rollout, verifier, by) is the key. */
struct store_label {
    struct text rollout; /* id */
    struct text verifier;
    struct text by;
    bool truth;
};

/* In order: of several with one key the last counts. All or none. NOT_FOUND: there is no rollout of the label
 * `unknown`, or its run is being deleted. */
struct store_put_labels {
    const struct store_label *labels;
    size_t count;
    size_t unknown; /* out: an index */
};

/* A label with the rollout that it is on. Texts are valid until the visitor returns. */
struct store_labelled {
    struct text verifier;
    bool truth;
    int64_t incarnation;
    int64_t revision;
    enum store_purpose purpose;
    struct text verdicts; /* JSON; TEXT_NONE: there are none */
};
/* False ends the visit. */
struct store_label_visitor {
    void *arg;
    bool (*take)(void *arg, const struct store_labelled *labelled);
};
/* The labels of a run, by verifier, rollout and labeller. verifier TEXT_NONE: of all. NOT_FOUND: no such run. */
enum store_status store_visit_labels(struct store_reader *reader, struct text run, struct text verifier,
                                     const struct store_label_visitor *visitor);

#endif
