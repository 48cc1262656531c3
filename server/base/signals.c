#include "server/base/signals.h"

#include "server/base/cleanup.h"

#include <signal.h>

void signals_ignore_meaningless(void)
{
    static const int ignored[] = {SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF,   SIGIO,
                                  SIGPWR,  SIGPIPE, SIGXFSZ, SIGWINCH,  SIGSTKFLT, SIGURG};
    for (size_t i = 0; i < ARRAY_LENGTH(ignored); i++)
        signal(ignored[i], SIG_IGN);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        signal(number, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}
