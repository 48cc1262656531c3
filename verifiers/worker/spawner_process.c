/* The spawner itself: one small process without threads. It forks workers, kills them when told, reaps them, ends on
 * EOF. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "server/base/cleanup.h"
#include "server/base/sanitizer.h"
#include "server/base/signals.h"
#include "verifiers/worker/spawner.h"
#include "verifiers/worker/spawner_wire_private.h"
#include "verifiers/worker/worker.h"

#define CHILDREN_MAX 1024

struct child {
    uint32_t id;
    pid_t pid; /* 0: free */
};

struct state {
    struct child children[CHILDREN_MAX];
    int signals; /* signalfd for SIGCHLD */
};

static struct child *find_child(struct state *state, uint32_t id)
{
    for (size_t i = 0; i < CHILDREN_MAX; i++)
        if (state->children[i].pid && state->children[i].id == id)
            return &state->children[i];
    return NULL;
}

static struct child *free_child(struct state *state)
{
    for (size_t i = 0; i < CHILDREN_MAX; i++)
        if (!state->children[i].pid)
            return &state->children[i];
    return NULL;
}

/* fds: passed along; NULL: none. A service that is gone is noticed by the next read. */
static void report(enum spawner_event_kind kind, uint32_t id, int value, const int fds[2])
{
    struct spawner_report what = {kind, id, value};
    struct iovec part = {&what, sizeof what};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fds) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        control.header = (struct cmsghdr){CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), fds, 2 * sizeof(int));
    }
    while (sendmsg(SPAWNER_FD, &message, MSG_NOSIGNAL) < 0 && errno == EINTR)
        continue;
}

/* In the child: keep the socket alone, then serve it. Standard error stays only where a sanitizer reports to it. */
static void become_worker(int fd, struct worker_page *page, pid_t parent)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_NAME, "text-worker", 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) /* it died before the line above */
        _exit(1);
    if (dup2(fd, SPAWNER_FD) < 0 || close_range(SPAWNER_FD + 1, ~0u, 0) < 0 || chdir("/") < 0)
        _exit(1);
    if (!UNDER_SANITIZER && dup2(0, 2) < 0)
        _exit(1);
    worker_main(SPAWNER_FD, page);
}

/* A page that says that nothing is judged, of a size that cannot be changed. -1 with errno. */
static int make_page(struct worker_page **ret_page)
{
    int fd = memfd_create("worker-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *page = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof **ret_page) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
        page = mmap(NULL, sizeof **ret_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        closep(&fd);
        return -1;
    }
    *ret_page = page;
    (*ret_page)->at = WORKER_READS;
    return fd;
}

static int fork_worker(struct child *child, uint32_t id, const int pair[2], struct worker_page *page)
{
    pid_t self = getpid();
    pid_t pid = fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0 ? -1 : fork();

    if (pid == 0)
        become_worker(pair[1], page, self);
    if (pid < 0)
        return -1;
    *child = (struct child){id, pid};
    return 0;
}

/* ret_fds: the service's end of the socket, and the page. */
static int make_child(struct child *child, uint32_t id, int ret_fds[2])
{
    struct worker_page *page;
    int page_fd = make_page(&page);
    int pair[2] = {-1, -1};
    int result = -1;

    if (page_fd < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0)
        result = fork_worker(child, id, pair, page);
    munmap(page, sizeof *page);
    closep(&pair[1]);
    ret_fds[0] = pair[0];
    ret_fds[1] = page_fd;
    if (result < 0) {
        closep(&pair[0]);
        close(page_fd);
    }
    return result;
}

static void make_worker(struct state *state, uint32_t id)
{
    struct child *child = free_child(state);
    int fds[2];

    if (!child)
        report(SPAWNER_FAILED, id, EMFILE, NULL);
    else if (make_child(child, id, fds) < 0)
        report(SPAWNER_FAILED, id, errno, NULL);
    else {
        report(SPAWNER_MADE, id, 0, fds);
        close(fds[0]);
        close(fds[1]);
    }
}

static void kill_worker(struct state *state, uint32_t id)
{
    const struct child *child = find_child(state, id);

    if (child)
        kill(child->pid, SIGKILL);
}

static void reap(struct state *state)
{
    struct signalfd_siginfo ignored;
    int status;
    pid_t pid;

    if (read(state->signals, &ignored, sizeof ignored) < 0 && errno != EAGAIN)
        _exit(1);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (size_t i = 0; i < CHILDREN_MAX; i++)
            if (state->children[i].pid == pid) {
                state->children[i].pid = 0;
                report(SPAWNER_ENDED, state->children[i].id, status, NULL);
            }
}

static void end_with_children(struct state *state)
{
    for (size_t i = 0; i < CHILDREN_MAX; i++)
        if (state->children[i].pid)
            kill(state->children[i].pid, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        continue;
    _exit(0);
}

static void obey(struct state *state)
{
    struct spawner_order order;
    ssize_t count = recv(SPAWNER_FD, &order, sizeof order, MSG_DONTWAIT);

    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count != sizeof order) /* the service is gone: so are we, and the workers with us */
        end_with_children(state);
    if (order.kind == SPAWNER_ORDER_MAKE)
        make_worker(state, order.id);
    else if (order.kind == SPAWNER_ORDER_KILL)
        kill_worker(state, order.id);
}

/* A terminal's or a supervisor's signal to the whole group must not take the workers from a service that drains. */
static void set_signals(struct state *state)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t child;

    signals_ignore_meaningless();
    for (size_t i = 0; i < ARRAY_LENGTH(ignored); i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_SETMASK, &child, NULL);
    state->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (state->signals < 0)
        _exit(1);
}

static void serve(void)
{
    static struct state state;
    struct pollfd polled[2];

    prctl(PR_SET_NAME, "spawner", 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    set_signals(&state);
    polled[0] = (struct pollfd){SPAWNER_FD, POLLIN, 0};
    polled[1] = (struct pollfd){state.signals, POLLIN, 0};
    for (;;) {
        if (poll(polled, 2, -1) < 0 && errno != EINTR)
            _exit(1);
        if (polled[1].revents)
            reap(&state);
        if (polled[0].revents)
            obey(&state);
    }
}

void spawner_main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[0], SPAWNER_ARGV0) == 0 && strcmp(argv[1], SPAWNER_ARGV1) == 0)
        serve();
}
