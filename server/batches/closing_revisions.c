/* Notes of a batch about revisions: members that are behind the run, and those that an update in mode abort moved.
 * All from the record, so that a restart in between changes nothing. */
#include "server/batches/closing_private.h"
#include "server/batches/live.h"

#include <stdio.h>

static void count_behind(struct close_revisions *revisions, const struct store_member *member)
{
    if (member->incarnation != revisions->batch_incarnation || member->policy_revision >= revisions->newest)
        return;
    if (revisions->behind == 0 || member->policy_revision < revisions->lowest)
        revisions->lowest = member->policy_revision;
    if (revisions->behind == 0 || member->policy_revision > revisions->highest)
        revisions->highest = member->policy_revision;
    revisions->behind++;
}

static void count_other(struct close_revisions *revisions, const struct live_batch *live,
                        const struct store_member *member)
{
    size_t i = 0;
    if (member->policy_revision == live->policy_revision && member->incarnation == live->incarnation)
        return;
    while (i < revisions->other_count && revisions->others[i].revision != member->policy_revision)
        i++;
    if (i == CLOSE_MOVES_MAX)
        return;
    if (i == revisions->other_count)
        revisions->others[revisions->other_count++].revision = member->policy_revision;
    revisions->others[i].members++;
}

enum store_status close_read_revisions(const struct live_batch *live, struct store_reader *reader,
                                       const struct store_members *members, struct close_revisions *ret_revisions)
{
    struct store_standing standing = {.incarnation = live->incarnation, .newest_revision = -1};
    enum store_status status =
        reader ? store_read_standing(reader, live->spec->run, live->incarnation, &standing) : STORE_OK;
    if (status != STORE_OK && status != STORE_NOT_FOUND) /* a score that leaves no trace needs no run */
        return status;
    *ret_revisions = (struct close_revisions){.run_incarnation = standing.incarnation,
                                              .batch_incarnation = live->incarnation,
                                              .newest = standing.newest_revision};
    for (size_t i = 0; i < members->count; i++) {
        count_behind(ret_revisions, &members->members[i]);
        count_other(ret_revisions, live, &members->members[i]);
    }
    for (size_t i = 0; i < ret_revisions->other_count && reader && !live->unstored; i++) {
        status = store_find_abort(reader, text_of(live->id), ret_revisions->others[i].revision);
        if (status != STORE_OK && status != STORE_NOT_FOUND)
            return status;
        ret_revisions->others[i].by_abort = status == STORE_OK;
    }
    return STORE_OK;
}

void close_note_revisions(struct json_write *json, const struct close_revisions *revisions)
{
    char line[192];
    char from[48] = "";
    if (revisions->lowest < revisions->highest)
        snprintf(from, sizeof(from), "s %lld to", (long long)revisions->lowest);
    snprintf(line, sizeof(line), "revision_behind: %zu rollouts are of policy_revision%s %lld, the run's is %lld",
             revisions->behind, from, (long long)revisions->highest, (long long)revisions->newest);
    if (revisions->behind > 0)
        json_write_string(json, line);
    for (size_t i = 0; i < revisions->other_count; i++) {
        snprintf(line, sizeof(line),
                 "revision_moved: a weight update in mode abort moved %zu rollouts to policy_revision %lld",
                 revisions->others[i].members, (long long)revisions->others[i].revision);
        if (revisions->others[i].by_abort)
            json_write_string(json, line);
    }
    snprintf(line, sizeof(line),
             "incarnation_behind: the batch is of incarnation %lld, its run went back to a checkpoint and is at %lld",
             (long long)revisions->batch_incarnation, (long long)revisions->run_incarnation);
    if (revisions->run_incarnation > revisions->batch_incarnation)
        json_write_string(json, line);
}
