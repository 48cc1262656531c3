#include "verifiers/sandbox/usage_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"

#define PROCESSES_MAX 4096 /* more are not looked at: their limit is far below */

/* A file of /proc/PID as a string; empty if there is none. */
static const char *read_file(pid_t pid, const char *name, char *room, size_t room_bytes)
{
    char path[64];
    size_t length_bytes = 0;
    ssize_t count = 1;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && count > 0 && length_bytes + 1 < room_bytes) {
        count = read(fd, room + length_bytes, room_bytes - 1 - length_bytes);
        length_bytes += count > 0 ? (size_t)count : 0;
    }
    if (fd >= 0)
        close(fd);
    room[length_bytes] = '\0';
    return room;
}

/* The number behind a name in "Name:   123 kB" lines; 0 without it. */
static int64_t number_of(const char *lines, const char *name)
{
    const char *at = strstr(lines, name);

    return at ? strtoll(at + strlen(name), NULL, 10) : 0;
}

/* --- the tree --- */

static size_t add_children(pid_t pid, const char *thread, pid_t *pids, size_t room)
{
    char name[64];
    char list[16384];
    size_t count = 0;
    char *end;

    snprintf(name, sizeof name, "task/%.32s/children", thread);
    for (const char *at = read_file(pid, name, list, sizeof list); count < room; at = end) {
        long child = strtol(at, &end, 10);
        if (end == at)
            break;
        pids[count++] = (pid_t)child;
    }
    return count;
}

size_t usage_children(pid_t pid, pid_t *ret_pids, size_t room)
{
    char path[64];
    size_t count = 0;
    const struct dirent *entry;
    DIR *threads;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    threads = opendir(path);
    while (threads && (entry = readdir(threads)))
        if (entry->d_name[0] != '.')
            count += add_children(pid, entry->d_name, ret_pids + count, room - count);
    if (threads)
        closedir(threads);
    return count;
}

/* The process and all below it, parents first. */
static size_t list_tree(pid_t pid, pid_t ret_pids[PROCESSES_MAX])
{
    size_t count = 1;

    ret_pids[0] = pid;
    for (size_t i = 0; i < count; i++)
        count += usage_children(ret_pids[i], ret_pids + count, PROCESSES_MAX - count);
    return count;
}

/* The pids of a process from the outermost namespace that is seen to its own. */
static size_t nested_pids(pid_t pid, pid_t ret_pids[32])
{
    char text[4096];
    const char *at = strstr(read_file(pid, "status", text, sizeof text), "\nNSpid:");
    size_t count = 0;
    char *end;

    for (at = at ? at + strlen("\nNSpid:") : NULL; at && count < 32; at = end) {
        long number = strtol(at, &end, 10);
        if (end == at || memchr(at, '\n', (size_t)(end - at)))
            break;
        ret_pids[count++] = (pid_t)number;
    }
    return count;
}

pid_t usage_inner_pid(pid_t launcher, pid_t pid)
{
    pid_t of_launcher[32];
    pid_t own[32];
    size_t depth = nested_pids(launcher, of_launcher);
    size_t count = nested_pids(pid, own);

    return depth > 0 && depth <= count ? own[depth - 1] : 0;
}

/* --- what it uses --- */

/* The numbers of fields `first` to `last` of /proc/PID/stat, added. The name of a process, field 2, may hold anything. */
static int64_t sum_fields(pid_t pid, int first, int last)
{
    char text[1024];
    const char *at = strrchr(read_file(pid, "stat", text, sizeof text), ')');
    int64_t sum = 0;

    for (int field = 3; at && field <= last; field++) {
        at = strchr(at + 1, ' ');
        if (at && field >= first)
            sum += strtoll(at, NULL, 10);
    }
    return sum;
}

pid_t usage_group(pid_t pid)
{
    return (pid_t)sum_fields(pid, 5, 5);
}

/* utime, stime, cutime and cstime, in ticks. */
static int64_t cpu_of(pid_t pid)
{
    int64_t per_second = sysconf(_SC_CLK_TCK);

    return sum_fields(pid, 14, 17) * (US_PER_S / (per_second > 0 ? per_second : 100));
}

/* Of the lines of /proc/PID/status. */
static int64_t mapped_of(const char *lines)
{
    return 1024 * (number_of(lines, "\nVmSize:") - number_of(lines, "\nVmData:") - number_of(lines, "\nVmStk:") -
                   number_of(lines, "\nVmExe:") - number_of(lines, "\nVmLib:"));
}

void usage_add_process(pid_t pid, struct usage *usage)
{
    char text[4096];
    const char *lines = read_file(pid, "status", text, sizeof text);

    usage->memory_bytes +=
        1024 * (number_of(lines, "\nRssAnon:") + number_of(lines, "\nRssShmem:") + number_of(lines, "\nVmSwap:"));
    usage->mapped_bytes += mapped_of(lines);
    usage->cpu_us += cpu_of(pid);
    usage->processes += lines[0] != '\0';
}

void usage_add_tree(pid_t pid, struct usage *usage)
{
    pid_t pids[PROCESSES_MAX];
    size_t count = list_tree(pid, pids);

    for (size_t i = 0; i < count; i++)
        usage_add_process(pids[i], usage);
}

/* 0: it is gone; -1: it cannot be read. */
static int64_t exact_memory_of(pid_t pid)
{
    char text[4096];
    const char *lines = read_file(pid, "smaps_rollup", text, sizeof text);

    if (lines[0])
        return 1024 *
               (number_of(lines, "\nPss_Anon:") + number_of(lines, "\nPss_Shmem:") + number_of(lines, "\nSwapPss:"));
    return read_file(pid, "statm", text, sizeof text)[0] ? -1 : 0;
}

int64_t usage_exact_memory(pid_t pid)
{
    pid_t pids[PROCESSES_MAX];
    size_t count = list_tree(pid, pids);
    int64_t sum_bytes = 0;

    for (size_t i = 0; i < count; i++) {
        int64_t part_bytes = exact_memory_of(pids[i]);
        if (part_bytes < 0)
            return -1;
        sum_bytes += part_bytes;
    }
    return sum_bytes;
}

/* The second number of /proc/PID/schedstat, in nanoseconds. */
static int64_t waited_of(pid_t pid)
{
    char text[128];
    const char *second = strchr(read_file(pid, "schedstat", text, sizeof text), ' ');

    return second ? strtoll(second, NULL, 10) / 1000 : 0;
}

int64_t usage_killed_for_memory(void)
{
    char line[128];
    int64_t count = 0;
    FILE *file = fopen("/proc/vmstat", "re");

    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "oom_kill ", 9) == 0)
            count = strtoll(line + 9, NULL, 10);
    if (file)
        fclose(file);
    return count;
}

bool usage_is_ready(pid_t pid)
{
    char text[1024];
    const char *name_end = strrchr(read_file(pid, "stat", text, sizeof text), ')');

    return name_end && name_end[1] == ' ' && name_end[2] == 'R';
}

int64_t usage_waited_us(pid_t pid)
{
    pid_t pids[PROCESSES_MAX];
    size_t count = list_tree(pid, pids);
    int64_t longest_us = 0;

    for (size_t i = 0; i < count; i++) {
        int64_t waited_us = waited_of(pids[i]);
        longest_us = waited_us > longest_us ? waited_us : longest_us;
    }
    return longest_us;
}

/* --- shared anonymous memory --- */

#define OBJECTS_MAX 256 /* more are counted once for each mapping */

struct objects {
    struct {
        unsigned long inode;
        int64_t bytes;
    } list[OBJECTS_MAX];
    size_t count;
    int64_t beyond_bytes; /* of those for which there was no room */
};

static void add_object(struct objects *objects, unsigned long inode, int64_t bytes)
{
    size_t i = 0;

    while (i < objects->count && objects->list[i].inode != inode)
        i++;
    if (i == OBJECTS_MAX) {
        objects->beyond_bytes += bytes;
        return;
    }
    if (i == objects->count) {
        objects->list[objects->count++].inode = inode;
        objects->list[i].bytes = 0;
    }
    objects->list[i].bytes += bytes; /* a part of it may be mapped by itself: of one process they add up */
}

/* "7f00-7f10 rw-s 00000000 00:01 1234   /dev/zero (deleted)": what a file system has is the box's, and has its limit. */
static void add_mapping(struct objects *objects, const char *line)
{
    char *at;
    unsigned long start = strtoul(line, &at, 16);
    unsigned long end = *at == '-' ? strtoul(at + 1, &at, 16) : 0;
    bool shared = strncmp(at, " ", 1) == 0 && strcspn(at + 1, " ") == 4 && at[4] == 's';

    if (!shared || !strstr(at, " /dev/zero"))
        return;
    for (int field = 0; field < 3 && at; field++) /* to the one before the number */
        at = strchr(at + 1, ' ');
    if (at)
        add_object(objects, strtoul(at, NULL, 10), (int64_t)(end - start));
}

/* A process whose mappings cannot be read is counted with all that it has mapped. */
static void add_mappings(struct objects *objects, pid_t pid)
{
    struct usage usage = {0};
    char line[512];
    FILE *maps;

    snprintf(line, sizeof line, "/proc/%d/maps", (int)pid);
    maps = fopen(line, "re");
    if (!maps || !fgets(line, sizeof line, maps)) {
        usage_add_process(pid, &usage);
        objects->beyond_bytes += usage.mapped_bytes;
    } else {
        do
            add_mapping(objects, line);
        while (fgets(line, sizeof line, maps));
    }
    if (maps)
        fclose(maps);
}

/* An object that several processes share counts with the bytes of the process that has most of it. */
static void merge(struct objects *all, const struct objects *of_one)
{
    for (size_t i = 0; i < of_one->count; i++) {
        size_t j = 0;
        while (j < all->count && all->list[j].inode != of_one->list[i].inode)
            j++;
        if (j == all->count)
            add_object(all, of_one->list[i].inode, of_one->list[i].bytes);
        else if (all->list[j].bytes < of_one->list[i].bytes)
            all->list[j].bytes = of_one->list[i].bytes;
    }
    all->beyond_bytes += of_one->beyond_bytes;
}

int64_t usage_shared_mappings(const pid_t *roots, size_t count)
{
    pid_t pids[PROCESSES_MAX];
    struct objects all = {.count = 0};
    int64_t sum_bytes;

    for (size_t i = 0; i < count; i++) {
        size_t processes = list_tree(roots[i], pids);
        for (size_t j = 0; j < processes; j++) {
            struct objects one = {.count = 0};
            add_mappings(&one, pids[j]);
            merge(&all, &one);
        }
    }
    sum_bytes = all.beyond_bytes;
    for (size_t i = 0; i < all.count; i++)
        sum_bytes += all.list[i].bytes;
    return sum_bytes;
}
