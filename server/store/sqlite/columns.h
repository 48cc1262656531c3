/* columns: THE lists of stored columns, one for each kind of row. A SELECT, an INSERT, the places of their columns, and
 * the code that reads and writes a row all come from its list. Private to the room.
 *
 *   COLUMN(alias, column, type, member)   in the SELECT and in the INSERT
 *   READ(name, sql, type, member)         in the SELECT alone
 *   PLACE(name, sql)                      in the SELECT alone, and read by hand
 *   WRITE(column, type, value)            in the INSERT alone
 *
 * A list begins behind the key of its row, which is the first column and bound or read by hand. `type` names a pair of
 * functions in values.h: column_read_TYPE() and column_write_TYPE(). A `value` may use what is in sight where the list is
 * written. */
#ifndef SERVER_STORE_SQLITE_COLUMNS_H
#define SERVER_STORE_SQLITE_COLUMNS_H

#include "server/store/sqlite/values.h"

/* ---- rows -------------------------------------------------------------------------------------------------------- */

#define BATCH_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                      \
    READ(id, "b.id", id, id)                                                                                           \
    READ(run, "r.name", text, run)                                                                                     \
    WRITE(run_seq, int, run_seq)                                                                                       \
    WRITE(objective_seq, int, objective_seq)                                                                           \
    WRITE(settings_seq, optional, settings_seq)                                                                        \
    COLUMN(b, incarnation, int, incarnation)                                                                           \
    COLUMN(b, purpose, purpose, purpose)                                                                               \
    COLUMN(b, state, batch_state, state)                                                                               \
    COLUMN(b, policy_revision, int, policy_revision)                                                                   \
    READ(moved_to_revision, "b.moved_to_revision", optional, moved_to_revision)                                        \
    COLUMN(b, max_staleness, optional, max_staleness)                                                                  \
    COLUMN(b, seed, unsigned, seed)                                                                                    \
    COLUMN(b, request_sha256, sha256, request_sha256)                                                                  \
    READ(idempotency_key,                                                                                              \
         "coalesce((SELECT k.key FROM idempotency_keys k WHERE k.batch_seq = b.seq), b.idempotency_key)", text,        \
         idempotency_key)                                                                                              \
    READ(owner, "b.owner", text, owner)                                                                                \
    READ(owner_epoch, "b.owner_epoch", int, owner_epoch)                                                               \
    WRITE(owner, text, text_of(store->owner))                                                                          \
    WRITE(owner_epoch, int, store->owner_epoch)                                                                        \
    COLUMN(b, arithmetic_version, optional, arithmetic_version)                                                        \
    COLUMN(b, request_id, text, request_id)                                                                            \
    COLUMN(b, pass_verifier, text, pass_verifier)                                                                      \
    COLUMN(b, pass_threshold, real, pass_threshold)                                                                    \
    COLUMN(b, deliver, deliver, deliver)                                                                               \
    COLUMN(b, respond_async, flag, respond_async)                                                                      \
    COLUMN(b, created_at_us, int, created_at_us)                                                                       \
    COLUMN(b, deadline_us, int, deadline_us)                                                                           \
    READ(completed_at_us, "b.completed_at_us", optional, completed_at_us)                                              \
    READ(loss, "b.loss", real, loss)                                                                                   \
    READ(total_tokens, "b.total_tokens", int, total_tokens)                                                            \
    READ(total_sequences, "b.total_sequences", int, total_sequences)                                                   \
    READ(total_groups, "b.total_groups", int, total_groups)                                                            \
    COLUMN(b, group_count, int, group_count)                                                                           \
    READ(rollout_count, "b.rollout_count", int, rollout_count)                                                         \
    WRITE(rollout_count, int, count_rollouts(from))                                                                    \
    READ(scored, "b.scored", int, scored)                                                                              \
    READ(failed, "b.failed", int, failed)                                                                              \
    READ(cancelled, "b.cancelled", int, cancelled)

#define BATCH_CONTENT_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                              \
    COLUMN(c, sampling, text, sampling)                                                                                \
    COLUMN(c, verifiers, text, verifiers)                                                                              \
    COLUMN(c, metadata, text, metadata)                                                                                \
    COLUMN(c, returns, text, returns)                                                                                  \
    READ(notes, "c.notes", text, notes)                                                                                \
    READ(summary, "c.summary", text, summary)                                                                          \
    READ(objective, "o.objective", text, objective)

#define GROUP_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                      \
    READ(index, "g.group_index", int, index)                                                                           \
    READ(task, "t.task", text, task)                                                                                   \
    WRITE(group_index, int, index)                                                                                     \
    WRITE(task_seq, int, task_seq)                                                                                     \
    READ(tags, "tags.tags", text, tags)                                                                                \
    WRITE(tags_seq, optional, tags_seq)                                                                                \
    WRITE(prompt_seq, optional, prompt_seq)                                                                            \
    WRITE(reference_seq, optional, reference_seq)                                                                      \
    READ(set, "ss.name", text, set)                                                                                    \
    READ(split, "st.split", text, split)                                                                               \
    WRITE(set_task_seq, optional, from->set_task_seq ? from->set_task_seq : -1)                                        \
    WRITE(arrays_given, optional, from->given_count ? 1 : -1)                                                          \
    COLUMN(g, draw, int, draw)                                                                                         \
    COLUMN(g, first_sample_index, int, first_sample_index)                                                             \
    COLUMN(g, n, int, n)                                                                                               \
    READ(state, "g.state", group_state, state)                                                                         \
    WRITE(state, group_state, STORE_GROUP_RUNNING)                                                                     \
    READ(reward_mean, "g.reward_mean", real, reward_mean)                                                              \
    READ(reward_std, "g.reward_std", real, reward_std)                                                                 \
    READ(zero_variance, "g.zero_variance", flag, zero_variance)                                                        \
    READ(dropped, "g.dropped", flag, dropped)                                                                          \
    READ(drawn, "g.drawn", flag, drawn)                                                                                \
    WRITE(drawn, optional, from->drawn ? 1 : -1)                                                                       \
    READ(closed_at_us, "g.closed_at_us", optional, closed_at_us)

#define GROUP_CONTENT_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                              \
    COLUMN(c, sampling, text, sampling)                                                                                \
    COLUMN(c, verifiers, text, verifiers)                                                                              \
    COLUMN(c, metadata, text, metadata)                                                                                \
    PLACE(prompt_ids, "c.prompt_ids")

/* Columns that an operation reads of a group: struct group_row. */
#define FOUND_GROUP_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                \
    COLUMN(g, batch_seq, int, batch_seq)                                                                               \
    COLUMN(b, run_seq, int, run_seq)                                                                                   \
    COLUMN(g, task_seq, int, task_seq)                                                                                 \
    COLUMN(b, incarnation, int, incarnation)                                                                           \
    COLUMN(b, purpose, purpose, purpose)                                                                               \
    READ(batch_state, "b.state", batch_state, batch_state)                                                             \
    COLUMN(b, deliver, deliver, deliver)                                                                               \
    COLUMN(g, first_sample_index, int, first_sample_index)                                                             \
    COLUMN(g, n, int, n)                                                                                               \
    COLUMN(g, arrays_given, flag, arrays_given)                                                                        \
    READ(state, "g.state", group_state, state)

#define ROLLOUT_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                    \
    READ(batch_id, "b.id", id, batch_id)                                                                               \
    PLACE(group_index, "g.group_index")                                                                                \
    READ(run, "runs.name", text, run)                                                                                  \
    READ(task, "t.task", text, task)                                                                                   \
    READ(draw, "g.draw", int, draw)                                                                                    \
    READ(tags, "tags.tags", text, tags)                                                                                \
    READ(pass_verifier, "b.pass_verifier", text, pass_verifier)                                                        \
    READ(group_rewarded, "g.rewarded", optional, group_rewarded)                                                       \
    READ(group_zero_variance, "g.zero_variance", flag, group_zero_variance)                                            \
    WRITE(batch_seq, int, group->batch_seq)                                                                            \
    WRITE(run_seq, int, group->run_seq)                                                                                \
    WRITE(task_seq, int, group->task_seq)                                                                              \
    COLUMN(r, sample_index, int, sample_index)                                                                         \
    COLUMN(r, incarnation, int, incarnation)                                                                           \
    COLUMN(r, purpose, purpose, purpose)                                                                               \
    COLUMN(r, created_at_us, int, created_at_us)                                                                       \
    COLUMN(r, state, rollout_state, state)                                                                             \
    COLUMN(r, reward, real, reward)                                                                                    \
    READ(shaped_reward, "r.shaped_reward", real, shaped_reward)                                                        \
    READ(advantage, "r.advantage", real, advantage)                                                                    \
    READ(duplicate, "r.duplicate", known, duplicate)                                                                   \
    COLUMN(r, failure_stage, text, failure.stage)                                                                      \
    COLUMN(r, failure_code, text, failure.code)                                                                        \
    COLUMN(r, failure_message, text, failure.message)                                                                  \
    READ(failure_retryable, "r.failure_retryable", flag, failure.retryable)                                            \
    READ(failure_attempts, "r.failure_attempts", int, failure.attempts)                                                \
    WRITE(failure_retryable, optional, from->failure.code.data ? from->failure.retryable : -1)                         \
    WRITE(failure_attempts, optional, from->failure.code.data ? from->failure.attempts : -1)                           \
    COLUMN(r, engine, text, engine)                                                                                    \
    COLUMN(r, engine_revision, text, engine_revision)                                                                  \
    READ(engine_model, "p.engine_model", text, engine_model)                                                           \
    READ(engine_version, "p.engine_version", text, engine_version)                                                     \
    READ(tokenizer_sha256, "p.tokenizer_sha256", text, tokenizer_sha256)                                               \
    READ(rolloutd_version, "p.rolloutd_version", text, rolloutd_version)                                               \
    WRITE(provenance_seq, int, provenance_seq)                                                                         \
    COLUMN(r, policy_revision, int, policy_revision)                                                                   \
    COLUMN(r, revision_at_end, optional, revision_at_end)                                                              \
    COLUMN(r, straddles, flag, straddles)                                                                              \
    COLUMN(r, resample, int, resample)                                                                                 \
    COLUMN(r, attempts, int, attempts)                                                                                 \
    COLUMN(r, seed, unsigned, seed)                                                                                    \
    COLUMN(r, seed_sent, optional, seed_sent)                                                                          \
    COLUMN(r, seed_honoured, known, seed_honoured)                                                                     \
    COLUMN(r, finish_reason, text, finish_reason)                                                                      \
    COLUMN(r, trainable, flag, trainable)                                                                              \
    COLUMN(r, eos_in_ids, known, eos_in_ids)                                                                           \
    COLUMN(r, logprobs_mode, logprobs_mode, logprobs_mode)                                                             \
    COLUMN(r, completion_tokens, int, completion_tokens)                                                               \
    COLUMN(r, trainable_tokens, int, trainable_tokens)                                                                 \
    COLUMN(r, queued_us, int, queued_us)                                                                               \
    COLUMN(r, engine_us, int, engine_us)                                                                               \
    COLUMN(r, verify_us, int, verify_us)

#define TEXT_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                       \
    READ(text, "t.text", text, text)                                                                                   \
    READ(packed, "t.packed", packed, text)                                                                             \
    WRITE(text, text, from->packed_text.data ? TEXT_NONE : from->text)                                                 \
    WRITE(packed, blob, from->packed_text)                                                                             \
    COLUMN(t, text_replaced, int, text_replaced)

#define VERDICT_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                    \
    COLUMN(v, verdicts, text, verdicts)                                                                                \
    COLUMN(v, rewards, text, rewards)                                                                                  \
    COLUMN(v, heldout, text, heldout)

/* Behind the index of the group. */
#define MEMBER_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                     \
    COLUMN(r, sample_index, int, sample_index)                                                                         \
    COLUMN(r, state, rollout_state, state)                                                                             \
    COLUMN(r, reward, real, reward)                                                                                    \
    COLUMN(r, shaped_reward, real, shaped_reward)                                                                      \
    COLUMN(r, advantage, real, advantage)                                                                              \
    COLUMN(r, trainable, flag, trainable)                                                                              \
    COLUMN(r, trainable_tokens, int, trainable_tokens)                                                                 \
    COLUMN(r, completion_tokens, int, completion_tokens)                                                               \
    COLUMN(r, policy_revision, int, policy_revision)                                                                   \
    COLUMN(r, incarnation, int, incarnation)                                                                           \
    COLUMN(r, logprobs_mode, logprobs_mode, logprobs_mode)                                                             \
    COLUMN(r, finish_reason, text, finish_reason)                                                                      \
    COLUMN(r, failure_code, text, failure_code)                                                                        \
    COLUMN(v, heldout, text, heldout)

/* Columns for the filters of a list of rollouts. */
#define SCAN_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                       \
    PLACE(run_seq, "run_seq")                                                                                          \
    PLACE(batch_seq, "batch_seq")                                                                                      \
    PLACE(group_seq, "group_seq")                                                                                      \
    PLACE(task_seq, "task_seq")                                                                                        \
    PLACE(state, "state")                                                                                              \
    PLACE(purpose, "purpose")                                                                                          \
    PLACE(incarnation, "incarnation")                                                                                  \
    PLACE(policy_revision, "policy_revision")                                                                          \
    PLACE(reward, "reward")                                                                                            \
    PLACE(advantage, "advantage")                                                                                      \
    PLACE(completion_tokens, "completion_tokens")                                                                      \
    PLACE(failure_code, "failure_code")                                                                                \
    PLACE(finish_reason, "finish_reason")                                                                              \
    PLACE(engine, "engine")                                                                                            \
    PLACE(engine_revision, "engine_revision")                                                                          \
    PLACE(created_at_us, "created_at_us")                                                                              \
    PLACE(straddles, "straddles")                                                                                      \
    PLACE(trainable, "trainable")                                                                                      \
    PLACE(seed_honoured, "seed_honoured")                                                                              \
    PLACE(duplicate, "duplicate")

#define RUN_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                        \
    COLUMN(runs, name, text, name)                                                                                     \
    COLUMN(runs, incarnation, int, incarnation)                                                                        \
    COLUMN(runs, policy_revision, optional, policy_revision)                                                           \
    COLUMN(runs, created_at_us, int, created_at_us)                                                                    \
    COLUMN(runs, batches, int, batches)                                                                                \
    COLUMN(runs, scored, int, scored)                                                                                  \
    COLUMN(runs, failed, int, failed)                                                                                  \
    COLUMN(runs, cancelled, int, cancelled)                                                                            \
    READ(spent_tokens, "CASE WHEN runs.spent_counted_to IS NULL THEN runs.spent_tokens END", optional, spent_tokens)   \
    READ(deletion, "runs.deletion_seq", optional, deletion)

#define DELETION_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                   \
    READ(number, "d.seq", int, number)                                                                                 \
    COLUMN(d, run, text, run)                                                                                          \
    READ(reason, "d.reason", deletion_reason, reason)                                                                  \
    COLUMN(d, said_by, text, said_by)                                                                                  \
    COLUMN(d, client, text, client)                                                                                    \
    COLUMN(d, request_id, text, request_id)                                                                            \
    COLUMN(d, requested_at_us, int, requested_at_us)                                                                   \
    READ(ended_at_us, "d.ended_at_us", optional, ended_at_us)                                                          \
    COLUMN(d, batches, int, batches)                                                                                   \
    READ(group_count, "d.group_count", int, groups)                                                                    \
    COLUMN(d, rollouts, int, rollouts)

#define UPDATE_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                     \
    COLUMN(u, revision, int, revision)                                                                                 \
    COLUMN(u, rewind_to_step, optional, rewind_to_step)                                                                \
    COLUMN(u, mode, update_mode, mode)                                                                                 \
    COLUMN(u, state, update_state, state)                                                                              \
    COLUMN(u, begun_at_us, int, begun_at_us)                                                                           \
    COLUMN(u, deadline_us, int, deadline_us)                                                                           \
    COLUMN(u, ended_at_us, optional, ended_at_us)                                                                      \
    COLUMN(u, incarnation, int, incarnation)                                                                           \
    COLUMN(u, previous_revision, optional, previous_revision)

#define MANIFEST_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                   \
    COLUMN(m, version, int, version)                                                                                   \
    COLUMN(m, created_at_us, int, created_at_us)                                                                       \
    COLUMN(m, changed_at_us, int, changed_at_us)                                                                       \
    COLUMN(m, given, text, given)                                                                                      \
    COLUMN(m, frozen, text, frozen)                                                                                    \
    COLUMN(m, completion_tokens, optional, budget.completion_tokens)                                                   \
    COLUMN(m, revisions, optional, budget.revisions)

#define SETTINGS_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                   \
    COLUMN(b, id, id, id)                                                                                              \
    COLUMN(b, incarnation, int, incarnation)                                                                           \
    COLUMN(b, purpose, purpose, purpose)                                                                               \
    COLUMN(b, policy_revision, int, policy_revision)                                                                   \
    COLUMN(b, created_at_us, int, created_at_us)                                                                       \
    COLUMN(o, objective, text, objective)                                                                              \
    COLUMN(c, sampling, text, sampling)                                                                                \
    COLUMN(c, verifiers, text, verifiers)

#define METRIC_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                     \
    COLUMN(m, incarnation, int, incarnation)                                                                           \
    COLUMN(m, optimizer_step, int, optimizer_step)                                                                     \
    COLUMN(m, revision, int, revision)                                                                                 \
    COLUMN(m, recorded_at_us, int, recorded_at_us)                                                                     \
    COLUMN(m, numbers, text, numbers)

#define NOTE_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                       \
    COLUMN(n, at_us, int, at_us)                                                                                       \
    COLUMN(n, prediction, text, prediction)                                                                            \
    COLUMN(n, result, text, result)                                                                                    \
    COLUMN(n, explanation, text, explanation)                                                                          \
    COLUMN(n, limitation, text, limitation)

#define LABELLED_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                   \
    COLUMN(l, truth, flag, truth)                                                                                      \
    READ(incarnation, "r.incarnation", int, incarnation)                                                               \
    READ(revision, "r.policy_revision", int, revision)                                                                 \
    READ(purpose, "r.purpose", purpose, purpose)

#define REVERIFICATION_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                             \
    COLUMN(v, id, id, id)                                                                                              \
    COLUMN(runs, name, text, run)                                                                                      \
    COLUMN(v, request, text, request)                                                                                  \
    COLUMN(v, state, reverify_state, state)                                                                            \
    COLUMN(v, created_at_us, int, created_at_us)                                                                       \
    COLUMN(v, ended_at_us, optional, ended_at_us)                                                                      \
    COLUMN(v, last_rollout, int, last_rollout)                                                                         \
    COLUMN(v, rollouts, int, rollouts)                                                                                 \
    COLUMN(v, judged, int, judged)                                                                                     \
    COLUMN(v, unscored, int, unscored)                                                                                 \
    COLUMN(v, flipped, int, flipped)                                                                                   \
    COLUMN(v, rewarded, int, rewarded)                                                                                 \
    COLUMN(v, reward_from, real, reward_from.sum)                                                                      \
    COLUMN(v, reward_from_lost, real, reward_from.lost)                                                                \
    COLUMN(v, reward_to, real, reward_to.sum)                                                                          \
    COLUMN(v, reward_to_lost, real, reward_to.lost)                                                                    \
    COLUMN(v, place, text, place)                                                                                      \
    COLUMN(v, failure_code, text, failure_code)                                                                        \
    COLUMN(v, failure_message, text, failure_message)

/* Behind the batch and the place of the rollout. */
#define FLIP_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                       \
    COLUMN(f, verifier, text, verifier)                                                                                \
    COLUMN(f, from_version, text, from_version)                                                                        \
    COLUMN(f, from_score, real, from_score)                                                                            \
    COLUMN(f, to_version, text, to_version)                                                                            \
    COLUMN(f, to_score, real, to_score)

#define SUM_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                        \
    COLUMN(s, incarnation, int, incarnation)                                                                           \
    COLUMN(s, optimizer_step, int, optimizer_step)                                                                     \
    COLUMN(s, ppo_epoch, int, ppo_epoch)                                                                               \
    COLUMN(s, part, int, part)                                                                                         \
    WRITE(slice, int, index)                                                                                           \
    COLUMN(s, recorded_at_us, int, recorded_at_us)                                                                     \
    COLUMN(s, kl_estimator, text, kl_estimator)                                                                        \
    COLUMN(s, sample_incarnation, optional, slice.incarnation)                                                         \
    COLUMN(s, sample_revision, optional, slice.revision)                                                               \
    COLUMN(s, engine, text, slice.engine)                                                                              \
    COLUMN(s, sequences, int, slice.sequences)                                                                         \
    COLUMN(s, tokens, int, slice.tokens)                                                                               \
    COLUMN(s, clip_low, int, slice.clip_low)                                                                           \
    COLUMN(s, clip_high, int, slice.clip_high)                                                                         \
    COLUMN(s, loss, real, slice.loss)                                                                                  \
    COLUMN(s, kl_sum, real, slice.means[STORE_OBJECTIVE_KL].sum)                                                       \
    COLUMN(s, kl_tokens, int, slice.means[STORE_OBJECTIVE_KL].tokens)                                                  \
    COLUMN(s, kl_policy_sum, real, slice.means[STORE_OBJECTIVE_KL_POLICY].sum)                                         \
    COLUMN(s, kl_policy_tokens, int, slice.means[STORE_OBJECTIVE_KL_POLICY].tokens)                                    \
    COLUMN(s, kl_engine_sum, real, slice.means[STORE_OBJECTIVE_KL_ENGINE].sum)                                         \
    COLUMN(s, kl_engine_tokens, int, slice.means[STORE_OBJECTIVE_KL_ENGINE].tokens)                                    \
    COLUMN(s, entropy_sum, real, slice.means[STORE_OBJECTIVE_ENTROPY].sum)                                             \
    COLUMN(s, entropy_tokens, int, slice.means[STORE_OBJECTIVE_ENTROPY].tokens)                                        \
    COLUMN(s, logprob_gap_sum, real, slice.means[STORE_OBJECTIVE_LOGPROB_GAP].sum)                                     \
    COLUMN(s, logprob_gap_tokens, int, slice.means[STORE_OBJECTIVE_LOGPROB_GAP].tokens)

/* Behind the key. */
#define ROLLUP_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                     \
    COLUMN(u, n, int, n)                                                                                               \
    COLUMN(u, scored, int, scored)                                                                                     \
    COLUMN(u, failed, int, failed)                                                                                     \
    COLUMN(u, cancelled, int, cancelled)                                                                               \
    COLUMN(u, group_count, int, groups)                                                                                \
    COLUMN(u, judged_groups, int, judged_groups)                                                                       \
    COLUMN(u, zero_variance_groups, int, zero_variance_groups)                                                         \
    COLUMN(u, judged, int, judged)                                                                                     \
    COLUMN(u, reward_sum, real, reward.sum)                                                                            \
    COLUMN(u, reward_lost, real, reward.lost)                                                                          \
    COLUMN(u, reward_min, real, reward_min)                                                                            \
    COLUMN(u, reward_max, real, reward_max)                                                                            \
    COLUMN(u, judged_tokens, int, judged_tokens)                                                                       \
    COLUMN(u, tokens, int, tokens)                                                                                     \
    COLUMN(u, tokens_max, int, tokens_max)                                                                             \
    COLUMN(u, truncated, int, truncated)                                                                               \
    COLUMN(u, straddles, int, straddles)                                                                               \
    COLUMN(u, duplicates, int, duplicates)                                                                             \
    COLUMN(u, decided, int, decided)                                                                                   \
    COLUMN(u, solved, int, solved)                                                                                     \
    COLUMN(u, engine_us, int, engine_us)                                                                               \
    COLUMN(u, ended, int, ended)                                                                                       \
    COLUMN(u, staleness, int, staleness)
/* The columns that are added when roll-ups of one key are merged. */
#define ROLLUP_COUNTS(COUNT)                                                                                           \
    COUNT(n)                                                                                                           \
    COUNT(scored)                                                                                                      \
    COUNT(failed)                                                                                                      \
    COUNT(cancelled)                                                                                                   \
    COUNT(groups)                                                                                                      \
    COUNT(judged_groups)                                                                                               \
    COUNT(zero_variance_groups)                                                                                        \
    COUNT(judged)                                                                                                      \
    COUNT(judged_tokens)                                                                                               \
    COUNT(tokens)                                                                                                      \
    COUNT(truncated)                                                                                                   \
    COUNT(straddles)                                                                                                   \
    COUNT(duplicates)                                                                                                  \
    COUNT(decided)                                                                                                     \
    COUNT(solved)                                                                                                      \
    COUNT(engine_us)                                                                                                   \
    COUNT(ended)                                                                                                       \
    COUNT(staleness)

#define LEASE_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                      \
    COLUMN(l, id, id, id)                                                                                              \
    COLUMN(l, state, lease_state, state)                                                                               \
    COLUMN(l, taken_at_us, int, taken_at_us)                                                                           \
    COLUMN(l, expires_at_us, int, expires_at_us)                                                                       \
    COLUMN(l, ended_at_us, optional, ended_at_us)                                                                      \
    COLUMN(l, incarnation, int, incarnation)                                                                           \
    COLUMN(l, policy_revision, optional, policy_revision)                                                              \
    COLUMN(l, max_staleness, optional, max_staleness)                                                                  \
    COLUMN(l, group_count, int, group_count)                                                                           \
    COLUMN(l, held, int, held)

/* A group's way; "l" is the lease that it is with. */
#define DELIVERY_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                   \
    READ(state, "d.state", delivery_state, state)                                                                      \
    READ(lease, "l.id", id, lease)                                                                                     \
    READ(deliveries, "d.deliveries", int, deliveries)                                                                  \
    READ(optimizer_step, "d.optimizer_step", optional, optimizer_step)                                                 \
    READ(staleness, "d.staleness", optional, staleness)

#define PACING_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                     \
    COLUMN(p, groups_per_step, int, groups_per_step)                                                                   \
    COLUMN(p, max_staleness, int, max_staleness)                                                                       \
    COLUMN(p, max_in_flight, optional, max_in_flight)                                                                  \
    COLUMN(p, on_stale, on_stale, on_stale)                                                                            \
    WRITE(changed_at_us, int, clock_utc_us())

#define ENGINE_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                     \
    COLUMN(engines, url, text, url)                                                                                    \
    COLUMN(engines, kind, text, kind)                                                                                  \
    COLUMN(engines, model, text, model)                                                                                \
    COLUMN(engines, pool, text, pool)                                                                                  \
    COLUMN(engines, in_flight, optional, in_flight)                                                                    \
    COLUMN(engines, shared, flag, shared)                                                                              \
    COLUMN(engines, draining, flag, draining)                                                                          \
    COLUMN(engines, token_name, text, token_name)                                                                      \
    WRITE(changed_at_us, int, clock_utc_us())

#define TASKSET_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                    \
    COLUMN(tasksets, name, text, set)                                                                                  \
    COLUMN(tasksets, sha256, sha256, sha256)                                                                           \
    COLUMN(tasksets, tasks, int, tasks)                                                                                \
    COLUMN(tasksets, created_at_us, int, created_at_us)

/* A task of a set. */
#define SET_TASK_COLUMNS(COLUMN, READ, PLACE, WRITE)                                                                   \
    COLUMN(t, line, int, line)                                                                                         \
    COLUMN(t, task, text, task)                                                                                        \
    COLUMN(t, split, text, split)                                                                                      \
    COLUMN(t, chat, flag, chat)                                                                                        \
    PLACE(prompt_codec, "p.codec")                                                                                     \
    PLACE(prompt_bytes, "p.plain_bytes")                                                                               \
    PLACE(prompt_content, "p.content")                                                                                 \
    PLACE(reference_codec, "q.codec")                                                                                  \
    PLACE(reference_bytes, "q.plain_bytes")                                                                            \
    PLACE(reference_content, "q.content")                                                                              \
    COLUMN(t, metadata, text, metadata)                                                                                \
    READ(tags, "tags.tags", text, tags)                                                                                \
    READ(set_sha256, "(SELECT lower(hex(sha256)) FROM tasksets WHERE seq = t.set_seq)", text, set_sha256)              \
    WRITE(prompt_seq, int, prompt_seq)                                                                                 \
    WRITE(reference_seq, optional, reference_seq)                                                                      \
    WRITE(tags_seq, optional, tags_seq)

/* ---- SQL: each begins with a comma ------------------------------------------------------------------------------- */

#define COLUMN_NONE(...)
#define COLUMN_SELECT(alias, column, type, member) ", " #alias "." #column
#define COLUMN_SELECT_READ(name, sql, type, member) ", " sql
#define COLUMN_SELECT_PLACE(name, sql) ", " sql
#define COLUMN_NAME(alias, column, type, member) ", " #column
#define COLUMN_NAME_WRITE(column, type, value) ", " #column
#define COLUMN_MARK(...) ", ?"

#define COLUMNS_SELECTED(LIST) LIST(COLUMN_SELECT, COLUMN_SELECT_READ, COLUMN_SELECT_PLACE, COLUMN_NONE)
#define COLUMNS_NAMED(LIST) LIST(COLUMN_NAME, COLUMN_NONE, COLUMN_NONE, COLUMN_NAME_WRITE)
#define COLUMNS_MARKED(LIST) LIST(COLUMN_MARK, COLUMN_NONE, COLUMN_NONE, COLUMN_MARK)

/* ---- places in a SELECT, for what is read by hand ---------------------------------------------------------------- */

#define BATCH_PLACE(alias, column, type, member) BATCH_AT_##column,
#define BATCH_PLACE_NAMED(name, ...) BATCH_AT_##name,
enum batch_place { BATCH_AT_seq, BATCH_COLUMNS(BATCH_PLACE, BATCH_PLACE_NAMED, BATCH_PLACE_NAMED, COLUMN_NONE) };

#define GROUP_PLACE(alias, column, type, member) GROUP_AT_##column,
#define GROUP_PLACE_NAMED(name, ...) GROUP_AT_##name,
enum group_place {
    GROUP_AT_seq,
    GROUP_COLUMNS(GROUP_PLACE, GROUP_PLACE_NAMED, GROUP_PLACE_NAMED, COLUMN_NONE)
        GROUP_CONTENT_COLUMNS(GROUP_PLACE, GROUP_PLACE_NAMED, GROUP_PLACE_NAMED, COLUMN_NONE)
};

#define ROLLOUT_PLACE(alias, column, type, member) ROLLOUT_AT_##column,
#define ROLLOUT_PLACE_NAMED(name, ...) ROLLOUT_AT_##name,
enum rollout_place {
    ROLLOUT_AT_seq,
    ROLLOUT_COLUMNS(ROLLOUT_PLACE, ROLLOUT_PLACE_NAMED, ROLLOUT_PLACE_NAMED, COLUMN_NONE)
};

#define SCAN_PLACE(name, sql) SCAN_AT_##name,
enum scan_place { SCAN_AT_seq, SCAN_COLUMNS(COLUMN_NONE, COLUMN_NONE, SCAN_PLACE, COLUMN_NONE) };

#define TEXT_PLACE(name, ...) TEXT_AT_##name,
#define TEXT_PLACE_COLUMN(alias, column, type, member) TEXT_AT_##column,
enum text_place { TEXT_AT_seq, TEXT_COLUMNS(TEXT_PLACE_COLUMN, TEXT_PLACE, COLUMN_NONE, COLUMN_NONE) };

#define SET_TASK_PLACE(alias, column, type, member) SET_TASK_AT_##column,
#define SET_TASK_PLACE_NAMED(name, ...) SET_TASK_AT_##name,
enum set_task_place {
    SET_TASK_AT_seq,
    SET_TASK_COLUMNS(SET_TASK_PLACE, SET_TASK_PLACE_NAMED, SET_TASK_PLACE_NAMED, COLUMN_NONE)
};

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* From a statement `row`, from column `place` on, into the struct `*into`; texts are copied to `memory`. `place` is then
 * behind the list. */
#define COLUMN_GET(alias, column, type, member) column_read_##type(row, place++, memory, &into->member);
#define COLUMN_GET_READ(name, sql, type, member) column_read_##type(row, place++, memory, &into->member);
#define COLUMN_GET_PLACE(name, sql) place++;
#define COLUMNS_READ(LIST) LIST(COLUMN_GET, COLUMN_GET_READ, COLUMN_GET_PLACE, COLUMN_NONE)

/* From the struct `*from` to a statement `insert`, from parameter `place` on. */
#define COLUMN_SET(alias, column, type, member) column_write_##type(insert, place++, from->member);
#define COLUMN_SET_WRITE(column, type, value) column_write_##type(insert, place++, value);
#define COLUMNS_WRITTEN(LIST) LIST(COLUMN_SET, COLUMN_NONE, COLUMN_NONE, COLUMN_SET_WRITE)

#endif
