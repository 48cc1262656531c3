/* manifest: the frozen settings of a run, and the settings of its batches.
 *
 * The store checks two things inside its transaction: whether a manifest is still the one that the caller has read, and
 * whether a budget is spent. It never reads the JSON of a manifest. */
#ifndef STORE_MANIFEST_H
#define STORE_MANIFEST_H

#include "server/base/ids.h"
#include "server/store/provenance.h"
#include "server/store/read.h"

#include <stdbool.h>
#include <stdint.h>

/* The manifest that an operation was checked against. If the run has another one by now, `agrees` is asked again,
 * on the writer thread: false ends the operation with MANIFEST_CONFLICT. */
struct store_manifest_guard {
    int64_t version; /* 0: the run had none */
    bool (*agrees)(void *arg, struct text frozen);
    void *arg;
};

struct store_budget {
    int64_t completion_tokens; /* -1: none */
    int64_t revisions;         /* -1: none; pairs of incarnation and revision that batches train on */
};

/* Makes the run if there is none, and the manifest its own. CHANGED: it was decided by a manifest or by batches that are
 * no longer the newest: decide and submit again. OVER_BUDGET: more is spent already;
 * `spent` has the sums. */
struct store_put_manifest {
    struct text run;
    struct text given;
    struct text frozen;
    struct store_budget budget;
    int64_t base_version;  /* of the manifest that this one adds to; 0: there was none */
    int64_t checked_batch; /* seq of the newest training batch that does not contradict it; 0: there was none */
    /* out */
    bool created; /* the run */
    int64_t version;
    struct store_budget spent;
};

/* Counts one slice of the tokens that a run from before the count has spent. all: none is left. */
struct store_count_spent {
    struct text run;
    /* out */
    bool all;
};

struct store_manifest {
    int64_t version; /* 0: the run has none */
    int64_t created_at_us;
    int64_t changed_at_us;
    struct text given;
    struct text frozen;
    struct store_budget budget;
    struct store_memory *memory;
};
/* NOT_FOUND: no such run. */
enum store_status store_read_manifest(struct store_reader *reader, struct text run,
                                      struct store_manifest *ret_manifest);
void store_manifest_finish(struct store_manifest *manifest);

/* ---- the settings of batches ------------------------------------------------------------------------------- */

/* A group's own settings; TEXT_NONE: the batch's. */
struct store_group_settings {
    struct text sampling;
    struct text verifiers;
};

/* The set that a group's task is of; TEXT_NONE, all three: the request brought the task. */
struct store_data_source {
    struct text set;
    struct text sha256; /* of the set, hex */
    struct text split;
};

/* Programs and models behind the rollouts of a batch, each list distinct and sorted; empty: not known. */
struct store_makers {
    struct text verdicts; /* JSON, of the first rollout that has some; TEXT_NONE: none has */
    struct store_names engine_models;
    struct store_names engine_versions;
    struct store_names rolloutd_versions;
};

struct store_batch_settings {
    int64_t seq; /* in order of creation */
    char id[ID_BYTES];
    int64_t incarnation;
    enum store_purpose purpose;
    int64_t policy_revision;
    int64_t created_at_us;
    struct text objective; /* JSON, as all of these */
    struct text sampling;  /* null: of a score */
    struct text verifiers;
    struct store_group_settings *overrides; /* distinct ones */
    size_t override_count;
    struct store_data_source *sources; /* distinct ones of its groups */
    size_t source_count;
    struct store_makers makers;
};
struct store_settings_page {
    struct store_batch_settings *batches; /* oldest first */
    size_t count;
    struct store_memory *memory;
};
/* Batches of a run behind `after` (a seq; 0: from the first). NOT_FOUND: no such run. */
enum store_status store_list_settings(struct store_reader *reader, struct text run, int64_t after, size_t limit,
                                      struct store_settings_page *ret_page);
void store_settings_page_finish(struct store_settings_page *page);

/* The known values of a run's batches up to one: each from the latest batch that has it. NOT_FOUND: no such
 * run. */
struct store_known_makers {
    struct store_makers makers;
    struct text sampling; /* of the latest batch that was sampled; TEXT_NONE: none was */
    struct store_memory *memory;
};
enum store_status store_find_makers(struct store_reader *reader, struct text run, enum store_purpose purpose,
                                    int64_t batch_seq, struct store_known_makers *ret_known);
void store_known_makers_finish(struct store_known_makers *known);

#endif
