#include "server/runtime/limits.h"

#include "server/base/sanitizer.h"
#include "server/settings/settings.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/cleanup.h"

#define MIB ((rlim_t)1 << 20)

enum {
    STACK_MIB = 8,         /* of a text worker, and of each thread */
    PROGRAM_DATA_MIB = 64, /* the program without requests: 29 MiB were measured, and heaps grow in steps */
    PROGRAM_SPACE_MIB = 512,
    WORKER_DATA_MIB = 64, /* as a text worker limits itself, and what it maps before */
    WORKER_SPACE_MIB = 256,
    FILE_MIB = 2,         /* an empty record and its log, 0.75 MiB; from there on it is a full disk */
    OTHER_THREADS = 3,    /* the loop, the writer, a look-up of a name */
    OWN_DESCRIPTORS = 24, /* 14 at rest; files that are read and written for a moment */
    READER_DESCRIPTORS = 2,
    LEAST_SHARED = 24,
    ENGINES_SHARE = 6, /* one of so many, where clients could use up all */
    SHARED_PER_REFUSAL = 24,
    MOST_REFUSALS = 64,
};

struct limit_row {
    int resource;
    const char *name; /* and how the shell calls it */
    rlim_t unit;
    const char *unit_name;
};

/* Not here: core, memory (has no effect), locks, nice and real-time priorities, which nothing of ours needs; pending
 * signals, message queues and locked memory, of which a worker gives up all. */
static const struct limit_row rows[] = {
    {RLIMIT_STACK, "stack size (ulimit -s)", 1024, " KiB"},
    {RLIMIT_DATA, "data size (ulimit -d)", 1024, " KiB"},
    {RLIMIT_AS, "address space (ulimit -v)", 1024, " KiB"},
    {RLIMIT_FSIZE, "size of a file (ulimit -f)", 1024, " KiB"},
    {RLIMIT_NOFILE, "number of open files (ulimit -n)", 1, ""},
    {RLIMIT_NPROC, "number of processes (ulimit -u)", 1, ""},
    {RLIMIT_CPU, "processor time (ulimit -t)", 1, " s"},
};

/* By row. RLIM_INFINITY: it must be unlimited. */
struct needs {
    rlim_t values[ARRAY_LENGTH(rows)];
};

static void need(struct needs *needs, int resource, rlim_t value)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (rows[i].resource == resource)
            needs->values[i] = value;
}

static int refuse(const struct limit_row *row, rlim_t hard, rlim_t needed, char *ret_message)
{
    char must_be[48] = "unlimited";
    if (needed != RLIM_INFINITY)
        snprintf(must_be, sizeof(must_be), "at least %llu%s",
                 (unsigned long long)((needed + row->unit - 1) / row->unit), row->unit_name);
    snprintf(ret_message, LIMITS_MESSAGE_BYTES, "the limit of the %s is %llu%s, and must be %s", row->name,
             (unsigned long long)(hard / row->unit), row->unit_name, must_be);
    return -1;
}

/* RLIM_INFINITY is the largest value there is. A soft limit above the need stays, but those of which there is no such
 * thing as enough: a record grows, and clients and other processes of the user take their share later. */
static int check_row(const struct limit_row *row, rlim_t needed, bool raise, char *ret_message)
{
    struct rlimit limit;
    bool more = row->resource == RLIMIT_NOFILE || row->resource == RLIMIT_NPROC || row->resource == RLIMIT_FSIZE;
    if (needed == 0 || getrlimit(row->resource, &limit) < 0)
        return 0;
    if (limit.rlim_max < needed)
        return refuse(row, limit.rlim_max, needed, ret_message);
    if ((limit.rlim_cur < needed || more) && raise) {
        limit.rlim_cur = more || needed == RLIM_INFINITY ? limit.rlim_max : needed;
        if (setrlimit(row->resource, &limit) < 0)
            return refuse(row, limit.rlim_cur, needed, ret_message);
    }
    return 0;
}

static int check_rows(const struct needs *needs, bool raise, char *ret_message)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (check_row(&rows[i], needs->values[i], raise, ret_message) < 0)
            return -1;
    return 0;
}

/* --- what there is of a user's processes already ------------------------------------------------------------- */

static size_t count_threads(const char *pid)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%.20s/task", pid);
    return stat(path, &status) == 0 && status.st_uid == getuid() ? (size_t)status.st_nlink - 2 : 0;
}

static size_t count_own_tasks(void)
{
    DIR *folder = opendir("/proc");
    size_t count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            count += count_threads(entry->d_name);
    if (folder)
        closedir(folder);
    return count;
}

/* A process that may exceed this limit has none; 0 then. */
static rlim_t processes_needed(rlim_t ours)
{
    struct rlimit limit;
    if (geteuid() == 0 || getrlimit(RLIMIT_NPROC, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    return count_own_tasks() + ours;
}

/* --- the service --------------------------------------------------------------------------------------------- */

static size_t worker_threads(const struct settings *settings)
{
    return (size_t)(settings->workers + settings->readers);
}

static size_t own_descriptors(const struct settings *settings)
{
    return OWN_DESCRIPTORS + READER_DESCRIPTORS * (worker_threads(settings) + 1) + (size_t)settings->text_workers +
           (size_t)settings->sandbox_slots;
}

static void find_needs(const struct settings *settings, struct needs *ret_needs)
{
    rlim_t threads = worker_threads(settings) + OTHER_THREADS;
    rlim_t data = PROGRAM_DATA_MIB * MIB + threads * STACK_MIB * MIB + (rlim_t)settings->memory_budget_bytes;
    *ret_needs = (struct needs){{0}};
    need(ret_needs, RLIMIT_STACK, STACK_MIB * MIB);
    need(ret_needs, RLIMIT_DATA, data);
    need(ret_needs, RLIMIT_AS, UNDER_SANITIZER ? RLIM_INFINITY : data + PROGRAM_SPACE_MIB * MIB);
    need(ret_needs, RLIMIT_FSIZE, FILE_MIB * MIB);
    need(ret_needs, RLIMIT_NOFILE, own_descriptors(settings) + LEAST_SHARED);
    need(ret_needs, RLIMIT_NPROC, processes_needed(threads + 1 + (rlim_t)settings->text_workers));
    need(ret_needs, RLIMIT_CPU, RLIM_INFINITY);
}

/* Clients get what connection_limit says, as long as engines keep their share. */
static void share_descriptors(const struct settings *settings, struct descriptor_shares *ret_shares)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    size_t all = limit.rlim_max > INT32_MAX ? INT32_MAX : (size_t)limit.rlim_max;
    size_t shared = all - own_descriptors(settings);
    size_t refusals = shared / SHARED_PER_REFUSAL < MOST_REFUSALS ? shared / SHARED_PER_REFUSAL : MOST_REFUSALS;
    size_t clients = shared - shared / ENGINES_SHARE - refusals;
    if (clients > (size_t)settings->connection_limit)
        clients = (size_t)settings->connection_limit;
    *ret_shares = (struct descriptor_shares){clients, refusals, shared - clients - refusals};
}

/* glibc takes the size of a thread's stack from the limit as it was when the program began. */
static void set_thread_stacks(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, (size_t)(STACK_MIB * MIB)) == 0)
        (void)pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}

int limits_check(const struct settings *settings, bool raise, struct descriptor_shares *ret_shares,
                 char ret_message[LIMITS_MESSAGE_BYTES])
{
    struct needs needs;
    find_needs(settings, &needs);
    if (check_rows(&needs, raise, ret_message) < 0)
        return -1;
    if (raise)
        set_thread_stacks();
    share_descriptors(settings, ret_shares);
    return 0;
}

int limits_check_worker(char ret_message[LIMITS_MESSAGE_BYTES])
{
    struct needs needs = {{0}};
    need(&needs, RLIMIT_STACK, STACK_MIB * MIB);
    need(&needs, RLIMIT_DATA, WORKER_DATA_MIB * MIB);
    need(&needs, RLIMIT_AS, UNDER_SANITIZER ? RLIM_INFINITY : WORKER_SPACE_MIB * MIB);
    need(&needs, RLIMIT_NPROC, processes_needed(2));
    need(&needs, RLIMIT_CPU, RLIM_INFINITY);
    return check_rows(&needs, true, ret_message);
}
