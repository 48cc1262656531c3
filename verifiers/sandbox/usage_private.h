/* usage: the present memory and time of a tree of processes, from /proc. Slow (some 50 us): for programs that take their time. Any
 * process that sees the tree in its /proc. */
#ifndef VERIFIERS_SANDBOX_USAGE_PRIVATE_H
#define VERIFIERS_SANDBOX_USAGE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct usage {
    int64_t cpu_us;       /* of those that live, and of those that were waited for */
    int64_t memory_bytes; /* private and shared memory; what several share may count for each */
    int64_t mapped_bytes; /* address space that is neither private and writable, nor stack, nor code */
    size_t processes;
};

/* The children of all its threads: their pids as this process sees them. At most `room`. */
size_t usage_children(pid_t pid, pid_t *ret_pids, size_t room);

/* The pid of a process as the launcher sees it, which may be in a namespace below. 0: it is gone. */
pid_t usage_inner_pid(pid_t launcher, pid_t pid);

/* Its process group. 0: it is gone. */
pid_t usage_group(pid_t pid);

/* Adds one process; or also all its descendants. */
void usage_add_process(pid_t pid, struct usage *usage);
void usage_add_tree(pid_t pid, struct usage *usage);
/* The memory of a process and its descendants, what is shared counted once. -1: it cannot be read. Slower. */
int64_t usage_exact_memory(pid_t pid);
/* How long a process or one of its descendants, whichever waited longest, was ready and had no processor. 0 where the
 * kernel does not tell. */
int64_t usage_waited_us(pid_t pid);
bool usage_is_ready(pid_t pid); /* it computes, or waits for a processor */
/* How many processes the kernel has killed so far because the machine, or a part of it, had no memory. 0: unknown. */
int64_t usage_killed_for_memory(void);
/* Shared anonymous memory that a process and its descendants have mapped, each object once and whole: pages that were
 * taken out of the page tables are in memory still, and in no resident set. Slow: mappings are read. */
int64_t usage_shared_mappings(const pid_t *roots, size_t count);

#endif
