/* sandbox: programs from a model, run where they can do no harm. This is its client side: a program, and
 * its result.
 *
 * A slot (slot.h) is a small process that runs one program, or a pair of them, at a time, each in namespaces of its own:
 * nothing that a program does is seen by another one. A slot never gets an expected value: it is given a program and an
 * input, and gives back the output. The caller compares.
 *
 * sandbox_run() reads and writes one socket and nothing else, so that it may be called under a text worker's filter.
 * Any one thread for each socket. */
#ifndef VERIFIERS_SANDBOX_SANDBOX_H
#define VERIFIERS_SANDBOX_SANDBOX_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sandbox_language { /* SANDBOX_PYTHON, SANDBOX_SH, SANDBOX_C …: the rows of languages.def, in its order */
#define LANGUAGE(constant, ...) SANDBOX_##constant,
#include "verifiers/sandbox/languages.def"
#undef LANGUAGE
                        SANDBOX_LANGUAGES
};
extern const char
    *const sandbox_language_names[SANDBOX_LANGUAGES + 1]; /* "python", "sh", "c", "cpp", "command", NULL */

struct sandbox_limits {
    int64_t wall_ms;      /* from the program's start, not from its request */
    int64_t cpu_ms;       /* of all its processes together as far as can be seen, of each in any case */
    int64_t memory_bytes; /* of all its processes together */
    int64_t output_bytes; /* of stdout, and again of stderr, and of records */
    int64_t disk_bytes;   /* of its box, a page at least: a file system of size 0 has no bound */
    int64_t processes;
};

#define SANDBOX_FILES_MAX 4
#define SANDBOX_ARGUMENTS_MAX 16

struct sandbox_file { /* put into the box before the program starts */
    const char *name; /* no slash */
    struct text bytes;
};

/* A text is at most SANDBOX_TEXT_LIMIT_BYTES, an argument SANDBOX_ARGUMENT_LIMIT_BYTES, the name of a file
 * SANDBOX_NAME_LIMIT_BYTES, and output_bytes SANDBOX_OUTPUT_LIMIT_BYTES: beyond it a program is SANDBOX_BROKEN. */
#define SANDBOX_TEXT_LIMIT_BYTES ((size_t)64 << 20)
#define SANDBOX_ARGUMENT_LIMIT_BYTES 4096
#define SANDBOX_NAME_LIMIT_BYTES 63
#define SANDBOX_PATH_BYTES 256
#define SANDBOX_OUTPUT_LIMIT_BYTES (INT64_C(64) << 20)

/* A command may stay: its process serves the next program, too, that is the same except for its input. An input is then one
 * line, and its standard output is one line, too; it is SANDBOX_ANSWERED with that line, without its end. Output
 * beyond that ends it, as its death and its limits do, which are those of one line. */
enum sandbox_stay {
    SANDBOX_ONCE,
    SANDBOX_STAYS, /* alone, not in a pair */
    SANDBOX_LEAVES /* the process that stayed for such a program is ended, if there is one; nothing is run */
};

struct sandbox_program {
    enum sandbox_language language;
    struct text source; /* TEXT_NONE for SANDBOX_COMMAND, whose arguments are the whole command */
    struct text input;  /* its standard input, then EOF */
    const char *arguments[SANDBOX_ARGUMENTS_MAX]; /* behind its own name */
    size_t argument_count;
    struct sandbox_file files[SANDBOX_FILES_MAX];
    size_t file_count;
    struct sandbox_limits limits;
    bool records; /* descriptor 3 is a pipe whose bytes come back as `records`: no program is believed for them */
    bool include_testlib; /* c, cpp: the folder of testlib.h (settings) is on the include path */
    const char
        *venv; /* of a command: a virtual environment of the slot's settings, whose programs are found first; NULL */
    enum sandbox_stay stay;
    bool bare; /* without a sandbox: a command that the slot's settings know (slot.h), and no other */
};

enum sandbox_outcome {
    SANDBOX_ENDED,     /* by itself: exit_code; or by its own signal: signal */
    SANDBOX_TIMEOUT,   /* wall or processor time */
    SANDBOX_MEMORY,    /* more than its memory */
    SANDBOX_OUTPUT,    /* more than its output; what came before it is there */
    SANDBOX_VIOLATION, /* a call that ends a program (another architecture, for one); or a full disk, and exit code 0 */
    SANDBOX_NOT_COMPILED, /* standard_error says why */
    SANDBOX_BROKEN,       /* the program never began, for no fault of its own: message says why. Never a wrong answer */
    SANDBOX_ANSWERED /* one that stays: message says what was wrong with its answer beside the line; empty: nothing */
};

struct sandbox_result {
    enum sandbox_outcome outcome;
    int exit_code; /* -1 unless it exited */
    int signal;    /* 0 unless a signal ended it */
    bool began;    /* false: it never ran (compile error, broken) */
    int64_t wall_us;
    int64_t cpu_us;
    int64_t peak_bytes;          /* of memory; 0: unknown */
    struct text standard_output; /* into `bytes` */
    struct text standard_error;
    struct text records;
    bool no_memory; /* SANDBOX_BROKEN: this process has none for what came out */
    char message[200];
    struct buffer bytes; /* holds the texts; sandbox_result_finish() */
};

/* One program, or a pair: count is 1 or 2. Of a pair both run at once, descriptor 4 of each is its end of a stream
 * socket between them, and the pair ends when both have ended; the first one is killed a moment after the second one
 * has ended. 0, or -1 if the slot is gone or talks nonsense: it and this socket cannot be used again. The process ignores
 * SIGPIPE. ret_results are to be finished in either case. */
int sandbox_run(int fd, const struct sandbox_program *programs, size_t count, struct sandbox_result *ret_results);
void sandbox_result_finish(struct sandbox_result *result);

#endif
