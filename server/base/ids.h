/* Identifiers: opaque to clients, URL-safe, sortable by creation.
 *
 *   batch    b_01jdwx3m8k9q2v5r7t0a1b2c3d        26 digits of Crockford base 32 over a UUIDv7
 *   group    g_01jdwx3m8k9q2v5r7t0a1b2c3d-00003  its batch and its index there
 *   rollout  r_01jdwx3m8k9q2v5r7t0a1b2c3d-00003-00007  its group and its sample_index
 *   lease    l_01jdwx3m8k9q2v5r7t0a1b2c3d        as a batch
 *   reverification  v_01jdwx3m8k9q2v5r7t0a1b2c3d  likewise
 *
 * Indexes have five digits, or up to eight where that is not enough.
 * Any thread: two threads never draw the same id, and ids drawn by one thread rise. */
#ifndef BASE_IDS_H
#define BASE_IDS_H

#include "server/base/text.h"

#include <stdbool.h>
#include <stdint.h>

#define ID_BYTES 48 /* the longest id and its NUL */

void id_new_batch(char ret_id[ID_BYTES]);
void id_new_lease(char ret_id[ID_BYTES]);
void id_new_reverification(char ret_id[ID_BYTES]);
void id_of_group(const char *batch_id, int64_t group_index, char ret_id[ID_BYTES]);
void id_of_rollout(const char *group_id, int64_t sample_index, char ret_id[ID_BYTES]);

/* From a rollout's id to its group's, its sample_index; from a group's to its batch's, its index. False if malformed.
 */
bool id_split_rollout(struct text id, char ret_group_id[ID_BYTES], int64_t *ret_sample_index);
bool id_split_group(struct text id, char ret_batch_id[ID_BYTES], int64_t *ret_group_index);

/* A random token of 16 hexadecimal digits, for X-Request-Id. */
void id_new_request(char ret_id[ID_BYTES]);

#endif
