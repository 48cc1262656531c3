/* python: programs of Python, forked from a zygote. A zygote is a process that has loaded libpython and run only our own code,
 * so that a program begins in a millisecond where `python3` needs ten.
 *
 * A program sees what `/usr/bin/python3 -s solution.py` would show it in its box, without the distribution's
 * dist-packages. libpython is found at run time: nothing links against it.
 *
 * The zygote and its programs have one thread until a program makes more. */
#ifndef SANDBOX_PYTHON_PRIVATE_H
#define SANDBOX_PYTHON_PRIVATE_H

#include <stddef.h>

struct python_program {
    const char *file;             /* its name in the box: "solution.py" */
    const char *const *arguments; /* sys.argv[1:] */
    size_t argument_count;
};

/* Makes the calling process a zygote: once, inside its namespaces and its read-only root, before its first program. It
 * needs /proc, files below /usr and, if `venv` is neither NULL nor empty, the virtual environment of that folder: its
 * packages come last on sys.path, and numpy is loaded if it is there.
 * The environment of the process becomes that of every program, Python's own variables with it; HOME and TMPDIR become
 * the box of each. Pages that are shared with other processes and can be written are unmapped: a program could leave
 * something there for the next one. Signals are handled as before.
 * 0, or -1: there is no Python here, and ret_message says why and what to install. */
int python_zygote_init(const char *venv, char *ret_message, size_t message_bytes);

/* In a process forked from the zygote, when its cage is complete: runs the program and ends the process as python3
 * would. Descriptors 0, 1 and 2 are its streams, the box is its working directory, and its file is there.
 * No interpreter is finalised, which would take longer than most programs: threads are joined, atexit is run, the
 * objects of __main__ are let go, and streams are flushed. */
void python_child(const struct python_program *program) __attribute__((noreturn));

#endif
