/* close_group: groups whose advantages need more of their members than the reward, closed from the record.
 *
 * Shaping asks for lengths, ids and finish reasons, some estimators for token counts or scores by name. A worker reads
 * the members, the loop stores what was found. */
#ifndef SERVER_BATCHES_CLOSING_GROUP_H
#define SERVER_BATCHES_CLOSING_GROUP_H

#include "server/batches/live.h"
#include "server/record/group_record.h"

/* Worker: the members of one group, from the record or from memory. group_record_finish() is needed either way. */
enum store_status live_read_group(const struct live_batch *live, struct store_reader *reader, uint32_t group,
                                  const struct objective_knobs *knobs, bool with_logprobs, json_t *names,
                                  struct group_record *ret_record);

/* Loop: groups [first, first + count), all of whose members are on record. */
void live_close_by_record(struct live_batch *live, uint32_t first, uint32_t count);
/* live_store.c. Takes both arrays, one value for each member. */
void live_store_closing(struct live_batch *live, uint32_t group, const struct objective_group *statistics,
                        double *advantages, double *shaped);

/* batches/closing_logprobs.c. Worker: one text of an open array for each thing that is wrong with the log-probabilities of some.
 */
void close_note_logprobs(struct json_write *json, const struct batch_spec *spec, const struct store_members *members);

/* batches/closing_revisions.c: how the members' revisions stand to the run's and to the batch's. Worker: read, then write texts
 * of an open array. */
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
