/* Requests that need a worker for the second time when there is none. The test is part of the loop: it looks on after
 * each turn. */
#include "tests/unit/server/live_fixture.h"

#include "server/api/routes.h"
#include "server/base/clock.h"
#include "server/batches/resume.h"
#include "server/http/http.h"

#include <arpa/inet.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEY "again"
#define RETRY_IS_DUE_US 20000 /* a part that no worker could make is asked for again after 10 ms */

enum phase {
    RESUMING,
    WORKER_BUSY,
    POSTED,
    STREAMING,
    WAITING_FOR_A_WORKER,
    LEFT,
    CANCELLED,
    QUEUE_FULL,
    REFUSED,
    ENDING
};

/* Keeps the only worker until it is let go. */
struct blocker {
    struct job job;
    sem_t go;
};

static struct {
    void (*look_on)(void);
    enum phase phase;
    int client;
    struct blocker before; /* the request is read */
    struct blocker after;  /* that: its parts must wait */
    struct blocker later;  /* the client left */
    unsigned turns;
    size_t jobs_of_nobody; /* asked for when the client was known to have left */
} play;

static void block(struct job *job, struct store_reader *reader)
{
    (void)reader;
    while (sem_wait(&((struct blocker *)job)->go) < 0)
        ;
}

static void unblocked(struct job *job)
{
    (void)job;
}

static void submit(struct blocker *blocker)
{
    sem_init(&blocker->go, 0, 0);
    blocker->job.run = block;
    blocker->job.done = unblocked;
    workers_submit_reserved(server.workers, &blocker->job);
}

static void ask(const char *request, size_t length)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t)atoi(strrchr(server.url, ':') + 1));
    play.client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(play.client, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(send(play.client, request, length, 0), length);
}

static void post_again(void)
{
    char body[UNFINISHED_BODY_BYTES];
    char request[UNFINISHED_BODY_BYTES + 256];
    size_t body_bytes = unfinished_body("arith", body);
    int length =
        snprintf(request, sizeof(request),
                 "POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\nIdempotency-Key: " KEY
                 "\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                 body_bytes, body);
    ask(request, (size_t)length);
}

/* The client leaves, a worker gets free, and the time of the next try has come: all in one turn of the loop. */
static void leave(void)
{
    close(play.client);
    usleep(RETRY_IS_DUE_US);
    sem_post(&play.after.go);
    while (workers_queued(server.workers) > 0) /* until it is busy with the last one */
        usleep(100);
}

/* 0: nothing has come. */
static int status_of_reply(void)
{
    char start[13] = "";
    if (recv(play.client, start, sizeof(start) - 1, MSG_PEEK | MSG_DONTWAIT) != (ssize_t)sizeof(start) - 1)
        return 0;
    return atoi(start + strlen("HTTP/1.1 "));
}

static void watch_a_reader_who_leaves(void)
{
    bool queued = workers_queued(server.workers) > 0;
    if (play.phase == RESUMING && server.batches->resumed) {
        submit(&play.before);
        play.phase = WORKER_BUSY;
    } else if (play.phase == WORKER_BUSY && !queued) {
        post_again();
        play.phase = POSTED;
    } else if (play.phase == POSTED && queued) {
        submit(&play.after);
        submit(&play.later); /* the queue holds one: it is full as long as the worker has the other */
        sem_post(&play.before.go);
        play.phase = STREAMING;
    } else if (play.phase == STREAMING && status_of_reply() == 200) {
        play.phase = WAITING_FOR_A_WORKER;
    } else if (play.phase == WAITING_FOR_A_WORKER && ++play.turns == 3) {
        leave();
        play.phase = LEFT;
    }
}

static void watch_a_batch_that_ends(void)
{
    const struct live_batch *live = server.batches->first;
    bool queued = workers_queued(server.workers) > 0;
    if (play.phase == RESUMING && server.batches->resumed) {
        char request[128];
        ask(request, (size_t)snprintf(request, sizeof(request),
                                      "GET /v1/batches/%s?wait=1m HTTP/1.1\r\nHost: localhost\r\n\r\n", live->id));
        submit(&play.before);
        play.phase = WORKER_BUSY;
    } else if (play.phase == WORKER_BUSY && live->observers && !queued) {
        server_cancel_all();
        play.phase = CANCELLED;
    } else if (play.phase == CANCELLED && queued) { /* its sums are to be computed */
        submit(&play.after);
        submit(&play.later);
        sem_post(&play.before.go);
        play.phase = QUEUE_FULL;
    } else if (play.phase == QUEUE_FULL && !live) { /* it has ended: who waits for it asks for a worker */
        sem_post(&play.after.go);
        sem_post(&play.later.go);
        play.phase = ENDING;
    }
}

static void watch_one_too_many(void)
{
    bool queued = workers_queued(server.workers) > 0;
    if (play.phase == RESUMING && server.batches->resumed) {
        submit(&play.before);
        play.phase = WORKER_BUSY;
    } else if (play.phase == WORKER_BUSY && !queued) {
        submit(&play.later);
        post_again();
        play.phase = POSTED;
    } else if (play.phase == POSTED && status_of_reply() > 0) {
        sem_post(&play.before.go);
        sem_post(&play.later.go);
        server_cancel_all();
        play.phase = ENDING;
    }
}

static void cancel_all(void *arg)
{
    (void)arg;
    server_cancel_all();
    play.phase = ENDING;
}

static void watch_one_too_early(void)
{
    if (play.phase == RESUMING) {
        post_again();
        play.phase = POSTED;
    } else if (play.phase == POSTED && status_of_reply() > 0) {
        resume_unfinished(server.batches, cancel_all, NULL);
        play.phase = REFUSED;
    }
}

static int64_t turn(void *arg)
{
    (void)arg;
    if (play.phase == LEFT) {
        play.jobs_of_nobody = workers_queued(server.workers);
        sem_post(&play.later.go);
        server_cancel_all();
        play.phase = ENDING;
    }
    int64_t limit_us = http_run(server.http);
    play.look_on();
    workers_flush(server.workers);
    if (play.phase == ENDING && server.batches->count == 0 && (play.turns > 0 || status_of_reply() > 0)) {
        loop_stop(server.loop);
        return 0;
    }
    return play.phase == ENDING || play.phase == LEFT ? limit_us : 1000; /* the worker tells nobody that it is busy */
}

static void ready(void *arg)
{
    (void)arg;
}

static void run(void (*look_on)(void))
{
    char message[256];
    memset(&play, 0, sizeof(play));
    play.look_on = look_on;
    leave_unfinished("arith", KEY);
    server_begin(1);
    server.http = routes_serve(&server, server.url, message);
    assert_non_null(server.http);
    if (look_on != watch_one_too_early)
        resume_unfinished(server.batches, ready, NULL);
    loop_run(server.loop, turn, NULL);
}

/* The status of the reply that the client got; everything has ended. */
static int run_and_close(void (*look_on)(void))
{
    run(look_on);
    int status = status_of_reply();
    close(play.client);
    server_end();
    return status;
}

static void test_a_part_that_waits_for_a_worker_is_not_made_for_a_reader_who_has_left(void **state)
{
    (void)state;
    run(watch_a_reader_who_leaves);
    server_end();
    assert_int_equal(play.jobs_of_nobody, 0);
}

static void test_a_waiter_is_answered_even_while_all_workers_are_busy(void **state)
{
    (void)state;
    assert_int_equal(run_and_close(watch_a_batch_that_ends), 200);
}

static void test_a_request_is_refused_with_429_while_workers_and_queue_are_full(void **state)
{
    (void)state;
    assert_int_equal(run_and_close(watch_one_too_many), 429);
}

/* The batch of its key is on record and not yet live: it would be shown as running, and nobody would wait for it. */
static void test_a_known_key_has_to_wait_until_unfinished_batches_are_read_back(void **state)
{
    (void)state;
    assert_int_equal(run_and_close(watch_one_too_early), 503);
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, with_record, without_record)
    const struct CMUnitTest tests[] = {
        CLAIM(test_a_part_that_waits_for_a_worker_is_not_made_for_a_reader_who_has_left),
        CLAIM(test_a_waiter_is_answered_even_while_all_workers_are_busy),
        CLAIM(test_a_request_is_refused_with_429_while_workers_and_queue_are_full),
        CLAIM(test_a_known_key_has_to_wait_until_unfinished_batches_are_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
