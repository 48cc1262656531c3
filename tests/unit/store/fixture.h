/* Shared by the tests of the store: a directory, a store in it, operations one at a time, SQL by hand. */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/store/store.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

struct fixture {
    char directory[64];
    char path[128];
    struct store_options options;
    struct store *store;
    struct store_reader *reader;
    char message[STORE_MESSAGE_BYTES];
    int error;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t finished; /* operations handed back */
};

/* setup and teardown of a test: an empty directory, and in it an open store with a reader. */
int fixture_open(void **state);
int fixture_directory(void **state); /* without the store */
int fixture_close(void **state);

void start_store(struct fixture *fixture); /* asserts that it opens */
void stop_store(struct fixture *fixture);
void wait_finished(struct fixture *fixture, size_t count);

/* Submits and waits. */
enum store_status carry_out(struct fixture *fixture, struct store_op *op);

/* A batch of run "arith" with groups of n at revision 12; ret_id[ID_BYTES] gets its id. */
struct store_op batch_op(size_t groups, int64_t n);
void record_batch(struct fixture *fixture, size_t groups, int64_t n, char ret_id[ID_BYTES]);

struct store_rollout scored_rollout(int64_t sample_index, double reward);
struct store_rollout failed_rollout(int64_t sample_index);
enum store_status insert(struct fixture *fixture, const char *batch_id, int64_t group,
                         const struct store_rollout *rollout);
enum store_status close_group(struct fixture *fixture, const char *batch_id, int64_t group, size_t n,
                              const double *advantage, double mean, double std);
enum store_status close_batch(struct fixture *fixture, const char *batch_id, enum store_batch_state how);

/* Runs SQL on a connection of its own, as an operator with the sqlite3 program would. The result code. */
int by_hand(struct fixture *fixture, const char *sql);
int64_t number_by_hand(struct fixture *fixture, const char *sql);

/* The file's digest as hexadecimal text. */
void file_digest(const char *path, char ret_hex[SHA256_HEX_BYTES]);

#endif
