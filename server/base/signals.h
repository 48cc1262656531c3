/* signals: those that have no meaning for a process of ours. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

/* Ignores every signal whose default ends the process and that says nothing to us (SIGUSR1, SIGALRM, SIGPROF, real-time
 * signals, …), a file-size limit and a broken pipe (both are seen as errors of a write), and lets the ends of children
 * be seen, whatever the parent set. Signals of faults and of job control stay. Before threads; children inherit it. */
void signals_ignore_meaningless(void);

#endif
