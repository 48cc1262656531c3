/* operations: the enumerated writes, each called inside a savepoint on the writer thread. Private to the room. */
#ifndef SERVER_STORE_SQLITE_OPERATIONS_H
#define SERVER_STORE_SQLITE_OPERATIONS_H

#include "server/store/sqlite/store_private.h"

#define OPERATION_FUNCTION(kind, type, member)                                                                         \
    enum store_status operation_##member(struct store *store, struct store_op *op);
STORE_OPERATIONS(OPERATION_FUNCTION)
#undef OPERATION_FUNCTION

/* Ends an operation with what SQLite said (not OK), or with a status and a sentence of its own. Both return the status.
 */
enum store_status operation_fail(struct store *store, struct store_op *op, int result);
enum store_status operation_decline(struct store_op *op, enum store_status status, const char *message);

struct run_row {
    int64_t seq;
    int64_t incarnation;
    int64_t policy_revision; /* -1: none declared */
};
/* In place of an SQLite result code, from the next two: nothing enters a run that is being deleted. operation_fail()
 * turns it into STORE_RUN_IS_DELETED. */
#define RESULT_RUN_IS_DELETED (-1)
/* Finds the run, or makes it. An SQLite result code. */
int operation_enter_run(struct store *store, struct text name, int64_t now_us, struct run_row *ret_run);
/* SQLITE_ROW, or SQLITE_DONE if there is none. */
int operation_find_run(struct store *store, struct text name, struct run_row *ret_run);
/* The run's revision from now on, on record with its time. */
int operation_set_revision(struct store *store, struct run_row *run, int64_t revision, int64_t now_us);

/* One more incarnation of the run on record; rewind_to_step -1: the first. */
int operation_insert_incarnation(struct store *store, const struct run_row *run, int64_t now_us,
                                 int64_t rewind_to_step);
/* Whether a weight update of the run is open: then only its commit declares a revision. */
int operation_has_open_update(struct store *store, int64_t run_seq, bool *ret_open);

/* A row of idempotency_keys. Negative numbers: none; incarnation -1: of whichever. */
struct key_row {
    int64_t run_seq;
    int64_t incarnation;
    enum store_route route;
    struct text key;
    const uint8_t *request_sha256; /* [SHA256_BYTES] */
    int64_t batch_seq;
    int64_t update_seq;
    int64_t revision;
    int64_t led_to_incarnation;
    int64_t previous_revision;
    int64_t lease_seq;
    int64_t taken_at_us;
};
/* An SQLite result code. */
int operation_insert_key(struct store *store, const struct key_row *row);
/* Whether a column holds this digest. */
bool operation_is_same_body(sqlite3_stmt *row, int place, const uint8_t sha256[SHA256_BYTES]);
/* Looks up the key of a policy step in the run: STORE_OK, it is new; EXISTS, with the first answer in the
 * operation; IDEMPOTENCY_CONFLICT. */
enum store_status operation_check_step_key(struct store *store, struct store_op *op, const struct run_row *run);
/* Puts the key of a step that was taken on record. update_seq: -1 for none. An SQLite result code. */
int operation_keep_step_key(struct store *store, const struct store_op *op, const struct run_row *run,
                            int64_t update_seq);

/* The row of these settings, made if there is none; *ret_seq -1 for NULL. An SQLite result code, as all of these. */
int operation_enter_settings(struct store *store, const struct store_settings *settings, int64_t *ret_seq);
/* The row of a rollout's provenance, likewise. */
int operation_enter_provenance(struct store *store, const struct store_rollout *rollout,
                               const struct store_settings *settings, int64_t *ret_seq);
/* Adds it to the batch's. engine TEXT_NONE: none. */
int operation_note_provenance(struct store *store, int64_t batch_seq, struct text engine, int64_t provenance_seq);

/* Whether the run's manifest allows it: STORE_OK, or MANIFEST_CONFLICT. */
enum store_status operation_check_manifest(struct store *store, struct store_op *op, const struct run_row *run,
                                           const struct store_manifest_guard *guard);
/* Whether its budget allows one more training batch of this revision: STORE_OK, or OVER_BUDGET. */
enum store_status operation_check_budget(struct store *store, struct store_op *op, const struct run_row *run,
                                         int64_t revision);

/* The row of a content, made if there is none; *ret_seq -1 for NULL. */
int operation_enter_content(struct store *store, const struct store_content *content, int64_t *ret_seq);
/* The row of a text that each has one row: a task's name, a set of tags. */
int operation_enter_text(struct store *store, enum statement insert_it, enum statement find_it, struct text text,
                         int64_t *ret_seq);

struct group_row {
    int64_t seq;
    int64_t batch_seq;
    int64_t run_seq;
    int64_t task_seq;
    int64_t incarnation;
    enum store_purpose purpose;
    enum store_batch_state batch_state;
    enum store_deliver deliver;
    int64_t first_sample_index;
    int64_t n;
    bool arrays_given; /* came with the request, and are on record with it */
    enum store_group_state state;
};
/* A group of a new batch; one more group of a batch that runs. SQLite result codes. */
int operation_insert_group(struct store *store, int64_t batch_seq, int64_t index, const struct store_new_group *from,
                           int64_t *ret_seq);
int operation_draw_group(struct store *store, const struct group_row *beside, int64_t index,
                         const struct store_new_group *group);
/* SQLITE_ROW, or SQLITE_DONE if there is none (or the id is malformed). */
int operation_find_group(struct store *store, const char *group_id, struct group_row *ret_group);

#endif
