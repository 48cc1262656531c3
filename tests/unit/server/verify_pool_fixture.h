/* Shared by the tests of the verify pool: a pool of text workers on a real loop with a real spawner, one at a time. The
 * program is its own spawner: main() calls spawner_main() first. */
#ifndef TESTS_SERVER_VERIFY_POOL_FIXTURE_H
#define TESTS_SERVER_VERIFY_POOL_FIXTURE_H

#include "server/verify/pool_private.h"

#include "tests/unit/base/cmocka_all.h"

#define JOBS 1000                   /* that may wait */
#define PATIENT_US (300 * US_PER_S) /* a busy machine is no failure */

extern struct loop *loop;
extern struct verify_pool *pool;
extern struct spawner spawner;
extern size_t outstanding; /* jobs that are to end before run_until_done() does */

/* Setup and teardown of a test: two workers, or one. Jobs that are submitted before it is there are given to it together. */
int pool_begin(void **state);
int pool_begin_with_one(void **state);
int pool_end(void **state);

#define EXACT "{\"completion\":\"yes\",\"reference\":\"yes\",\"verifiers\":[{\"name\":\"exact\",\"options\":{}}]}"

/* The frame for a worker, to be freed. */
void put_frame(struct buffer *frame, struct text body);
void put_slow_frame(struct buffer *frame);    /* long enough to be read for milliseconds */
void put_endless_frame(struct buffer *frame); /* three verifiers, the second of which does not end */

void submit(struct verify_job *job, const struct buffer *frame, int64_t timeout_us);
void submit_list(struct verify_job *job, const struct buffer *frame, size_t verifiers_asked, int64_t timeout_us);
void job_done(struct verify_job *job); /* the end of a job that is outstanding */
void run_until_done(void);

/* "correct"; frees the reply. */
void expect_answer(struct verify_job *job);
void expect_one_more_is_answered(void);

#endif
