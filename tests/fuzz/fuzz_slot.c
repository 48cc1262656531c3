/* The wire between a text worker and a slot, both ways: what a slot says that was taken over, and what a worker asks that was. */
#include "tests/fuzz/fuzz.h"
#include "verifiers/sandbox/wire_private.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct sandbox_limits limits = {.wall_ms = 1000,
                                             .cpu_ms = 1000,
                                             .memory_bytes = 64 << 20,
                                             .output_bytes = 1024,
                                             .disk_bytes = 1 << 20,
                                             .processes = 8};

static void check_text(const struct sandbox_result *result, struct text text, size_t most_bytes)
{
    FUZZ_CHECK(text.length_bytes <= most_bytes);
    if (text.length_bytes)
        FUZZ_CHECK(text.data >= result->bytes.data &&
                   text.data + text.length_bytes <= result->bytes.data + result->bytes.length_bytes);
}

static void check_result(const struct sandbox_result *result)
{
    FUZZ_CHECK(result->outcome <= SANDBOX_BROKEN && result->exit_code >= -1 && result->exit_code <= 255);
    FUZZ_CHECK(result->signal >= 0 && result->signal < 128 && result->wall_us >= 0 && result->cpu_us >= 0);
    FUZZ_CHECK(memchr(result->message, '\0', sizeof result->message));
    check_text(result, result->standard_output, 1024);
    check_text(result, result->standard_error, WIRE_COMPILER_TEXT_BYTES);
    check_text(result, result->records, 1024);
}

/* The reply of a slot is `data`; then it is gone. */
static void check_reply(struct text data, size_t count)
{
    const struct sandbox_program program = {
        .language = SANDBOX_PYTHON, .source = {"print(1)", 8}, .limits = limits, .records = true};
    const struct sandbox_program programs[2] = {program, program};
    struct sandbox_result results[2];
    int ends[2];

    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    FUZZ_CHECK(send(ends[1], data.data, data.length_bytes, MSG_DONTWAIT) == (ssize_t)data.length_bytes);
    shutdown(ends[1], SHUT_WR);
    int answer = sandbox_run(ends[0], programs, count, results);
    for (size_t i = 0; i < count; i++) {
        if (answer == 0)
            check_result(&results[i]);
        sandbox_result_finish(&results[i]);
    }
    close(ends[0]);
    close(ends[1]);
}

static void check_described(const struct sandbox_program *program, const struct wire_program *wire)
{
    struct wire_program again;

    FUZZ_CHECK(wire_describe(program, &again) == NULL);
    FUZZ_CHECK(again.language == wire->language && again.flags == wire->flags);
    FUZZ_CHECK(wire_program_text_bytes(&again) == wire_program_text_bytes(wire));
    for (size_t i = 0; i < program->file_count; i++)
        FUZZ_CHECK(!strchr(program->files[i].name, '/') && strcmp(program->files[i].name, "..") != 0);
    for (size_t i = 0; i < program->argument_count; i++)
        FUZZ_CHECK(strlen(program->arguments[i]) + 1 == wire->argument_bytes[i]);
}

/* The request of a worker is `data`: a struct, and the texts behind it if they are all there. */
static void check_request(struct text data)
{
    struct wire_program wire;
    struct sandbox_program program;

    if (data.length_bytes < sizeof wire)
        return;
    memcpy(&wire, data.data, sizeof wire);
    if (wire_check_program(&wire))
        return;
    size_t sum_bytes = wire_program_text_bytes(&wire);
    if (sum_bytes > data.length_bytes - sizeof wire)
        return;
    char *texts = malloc(sum_bytes + 1);
    FUZZ_CHECK(texts);
    memcpy(texts, data.data + sizeof wire, sum_bytes);
    if (wire_read_program(&wire, texts, &program))
        check_described(&program, &wire);
    free(texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct text rest = {data ? (const char *)data : "", size_bytes};
    uint8_t way = fuzz_take_byte(&rest);

    if (way % 3 == 0)
        check_request(rest);
    else
        check_reply(rest, way % 3);
    return 0;
}
