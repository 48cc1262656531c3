# Limits, affinity and priority of process 1 are taken: whatever comes of it is this program's affair, never a verdict without a score.
# expected: verdict=pass|ok|runtime_error|time_limit_wall|time_limit_cpu|security_violation
# stdout: DONE\n
# runs: 2
import os, resource
for pid in (1, os.getppid()):
    for kind in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_AS, resource.RLIMIT_STACK, resource.RLIMIT_DATA):
        try:
            resource.prlimit(pid, kind, (0, 0))
        except (OSError, ValueError):
            pass
    for act in (lambda: os.sched_setaffinity(pid, {0}), lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
                lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))):
        try:
            act()
        except OSError:
            pass
print('DONE')
