/* Roll-ups as the writer keeps them. */
#include "server/store/sqlite/rollups.h"

#include "server/store/deciding_score.h"
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/rollup_details.h"

#include <math.h>
#include <stdlib.h>

/* A member with the numbers that its roll-up counts. */
struct member {
    int64_t incarnation, revision, rewarded, tokens, engine_us, revision_at_end;
    enum store_rollout_state state;
    double reward;
    bool straddles, duplicate, zero_variance;
    struct text finish_reason, pass_verifier, rewards, heldout;
};

/* The roll-ups of one group's members: mostly one. */
struct parts {
    struct store_rollup *parts;
    size_t count, room;
};

static void finish_parts(struct parts *parts)
{
    free(parts->parts);
}

/* Revisions may be any numbers; a sum of their differences beyond int64_t is stored as the largest int64_t. */
static int64_t add_up(int64_t left, int64_t right)
{
    int64_t sum;
    if (!__builtin_add_overflow(left, right, &sum))
        return sum;
    return right < 0 ? INT64_MIN : INT64_MAX;
}

static void count_member(struct store_rollup *rollup, const struct member *member)
{
    double score = store_deciding_score(member->pass_verifier, member->rewards, member->heldout, member->reward);
    bool judged = !isnan(member->reward);

    rollup->n++;
    rollup->scored += member->state == STORE_ROLLOUT_SCORED;
    rollup->failed += member->state == STORE_ROLLOUT_FAILED;
    rollup->cancelled += member->state == STORE_ROLLOUT_CANCELLED;
    rollup->tokens += member->tokens;
    rollup->tokens_max = member->tokens > rollup->tokens_max ? member->tokens : rollup->tokens_max;
    rollup->truncated += judged && text_equals(member->finish_reason, "length");
    rollup->straddles += member->straddles;
    rollup->duplicates += member->duplicate;
    rollup->decided += !isnan(score);
    rollup->solved += score >= 1;
    rollup->engine_us += member->engine_us;
    if (member->revision_at_end >= 0) {
        rollup->ended++;
        rollup->staleness = add_up(rollup->staleness, member->revision_at_end - member->revision);
    }
    if (!judged)
        return;
    rollup->judged++;
    rollup->judged_tokens += member->tokens;
    precise_sum_add(&rollup->reward, member->reward);
    rollup->reward_min = fmin(rollup->reward_min, member->reward);
    rollup->reward_max = fmax(rollup->reward_max, member->reward);
}

static struct store_rollup *part_of(struct parts *parts, const struct member *member, enum store_purpose purpose)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->parts[i].incarnation == member->incarnation && parts->parts[i].revision == member->revision)
            return &parts->parts[i];
    if (parts->count == parts->room) {
        parts->room = parts->room ? 2 * parts->room : 4;
        parts->parts = xrealloc(parts->parts, parts->room * sizeof(*parts->parts));
    }
    parts->parts[parts->count] = (struct store_rollup){.incarnation = member->incarnation,
                                                       .revision = member->revision,
                                                       .purpose = purpose,
                                                       .reward_min = NAN,
                                                       .reward_max = NAN};
    return &parts->parts[parts->count++];
}

static struct member read_member(sqlite3_stmt *row)
{
    return (struct member){.incarnation = sqlite3_column_int64(row, 0),
                           .revision = sqlite3_column_int64(row, 1),
                           .state = (enum store_rollout_state)column_name(row, 2, store_rollout_state_names),
                           .reward = column_double(row, 3),
                           .tokens = sqlite3_column_int64(row, 4),
                           .finish_reason = column_view(row, 5),
                           .straddles = sqlite3_column_int64(row, 6) != 0,
                           .duplicate = column_int_or(row, 7, 0) == 1,
                           .engine_us = sqlite3_column_int64(row, 8),
                           .revision_at_end = column_int_or(row, 9, -1),
                           .rewards = column_view(row, 10),
                           .heldout = column_view(row, 11),
                           .rewarded = column_int_or(row, 12, -1),
                           .zero_variance = column_int_or(row, 13, 0) == 1,
                           .pass_verifier = column_view(row, 14)};
}

static void add_details(sqlite3_stmt *row, const struct member *member, struct rollup_details *details)
{
    const struct rollup_member counted = {.incarnation = member->incarnation,
                                          .revision = member->revision,
                                          .heldout = member->heldout,
                                          .failure = column_view(row, 15),
                                          .engine = column_view(row, 16),
                                          .provenance_seq = column_int_or(row, 17, 0),
                                          .seed_not_honoured = column_int_or(row, 18, 1) == 0,
                                          .processed_logprobs = column_name(row, 19, store_logprobs_mode_names) ==
                                                                (int)STORE_LOGPROBS_PROCESSED};
    rollup_details_add(details, &counted);
}

/* Also says how the group ended. */
static int read_parts(struct store *store, const struct group_row *group, struct parts *parts,
                      struct rollup_details *details, struct member *ret_last)
{
    sqlite3_stmt *rows = database_statement(&store->writer, SQL_READ_ROLLUP_MEMBERS);
    int result;

    bind_int(rows, 1, group->seq);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        *ret_last = read_member(rows);
        count_member(part_of(parts, ret_last, group->purpose), ret_last);
        add_details(rows, ret_last, details);
    }
    sqlite3_reset(rows);
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

static void count_group(struct store_rollup *rollup, const struct member *last)
{
    rollup->groups = 1;
    rollup->judged_groups = last->rewarded > 0;
    rollup->zero_variance_groups = last->rewarded > 0 && last->zero_variance;
}

static int name_split_group(struct store *store, const struct group_row *group, const struct store_rollup *rollup)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_ROLLUP_GROUP);
    bind_int(insert, 1, group->run_seq);
    bind_int(insert, 2, group->seq);
    bind_int(insert, 3, rollup->incarnation);
    bind_int(insert, 4, rollup->revision);
    return database_run(insert);
}

static void bind_key(sqlite3_stmt *statement, const struct group_row *group, const struct store_rollup *rollup)
{
    bind_int(statement, 1, group->run_seq);
    bind_int(statement, 2, rollup->incarnation);
    bind_int(statement, 3, rollup->revision);
    bind_text(statement, 4, text_of(store_purpose_names[rollup->purpose]));
    bind_int(statement, 5, group->task_seq);
}

/* The row on record of the same key; zeros if there is none. */
static int read_old(struct store *store, const struct group_row *group, const struct store_rollup *rollup,
                    struct store_rollup *ret_old)
{
    sqlite3_stmt *row = database_statement(&store->writer, SQL_FIND_ROLLUP);
    struct store_memory *memory = NULL; /* it has no text */
    struct store_rollup *into = ret_old;
    int place = 1;

    *ret_old = (struct store_rollup){.reward_min = NAN, .reward_max = NAN};
    bind_key(row, group, rollup);
    int result = database_first(row);
    if (result == SQLITE_ROW) {
        COLUMNS_READ(ROLLUP_COLUMNS)
        sqlite3_reset(row);
    }
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

static void add_old(struct store_rollup *rollup, const struct store_rollup *old)
{
#define ADD_COUNT(member) rollup->member = add_up(rollup->member, old->member);
    ROLLUP_COUNTS(ADD_COUNT)
#undef ADD_COUNT
    precise_sum_add(&rollup->reward, old->reward.sum);
    precise_sum_add(&rollup->reward, old->reward.lost);
    rollup->reward_min = fmin(rollup->reward_min, old->reward_min);
    rollup->reward_max = fmax(rollup->reward_max, old->reward_max);
    rollup->tokens_max = old->tokens_max > rollup->tokens_max ? old->tokens_max : rollup->tokens_max;
}

static int write_part(struct store *store, const struct group_row *group, struct store_rollup *rollup)
{
    struct store_rollup old;
    int result = read_old(store, group, rollup, &old);
    if (result != SQLITE_OK)
        return result;
    add_old(rollup, &old);
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_PUT_ROLLUP);
    const struct store_rollup *from = rollup;
    int place = 6;
    bind_key(insert, group, rollup);
    COLUMNS_WRITTEN(ROLLUP_COLUMNS)
    return database_run(insert);
}

int rollups_add_group(struct store *store, const struct group_row *group)
{
    _cleanup_(finish_parts) struct parts parts = {0};
    _cleanup_(rollup_details_finish) struct rollup_details details = {0};
    struct member last = {0};
    int result = read_parts(store, group, &parts, &details, &last);

    for (size_t i = 0; result == SQLITE_OK && i < parts.count; i++) {
        if (parts.count == 1)
            count_group(&parts.parts[i], &last);
        else
            result = name_split_group(store, group, &parts.parts[i]);
        if (result == SQLITE_OK)
            result = write_part(store, group, &parts.parts[i]);
    }
    return result == SQLITE_OK ? rollup_details_write(store, group, &details) : result;
}

/* ---- the groups that a batch leaves open ------------------------------------------------------------------------- */

struct open_groups {
    struct group_row *groups;
    size_t count, room;
};

static void finish_open(struct open_groups *open)
{
    free(open->groups);
}

static int list_open(struct store *store, int64_t batch_seq, struct open_groups *open)
{
    sqlite3_stmt *rows = database_statement(&store->writer, SQL_LIST_OPEN_GROUPS);
    int result;

    bind_int(rows, 1, batch_seq);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        if (open->count == open->room) {
            open->room = open->room ? 2 * open->room : 16;
            open->groups = xrealloc(open->groups, open->room * sizeof(*open->groups));
        }
        open->groups[open->count++] =
            (struct group_row){.seq = sqlite3_column_int64(rows, 0),
                               .task_seq = sqlite3_column_int64(rows, 1),
                               .run_seq = sqlite3_column_int64(rows, 2),
                               .purpose = (enum store_purpose)column_name(rows, 3, store_purpose_names)};
    }
    sqlite3_reset(rows);
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

int rollups_add_open_groups(struct store *store, int64_t batch_seq)
{
    _cleanup_(finish_open) struct open_groups open = {0};
    int result = list_open(store, batch_seq, &open);

    for (size_t i = 0; result == SQLITE_OK && i < open.count; i++)
        result = rollups_add_group(store, &open.groups[i]);
    return result;
}
