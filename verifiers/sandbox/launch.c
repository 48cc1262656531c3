#include "verifiers/sandbox/launch_private.h"

#include "server/base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define FDS_MAX (CAGE_FDS + 3)

enum fd_bit { FD_BINARY = CAGE_FDS, FD_LAUNCHER, FD_TEXTS };

struct head {
    uint32_t kind, index;
    uint32_t fds; /* bits: 0 to 4 of the task, enum fd_bit */
    uint32_t argument_count, file_count;
    uint32_t venv_bytes;                         /* with its NUL; 0: there is none */
    uint32_t argument_bytes[TASK_ARGUMENTS_MAX]; /* with their NUL */
    uint32_t name_bytes[TASK_FILES_MAX];
    uint64_t file_bytes[TASK_FILES_MAX];
    struct sandbox_limits limits;
};

/* --- sending --- */

/* The texts of a task, in the order of the head's sizes. */
struct parts {
    struct iovec list[1 + TASK_ARGUMENTS_MAX + 2 * TASK_FILES_MAX];
    int count;
    size_t sum_bytes;
};

static size_t add_part(struct parts *parts, const void *bytes, size_t length_bytes)
{
    parts->list[parts->count++] = (struct iovec){(void *)(uintptr_t)bytes, length_bytes};
    parts->sum_bytes += length_bytes;
    return length_bytes;
}

static void describe_task(const struct task *task, struct head *head, struct parts *parts)
{
    head->argument_count = (uint32_t)task->argument_count;
    head->file_count = (uint32_t)task->file_count;
    head->limits = task->limits;
    if (task->venv)
        head->venv_bytes = (uint32_t)add_part(parts, task->venv, strlen(task->venv) + 1);
    for (size_t i = 0; i < task->argument_count; i++)
        head->argument_bytes[i] = (uint32_t)add_part(parts, task->arguments[i], strlen(task->arguments[i]) + 1);
    for (size_t i = 0; i < task->file_count; i++) {
        const struct sandbox_file *file = &task->files[i];
        head->name_bytes[i] = (uint32_t)add_part(parts, file->name, strlen(file->name) + 1);
        head->file_bytes[i] = add_part(parts, file->bytes.data, file->bytes.length_bytes);
    }
}

static int put_into_memfd(const struct parts *parts)
{
    int fd = memfd_create("task", MFD_CLOEXEC);

    if (fd >= 0 && writev(fd, parts->list, parts->count) == (ssize_t)parts->sum_bytes)
        return fd;
    closep(&fd);
    return -1;
}

/* fds: FDS_MAX of them, -1 for none. */
static int send_order(int socket, struct head *head, const int *fds)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec part = {head, sizeof *head};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
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
    _cleanup_close_ int texts = -1;
    struct head head = {.kind = LAUNCH_TASK, .index = index};
    struct parts parts = {.count = 0};

    describe_task(task, &head, &parts);
    texts = put_into_memfd(&parts);
    if (texts < 0)
        return -1;
    return send_order(socket, &head, (int[FDS_MAX]){fds[0], fds[1], fds[2], fds[3], fds[4], task->binary, -1, texts});
}

static int send_head(int socket, struct head head, int launcher)
{
    return send_order(socket, &head, (int[FDS_MAX]){-1, -1, -1, -1, -1, -1, launcher, -1});
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

int launch_send_bare(int socket, int bare)
{
    return send_head(socket, (struct head){.kind = LAUNCH_BARE}, bare);
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
    size_t sum_bytes = head->venv_bytes;

    for (size_t i = 0; i < head->argument_count; i++)
        sum_bytes += head->argument_bytes[i];
    for (size_t i = 0; i < head->file_count; i++)
        sum_bytes += head->name_bytes[i] + head->file_bytes[i];
    return sum_bytes;
}

/* Mapped, but not read: the pages are only the program's. */
static int map_texts(const struct head *head, int texts, struct launch_order *order)
{
    if (head->argument_count > TASK_ARGUMENTS_MAX || head->file_count > TASK_FILES_MAX)
        return -1;
    order->length_bytes = bytes_of(head);
    if (order->length_bytes == 0)
        return 0;
    order->texts = mmap(NULL, order->length_bytes, PROT_READ, MAP_PRIVATE, texts, 0);
    return order->texts == MAP_FAILED ? -1 : 0;
}

static void read_task(const struct head *head, struct launch_order *order)
{
    const char *at = order->texts;
    struct task *task = &order->task;

    task->argument_count = head->argument_count;
    task->file_count = head->file_count;
    task->limits = head->limits;
    task->venv = head->venv_bytes ? at : NULL;
    at += head->venv_bytes;
    for (size_t i = 0; i < task->argument_count; at += head->argument_bytes[i++])
        task->arguments[i] = at;
    for (size_t i = 0; i < task->file_count; i++) {
        task->files[i].name = at;
        at += head->name_bytes[i];
        task->files[i].bytes = (struct text){at, head->file_bytes[i]};
        at += head->file_bytes[i];
    }
}

static int read_order(const struct head *head, const int *fds, struct launch_order *order)
{
    _cleanup_close_ int texts = fds[FD_TEXTS];

    order->kind = head->kind;
    order->index = head->index;
    memcpy(order->fds, fds, sizeof order->fds);
    order->task.binary = fds[FD_BINARY];
    order->launcher = fds[FD_LAUNCHER];
    if (head->index >= LAUNCH_PLACES || map_texts(head, texts, order) < 0)
        return -1;
    read_task(head, order);
    return 0;
}

int launch_receive(int socket, struct launch_order *ret_order)
{
    struct head head;
    struct iovec part = {&head, sizeof head};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    int fds[FDS_MAX];
    ssize_t count;

    *ret_order = LAUNCH_ORDER_NONE;
    do
        count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (count < 0 && errno == EINTR);
    if (count != sizeof head || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        return -1;
    return place_fds(&message, &head, fds) < 0 ? -1 : read_order(&head, fds, ret_order);
}

void launch_order_finish(struct launch_order *order)
{
    for (size_t i = 0; i < CAGE_FDS; i++)
        closep(&order->fds[i]);
    closep(&order->task.binary);
    closep(&order->launcher);
    if (order->texts != MAP_FAILED)
        munmap(order->texts, order->length_bytes);
    *order = LAUNCH_ORDER_NONE;
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
    if (count != sizeof *ret_report || ret_report->index >= LAUNCH_PLACES)
        return -1;
    if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_CREDENTIALS)
        memcpy(&sender, CMSG_DATA(first), sizeof sender);
    ret_report->sender = sender.pid;
    ret_report->message[sizeof ret_report->message - 1] = '\0';
    return 0;
}
