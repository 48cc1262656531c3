/* compile: sources to binaries. A compiler runs in a cage, too, and its result is kept: the same source is run on many
 * inputs. */
#ifndef VERIFIERS_SANDBOX_COMPILE_PRIVATE_H
#define VERIFIERS_SANDBOX_COMPILE_PRIVATE_H

#include "verifiers/sandbox/run_private.h"

#include "server/base/hash.h"

#define BINARIES_MAX 128
#define BINARIES_BYTES (INT64_C(64) << 20) /* of all that are kept */

struct binary {
    uint8_t key[SHA256_BYTES]; /* of language, flags and source */
    int fd;                    /* a sealed memfd; -1: it does not compile, or the place is free */
    int64_t size_bytes;
    char *text;    /* what the compiler says of a source that does not compile; NULL: it does */
    uint64_t used; /* 0: the place is free; the greater, the later */
};

struct binaries { /* zero-initialised; the least recently used one goes first */
    struct binary list[BINARIES_MAX];
    uint64_t uses;
};

/* The binary of a program whose language is compiled, from the cache or by its compiler. testlib: the header's text.
 * RUN_DONE: *ret_binary is the binary, or says why there is none; it is valid until the next call. Else no compiler
 * could be run, and ret_message says why. */
enum run_end compile(struct binaries *binaries, struct holder *holder, int client,
                     const struct sandbox_program *program, struct text testlib, const struct binary **ret_binary,
                     char ret_message[200]);

#endif
