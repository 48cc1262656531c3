// Anonymous files that are open nowhere: they wait in the queue of a socket.
// expected: verdict=ok|memory_limit|runtime_error|disk_limit|time_limit_wall|time_limit_cpu; stdout!~ESCAPED
// memory_mb: 400
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
static char block[1 << 20];
int main(void)
{
    int pair[2];
    long taken = 0;
    memset(block, 1, sizeof block);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        return 0;
    for (int i = 0; i < 100; i++) {
        int file = memfd_create("attack_memory", 0);
        if (file < 0)
            break;
        for (int j = 0; j < 15 && write(file, block, sizeof block) == sizeof block; j++)
            taken++;
        char control[CMSG_SPACE(sizeof(int))] = {0};
        struct iovec part = {"x", 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof file), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(head), &file, sizeof file);
        if (sendmsg(pair[0], &message, MSG_DONTWAIT) < 0)
            break;
        close(file);
    }
    printf("%s %ld\n", taken >= 1024 ? "ESCAPED" : "BLOCKED", taken);
    return 0;
}
