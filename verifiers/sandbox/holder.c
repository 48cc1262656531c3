#include "verifiers/sandbox/holder_private.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "server/base/cleanup.h"
#include "verifiers/sandbox/launch_private.h"
#include "verifiers/sandbox/usage_private.h"

/* ret_pair: ours, which names the sender of each report, and the launcher's. */
static int make_socket(int ret_pair[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_pair) < 0)
        return -1;
    return setsockopt(ret_pair[0], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int));
}

static void forget(int *fd)
{
    closep(fd);
    *fd = -1;
}

/* The keeper says when it has made a child. */
static int keeper_has_made(const struct holder *holder)
{
    char done;

    return recv(holder->keeper, &done, 1, 0) == 1 ? 0 : -1;
}

int holder_renew(struct holder *holder)
{
    bool had_zygote = holder->zygote >= 0;
    int pair[2] = {-1, -1};
    int result = -1;

    forget(&holder->socket);
    forget(&holder->zygote);
    forget(&holder->bare);
    holder->launched = 0;
    holder->killed = usage_killed_for_memory();
    if (make_socket(pair) == 0 && launch_send_holder(holder->keeper, pair[1]) == 0 && keeper_has_made(holder) == 0)
        result = 0;
    holder->socket = pair[0];
    closep(&pair[1]);
    if (result == 0 && had_zygote) /* it gets ready while nobody waits for it */
        result = holder_start_zygote(holder);
    return result;
}

int holder_start_zygote(struct holder *holder)
{
    _cleanup_close_ int theirs = -1;
    int pair[2];

    if (holder->zygote >= 0)
        return 0;
    if (make_socket(pair) < 0)
        return -1;
    theirs = pair[1];
    holder->zygote = pair[0];
    return launch_send_zygote(holder->socket, theirs);
}

int holder_start_bare(struct holder *holder)
{
    _cleanup_close_ int theirs = -1;
    int pair[2];

    if (holder->bare >= 0)
        return 0;
    if (make_socket(pair) < 0)
        return -1;
    theirs = pair[1];
    holder->bare = pair[0];
    return launch_send_bare(holder->keeper, theirs) < 0 ? -1 : keeper_has_made(holder);
}
