#include "verifiers/sandbox/launch_private.h"

#include "server/base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define INLINE_BYTES ((size_t)32 << 10) /* of a message; more goes by a memfd */
#define FDS_MAX (CAGE_FDS + 3)

enum fd_bit { FD_BINARY = CAGE_FDS, FD_LAUNCHER, FD_BYTES };

struct head {
    uint32_t kind, index;
    uint32_t fds; /* bits: 0 to 4 of the task, enum fd_bit */
    uint32_t argument_count, file_count;
    uint32_t argument_bytes[TASK_ARGUMENTS_MAX]; /* with their NUL */
    uint32_t name_bytes[TASK_FILES_MAX];
    uint64_t file_bytes[TASK_FILES_MAX];
    struct sandbox_limits limits;
};

/* --- sending --- */

struct parts {
    struct iovec list[1 + TASK_ARGUMENTS_MAX + 2 * TASK_FILES_MAX];
    size_t count;
    size_t sum_bytes;
};

static size_t add_part(struct parts *parts, const void *bytes, size_t length_bytes)
{
    parts->list[parts->count++] = (struct iovec){(void *)(uintptr_t)bytes, length_bytes};
    parts->sum_bytes += length_bytes;
    return length_bytes;
}

/* The first part is the head itself. */
static void describe_task(const struct task *task, struct head *head, struct parts *parts)
{
    head->argument_count = (uint32_t)task->argument_count;
    head->file_count = (uint32_t)task->file_count;
    head->limits = task->limits;
    for (size_t i = 0; i < task->argument_count; i++)
        head->argument_bytes[i] = (uint32_t)add_part(parts, task->arguments[i], strlen(task->arguments[i]) + 1);
    for (size_t i = 0; i < task->file_count; i++) {
        const struct sandbox_file *file = &task->files[i];
        head->name_bytes[i] = (uint32_t)add_part(parts, file->name, strlen(file->name) + 1);
        head->file_bytes[i] = add_part(parts, file->bytes.data, file->bytes.length_bytes);
    }
}

static int write_to_memfd(struct parts *parts)
{
    int fd = memfd_create("task", MFD_CLOEXEC);

    for (size_t i = 1; i < parts->count && fd >= 0; i++)
        for (size_t done = 0; done < parts->list[i].iov_len;) {
            ssize_t count = write(fd, (char *)parts->list[i].iov_base + done, parts->list[i].iov_len - done);
            if (count <= 0) {
                close(fd);
                return -1;
            }
            done += (size_t)count;
        }
    return fd;
}

/* fds: FDS_MAX of them, -1 for none. */
static int send_parts(int socket, struct head *head, struct parts *parts, const int *fds)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = parts->list, .msg_iovlen = parts->count};
    int list[FDS_MAX];
    size_t count = 0;
    ssize_t sent;

    for (size_t i = 0; i < FDS_MAX; i++)
        if (fds[i] >= 0) {
            head->fds |= 1u << i;
            list[count++] = fds[i];
        }
    if (count) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        control.header = (struct cmsghdr){CMSG_LEN(count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), list, count * sizeof(int));
    }
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -1 : 0;
}

int launch_send_task(int socket, uint32_t index, const struct task *task, const int *fds)
{
    _cleanup_close_ int memfd = -1;
    struct head head = {.kind = LAUNCH_TASK, .index = index};
    struct parts parts = {.count = 0};
    int all[FDS_MAX] = {fds[0], fds[1], fds[2], fds[3], fds[4], task->binary, -1, -1};

    add_part(&parts, &head, sizeof head);
    describe_task(task, &head, &parts);
    if (parts.sum_bytes > INLINE_BYTES) {
        memfd = write_to_memfd(&parts);
        if (memfd < 0)
            return -1;
        all[FD_BYTES] = memfd;
        parts.count = 1;
    }
    return send_parts(socket, &head, &parts, all);
}

static int send_head(int socket, struct head head, int launcher)
{
    struct parts parts = {.count = 0};
    int fds[FDS_MAX] = {-1, -1, -1, -1, -1, -1, launcher, -1};

    add_part(&parts, &head, sizeof head);
    return send_parts(socket, &head, &parts, fds);
}

int launch_send_kill(int socket, uint32_t index)
{
    return send_head(socket, (struct head){.kind = LAUNCH_KILL, .index = index}, -1);
}

int launch_send_zygote(int socket, int zygote)
{
    return send_head(socket, (struct head){.kind = LAUNCH_ZYGOTE}, zygote);
}

int launch_send_holder(int socket, int holder)
{
    return send_head(socket, (struct head){.kind = LAUNCH_HOLDER}, holder);
}

/* --- receiving --- */

/* The descriptors that came, at the places that the head's bits name. */
static int place_fds(struct msghdr *message, const struct head *head, int *ret_fds)
{
    const struct cmsghdr *control = CMSG_FIRSTHDR(message);
    size_t count = 0;
    size_t used = 0;
    int list[FDS_MAX];

    for (size_t i = 0; i < FDS_MAX; i++)
        ret_fds[i] = -1;
    if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS) {
        count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(list, CMSG_DATA(control), (count < FDS_MAX ? count : FDS_MAX) * sizeof(int));
    }
    for (size_t i = 0; i < FDS_MAX; i++)
        if (head->fds >> i & 1 && used < count)
            ret_fds[i] = list[used++];
    return used == count && __builtin_popcount(head->fds) == (int)count ? 0 : -1;
}

static size_t bytes_of(const struct head *head)
{
    size_t sum_bytes = 0;

    for (size_t i = 0; i < head->argument_count; i++)
        sum_bytes += head->argument_bytes[i];
    for (size_t i = 0; i < head->file_count; i++)
        sum_bytes += head->name_bytes[i] + head->file_bytes[i];
    return sum_bytes;
}

static int read_task(const struct head *head, struct launch_order *order)
{
    const char *at = order->bytes;
    struct task *task = &order->task;

    if (head->argument_count > TASK_ARGUMENTS_MAX || head->file_count > TASK_FILES_MAX ||
        bytes_of(head) != order->length_bytes)
        return -1;
    task->argument_count = head->argument_count;
    task->file_count = head->file_count;
    task->limits = head->limits;
    for (size_t i = 0; i < task->argument_count; at += head->argument_bytes[i++])
        task->arguments[i] = at;
    for (size_t i = 0; i < task->file_count; i++) {
        task->files[i].name = at;
        at += head->name_bytes[i];
        task->files[i].bytes = (struct text){at, head->file_bytes[i]};
        at += head->file_bytes[i];
    }
    return 0;
}

/* Its texts: behind the head, or in a memfd, which is mapped for this process alone. */
static int take_bytes(const struct head *head, const char *behind, size_t behind_bytes, int memfd,
                      struct launch_order *order)
{
    void *map;

    order->length_bytes = memfd < 0 ? behind_bytes : bytes_of(head);
    if (order->length_bytes == 0)
        return 0;
    order->mapped = memfd >= 0;
    map = order->mapped ? mmap(NULL, order->length_bytes, PROT_READ, MAP_PRIVATE, memfd, 0) : MAP_FAILED;
    if (order->mapped) {
        order->bytes = map == MAP_FAILED ? NULL : map;
        return order->bytes ? 0 : -1;
    }
    order->bytes = malloc(order->length_bytes);
    if (order->bytes)
        memcpy(order->bytes, behind, order->length_bytes);
    return order->bytes ? 0 : -1;
}

static int read_order(const struct head *head, const char *behind, size_t behind_bytes, const int *fds,
                      struct launch_order *order)
{
    _cleanup_close_ int memfd = fds[FD_BYTES];

    order->kind = head->kind;
    order->index = head->index;
    memcpy(order->fds, fds, sizeof order->fds);
    order->task.binary = fds[FD_BINARY];
    order->launcher = fds[FD_LAUNCHER];
    if (head->index >= LAUNCH_TASKS_MAX || take_bytes(head, behind, behind_bytes, memfd, order) < 0)
        return -1;
    return read_task(head, order);
}

int launch_receive(int socket, struct launch_order *ret_order)
{
    struct head head;
    char behind[INLINE_BYTES];
    struct iovec list[2] = {{&head, sizeof head}, {behind, sizeof behind}};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = list, .msg_iovlen = 2, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    int fds[FDS_MAX];
    ssize_t count;
    int result;

    *ret_order = (struct launch_order){.fds = {-1, -1, -1, -1, -1}, .launcher = -1, .task = {.binary = -1}};
    do
        count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (count < 0 && errno == EINTR);
    if (count < (ssize_t)sizeof head || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        return -1;
    if (place_fds(&message, &head, fds) < 0)
        return -1;
    result = read_order(&head, behind, (size_t)count - sizeof head, fds, ret_order);
    explicit_bzero(behind, (size_t)count - sizeof head);
    return result;
}

void launch_order_finish(struct launch_order *order)
{
    for (size_t i = 0; i < CAGE_FDS; i++)
        closep(&order->fds[i]);
    closep(&order->task.binary);
    closep(&order->launcher);
    if (order->mapped && order->bytes)
        munmap(order->bytes, order->length_bytes);
    else if (order->bytes) {
        explicit_bzero(order->bytes, order->length_bytes);
        free(order->bytes);
    }
    *order = (struct launch_order){.fds = {-1, -1, -1, -1, -1}, .launcher = -1, .task = {.binary = -1}};
}

/* --- reports --- */

int launch_report(int socket, const struct launch_report *report)
{
    ssize_t sent;

    do
        sent = send(socket, report, sizeof *report, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == sizeof *report ? 0 : -1;
}

int launch_read_report(int socket, struct launch_report *ret_report)
{
    struct iovec part = {ret_report, sizeof *ret_report};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *first = CMSG_FIRSTHDR(&message);
    struct ucred sender = {0};

    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return 1;
    if (count != sizeof *ret_report || ret_report->index >= LAUNCH_TASKS_MAX)
        return -1;
    if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_CREDENTIALS)
        memcpy(&sender, CMSG_DATA(first), sizeof sender);
    ret_report->sender = sender.pid;
    ret_report->message[sizeof ret_report->message - 1] = '\0';
    return 0;
}
