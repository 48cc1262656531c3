/* Text workers: the round trip of one completion, and how many verdicts a second one worker gives.
 *
 *     worker [FRAMES] [rounds]
 *
 * start_us: from asking the spawner for a worker to its first answers.
 * FRAMES: lines of JSON as worker.h describes requests; without, a 4 KiB completion
 * for `exact`. Each round asks all of them one by one, then eight at a time as the service does. One line of JSON. */
#include "verifiers/worker/worker.h"
#include "verifiers/worker/spawner.h"

#include "server/base/buffer.h"
#include "server/base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { WINDOW = 8, FRAMES_MAX = 100000 };

struct frames {
    struct buffer list[FRAMES_MAX];
    size_t count;
};

static struct frames frames;
static int64_t trips_us[1 << 20];
static size_t trip_count;

static void add_frame(struct text body)
{
    struct buffer *frame = &frames.list[frames.count++];
    char header[REQUEST_HEADER_BYTES] = {0};

    frame_put_length(header, body.length_bytes);
    buffer_init(frame, VERIFIER_FRAME_LIMIT_BYTES);
    buffer_append(frame, header, sizeof header);
    buffer_append(frame, body.data, body.length_bytes);
}

static void add_standard(void)
{
    struct buffer body;

    buffer_init(&body, 1 << 16);
    buffer_append_string(&body, "{\"completion\":\"");
    while (body.length_bytes < 4096)
        buffer_append_string(&body, "reasoning ");
    buffer_append_string(&body, "\",\"reference\":\"4\",\"verifiers\":[{\"name\":\"exact\",\"options\":{}}]}");
    add_frame(buffer_text(&body));
    buffer_finish(&body);
}

static void add_lines(const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t length;

    if (!file)
        exit(2);
    while (frames.count < FRAMES_MAX && (length = getline(&line, &room, file)) > 1)
        add_frame((struct text){line, (size_t)length - 1});
    free(line);
    fclose(file);
}

static void send_frame(int fd, const struct buffer *frame)
{
    if (send(fd, frame->data, frame->length_bytes, MSG_NOSIGNAL) != (ssize_t)frame->length_bytes)
        exit(3);
}

static void receive(int fd)
{
    static char body[WORKER_REPLY_LIMIT_BYTES];
    char header[FRAME_HEADER_BYTES];

    if (recv(fd, header, sizeof header, MSG_WAITALL) != sizeof header)
        exit(3);
    size_t length = frame_get_length(header);
    if (length > sizeof body || recv(fd, body, length, MSG_WAITALL) != (ssize_t)length)
        exit(3);
}

static void one_by_one(int fd)
{
    for (size_t i = 0; i < frames.count; i++) {
        int64_t began_us = clock_monotonic_us();
        send_frame(fd, &frames.list[i]);
        receive(fd);
        if (trip_count < sizeof trips_us / sizeof trips_us[0])
            trips_us[trip_count++] = clock_monotonic_us() - began_us;
    }
}

static void eight_at_a_time(int fd)
{
    size_t sent = 0, received = 0;

    while (received < frames.count) {
        while (sent < frames.count && sent < received + WINDOW)
            send_frame(fd, &frames.list[sent++]);
        receive(fd);
        received++;
    }
}

static int by_value(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

static int make_worker(const struct spawner *spawner, uint32_t id)
{
    struct pollfd polled;
    struct spawner_event event = {.kind = SPAWNER_NOTHING};

    if (spawner_make_worker(spawner, id, NULL) < 0)
        exit(3);
    polled = (struct pollfd){spawner->fd, POLLIN, 0};
    while (event.kind == SPAWNER_NOTHING && poll(&polled, 1, 10000) > 0)
        spawner_receive(spawner, &event);
    if (event.kind != SPAWNER_MADE || fcntl(event.fd, F_SETFL, 0) < 0)
        exit(3);
    return event.fd;
}

int main(int argc, char **argv)
{
    struct spawner spawner;
    int64_t began_us, trip_us, window_us;

    spawner_main(argc, argv);
    if (argc > 1)
        add_lines(argv[1]);
    else
        add_standard();
    long rounds = argc > 2 ? atol(argv[2]) : 20000;
    if (spawner_start(&spawner) < 0)
        exit(3);
    int first = make_worker(&spawner, 1); /* now the spawner runs */
    began_us = clock_monotonic_us();
    int fd = make_worker(&spawner, 2);
    one_by_one(fd); /* warm; and until its first answer */
    int64_t start_us = clock_monotonic_us() - began_us;
    trip_count = 0;
    began_us = clock_monotonic_us();
    for (long i = 0; i < rounds; i++)
        one_by_one(fd);
    trip_us = clock_monotonic_us() - began_us;
    began_us = clock_monotonic_us();
    for (long i = 0; i < rounds; i++)
        eight_at_a_time(fd);
    window_us = clock_monotonic_us() - began_us;
    qsort(trips_us, trip_count, sizeof trips_us[0], by_value);
    double asked = (double)rounds * (double)frames.count;
    printf("{\"frames\":%zu,\"rounds\":%ld,\"start_us\":%lld,\"round_trip_us\":{\"mean\":%.1f,\"p50\":%lld,\"p99\":%"
           "lld,\"max\":%lld},"
           "\"one_by_one_per_s\":%.0f,\"eight_at_a_time_per_s\":%.0f}\n",
           frames.count, rounds, (long long)start_us, (double)trip_us / asked, (long long)trips_us[trip_count / 2],
           (long long)trips_us[trip_count * 99 / 100], (long long)trips_us[trip_count - 1],
           asked * 1e6 / (double)trip_us, asked * 1e6 / (double)window_us);
    close(fd);
    close(first);
    spawner_stop(&spawner);
    for (size_t i = 0; i < frames.count; i++)
        buffer_finish(&frames.list[i]);
    return 0;
}
