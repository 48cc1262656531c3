/* closing: groups whose members are stored get their advantages, the batch whose groups are closed its totals, loss and
 * summary; both come on record.
 *
 * Advantages that need more of a member than its reward (shaping, token counts, scores by name) and the end of a batch
 * are computed by a worker from the record; the loop stores what it found. */
#ifndef SERVER_BATCHES_CLOSING_PRIVATE_H
#define SERVER_BATCHES_CLOSING_PRIVATE_H

#include "server/base/ids.h"
#include "server/base/json_write.h"
#include "server/objective/objective.h"
#include "server/record/group_record.h"
#include "server/record/read_again.h"
#include "server/record/store_desk.h"
#include "server/runtime/workers.h"
#include "server/store/store.h"

struct batch_spec;
struct live_batch;

/* closing_group.c. By a rule over the whole batch advantages exist only when the last group is ready. */
void live_close_group(struct live_batch *live, uint32_t group);
/* Puts it on record without advantages, and the group that is drawn with it. */
void live_drop_group(struct live_batch *live, uint32_t group);
/* By such a rule: closes all groups if none is left to come. */
void live_close_whole(struct live_batch *live);
/* For a job that reads the record to close something: its way to try again while the record cannot be read. */
struct read_again live_read_again(struct live_batch *live);

/* closing.c */
void live_close_batch(struct live_batch *live);

struct close_job {
    struct job job;
    struct read_again again;
    struct live_batch *live;
    const struct batch_spec *spec;
    char batch_id[ID_BYTES];
    enum store_batch_state state; /* how it ends */
    enum store_status status;
    double loss;
    struct objective_totals totals;
    size_t scored;
    struct buffer notes;
    struct buffer summary;
    struct store_errand errand;
};

/* Worker: the members of one group, from the record or from memory. group_record_finish() is needed either way. */
enum store_status live_read_group(const struct live_batch *live, struct store_reader *reader, uint32_t group,
                                  const struct objective_knobs *knobs, bool with_logprobs, json_t *names,
                                  struct group_record *ret_record);

/* closing_logprobs.c. Worker: texts of an open array, one for each fault of the members' log-probabilities. */
void close_note_logprobs(struct json_write *json, const struct batch_spec *spec, const struct store_members *members);

/* closing_verdicts.c. Worker: what each verifier said over the batch. Rollouts have their verdicts; those without are in
 * no count. */
struct verdict_tally;
struct verdict_tally *verdict_tally_create(void);
void verdict_tally_destroy(struct verdict_tally *tally); /* NULL is fine */
void verdict_tally_add(struct verdict_tally *tally, const struct store_rollout *rollouts, size_t count);
/* "verifiers": {id: {"mean","std","scored","unscored","reasons": {code: count}}}, of an open object. std: of a sample. */
void verdict_tally_write(const struct verdict_tally *tally, struct json_write *json);

/* closing_revisions.c: the members' revisions beside the run's and the batch's. Worker: read, then write texts of an open
 * array. */
#define CLOSE_MOVES_MAX 16
struct close_revisions {
    int64_t run_incarnation;
    int64_t batch_incarnation;
    int64_t newest;  /* of the batch's incarnation; -1: none was declared */
    size_t behind;   /* members below it */
    int64_t lowest;  /* of those */
    int64_t highest; /* of those */
    struct {
        int64_t revision;
        size_t members;
        bool by_abort;
    } others[CLOSE_MOVES_MAX]; /* of another revision or incarnation than the batch's */
    size_t other_count;
};
enum store_status close_read_revisions(const struct live_batch *live, struct store_reader *reader,
                                       const struct store_members *members, struct close_revisions *ret_revisions);
void close_note_revisions(struct json_write *json, const struct close_revisions *revisions);

#endif
