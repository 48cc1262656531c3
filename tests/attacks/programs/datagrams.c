// A pair of datagram sockets needs no socket(), and each of them may write to any address.
// expected: verdict=pass; stdout!~ESCAPED
// stdout: CLEAN\n
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
static int reach(int type, const char *name, int abstract)
{
    int pair[2], hits = 0;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    strncpy(to.sun_path + abstract, name, sizeof to.sun_path - 2);
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + abstract + strlen(name) + !abstract;
    struct iovec part = {"x", 1};
    struct msghdr message = {.msg_name = &to, .msg_namelen = length, .msg_iov = &part, .msg_iovlen = 1};
    if (socketpair(AF_UNIX, type, 0, pair) < 0)
        return 0;
    hits += sendto(pair[0], "x", 1, MSG_DONTWAIT, (void *)&to, length) == 1 && type == SOCK_DGRAM;
    hits += sendmsg(pair[0], &message, MSG_DONTWAIT) == 1 && type == SOCK_DGRAM;
    hits += connect(pair[0], (void *)&to, length) == 0;
    shutdown(pair[0], SHUT_RDWR);
    close(pair[1]);
    hits += connect(pair[0], (void *)&to, length) == 0;
    return hits;
}
int main(void)
{
    const int types[] = {SOCK_DGRAM, SOCK_STREAM, SOCK_SEQPACKET};
    int hits = 0;
    for (int i = 0; i < 3; i++)
        hits += reach(types[i], "@UNIX_ABS@", 1) + reach(types[i], "@UNIX_PATH@", 0) + reach(types[i], "@UNIX_ABS@-datagram", 1) +
                reach(types[i], "@UNIX_PATH@-datagram", 0) + reach(types[i], "/run/systemd/notify", 0) + reach(types[i], "/dev/log", 0);
    puts(hits ? "ESCAPED" : "CLEAN");
    return 0;
}
