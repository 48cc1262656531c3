/* The messages between a client of a slot and the slot: fixed structs in native byte order, then the bytes of the texts.
 * Both ends are of one binary; still each checks what the other one says, as the client's process has read hostile
 * text, and the slot has run hostile programs.
 *
 *   request  struct wire_request, count times { struct wire_program, then its texts in the order of its sizes }
 *   reply    count times { struct wire_result, then its texts }
 *
 * Pure: no I/O, no allocation. Any thread. */
#ifndef VERIFIERS_SANDBOX_WIRE_PRIVATE_H
#define VERIFIERS_SANDBOX_WIRE_PRIVATE_H

#include "verifiers/sandbox/sandbox.h"

#define WIRE_MAGIC 0x736c6f74u
#define WIRE_COMPILER_TEXT_BYTES ((size_t)16 << 10) /* of what a compiler says */

struct wire_request {
    uint32_t magic;
    uint32_t count; /* 1 or 2 */
};

struct wire_program {
    uint32_t language; /* enum sandbox_language */
    uint32_t flags;
    uint32_t argument_count;
    uint32_t file_count;
    uint32_t venv_bytes; /* with a NUL; 0: there is none */
    struct sandbox_limits limits;
    /* Sizes in bytes. An argument and a name of a file have a NUL behind them that is counted. */
    uint64_t source_bytes;
    uint64_t input_bytes;
    uint32_t argument_bytes[SANDBOX_ARGUMENTS_MAX];
    uint32_t name_bytes[SANDBOX_FILES_MAX];
    uint64_t file_bytes[SANDBOX_FILES_MAX];
};

#define WIRE_RECORDS 1u
#define WIRE_TESTLIB 2u
#define WIRE_BARE 4u
#define WIRE_STAYS 8u
#define WIRE_LEAVES 16u

struct wire_result {
    uint32_t outcome; /* enum sandbox_outcome */
    int32_t exit_code;
    int32_t signal;
    uint32_t began;
    int64_t wall_us, cpu_us, peak_bytes;
    uint64_t output_bytes, error_bytes, records_bytes; /* sizes */
    char message[sizeof((struct sandbox_result *)0)->message];
};

/* The program's sizes and numbers. NULL, or what is wrong with it. */
const char *wire_describe(const struct sandbox_program *program, struct wire_program *ret_wire);
/* NULL, or what is wrong with it: every number is within its bounds afterwards. */
const char *wire_check_program(const struct wire_program *wire);
size_t wire_program_text_bytes(const struct wire_program *wire); /* of one that was checked: all texts together */
/* The program that `wire` and its texts (wire_program_text_bytes() of them) describe. It points into the texts. False:
 * a name or an argument is none. */
bool wire_read_program(const struct wire_program *wire, const char *texts, struct sandbox_program *ret_program);

/* Does the result of a program with these limits look as one may? */
bool wire_check_result(const struct wire_result *wire, const struct sandbox_limits *limits);

#endif
