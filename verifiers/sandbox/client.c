#include "verifiers/sandbox/sandbox.h"

#include <stdio.h>
#include <string.h>

#include "server/base/whole.h"
#include "verifiers/sandbox/wire_private.h"

#define GATHER_BYTES ((size_t)16 << 10) /* a longer text is written by itself */

const char *const sandbox_language_names[SANDBOX_LANGUAGES + 1] = {
#define LANGUAGE(constant, name, ...) [SANDBOX_##constant] = name,
#include "verifiers/sandbox/languages.def"
#undef LANGUAGE
    [SANDBOX_LANGUAGES] = NULL,
};

/* --- request --- */

struct writer {
    int fd;
    struct buffer gathered;
    bool failed;
};

static void flush(struct writer *writer)
{
    if (writer->gathered.failed || write_whole(writer->fd, writer->gathered.data, writer->gathered.length_bytes) < 0)
        writer->failed = true;
    buffer_clear(&writer->gathered);
}

static void put(struct writer *writer, const void *bytes, size_t length_bytes)
{
    if (writer->gathered.length_bytes + length_bytes > GATHER_BYTES)
        flush(writer);
    if (length_bytes <= GATHER_BYTES)
        buffer_append(&writer->gathered, bytes, length_bytes);
    else if (!writer->failed && write_whole(writer->fd, bytes, length_bytes) < 0)
        writer->failed = true;
}

static void put_program(struct writer *writer, const struct sandbox_program *program, const struct wire_program *wire)
{
    put(writer, wire, sizeof *wire);
    put(writer, program->source.data, program->source.length_bytes);
    put(writer, program->input.data, program->input.length_bytes);
    put(writer, program->venv, wire->venv_bytes);
    for (size_t i = 0; i < program->argument_count; i++)
        put(writer, program->arguments[i], wire->argument_bytes[i]);
    for (size_t i = 0; i < program->file_count; i++) {
        put(writer, program->files[i].name, wire->name_bytes[i]);
        put(writer, program->files[i].bytes.data, program->files[i].bytes.length_bytes);
    }
}

static int write_request(int fd, const struct sandbox_program *programs, const struct wire_program *wires, size_t count)
{
    struct writer writer = {.fd = fd};
    const struct wire_request request = {WIRE_MAGIC, (uint32_t)count};

    buffer_init(&writer.gathered, GATHER_BYTES);
    put(&writer, &request, sizeof request);
    for (size_t i = 0; i < count; i++)
        put_program(&writer, &programs[i], &wires[i]);
    flush(&writer);
    buffer_finish(&writer.gathered);
    return writer.failed ? -1 : 0;
}

/* --- reply --- */

static void read_facts(const struct wire_result *wire, struct sandbox_result *result)
{
    result->outcome = (enum sandbox_outcome)wire->outcome;
    result->exit_code = wire->exit_code;
    result->signal = wire->signal;
    result->began = wire->began;
    result->wall_us = wire->wall_us;
    result->cpu_us = wire->cpu_us;
    result->peak_bytes = wire->peak_bytes;
    memcpy(result->message, wire->message, sizeof result->message);
}

/* There is no memory for it: it is read past, so that the slot can be asked again. */
static int skip(int fd, size_t count_bytes)
{
    char some[4096];

    while (count_bytes) {
        size_t part_bytes = count_bytes < sizeof some ? count_bytes : sizeof some;
        if (read_whole(fd, some, part_bytes) < 0)
            return -1;
        count_bytes -= part_bytes;
    }
    return 0;
}

static int read_result(int fd, const struct sandbox_program *program, struct sandbox_result *result)
{
    struct wire_result wire;
    size_t sum_bytes;
    char *bytes;

    if (read_whole(fd, &wire, sizeof wire) < 0 || !wire_check_result(&wire, &program->limits))
        return -1;
    if (wire.outcome == SANDBOX_ANSWERED && program->stay != SANDBOX_STAYS)
        return -1;
    sum_bytes = wire.output_bytes + wire.error_bytes + wire.records_bytes;
    result->bytes.maximum_bytes = sum_bytes;
    bytes = buffer_reserve(&result->bytes, sum_bytes);
    if (!bytes) {
        result->no_memory = true;
        snprintf(result->message, sizeof result->message, "there is no memory for what the program wrote");
        return skip(fd, sum_bytes);
    }
    if (read_whole(fd, bytes, sum_bytes) < 0)
        return -1;
    bytes[sum_bytes] = '\0';
    result->bytes.length_bytes = sum_bytes;
    read_facts(&wire, result);
    result->standard_output = (struct text){bytes, wire.output_bytes};
    result->standard_error = (struct text){bytes + wire.output_bytes, wire.error_bytes};
    result->records = (struct text){bytes + wire.output_bytes + wire.error_bytes, wire.records_bytes};
    return 0;
}

static void refuse(const char *why, size_t count, struct sandbox_result *results)
{
    for (size_t i = 0; i < count; i++)
        snprintf(results[i].message, sizeof results[i].message, "no program for a sandbox: %s", why);
}

int sandbox_run(int fd, const struct sandbox_program *programs, size_t count, struct sandbox_result *ret_results)
{
    struct wire_program wires[2];

    for (size_t i = 0; i < count; i++) {
        ret_results[i] = (struct sandbox_result){.outcome = SANDBOX_BROKEN, .exit_code = -1};
        buffer_init(&ret_results[i].bytes, 0);
    }
    if (count < 1 || count > ARRAY_LENGTH(wires))
        return -1;
    for (size_t i = 0; i < count; i++) {
        const char *wrong = wire_describe(&programs[i], &wires[i]);
        if (wrong) {
            refuse(wrong, count, ret_results);
            return 0;
        }
    }
    if (write_request(fd, programs, wires, count) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (read_result(fd, &programs[i], &ret_results[i]) < 0)
            return -1;
    return 0;
}

void sandbox_result_finish(struct sandbox_result *result)
{
    buffer_finish(&result->bytes);
    result->standard_output = result->standard_error = result->records = TEXT_NONE;
}
