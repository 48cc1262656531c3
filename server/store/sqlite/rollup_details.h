/* rollup_details: held-out scores and counts by name beside the roll-ups. Private to the room. */
#ifndef SERVER_STORE_SQLITE_ROLLUP_DETAILS_H
#define SERVER_STORE_SQLITE_ROLLUP_DETAILS_H

#include "server/store/rollup.h"
#include "server/store/sqlite/operations.h"

struct rollup_detail {
    int64_t incarnation, revision;
    enum store_rollup_count_kind kind;
    bool is_score; /* `name` is a verifier, and kind is unused */
    char *name;
    size_t name_bytes;
    int64_t provenance_seq; /* 0: none */
    int64_t n;
    double sum; /* of scores */
};

/* Of one group. Zero-initialised. */
struct rollup_details {
    struct rollup_detail *rows;
    size_t count, room; /* room: a power of 2 */
    size_t
        *places; /* 2 for each row there is room for: a row's number from 1 on, at, or behind, the place of its hash */
};

/* The members of a rollout that are counted here; texts are copied. */
struct rollup_member {
    int64_t incarnation, revision;
    struct text heldout; /* JSON */
    struct text failure; /* TEXT_NONE: none, as of the engine */
    struct text engine;
    int64_t provenance_seq;
    bool seed_not_honoured, processed_logprobs;
};

void rollup_details_add(struct rollup_details *details, const struct rollup_member *member);
/* Inside the transaction of the operation. An SQLite result code. */
int rollup_details_write(struct store *store, const struct group_row *group, const struct rollup_details *details);
void rollup_details_finish(struct rollup_details *details);

#endif
