#include "verifiers/sandbox/pump_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#define READ_BYTES ((size_t)64 << 10) /* what a pipe holds */
#define INPUT_PIPE_BYTES (1 << 20)

static void forget(int *fd)
{
    closep(fd);
    *fd = -1;
}

/* ours: the end that is kept, and does not block; the flag is not the program's, as each end is a file of its own. */
static int make_pipe(int ours, int *ret_ours, int *ret_theirs)
{
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) < 0)
        return -1;
    *ret_ours = pair[ours];
    *ret_theirs = pair[1 - ours];
    return fcntl(pair[ours], F_SETFL, O_NONBLOCK);
}

static void feed(struct pump *pump)
{
    while (pump->input >= 0 && pump->left.length_bytes) {
        ssize_t count = write(pump->input, pump->left.data, pump->left.length_bytes);
        if (count < 0 && errno == EAGAIN)
            return;
        if (count < 0 && errno != EINTR) { /* nobody reads it any more */
            pump->unread = pump->stays;
            break;
        }
        pump->left.data += count > 0 ? count : 0;
        pump->left.length_bytes -= count > 0 ? (size_t)count : 0;
    }
    if (!pump->stays)
        forget(&pump->input);
}

int pump_init(struct pump *pump, struct text input, bool records, bool stays, size_t limit_bytes, int ret_theirs[4])
{
    *pump = (struct pump){.input = -1, .left = input, .stays = stays, .fds = {-1, -1, -1}};
    for (size_t i = 0; i < 4; i++)
        ret_theirs[i] = -1;
    for (size_t i = 0; i < PUMP_STREAMS; i++)
        buffer_init(&pump->gathered[i], limit_bytes);
    if (make_pipe(1, &pump->input, &ret_theirs[0]) < 0)
        return -1;
    if (input.length_bytes > READ_BYTES) /* where the user has pages left for it; fewer turns then */
        fcntl(pump->input, F_SETPIPE_SZ, INPUT_PIPE_BYTES);
    for (size_t i = 0; i < (records ? PUMP_STREAMS : PUMP_RECORDS); i++)
        if (make_pipe(0, &pump->fds[i], &ret_theirs[i + 1]) < 0)
            return -1;
    feed(pump);
    return 0;
}

void pump_finish(struct pump *pump)
{
    forget(&pump->input);
    for (size_t i = 0; i < PUMP_STREAMS; i++) {
        forget(&pump->fds[i]);
        buffer_finish(&pump->gathered[i]);
    }
}

void pump_poll(const struct pump *pump, struct pollfd ret_polled[PUMP_POLLED])
{
    bool feeds = !pump->stays || (pump->left.length_bytes && !pump->unread);

    ret_polled[0] = (struct pollfd){feeds ? pump->input : -1, POLLOUT, 0};
    for (size_t i = 0; i < PUMP_STREAMS; i++)
        ret_polled[1 + i] = (struct pollfd){pump->over ? -1 : pump->fds[i], POLLIN, 0};
}

/* At the limit one more byte is asked for: it is over only if there is one. */
static ssize_t read_some(struct pump *pump, size_t stream)
{
    struct buffer *gathered = &pump->gathered[stream];
    size_t room_bytes = gathered->maximum_bytes - gathered->length_bytes;
    char beyond;
    ssize_t count;

    if (room_bytes == 0) {
        count = read(pump->fds[stream], &beyond, 1);
        pump->over = pump->over || count == 1;
        return count == 1 ? 0 : count;
    }
    if (room_bytes > READ_BYTES)
        room_bytes = READ_BYTES;
    if (!buffer_reserve(gathered, room_bytes)) {
        pump->over = true; /* there is no memory for it */
        return 0;
    }
    count = read(pump->fds[stream], gathered->data + gathered->length_bytes, room_bytes);
    gathered->length_bytes += count > 0 ? (size_t)count : 0;
    return count;
}

/* False: there is nothing more now. */
static bool gather(struct pump *pump, size_t stream)
{
    ssize_t count = pump->fds[stream] < 0 || pump->over ? 0 : read_some(pump, stream);

    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        forget(&pump->fds[stream]);
    return count > 0;
}

void pump_move(struct pump *pump, const struct pollfd polled[PUMP_POLLED])
{
    if (polled[0].revents)
        feed(pump);
    for (size_t i = 0; i < PUMP_STREAMS; i++)
        if (polled[1 + i].revents)
            gather(pump, i);
}

void pump_take(struct pump *pump, size_t stream)
{
    while (gather(pump, stream))
        continue;
}

void pump_drain(struct pump *pump)
{
    if (!pump->stays)
        forget(&pump->input);
    for (size_t i = 0; i < PUMP_STREAMS; i++)
        pump_take(pump, i);
}

void pump_feed_again(struct pump *pump, struct text input)
{
    for (size_t i = 0; i < PUMP_STREAMS; i++)
        buffer_clear(&pump->gathered[i]);
    pump->left = input;
    feed(pump);
}

size_t pump_untaken_bytes(const struct pump *pump)
{
    int in_pipe_bytes = 0;

    if (pump->input < 0 || ioctl(pump->input, FIONREAD, &in_pipe_bytes) < 0)
        return 0;
    return pump->left.length_bytes + (size_t)in_pipe_bytes;
}
