/* Shared by the tests of deliveries: groups that are ready, leases, and what is on record of both. One run, `arith`. */
#ifndef TESTS_STORE_DELIVERIES_FIXTURE_H
#define TESTS_STORE_DELIVERIES_FIXTURE_H

#include "tests/unit/store/fixture.h"

#include "server/base/clock.h"

#include <stdio.h>
#include <string.h>

#define HOUR_US (INT64_C(3600) * US_PER_S)

/* Of the test that runs; each sets it first. */
extern struct fixture *fixture;
/* The last operation of its kind, as it came back. */
extern struct store_take_lease taken;
extern struct store_ack_lease acked;
extern struct store_declare_policy attached;

void make_batch(size_t groups, int64_t n, int64_t revision, int64_t max_staleness, char ret_id[ID_BYTES]);
void add_member(const char *batch_id, int64_t group, int64_t index, int64_t revision, int64_t incarnation);
bool close_ready(const char *batch_id, int64_t group, size_t n);
/* A batch of groups of one member, all ready. */
void make_ready(size_t groups, int64_t revision, int64_t max_staleness, char ret_id[ID_BYTES]);
void declare(int64_t revision, int64_t rewind_to_step);
enum store_status take(struct store_take_lease how);
/* Takes up to so many groups, of any age; the lease's id. */
void take_some(int64_t wanted, int64_t expected, char ret_id[ID_BYTES]);
/* One group, of any age. `body` stands for the request's. */
enum store_status take_by_key(const char *key, uint8_t body);
void assert_nothing_to_take(void);
struct store_lease_choice choice_of(const char *lease, const struct text *groups, size_t count);
enum store_status ack(const char *lease, int64_t step, const struct text *groups, size_t count);
int64_t release_some(const char *lease, const struct text *groups, size_t count);
enum store_status extend(const char *lease, int64_t lease_us);
struct store_expire_leases expire(void);
/* Its time has passed, as if the service had slept. */
void let_expire(const char *lease);
enum store_status attach(int64_t step, int64_t revision, const char *key);
void assert_counts(int64_t waiting, int64_t ready, int64_t leased, int64_t acks, int64_t stale, int64_t failed,
                   int64_t dropped);
struct store_delivery delivery_of(const char *batch_id, int64_t group);
void assert_group(const struct store_lease_groups *groups, size_t place, const char *batch_id, int64_t index);
void read_lease(const char *lease, struct store_lease *ret_lease, struct store_lease_groups *ret_groups);
void assert_lease_state(const char *lease, enum store_lease_state state);
void assert_sound(void);
/* No test of deliveries is about power loss: without a sync for each commit they are quick. */
int open_deliveries(void **state);

#endif
