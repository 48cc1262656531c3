/* Shared by the tests of live batches: a service in this process with a real store, one worker and a loop, without
 * engines and text workers. One at a time. */
#ifndef TESTS_SERVER_LIVE_FIXTURE_H
#define TESTS_SERVER_LIVE_FIXTURE_H

#include "server/api/server.h"
#include "server/batches/runs.h"
#include "tests/unit/store/fixture.h"

#include "server/batches/live.h"
#include "server/settings/settings.h"

#define UNFINISHED_BODY_BYTES 512

extern struct fixture *fixture;
extern struct server server;

int with_record(void **state); /* setup and teardown of a test */
int without_record(void **state);

/* Before server_begin(): what a service left unfinished, two samples of one prompt at revision 1. key NULL: none. */
void leave_unfinished(const char *run, const char *key);
/* The same of a request of one's own, with one group of two. */
void leave_request(const char *run, struct text body, const char *key);
/* The body of its request; its length. */
size_t unfinished_body(const char *run, char ret_body[UNFINISHED_BODY_BYTES]);

void server_begin(size_t queue_limit); /* without HTTP */
void server_cancel_all(void);
void server_end(void); /* after its batches have gone */

#endif
