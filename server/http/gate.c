#include "server/http/gate_private.h"

#include "server/base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { DISCARDS_MAX = 64 };

/* Of this thread: gates by descriptor, and the bytes peeked at last. */
static _Thread_local struct {
    struct gate **by_fd;
    size_t count;
    size_t open;
    char *peeked; /* HEAD_BYTES_MAX */
} gates;

static ssize_t read_socket(int fd, void *to, size_t room_bytes, int flags)
{
    return recvfrom(fd, to, room_bytes, flags, NULL, NULL);
}

void gate_open(struct gate *gate, int fd, void (*changed)(void *arg), void *arg)
{
    *gate = (struct gate){.fd = fd, .changed = changed, .arg = arg};
    if ((size_t)fd >= gates.count) {
        size_t count = 2 * (size_t)fd + 64;
        gates.by_fd = xrealloc(gates.by_fd, count * sizeof(struct gate *));
        memset(gates.by_fd + gates.count, 0, (count - gates.count) * sizeof(struct gate *));
        gates.count = count;
    }
    if (!gates.peeked)
        gates.peeked = xcalloc(1, HEAD_BYTES_MAX);
    gates.by_fd[fd] = gate;
    gates.open++;
}

void gate_close(struct gate *gate)
{
    gates.by_fd[gate->fd] = NULL;
    if (--gates.open)
        return;
    free(TAKE_PTR(gates.by_fd));
    free(TAKE_PTR(gates.peeked));
    gates.count = 0;
}

bool gate_holds_part(const struct gate *gate)
{
    return gate->state == GATE_HEAD && gate->seen_bytes > 0;
}

void gate_end(struct gate *gate)
{
    if (gate->state == GATE_HEAD || gate->state == GATE_REFUSED)
        gate->state = GATE_LAST;
    gate->last = true;
}

/* --- bytes before the gate ------------------------------------------------------------------ */

static void keep_text(char *to, size_t size_bytes, struct text text)
{
    snprintf(to, size_bytes, "%.*s", (int)text.length_bytes, text.data ? text.data : "");
}

static void refuse_head(struct gate *gate, const struct head *head)
{
    struct gate_refusal *refusal = &gate->refusal;
    struct text path = head->target;
    const char *query = path.length_bytes ? memchr(path.data, '?', path.length_bytes) : NULL;
    if (query)
        path.length_bytes = (size_t)(query - path.data);
    *refusal = (struct gate_refusal){.code = head->code, .message = head->message, .head = true};
    keep_text(refusal->method, sizeof(refusal->method), head->method);
    keep_text(refusal->path, sizeof(refusal->path), path);
    if (head_identity_is_sane(head->identity))
        keep_text(refusal->identity, sizeof(refusal->identity), head->identity);
    gate->state = GATE_REFUSED;
}

static void pass_head(struct gate *gate, const struct head *head)
{
    gate->heads++;
    gate->seen_bytes = 0;
    gate->blank_line = false;
    gate->last = gate->last || head->last;
    gate->pass_bytes = head->length_bytes + head->body_bytes;
    gate->chunks = (struct chunks){.state = 0};
    gate->state = head->chunked ? GATE_CHUNKS : gate->last ? GATE_LAST : GATE_HEAD;
}

/* Some old clients send an empty line behind a body. */
static bool skip_blank_line(struct gate *gate, size_t length_bytes)
{
    char two[2];
    if (gate->blank_line || length_bytes < 2 || memcmp(gates.peeked, "\r\n", 2) != 0)
        return false;
    gate->blank_line = read_socket(gate->fd, two, 2, MSG_DONTWAIT) == 2;
    gate->seen_bytes = 0;
    return gate->blank_line;
}

/* Byte by byte, only the end of a line can change the verdict on a head that has begun well. */
static bool nothing_new(struct gate *gate, size_t length_bytes)
{
    size_t new_bytes = length_bytes > gate->seen_bytes ? length_bytes - gate->seen_bytes : 0;
    return gate->seen_bytes && length_bytes < HEAD_BYTES_MAX &&
           !(new_bytes && memchr(gates.peeked + gate->seen_bytes, '\n', new_bytes));
}

static void look_at_head(struct gate *gate, size_t length_bytes)
{
    struct head head;
    bool known = nothing_new(gate, length_bytes);
    enum head_verdict verdict = known ? HEAD_INCOMPLETE : head_read(gates.peeked, length_bytes, &head);
    gate->seen_bytes = length_bytes;
    if (verdict == HEAD_GOOD)
        pass_head(gate, &head);
    else if (verdict == HEAD_BAD)
        refuse_head(gate, &head);
    if (!known)
        gate->changed(gate->arg);
}

static void look_at_chunks(struct gate *gate, size_t length_bytes)
{
    size_t taken_bytes;
    enum chunks_verdict verdict = chunks_read(&gate->chunks, gates.peeked, length_bytes, &taken_bytes);
    gate->pass_bytes = taken_bytes + chunks_skip(&gate->chunks);
    if (verdict == CHUNKS_END) {
        gate->state = gate->last ? GATE_LAST : GATE_HEAD;
    } else if (verdict == CHUNKS_BAD) {
        gate->refusal =
            (struct gate_refusal){.code = ERR_BAD_REQUEST, .message = "the chunks of the body are malformed"};
        gate->state = GATE_REFUSED;
        gate->changed(gate->arg);
    }
}

/* 1: something may pass. 0: the client has gone. -1 with errno: nothing may pass now. */
static ssize_t look(struct gate *gate)
{
    while (gate->pass_bytes == 0 && (gate->state == GATE_HEAD || gate->state == GATE_CHUNKS)) {
        ssize_t length = read_socket(gate->fd, gates.peeked, HEAD_BYTES_MAX, MSG_PEEK | MSG_DONTWAIT);
        if (length <= 0)
            return length;
        if (gate->state == GATE_CHUNKS)
            look_at_chunks(gate, (size_t)length);
        else if (!skip_blank_line(gate, (size_t)length))
            look_at_head(gate, (size_t)length);
        if (gate_holds_part(gate))
            break;
    }
    if (gate->pass_bytes)
        return 1;
    errno = EAGAIN;
    return gate->ended ? 0 : -1;
}

static ssize_t discard(const struct gate *gate)
{
    ssize_t length = 1;
    for (unsigned i = 0; length > 0 && i < DISCARDS_MAX; i++)
        length = read_socket(gate->fd, gates.peeked, HEAD_BYTES_MAX, MSG_DONTWAIT);
    if (length <= 0)
        return length;
    errno = EAGAIN;
    return -1;
}

/* As much as there is room for: the library takes less for the end of what is here, and waits for the next edge. */
static ssize_t read_gate(struct gate *gate, char *to, size_t room_bytes)
{
    size_t got_bytes = 0;
    ssize_t result = 1;
    while (got_bytes < room_bytes && (result = look(gate)) > 0) {
        size_t wanted_bytes = room_bytes - got_bytes;
        if (gate->pass_bytes < wanted_bytes)
            wanted_bytes = (size_t)gate->pass_bytes;
        result = read_socket(gate->fd, to + got_bytes, wanted_bytes, MSG_DONTWAIT);
        if (result <= 0)
            break;
        got_bytes += (size_t)result;
        gate->pass_bytes -= (size_t)result;
    }
    return got_bytes ? (ssize_t)got_bytes : result;
}

/* Hides libc's from the shared libraries, too. */
ssize_t recv(int fd, void *buf, size_t n, int flags)
{
    struct gate *gate = fd >= 0 && (size_t)fd < gates.count ? gates.by_fd[fd] : NULL;
    if (!gate)
        return read_socket(fd, buf, n, flags);
    if (gate->over)
        return 0;
    return gate->state == GATE_DEAF ? discard(gate) : read_gate(gate, buf, n);
}
