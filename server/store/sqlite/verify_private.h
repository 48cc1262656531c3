/* verify: the invariants of a record that one query each looks for. Private to the room. */
#ifndef SERVER_STORE_SQLITE_VERIFY_PRIVATE_H
#define SERVER_STORE_SQLITE_VERIFY_PRIVATE_H

#include <stddef.h>

struct verify_invariant {
    const char *problem;
    const char *sql; /* each row, its first column, is one thing that is wrong */
};

#define VERIFY_LABELS_SCHEMA 25
#define VERIFY_REFILL_SCHEMA 27

/* verify_rollups.c: of schema 20 and later. */
#define VERIFY_ROLLUPS_SCHEMA 20
extern const struct verify_invariant verify_rollups[];
extern const size_t verify_rollups_count;

/* verify_deliveries.c: of schema 26 and later. */
#define VERIFY_DELIVERIES_SCHEMA 26
extern const struct verify_invariant verify_deliveries[];
extern const size_t verify_deliveries_count;

/* verify_reverify.c: of schema 28 and later. */
#define VERIFY_REVERIFY_SCHEMA 28
extern const struct verify_invariant verify_reverify[];
extern const size_t verify_reverify_count;

#endif
