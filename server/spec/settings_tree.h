/* settings_tree: the effective settings of a batch as one JSON tree, and the differences of two trees.
 *
 * {"objective": every knob, "masks": its section `mask`, "sampling": every knob (none of a score),
 *  "verifiers": {ID: {"name","version","weight","heldout","gate","options","reference"}}}
 *
 * A key is the way to a value: "sampling.temperature", "verifiers.math.options.tolerance". One thread at a time; trees
 * are the caller's to json_decref(). */
#ifndef SERVER_SPEC_SETTINGS_TREE_H
#define SERVER_SPEC_SETTINGS_TREE_H

#include "server/base/json_write.h"
#include "server/spec/batch.h"

#include <jansson.h>

/* Of a batch as it was read; group NULL: its settings for all groups. */
json_t *settings_tree_of_spec(const struct batch_spec *spec, const struct group_spec *group);
/* Of a batch on record; overrides NULL: its settings for all groups. Versions of verifiers are those of the batch's
 * verdicts; verifiers that this program does not read are as they were given. */
json_t *settings_tree_of_record(const struct store_batch_settings *batch, const struct store_group_settings *overrides);
/* {"data": {"set","sha256","split"}} of a group, which may differ from the next one's: in neither of the trees above.
 * A group without a set's task has no keys in `data`. */
json_t *settings_tree_of_data(const struct store_data_source *source);
/* Objective and masks alone. */
json_t *settings_tree_of_objective(struct text objective);

enum settings_how {
    SETTINGS_BOTH,   /* every key of either tree */
    SETTINGS_SHARED, /* shared keys at the top; below, every key of `left`, and every verifier */
    SETTINGS_MERGED, /* shared keys, and every verifier */
};
/* Calls `found` for each key that differs, in order of the keys in `left`, then of those that `right` has alone; left or
 * right is NULL where it has none. False from it ends the search. Numbers are compared by value. Returns false if it was
 * ended. */
typedef bool settings_found(void *arg, const char *key, json_t *left, json_t *right);
bool settings_differences(json_t *left, json_t *right, enum settings_how how, settings_found *found, void *arg);

/* One JSON value as it stands; NULL writes null. */
void settings_write(struct json_write *json, json_t *value);
/* The same as text, cut to the size of the array: for messages. */
#define SETTINGS_TEXT_BYTES 96
void settings_say(json_t *value, char ret_text[SETTINGS_TEXT_BYTES]);

/* The verifiers of a list by their ids, complete. */
json_t *settings_tree_verifiers(const struct verifier_list *list);

#endif
