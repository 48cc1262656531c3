/* The init of a program: the first process of its pid namespace. As such a program itself would survive its own
 * SIGTERM, SIGALRM and abort(), and orphans would have nobody to wait for them.
 *
 * It shares memory and descriptors with the holder, so that it costs 50 us where a forked one costs 450. So it must not
 * touch a thing: it has a stack of its own, and raw system calls only, because errno would be the holder's. An
 * attack of a program on it would be one on the holder: its memory is closed to programs because the holder is not
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

static void be_init(void) __attribute__((noreturn));

/* clone_bare(): the child runs be_init() on its own stack. libc's clone() may be a sanitizer's, which has work to do in a
 * child; this one must do none. */
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

BARE static long clone_bare(long flags, const char *stack_end)
{
    register long fourth __asm__("r10") = 0;
    register long fifth __asm__("r8") = 0;
    long result;

    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "call *%[child]\n\t"
                     "1:"
                     : "=a"(result)
                     : "a"(SYS_clone), "D"(flags), "S"(stack_end), "d"(0), "r"(fourth), "r"(fifth), [child] "r"(be_init)
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

BARE static long clone_bare(long flags, const char *stack_end)
{
    register long call __asm__("x8") = SYS_clone;
    register long first __asm__("x0") = flags;
    register const char *second __asm__("x1") = stack_end;
    register long third __asm__("x2") = 0;
    register long fourth __asm__("x3") = 0;
    register long fifth __asm__("x4") = 0;

    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "blr %[child]\n\t"
                     "1:"
                     : "+r"(first)
                     : "r"(call), "r"(second), "r"(third), "r"(fourth), "r"(fifth), [child] "r"(be_init)
                     : "x30", "memory");
    return first;
}
#endif

struct kernel_sigaction { /* not libc's */
    uintptr_t handler;
    unsigned long flags;
    uintptr_t restorer;
    uint64_t mask;
};

/* It hears no signal but SIGKILL; libc's sigprocmask() would leave out two. Orphans are reaped by the kernel because nobody
 * wants their SIGCHLD. */
BARE static void be_init(void)
{
    struct kernel_sigaction ignore = {(uintptr_t)SIG_IGN, 0, 0, 0};
    uint64_t all = ~0ull;

    raw_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, sizeof all);
    raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
    raw_call(SYS_rt_sigaction, SIGCHLD, (long)&ignore, 0, sizeof ignore.mask);
    for (;;)
        raw_call(SYS_ppoll, 0, 0, 0, 0);
}

/* The caller's next child is in the namespace, too. */
pid_t cage_init_spawn(const struct cage *cage, int slot)
{
    const char *stack_end = cage->stacks + (size_t)(slot + 1) * CAGE_INIT_STACK_BYTES;

    if (unshare(CLONE_NEWPID) < 0)
        return -1;
    long init = clone_bare(CLONE_VM | CLONE_FILES | SIGCHLD, stack_end);
    errno = init < 0 ? (int)-init : 0;
    return init < 0 ? -1 : (pid_t)init;
}
