/* Shared by the files of a disagreement. */
#ifndef SERVER_REPORTS_DISAGREEMENTS_PRIVATE_H
#define SERVER_REPORTS_DISAGREEMENTS_PRIVATE_H

#include "server/base/json_write.h"
#include "server/record/group_record.h"
#include "server/reports/disagreements.h"
#include "server/reports/picks_private.h"
#include "server/verify/spec.h"

#include <stdbool.h>

/* A verifier's word on one rollout. */
struct opinion {
    bool given;
    double score; /* NAN: unscored */
    char reason[VERIFY_CODE_BYTES];
};

struct opinions {
    struct opinion a, b;
};

/* Equal scores, or none on either side. */
bool opinions_agree(const struct opinions *opinions);

/* --- disagreement_pairs.c: how often each pair of reasons and scores was given --- */

struct opinion_pair {
    struct opinions opinions;
    size_t n;
    size_t examples[DISAGREEMENTS_EXAMPLES_MAX]; /* places in the picks */
};

struct opinion_pairs {
    json_t *places; /* {reasons and scores: place in rows} */
    struct opinion_pair *rows;
    size_t count, room;
};

/* place: of the rollout, in the picks. -1: no memory. */
int opinion_pairs_add(struct opinion_pairs *pairs, const struct opinions *opinions, size_t place);
/* Members `items` and `unlisted`; disagreeing pairs come first, then frequent ones. */
void opinion_pairs_write(struct opinion_pairs *pairs, const struct picks *picks, struct json_write *json);
void opinion_pairs_finish(struct opinion_pairs *pairs);

/* --- disagreement_effect.c: advantages as recorded, and with b in place of a --- */

/* The groups that one objective is computed over. */
struct effect_group {
    struct store_group group;
    struct group_record record;
};

struct effect_part {
    struct objective_knobs knobs;
    struct text a;
    json_t *names; /* gdpo: {name of a score: its number} */
    struct effect_group *groups;
    size_t group_count, group_room;
    struct effect_member *members;
    size_t member_count, member_room;
};

struct effect_member {
    double reward; /* with b in place of a */
    bool counted;
    size_t group, index;
    double before; /* advantage */
    double score;  /* b's, if it stands in for a; see stands_in */
    bool stands_in;
};

struct effect {
    size_t compared, changes, sign_changes;
};

/* Takes the group over, also on failure. gates: {id: true}; opinions[rollout_count], counted[rollout_count]. -1: no
 * memory. */
int effect_part_add(struct effect_part *part, struct store_group *group, const json_t *gates,
                    const struct opinions *opinions, const bool *counted);
/* 0, or -1 with the call refused. */
int effect_part_compare(struct call *call, struct effect_part *part, struct effect *effect);
void effect_part_finish(struct effect_part *part);

#endif
