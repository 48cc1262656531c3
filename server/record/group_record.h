/* group_record: the members of one recorded group as the objective sees them.
 *
 * Reads what the knobs need and no more: a row for each member, or whole rollouts where shaping asks for ids and
 * lengths of prompts, or the estimator for scores by name or for steps. One thread at a time. */
#ifndef SERVER_RECORD_GROUP_RECORD_H
#define SERVER_RECORD_GROUP_RECORD_H

#include "server/objective/objective.h"
#include "server/record/graded_steps.h"
#include "server/store/store.h"

#include <jansson.h>

#define GROUP_RECORD_SCORES 64 /* names of rewards in one batch */

struct group_record {
    size_t count;
    int64_t *sample_index; /* [count] */
    struct objective_sequence
        *sequences;             /* [count]; group 0; reward, shaped_reward and advantage as recorded, NAN: none */
    double *scores;             /* [count][2 * GROUP_RECORD_SCORES]; NULL: not read */
    struct graded_steps *steps; /* [count], of process; NULL: not read */
    double **token_advantages;  /* [count], each NULL where all tokens have one; NULL: not read */
    struct store_members members;
    struct store_group group;
    bool has_group; /* whole rollouts were read */
};

/* with_logprobs: the arrays of every member are read too. names: object that numbers the names of scores over several
 * groups; it is added to; NULL unless the knobs are gdpo's. group_record_finish() is needed either way. */
enum store_status group_record_read(struct store_reader *reader, struct text group_id,
                                    const struct objective_knobs *knobs, bool with_logprobs, json_t *names,
                                    struct group_record *ret_record);
/* The same of rollouts that are in memory; they outlive it. prompt_tokens: -1 if they are not known. knobs: NULL: those of
 * no advantage rule. */
void group_record_of_rollouts(const struct store_rollout *rollouts, size_t count, int64_t prompt_tokens,
                              const struct objective_knobs *knobs, json_t *names, struct group_record *ret_record);
void group_record_finish(struct group_record *record);

/* Parts of a group's rollouts that are read for that: enum store_with flags. */
unsigned group_record_with(const struct objective_knobs *knobs, bool with_logprobs);

/* One rollout with its arrays; group 0, advantage as recorded (NAN: none). */
struct objective_sequence group_record_sequence(const struct store_rollout *rollout);
/* For terms at ratio 1: `rewarded` are the members that have an advantage. */
void group_record_reward_by_advantage(struct group_record *record);

/* Their advantages need more of a member than its reward. */
bool group_record_is_needed(const struct objective_knobs *knobs);

#endif
