/* The init of a program: the first process of its pid namespace. As such a program itself would survive its own
 * SIGTERM, SIGALRM and abort(), and orphans would have nobody to wait for them.
 *
 * It shares memory and descriptors with the holder, so that it costs 50 us where a forked one costs 450. So it must not
 * touch a thing: it has a stack of its own, and raw system calls only, because errno would be the holder's. What a
 * program could do to it, it could do to the holder: its memory is closed to programs because the holder is not
 * dumpable, because it has capabilities that programs have not, and by Landlock. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verifiers/sandbox/cage_parts_private.h"

#define BARE __attribute__((no_sanitize("address", "thread", "undefined"), no_stack_protector))

#if defined(__x86_64__)
BARE static inline long raw_call(long number, long a, long b, long c, long d)
{
    register long fourth __asm__("r10") = d;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
BARE static inline long raw_call(long number, long a, long b, long c, long d)
{
    register long call __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;

    __asm__ volatile("svc 0" : "+r"(first) : "r"(call), "r"(second), "r"(third), "r"(fourth) : "memory");
    return first;
}
#endif

struct kernel_sigaction { /* not libc's */
    uintptr_t handler;
    unsigned long flags;
    uintptr_t restorer;
    uint64_t mask;
};

/* With every signal blocked (SIGKILL is not). Orphans are reaped by the kernel because nobody wants their SIGCHLD. */
BARE __attribute__((noreturn)) static int be_init(void *unused)
{
    struct kernel_sigaction ignore = {(uintptr_t)SIG_IGN, 0, 0, 0};

    (void)unused;
    raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
    raw_call(SYS_rt_sigaction, SIGCHLD, (long)&ignore, 0, sizeof ignore.mask);
    for (;;)
        raw_call(SYS_ppoll, 0, 0, 0, 0);
}

/* The caller's next child is in the namespace, too. */
pid_t cage_init_spawn(const struct cage *cage, int slot)
{
    char *stack_end = cage->stacks + (size_t)(slot + 1) * CAGE_INIT_STACK_BYTES;
    sigset_t all;
    sigset_t old;

    if (unshare(CLONE_NEWPID) < 0)
        return -1;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    pid_t init = clone(be_init, stack_end, CLONE_VM | CLONE_FILES | SIGCHLD, NULL);
    int error = errno;
    sigprocmask(SIG_SETMASK, &old, NULL);
    errno = error;
    return init;
}
