/* manifest: the frozen settings of a run: read, extended, compared with requests.
 *
 * A manifest is kept in two forms, as given and as compared ("frozen"): a settings tree (settings_tree.h) of the given
 * keys alone, with `checkpoint`, `tokenizer_sha256`, `data`, `reference_policy`, `evaluation` and `budget` beside.
 * One thread at a time. */
#ifndef SERVER_SPEC_MANIFEST_H
#define SERVER_SPEC_MANIFEST_H

#include "server/spec/settings_tree.h"

#define MANIFEST_BYTES_MAX 262144
#define MANIFEST_DEPTH_MAX 24

/* A key whose value differs from the manifest's. */
struct manifest_difference {
    char key[PATH_BYTES];
    char wanted[SETTINGS_TEXT_BYTES]; /* by the manifest */
    char found[SETTINGS_TEXT_BYTES];
};

struct manifest {
    json_t *given;
    json_t *frozen;
    struct store_budget budget;
};
void manifest_finish(struct manifest *manifest); /* zeroed is fine */

/* Reads the member `manifest` of a request. 0, or -1 with the call refused. */
int manifest_read(struct json_input *input, json_t *given, struct manifest *ret_manifest);
/* Adds the new keys to the run's frozen ones (texts of the record; TEXT_NONE: nothing). 0; -1: it changes a
 * frozen key, or both together are no manifest, and the call is refused. */
int manifest_add(struct json_input *input, struct text given_before, struct text frozen_before,
                 struct manifest *manifest);

/* True if every group of the batch keeps to it; else *ret_difference is the first key that does not. frozen: of the
 * record. An evaluation may differ. */
bool manifest_agrees(json_t *frozen, const struct batch_spec *spec, struct manifest_difference *ret_difference);
bool manifest_agrees_with_record(json_t *frozen, const struct store_batch_settings *batch,
                                 struct manifest_difference *ret_difference);
bool manifest_agrees_with_objective(json_t *frozen, struct text objective, struct manifest_difference *ret_difference);

#endif
