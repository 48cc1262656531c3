/* The client's side of a slot: what it writes, and what it believes. The slot is made up here. */
#include "tests/unit/base/cmocka_all.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verifiers/sandbox/sandbox.h"
#include "verifiers/sandbox/slot.h"
#include "verifiers/sandbox/wire_private.h"

static const struct sandbox_limits limits = {.wall_ms = 1000,
                                             .cpu_ms = 1000,
                                             .memory_bytes = 64 << 20,
                                             .output_bytes = 100,
                                             .disk_bytes = 1 << 20,
                                             .processes = 4};

/* A slot that reads one request of one program and answers with what it was told to. */
struct made_up {
    int fd;
    struct wire_result result;
    const char *texts;
    struct wire_program wire;
    struct sandbox_program program;
    char *bytes;
    bool readable;
};

static void read_exactly(int fd, void *bytes, size_t length_bytes)
{
    if (length_bytes)
        assert_int_equal(recv(fd, bytes, length_bytes, MSG_WAITALL), length_bytes);
}

static void *answer(void *argument)
{
    struct made_up *slot = argument;
    struct wire_request request;

    read_exactly(slot->fd, &request, sizeof request);
    if (request.magic != WIRE_MAGIC || request.count != 1)
        return NULL;
    read_exactly(slot->fd, &slot->wire, sizeof slot->wire);
    if (wire_check_program(&slot->wire))
        return NULL;
    slot->bytes = malloc(wire_program_text_bytes(&slot->wire) + 1);
    read_exactly(slot->fd, slot->bytes, wire_program_text_bytes(&slot->wire));
    slot->readable = wire_read_program(&slot->wire, slot->bytes, &slot->program);
    send(slot->fd, &slot->result, sizeof slot->result, MSG_NOSIGNAL);
    send(slot->fd, slot->texts, strlen(slot->texts), MSG_NOSIGNAL);
    close(slot->fd);
    return NULL;
}

/* The result of sandbox_run() for the program, if the slot answers with `result` and `texts`. */
static int run(const struct sandbox_program *program, const struct wire_result *result, const char *texts,
               struct made_up *ret_slot, struct sandbox_result *ret_result)
{
    int pair[2];
    pthread_t thread;
    int code;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    *ret_slot = (struct made_up){.fd = pair[1], .result = *result, .texts = texts};
    assert_int_equal(pthread_create(&thread, NULL, answer, ret_slot), 0);
    code = sandbox_run(pair[0], program, 1, ret_result);
    close(pair[0]);
    pthread_join(thread, NULL);
    return code;
}

static const struct wire_result ended = {.outcome = SANDBOX_ENDED, .exit_code = 3, .began = 1, .wall_us = 5};

static void test_a_program_arrives_as_it_was_sent(void **state)
{
    static char input[100000];
    struct sandbox_program program = {
        .language = SANDBOX_SH,
        .source = TEXT_LITERAL("echo \0 1"),
        .input = {input, sizeof input},
        .arguments = {"one", ""},
        .argument_count = 2,
        .files = {{"a.txt", TEXT_LITERAL("inside")}},
        .file_count = 1,
        .limits = limits,
        .records = true,
    };
    struct sandbox_result result;
    struct made_up slot;

    (void)state;
    memset(input, 'x', sizeof input);
    assert_int_equal(run(&program, &ended, "", &slot, &result), 0);
    assert_true(slot.readable);
    assert_int_equal(slot.program.language, SANDBOX_SH);
    assert_true(text_same(slot.program.source, program.source));
    assert_true(text_same(slot.program.input, program.input));
    assert_int_equal(slot.program.argument_count, 2);
    assert_string_equal(slot.program.arguments[0], "one");
    assert_string_equal(slot.program.arguments[1], "");
    assert_string_equal(slot.program.files[0].name, "a.txt");
    assert_true(text_equals(slot.program.files[0].bytes, "inside"));
    assert_memory_equal(&slot.program.limits, &limits, sizeof limits);
    assert_true(slot.program.records);
    assert_false(slot.program.include_testlib);
    free(slot.bytes);
    sandbox_result_finish(&result);
}

static void test_a_result_has_its_three_texts(void **state)
{
    struct sandbox_program program = {.language = SANDBOX_SH, .source = TEXT_LITERAL(""), .limits = limits};
    struct wire_result wire = ended;
    struct sandbox_result result;
    struct made_up slot;

    (void)state;
    wire.output_bytes = 3;
    wire.error_bytes = 2;
    wire.records_bytes = 1;
    assert_int_equal(run(&program, &wire, "outerR", &slot, &result), 0);
    assert_int_equal(result.exit_code, 3);
    assert_true(result.began);
    assert_true(text_equals(result.standard_output, "out"));
    assert_true(text_equals(result.standard_error, "er"));
    assert_true(text_equals(result.records, "R"));
    free(slot.bytes);
    sandbox_result_finish(&result);
}

static void test_a_box_without_a_bound_is_no_box(void **state)
{
    struct sandbox_program program = {.language = SANDBOX_SH, .source = TEXT_LITERAL(""), .limits = limits};
    struct wire_program wire;

    (void)state;
    assert_null(wire_describe(&program, &wire));
    program.limits.disk_bytes = 4096;
    assert_null(wire_describe(&program, &wire));
    program.limits.disk_bytes = 0;
    assert_non_null(wire_describe(&program, &wire));
}

/* Each is one thing that no slot of ours says. */
static void test_a_slot_that_talks_nonsense_is_refused(void **state)
{
    struct sandbox_program program = {.language = SANDBOX_SH, .source = TEXT_LITERAL(""), .limits = limits};
    struct wire_result wrong[8];

    (void)state;
    for (size_t i = 0; i < 8; i++)
        wrong[i] = ended;
    wrong[0].outcome = SANDBOX_BROKEN + 1;
    wrong[1].output_bytes = 101;
    wrong[2].error_bytes = UINT64_MAX;
    wrong[3].records_bytes = 101;
    wrong[4].exit_code = 256;
    wrong[5].wall_us = -1;
    memset(wrong[6].message, 'm', sizeof wrong[6].message);
    wrong[7].output_bytes = 50; /* and then it is gone */
    for (size_t i = 0; i < 8; i++) {
        struct sandbox_result result;
        struct made_up slot;
        assert_int_equal(run(&program, &wrong[i], "short", &slot, &result), -1);
        assert_int_equal(result.outcome, SANDBOX_BROKEN);
        free(slot.bytes);
        sandbox_result_finish(&result);
    }
}

static void refuse(const struct sandbox_program *program, const char *why)
{
    struct sandbox_result result;

    assert_int_equal(sandbox_run(-1, program, 1, &result), 0); /* nothing is written */
    assert_int_equal(result.outcome, SANDBOX_BROKEN);
    assert_false(result.began);
    assert_non_null(strstr(result.message, why));
    sandbox_result_finish(&result);
}

static void test_a_text_that_is_no_program_is_not_sent(void **state)
{
    const struct sandbox_program good = {.language = SANDBOX_SH, .source = TEXT_LITERAL(""), .limits = limits};
    struct sandbox_program program = good;

    (void)state;
    program.limits.wall_ms = 0;
    refuse(&program, "wall_ms");
    program = good;
    program.limits.output_bytes = SANDBOX_OUTPUT_LIMIT_BYTES + 1;
    refuse(&program, "output_bytes");
    program = good;
    program.files[0] = (struct sandbox_file){"../x", TEXT_LITERAL("")};
    program.file_count = 1;
    refuse(&program, "name of a file");
    program = good;
    program.source.length_bytes = SANDBOX_TEXT_LIMIT_BYTES + 1;
    refuse(&program, "too long");
    program = good;
    program.language = SANDBOX_COMMAND;
    refuse(&program, "without a word");
}

static void test_a_slot_never_takes_sizes_beyond_its_bounds(void **state)
{
    const struct sandbox_program good = {.language = SANDBOX_SH, .source = TEXT_LITERAL("x"), .limits = limits};
    struct sandbox_program program;
    struct wire_program wire;

    (void)state;
    assert_null(wire_describe(&good, &wire));
    wire.argument_count = SANDBOX_ARGUMENTS_MAX + 1;
    assert_non_null(wire_check_program(&wire));
    assert_null(wire_describe(&good, &wire));
    wire.file_count = UINT32_MAX;
    assert_non_null(wire_check_program(&wire));
    assert_null(wire_describe(&good, &wire));
    wire.input_bytes = UINT64_MAX;
    assert_non_null(wire_check_program(&wire));
    assert_null(wire_describe(&good, &wire));
    wire.language = SANDBOX_LANGUAGES;
    assert_non_null(wire_check_program(&wire));
    assert_null(wire_describe(&good, &wire));
    wire.argument_count = 1;
    wire.argument_bytes[0] = 3;
    assert_null(wire_check_program(&wire));
    assert_false(wire_read_program(&wire, "xabc", &program));
    assert_false(wire_read_program(&wire, "xa\0\0", &program));
    assert_true(wire_read_program(&wire, "xab\0", &program));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_program_arrives_as_it_was_sent),
        cmocka_unit_test(test_a_result_has_its_three_texts),
        cmocka_unit_test(test_a_box_without_a_bound_is_no_box),
        cmocka_unit_test(test_a_slot_that_talks_nonsense_is_refused),
        cmocka_unit_test(test_a_text_that_is_no_program_is_not_sent),
        cmocka_unit_test(test_a_slot_never_takes_sizes_beyond_its_bounds),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
