/* The user and group ids of programs, as the rest of the machine sees them. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "verifiers/sandbox/cage_private.h"

/* A line of uid_map: inside, outside, count. -1: the id is not in it. */
static long long outer_id_of_line(const char *line, uid_t id)
{
    char *rest;
    long long inside = strtoll(line, &rest, 10);
    long long outside = strtoll(rest, &rest, 10);
    long long count = strtoll(rest, NULL, 10);

    return id >= inside && id < inside + count ? outside + (id - inside) : -1;
}

/* Where an id of this user namespace is in the one around it. -1: nowhere. */
static long long outer_id(uid_t id)
{
    FILE *file = fopen("/proc/self/uid_map", "re");
    char line[128];
    long long result = -1;

    while (file && result < 0 && fgets(line, sizeof line, file))
        result = outer_id_of_line(line, id);
    if (file)
        fclose(file);
    return result;
}

/* Root of a container that has no other user is an ordinary user of the machine, and there is nobody else to be. */
static bool is_root_by_name(uid_t other)
{
    return outer_id(0) > 0 && outer_id(other) < 0;
}

static int become(uid_t uid)
{
    if (uid == 0) {
        errno = EINVAL;
        return -1;
    }
    return setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 ? -1 : 0;
}

int cage_drop_root(uid_t uid)
{
    bool is_root = (geteuid() == 0 || getuid() == 0) && !is_root_by_name(uid);

    if (is_root && become(uid) < 0)
        return -1;
    /* The spawner is not dumpable, nor is who has changed its ids: its files in /proc are root's, and it could not write
     * its id map. */
    return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}
