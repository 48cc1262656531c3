/* A real slot with real programs: what became of each, and what is left of it. */
#include "tests/unit/verifiers/slot_fixture.h"

#include "tests/unit/base/cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verifiers/sandbox/usage_private.h"

static struct slot_fixture slot;

static int start_slot(void **state)
{
    (void)state;
    slot = (struct slot_fixture){0, -1};
    slot = fixture_start(NULL);
    return 0;
}

static int stop_slot(void **state)
{
    (void)state;
    if (slot.fd >= 0)
        fixture_stop(&slot);
    return 0;
}

static void assert_text(struct text text, const char *expected)
{
    if (!text_equals(text, expected))
        fail_msg("\"%.*s\" is not \"%s\"", (int)text.length_bytes, text.data, expected);
}

/* --- how a program ends --- */

static void test_a_program_gets_its_input_and_arguments_and_gives_its_output_and_exit_code(void **state)
{
    struct sandbox_program program = fixture_program(SANDBOX_SH, "cat; echo \"$1-$2\"; cat here >&2; exit 7");
    struct sandbox_result result;

    (void)state;
    program.input = TEXT_LITERAL("in\n");
    program.arguments[0] = "a b";
    program.arguments[1] = "";
    program.argument_count = 2;
    program.files[0] = (struct sandbox_file){"here", TEXT_LITERAL("file")};
    program.file_count = 1;
    result = fixture_run(&slot, &program);
    assert_int_equal(result.outcome, SANDBOX_ENDED);
    assert_int_equal(result.exit_code, 7);
    assert_int_equal(result.signal, 0);
    assert_text(result.standard_output, "in\na b-\n");
    assert_text(result.standard_error, "file");
    assert_int_equal(result.records.length_bytes, 0);
    assert_true(result.wall_us >= 0 && result.peak_bytes > 0);
    sandbox_result_finish(&result);
}

static void test_a_signal_of_its_own_is_told(void **state)
{
    static const struct {
        const char *source;
        int signal;
    } rows[] = {
        {"kill -TERM $$", SIGTERM}, {"kill -KILL $$", SIGKILL}, {"kill -SEGV $$", SIGSEGV}, {"kill -ALRM $$", SIGALRM}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sandbox_result result = fixture_sh(&slot, rows[i].source);
        assert_int_equal(result.signal, rows[i].signal);
        assert_int_equal(result.exit_code, -1);
        sandbox_result_finish(&result);
    }
}

static void test_records_come_from_descriptor_3(void **state)
{
    struct sandbox_program program = fixture_program(SANDBOX_SH, "echo one >&3; echo out; echo two >&3");
    struct sandbox_result result;

    (void)state;
    program.records = true;
    result = fixture_run(&slot, &program);
    assert_text(result.records, "one\ntwo\n");
    assert_text(result.standard_output, "out\n");
    sandbox_result_finish(&result);
    result = fixture_sh(&slot, "(echo one >&3) 2>/dev/null || echo closed");
    assert_text(result.standard_output, "closed\n");
    sandbox_result_finish(&result);
}

static void test_a_command_is_run_as_it_is(void **state)
{
    struct sandbox_program program = fixture_program(SANDBOX_COMMAND, NULL);
    struct sandbox_result result;

    (void)state;
    program.source = TEXT_NONE;
    program.arguments[0] = "/usr/bin/printf";
    program.arguments[1] = "%s|";
    program.arguments[2] = "x";
    program.argument_count = 3;
    result = fixture_run(&slot, &program);
    assert_text(result.standard_output, "x|");
    sandbox_result_finish(&result);
    program.arguments[0] = "/usr/bin/no-such-command";
    assert_int_equal(sandbox_run(slot.fd, &program, 1, &result), 0);
    assert_int_equal(result.outcome, SANDBOX_BROKEN);
    assert_false(result.began);
    assert_non_null(strstr(result.message, "exec: No such file"));
    sandbox_result_finish(&result);
}

/* --- streams --- */

static char many[4 << 20];

static void test_a_command_that_the_settings_do_not_know_runs_in_no_other_way(void **state)
{
    struct sandbox_program program = fixture_program(SANDBOX_COMMAND, NULL);
    struct sandbox_result result;

    (void)state;
    program.source = TEXT_NONE;
    program.arguments[0] = "/usr/bin/true";
    program.argument_count = 1;
    program.bare = true;
    result = fixture_run(&slot, &program);
    assert_int_equal(result.outcome, SANDBOX_BROKEN);
    assert_false(result.began);
    assert_non_null(strstr(result.message, "know no such command"));
    sandbox_result_finish(&result);
    program.language = SANDBOX_SH;
    program.source = TEXT_LITERAL(":");
    result = fixture_run(&slot, &program);
    assert_int_equal(result.outcome, SANDBOX_BROKEN);
    sandbox_result_finish(&result);
}

static void test_a_bare_command_is_its_words_and_its_files(void **state)
{
    struct sandbox_settings settings = {.bare_count = 0};
    struct sandbox_program command = fixture_program(SANDBOX_COMMAND, NULL);
    struct sandbox_program other;

    (void)state;
    command.arguments[0] = "/usr/bin/env";
    command.arguments[1] = "python3";
    command.argument_count = 2;
    command.files[0] = (struct sandbox_file){"score.py", TEXT_LITERAL("print(1)")};
    command.file_count = 1;
    sandbox_allow_bare(&settings, &command);
    other = command;
    other.input = TEXT_LITERAL("whatever");
    assert_true(sandbox_may_be_bare(&settings, &other));
    other.files[0].bytes = TEXT_LITERAL("print(2)");
    assert_false(sandbox_may_be_bare(&settings, &other));
    other = command;
    other.files[0].name = "other.py";
    assert_false(sandbox_may_be_bare(&settings, &other));
    other = command;
    other.arguments[2] = "-x";
    other.argument_count = 3;
    assert_false(sandbox_may_be_bare(&settings, &other));
    other = command;
    other.language = SANDBOX_SH;
    assert_false(sandbox_may_be_bare(&settings, &other));
}

static void test_four_mebibytes_of_input_and_as_much_output_stream_at_once(void **state)
{
    struct sandbox_program program = fixture_program(SANDBOX_SH, "cat; exec cat /dev/null");
    struct sandbox_result result;

    (void)state;
    for (size_t i = 0; i < sizeof many; i++)
        many[i] = (char)('a' + i % 23);
    program.input = (struct text){many, sizeof many};
    program.limits.output_bytes = sizeof many;
    result = fixture_run(&slot, &program);
    assert_int_equal(result.outcome, SANDBOX_ENDED);
    assert_true(text_same(result.standard_output, program.input));
    sandbox_result_finish(&result);
}

static void test_input_that_nobody_reads_is_no_fault(void **state)
{
    struct sandbox_program program = fixture_program(SANDBOX_SH, "exec 0<&-; echo done");
    struct sandbox_result result;

    (void)state;
    program.input = (struct text){many, sizeof many};
    result = fixture_run(&slot, &program);
    assert_int_equal(result.outcome, SANDBOX_ENDED);
    assert_text(result.standard_output, "done\n");
    sandbox_result_finish(&result);
}

static void test_output_may_be_as_long_as_its_limit_and_one_byte_more_ends_it(void **state)
{
    struct sandbox_program program = fixture_program(SANDBOX_SH, "head -c $1 /dev/zero >&$2");
    struct sandbox_result result;

    (void)state;
    program.limits.output_bytes = 70000;
    program.argument_count = 2;
    for (int stream = 1; stream <= 2; stream++) {
        program.arguments[1] = stream == 1 ? "1" : "2";
        program.arguments[0] = "70000";
        result = fixture_run(&slot, &program);
        assert_int_equal(result.outcome, SANDBOX_ENDED);
        assert_int_equal((stream == 1 ? result.standard_output : result.standard_error).length_bytes, 70000);
        sandbox_result_finish(&result);
        program.arguments[0] = "70001";
        result = fixture_run(&slot, &program);
        assert_int_equal(result.outcome, SANDBOX_OUTPUT);
        assert_int_equal((stream == 1 ? result.standard_output : result.standard_error).length_bytes, 70000);
        sandbox_result_finish(&result);
    }
}

static void test_a_flood_is_ended(void **state)
{
    struct sandbox_program program = fixture_program(SANDBOX_SH, "trap '' PIPE; yes & yes >&2");
    struct sandbox_result result;

    (void)state;
    result = fixture_run(&slot, &program);
    assert_int_equal(result.outcome, SANDBOX_OUTPUT);
    sandbox_result_finish(&result);
}

/* --- limits --- */

static void test_the_wall_limit_ends_a_program_that_waits(void **state)
{
    struct sandbox_program program = fixture_program(SANDBOX_SH, "trap '' TERM XCPU; echo before; sleep 1000");
    struct sandbox_result result;

    (void)state;
    program.limits.wall_ms = 300;
    result = fixture_run(&slot, &program);
    assert_int_equal(result.outcome, SANDBOX_TIMEOUT);
    assert_true(result.wall_us >= 300000);
    sandbox_result_finish(&result);
}

static void test_the_processor_limit_ends_a_program_that_computes(void **state)
{
    struct sandbox_program program = fixture_program(SANDBOX_SH, "trap '' XCPU; while :; do :; done");
    struct sandbox_result result;

    (void)state;
    program.limits.cpu_ms = 300;
    result = fixture_run(&slot, &program);
    assert_int_equal(result.outcome, SANDBOX_TIMEOUT);
    assert_true(result.cpu_us >= 300000);
    sandbox_result_finish(&result);
}

static void test_processor_time_counts_for_all_processes_together(void **state)
{
    static const char source[] = "for i in 1 2 3 4; do (while :; do :; done) & done; wait";
    struct sandbox_program program = fixture_program(SANDBOX_SH, source);
    struct sandbox_result result;

    (void)state;
    program.limits.cpu_ms = 1000; /* of each it would be a second of its own: four in all */
    result = fixture_run(&slot, &program);
    assert_int_equal(result.outcome, SANDBOX_TIMEOUT);
    assert_true(result.cpu_us >= 1000000);
    sandbox_result_finish(&result);
}

static const char takes_memory[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n#include <sys/wait.h>\n"
    "int main(int count, char **words) {\n"
    "    for (int i = 0; i < atoi(words[1]); i++)\n"
    "        if (fork() == 0) {\n"
    "            size_t bytes = (size_t)atoi(words[2]) << 20;\n"
    "            volatile char *block = malloc(bytes);\n"
    "            if (!block) return 9;\n"
    "            for (size_t at = 0; at < bytes; at += 4096) block[at] = count;\n"
    "            if (words[3]) sleep(1000);\n"
    "            return 0;\n"
    "        }\n"
    "    for (int status; wait(&status) > 0;) if (status) return 1;\n"
    "    puts(\"had it\");\n"
    "}\n";

static struct sandbox_result run_takes_memory(const char *processes, const char *mebibytes, const char *stay)
{
    struct sandbox_program program = fixture_program(SANDBOX_C, takes_memory);

    program.limits.memory_bytes = 64 << 20;
    program.arguments[0] = processes;
    program.arguments[1] = mebibytes;
    program.arguments[2] = stay;
    program.argument_count = stay ? 3 : 2;
    return fixture_run(&slot, &program);
}

static void test_memory_counts_for_all_processes_together(void **state)
{
    struct sandbox_result result;

    (void)state;
    result = run_takes_memory("4", "30", "stay");
    assert_int_equal(result.outcome, SANDBOX_MEMORY);
    assert_true(result.peak_bytes > 64 << 20);
    sandbox_result_finish(&result);
    result = run_takes_memory("1", "30", NULL);
    assert_int_equal(result.outcome, SANDBOX_ENDED);
    assert_text(result.standard_output, "had it\n");
    sandbox_result_finish(&result);
}

static void test_one_process_cannot_have_more_than_the_limit(void **state)
{
    struct sandbox_result result;

    (void)state;
    result = run_takes_memory("1", "300", NULL); /* it may be gone before anybody looks */
    assert_int_equal(result.outcome, SANDBOX_MEMORY);
    sandbox_result_finish(&result);
    result = run_takes_memory("1", "1000", "stay");
    assert_int_equal(result.outcome, SANDBOX_MEMORY);
    sandbox_result_finish(&result);
}

/* "500 MB for the recursion", as solutions of contests have it. */
static const char reserves_memory[] =
    "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    "static void *work(void *none) { puts(\"had it\"); return none; }\n"
    "int main(void) {\n"
    "    pthread_attr_t attributes;\n"
    "    pthread_t thread;\n"
    "    pthread_attr_init(&attributes);\n"
    "    pthread_attr_setstacksize(&attributes, (size_t)512 << 20);\n"
    "    if (pthread_create(&thread, &attributes, work, NULL) || pthread_join(thread, NULL)) return 1;\n"
    "    return calloc(300, 1 << 20) ? 0 : 2;\n"
    "}\n";

static void test_memory_that_is_not_touched_does_not_count(void **state)
{
    struct sandbox_program program = fixture_program(SANDBOX_C, reserves_memory);
    struct sandbox_result result;

    (void)state;
    result = fixture_run(&slot, &program);
    assert_int_equal(result.outcome, SANDBOX_ENDED);
    assert_int_equal(result.exit_code, 0);
    assert_text(result.standard_output, "had it\n");
    sandbox_result_finish(&result);
}

/* --- what is left of it --- */

static void test_a_daemon_that_keeps_the_output_does_not_keep_the_slot(void **state)
{
    struct sandbox_result result;

    (void)state;
    result = fixture_sh(&slot, "(trap '' HUP TERM; sleep 1000; echo late) & echo now");
    assert_text(result.standard_output, "now\n");
    sandbox_result_finish(&result);
}

static void test_a_fork_bomb_is_bounded_and_leaves_nothing(void **state)
{
    struct sandbox_program program = fixture_program(SANDBOX_SH, "f() { f | f & }; f; exec sleep 1000");
    struct sandbox_result result;
    pid_t before[512];
    pid_t after[512];
    size_t count;

    (void)state;
    program.limits.wall_ms = 300;
    result = fixture_sh(&slot, "true");
    sandbox_result_finish(&result);
    count = fixture_descendants(slot.pid, before, 512);
    for (int i = 0; i < 3; i++) {
        result = fixture_run(&slot, &program);
        assert_true(result.began && result.outcome != SANDBOX_BROKEN); /* it may end by itself: it cannot fork */
        sandbox_result_finish(&result);
        assert_int_equal(fixture_descendants(slot.pid, after, 512), count);
        result = fixture_sh(&slot, "echo fine");
        assert_text(result.standard_output, "fine\n");
        sandbox_result_finish(&result);
    }
}

static void test_nothing_is_left_in_the_box_for_the_next_program(void **state)
{
    struct sandbox_result result;

    (void)state;
    result = fixture_sh(&slot, "echo x >trace; mkdir deep; ls");
    assert_text(result.standard_output, "deep\nsolution.sh\ntrace\n");
    sandbox_result_finish(&result);
    result = fixture_sh(&slot, "ls");
    assert_text(result.standard_output, "solution.sh\n");
    sandbox_result_finish(&result);
}

/* --- the slot itself --- */

static void test_a_slot_that_loses_its_client_leaves_no_process(void **state)
{
    struct slot_fixture own;
    struct sandbox_program program = fixture_program(SANDBOX_SH, "sleep 1000 & sleep 1000");
    struct sandbox_result result;
    pid_t pids[64];
    size_t count;
    pid_t client;

    (void)state;
    own = fixture_start(NULL);
    result = fixture_sh(&own, "true");
    sandbox_result_finish(&result);
    client = fork();
    if (client == 0) { /* its copy of the socket is the last one */
        sandbox_run(own.fd, &program, 1, &result);
        _exit(0);
    }
    close(own.fd);
    do
        count = fixture_descendants(own.pid, pids, 64);
    while (count < 5); /* the supervisor, the holder's two, and the program's: it runs */
    kill(client, SIGKILL);
    waitpid(client, NULL, 0);
    assert_int_equal(waitpid(own.pid, NULL, 0), own.pid);
    fixture_wait_gone(pids, count);
}

static void kill_and_see_all_gone(int signal_number)
{
    struct slot_fixture own = fixture_start(NULL);
    struct sandbox_result result = fixture_sh(&own, "true");
    pid_t pids[64];
    size_t count = fixture_descendants(own.pid, pids, 64);

    sandbox_result_finish(&result);
    assert_true(count >= 2);
    kill(own.pid, signal_number);
    assert_int_equal(waitpid(own.pid, NULL, 0), own.pid);
    fixture_wait_gone(pids, count);
    close(own.fd);
}

static void test_a_slot_that_is_killed_takes_its_processes_along(void **state)
{
    (void)state;
    kill_and_see_all_gone(SLOT_END_SIGNAL);
    kill_and_see_all_gone(SIGKILL);
}

/* As a terminal or a supervisor of services sends them. */
static void test_signals_to_all_of_its_processes_do_not_end_a_slot(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct slot_fixture own;
    struct sandbox_result result;
    pid_t pids[64];
    size_t count;

    (void)state;
    own = fixture_start(NULL);
    result = fixture_sh(&own, ":");
    sandbox_result_finish(&result);
    count = fixture_descendants(own.pid, pids, 64);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        kill(own.pid, signals[i]);
        for (size_t k = 0; k < count; k++)
            kill(pids[k], signals[i]);
    }
    result = fixture_sh(&own, "kill -TERM $$"); /* it is neither blocked nor ignored in a program */
    assert_int_equal(result.signal, SIGTERM);
    sandbox_result_finish(&result);
    fixture_stop(&own);
}

static void test_a_request_that_is_none_ends_the_slot(void **state)
{
    struct slot_fixture own;
    char byte;

    (void)state;
    own = fixture_start(NULL);
    assert_int_equal(write(own.fd, "nonsense", 8), 8);
    assert_int_equal(read(own.fd, &byte, 1), 0);
    fixture_stop(&own);
}

/* The holder is the slot's child that is not its supervisor, which was made first. */
static pid_t holder_of(const struct slot_fixture *of)
{
    pid_t pids[8];

    assert_int_equal(usage_children(of->pid, pids, 8), 2);
    return pids[1];
}

static void test_a_holder_that_dies_is_replaced(void **state)
{
    struct sandbox_result result;
    pid_t old;

    (void)state;
    result = fixture_sh(&slot, "true");
    sandbox_result_finish(&result);
    old = holder_of(&slot);
    kill(old, SIGKILL);
    fixture_wait_gone(&old, 1);
    result = fixture_sh(&slot, "echo again");
    assert_text(result.standard_output, "again\n");
    sandbox_result_finish(&result);
    assert_int_not_equal(holder_of(&slot), old);
}

static void test_a_holder_serves_a_thousand_programs(void **state)
{
    struct slot_fixture own;
    pid_t first;

    (void)state;
    own = fixture_start(NULL);
    for (int i = 0; i < 1000; i++) {
        struct sandbox_result result = fixture_sh(&own, ":");
        sandbox_result_finish(&result);
        if (i == 0)
            first = holder_of(&own);
        if (i == 998)
            assert_int_equal(holder_of(&own), first);
    }
    fixture_wait_gone(&first, 1);
    struct sandbox_result result = fixture_sh(&own, ":");
    sandbox_result_finish(&result);
    fixture_stop(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_program_gets_its_input_and_arguments_and_gives_its_output_and_exit_code),
        cmocka_unit_test(test_a_signal_of_its_own_is_told),
        cmocka_unit_test(test_records_come_from_descriptor_3),
        cmocka_unit_test(test_a_command_is_run_as_it_is),
        cmocka_unit_test(test_a_command_that_the_settings_do_not_know_runs_in_no_other_way),
        cmocka_unit_test(test_a_bare_command_is_its_words_and_its_files),
        cmocka_unit_test(test_four_mebibytes_of_input_and_as_much_output_stream_at_once),
        cmocka_unit_test(test_input_that_nobody_reads_is_no_fault),
        cmocka_unit_test(test_output_may_be_as_long_as_its_limit_and_one_byte_more_ends_it),
        cmocka_unit_test(test_a_flood_is_ended),
        cmocka_unit_test(test_the_wall_limit_ends_a_program_that_waits),
        cmocka_unit_test(test_the_processor_limit_ends_a_program_that_computes),
        cmocka_unit_test(test_processor_time_counts_for_all_processes_together),
        cmocka_unit_test(test_memory_counts_for_all_processes_together),
        cmocka_unit_test(test_one_process_cannot_have_more_than_the_limit),
        cmocka_unit_test(test_memory_that_is_not_touched_does_not_count),
        cmocka_unit_test(test_a_daemon_that_keeps_the_output_does_not_keep_the_slot),
        cmocka_unit_test(test_a_fork_bomb_is_bounded_and_leaves_nothing),
        cmocka_unit_test(test_nothing_is_left_in_the_box_for_the_next_program),
        cmocka_unit_test(test_a_slot_that_loses_its_client_leaves_no_process),
        cmocka_unit_test(test_a_slot_that_is_killed_takes_its_processes_along),
        cmocka_unit_test(test_signals_to_all_of_its_processes_do_not_end_a_slot),
        cmocka_unit_test(test_a_request_that_is_none_ends_the_slot),
        cmocka_unit_test(test_a_holder_that_dies_is_replaced),
        cmocka_unit_test(test_a_holder_serves_a_thousand_programs),
    };

    signal(SIGPIPE, SIG_IGN);
    if (fixture_level() == SANDBOX_LEVEL_NONE) {
        puts("1..0 # SKIP no sandbox here");
        return 0;
    }
    return cmocka_run_group_tests(tests, start_slot, stop_slot);
}
