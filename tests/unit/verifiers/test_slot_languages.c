/* Languages that are compiled, Python, and pairs of programs, in a real slot. */
#include "tests/unit/verifiers/slot_fixture.h"

#include "tests/unit/base/cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/sanitizer.h"

static struct slot_fixture slot;
static char testlib[] = "/tmp/rolloutd-testlib-XXXXXX";

static void write_testlib(void)
{
    char path[sizeof testlib + 16];
    FILE *file;

    assert_non_null(mkdtemp(testlib));
    assert_int_equal(chmod(testlib, 0755), 0);
    snprintf(path, sizeof path, "%s/testlib.h", testlib);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("static int from_testlib(void) { return 42; }\n", file);
    fclose(file);
}

static int start_slot(void **state)
{
    (void)state;
    slot = (struct slot_fixture){0, -1};
    write_testlib();
    if (fixture_level() != SANDBOX_LEVEL_NONE)
        slot = fixture_start(testlib);
    return 0;
}

static int stop_slot(void **state)
{
    char path[sizeof testlib + 16];

    (void)state;
    if (slot.fd >= 0)
        fixture_stop(&slot);
    snprintf(path, sizeof path, "%s/testlib.h", testlib);
    unlink(path);
    rmdir(testlib);
    return 0;
}

static void assert_output_is(const struct sandbox_result *result, const char *expected)
{
    if (!text_equals(result->standard_output, expected))
        fail_msg("\"%.*s\", not \"%s\": %.*s", (int)result->standard_output.length_bytes, result->standard_output.data,
                 expected, (int)result->standard_error.length_bytes, result->standard_error.data);
}

static void assert_output(const struct sandbox_program *program, const char *expected)
{
    struct sandbox_result result = fixture_run(&slot, program);

    assert_int_equal(result.outcome, SANDBOX_ENDED);
    assert_output_is(&result, expected);
    sandbox_result_finish(&result);
}

/* --- compiled --- */

static void test_c_and_cpp_are_compiled_and_run(void **state)
{
    struct sandbox_program program;

    (void)state;
    program = fixture_program(SANDBOX_C, "#include <math.h>\n#include <stdio.h>\n"
                                         "int main(int count, char **words) { int x; scanf(\"%d\", &x);"
                                         " printf(\"%.0f %s %ld\\n\", cbrt(x), words[1], __STDC_VERSION__); }");
    program.input = TEXT_LITERAL("27");
    program.arguments[0] = "one";
    program.argument_count = 1;
    assert_output(&program, "3 one 201710\n");
    program =
        fixture_program(SANDBOX_CPP, "#include <iostream>\n#include <string_view>\n"
                                     "int main() { std::string_view s = \"hi\"; std::cout << s << __cplusplus; }");
    assert_output(&program, "hi201703");
}

static const char prints_its_inode[] = "#include <stdio.h>\n#include <sys/stat.h>\n"
                                       "int main(void) { struct stat s; stat(\"/proc/self/exe\", &s);"
                                       " printf(\"%lu %lu\\n\", s.st_ino, s.st_mtim.tv_nsec); }";

static void test_a_source_is_compiled_once(void **state)
{
    struct sandbox_program program = fixture_program(SANDBOX_C, prints_its_inode);
    struct sandbox_program other = fixture_program(SANDBOX_CPP, prints_its_inode);
    struct sandbox_result first;
    struct sandbox_result second;
    struct sandbox_result third;

    (void)state;
    first = fixture_run(&slot, &program);
    third = fixture_run(&slot, &other);
    second = fixture_run(&slot, &program);
    assert_true(first.standard_output.length_bytes > 4);
    assert_true(text_same(first.standard_output, second.standard_output));
    assert_false(text_same(first.standard_output, third.standard_output));
    sandbox_result_finish(&first);
    sandbox_result_finish(&second);
    sandbox_result_finish(&third);
}

static void test_messages_of_the_compiler_come_back(void **state)
{
    struct sandbox_program program = fixture_program(SANDBOX_C, "int main(void) { return missing; }");
    struct sandbox_result result;

    (void)state;
    for (int i = 0; i < 2; i++) { /* the second time from the cache */
        result = fixture_run(&slot, &program);
        assert_int_equal(result.outcome, SANDBOX_NOT_COMPILED);
        assert_false(result.began);
        assert_non_null(strstr(result.standard_error.data, "solution.c:1:"));
        assert_non_null(strstr(result.standard_error.data, "missing"));
        sandbox_result_finish(&result);
    }
}

/* Each of them would fill the memory, the output or the disk of a compiler. */
static void test_a_source_that_attacks_the_compiler_is_not_compiled(void **state)
{
    static const char *const sources[] = {
        "#include \"/dev/urandom\"\n",
        "#include \"solution.c\"\n#include \"solution.c\"\n",
        "char block[1ul << 30] = {1};\nint main(void) {}\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        struct sandbox_program program = fixture_program(SANDBOX_C, sources[i]);
        struct sandbox_result result = fixture_run(&slot, &program);
        if (result.outcome != SANDBOX_NOT_COMPILED)
            fail_msg("source %zu: outcome %d", i, result.outcome);
        assert_true(result.standard_error.length_bytes > 0);
        sandbox_result_finish(&result);
    }
}

/* The first one spoils the name of its interpreter, the second one is too large for its memory: no fault of ours. */
static void test_a_binary_that_cannot_be_executed_is_its_own_fault(void **state)
{
    static const char *const sources[] = {
        "const char interp[3] __attribute__((section(\".interp\"))) = {'a', 'b', 'c'};\nint main(void) { return 0; }\n",
        "char block[1600ul << 20];\nint main(void) { return block[9]; }\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        struct sandbox_program program = fixture_program(SANDBOX_C, sources[i]);
        struct sandbox_result result = fixture_run(&slot, &program);
        assert_int_equal(result.outcome, SANDBOX_ENDED);
        assert_int_not_equal(result.exit_code, 0);
        sandbox_result_finish(&result);
    }
}

static void test_testlib_is_on_the_include_path_where_it_is_asked_for(void **state)
{
    struct sandbox_program program = fixture_program(
        SANDBOX_CPP, "#include <cstdio>\n#include <testlib.h>\nint main() { printf(\"%d\", from_testlib()); }");
    struct sandbox_result result;

    (void)state;
    result = fixture_run(&slot, &program);
    assert_int_equal(result.outcome, SANDBOX_NOT_COMPILED);
    sandbox_result_finish(&result);
    program.include_testlib = true;
    assert_output(&program, "42");
}

static void test_without_its_folder_testlib_is_refused(void **state)
{
    struct slot_fixture own;
    struct sandbox_program program = fixture_program(SANDBOX_CPP, "int main() {}");
    struct sandbox_result result;

    (void)state;
    own = fixture_start(NULL);
    program.include_testlib = true;
    assert_int_equal(sandbox_run(own.fd, &program, 1, &result), 0);
    assert_int_equal(result.outcome, SANDBOX_BROKEN);
    assert_non_null(strstr(result.message, "testlib.h"));
    sandbox_result_finish(&result);
    fixture_stop(&own);
}

/* --- python --- */

static void test_python_is_run_by_its_zygote(void **state)
{
    struct sandbox_program program =
        fixture_program(SANDBOX_PYTHON, "import sys\nprint(input(), sys.argv[1], __name__)\nsys.exit(3)");
    struct sandbox_result result;

    (void)state;
    program.input = TEXT_LITERAL("line\n");
    program.arguments[0] = "word";
    program.argument_count = 1;
    for (int i = 0; i < 3; i++) {
        result = fixture_run(&slot, &program);
        assert_int_equal(result.outcome, SANDBOX_ENDED);
        assert_int_equal(result.exit_code, 3);
        assert_true(text_equals(result.standard_output, "line word __main__\n"));
        sandbox_result_finish(&result);
    }
}

static void test_a_long_source_arrives_whole(void **state)
{
    static char source[200000];
    struct sandbox_program program = fixture_program(SANDBOX_PYTHON, source);
    static const char end[] = "\nprint(__file__.split('/')[-1], len(open(__file__).read()))\n";
    char expected[64];

    (void)state;
    memset(source, '#', sizeof source - 1);
    memcpy(source + sizeof source - sizeof end, end, sizeof end);
    program.source = text_of(source);
    snprintf(expected, sizeof expected, "solution.py %zu\n", sizeof source - 1);
    assert_output(&program, expected);
}

/* Neither the zygote nor its holder has ever held another program. It looks for a text whose letters are one too high, so
 * that what it looks for is nowhere in itself; its own text it must find. */
static void test_a_program_does_not_find_the_one_before_it_in_its_memory(void **state)
{
    static const char looks[] = "higher = bytes((x + 1) & 255 for x in range(256))\n"
                                "own = bytes(reversed(b'EREH-SI-NWO-SIHT'))\n"
                                "planted = mine = 0\n"
                                "with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb', 0) as memory:\n"
                                "    for line in maps:\n"
                                "        area, rights = line.split()[:2]\n"
                                "        if rights[:2] != 'rw' or '[v' in line: continue\n"
                                "        start, end = (int(x, 16) for x in area.split('-'))\n"
                                "        memory.seek(start)\n"
                                "        block = memory.read(end - start).translate(higher)\n"
                                "        planted += block.count(b'QMBOUFE.TFDSFU')\n"
                                "        mine += block.count(b'UIJT.PXO.JT.IFSF')\n"
                                "print(planted, mine > 0)\n";
    struct sandbox_program plant = fixture_program(SANDBOX_PYTHON, "x = 'PLANTED-SECRET'\nprint(x)");
    struct sandbox_program look = fixture_program(SANDBOX_PYTHON, looks);
    struct sandbox_result result;

    (void)state;
    plant.input = TEXT_LITERAL("PLANTED-SECRET");
    plant.arguments[0] = "PLANTED-SECRET";
    plant.argument_count = 1;
    assert_output(&plant, "PLANTED-SECRET\n");
    plant.language = SANDBOX_SH;
    plant.source = TEXT_LITERAL("echo PLANTED-SECRET");
    assert_output(&plant, "PLANTED-SECRET\n");
    result = fixture_run(&slot, &look);
    if (result.exit_code == 0) /* else its memory cannot be read at all */
        assert_output_is(&result, "0 True\n");
    sandbox_result_finish(&result);
}

static void test_a_program_that_fails_with_all_its_memory_lacked_memory(void **state)
{
    struct sandbox_program program = fixture_program(
        SANDBOX_PYTHON,
        "import sys\nx = []\ntry:\n    while len(x) < 40 or len(sys.argv) > 1: x.append('x' * (1 << 20))\n"
        "finally: print(len(x))\n");
    struct sandbox_result result;

    (void)state;
    program.limits.memory_bytes = 96 << 20;
    if (!UNDER_SANITIZER) /* whose shadow counts, too */
        assert_output(&program, "40\n");
    program.arguments[0] = "all";
    program.argument_count = 1;
    result = fixture_run(&slot, &program);
    assert_int_equal(result.outcome, SANDBOX_MEMORY);
    sandbox_result_finish(&result);
}

static void test_memory_of_processes_without_a_parent_counts(void **state)
{
    static const char source[] = "import os, time\n"
                                 "for i in range(4):\n"
                                 "    if os.fork() == 0:\n"
                                 "        if os.fork() == 0:\n"
                                 "            block = b'x' * (30 << 20)\n"
                                 "            time.sleep(1000)\n"
                                 "        os._exit(0)\n"
                                 "    os.wait()\n"
                                 "time.sleep(1000)\n";
    struct sandbox_program program = fixture_program(SANDBOX_PYTHON, source);
    struct sandbox_result result;

    (void)state;
    program.limits.memory_bytes = 64 << 20;
    result = fixture_run(&slot, &program);
    assert_int_equal(result.outcome, SANDBOX_MEMORY);
    sandbox_result_finish(&result);
}

/* --- pairs --- */

static void test_a_pair_talks_over_descriptor_4(void **state)
{
    struct sandbox_program programs[2];
    struct sandbox_result results[2];

    (void)state;
    programs[0] = fixture_program(SANDBOX_SH, "read line <&4; echo got $line; echo answer >&4; exit 2");
    programs[1] = fixture_program(SANDBOX_SH, "echo question >&4; read line <&4; echo got $line; exit 3");
    assert_int_equal(sandbox_run(slot.fd, programs, 2, results), 0);
    assert_int_equal(results[0].exit_code, 2);
    assert_int_equal(results[1].exit_code, 3);
    assert_true(text_equals(results[0].standard_output, "got question\n"));
    assert_true(text_equals(results[1].standard_output, "got answer\n"));
    sandbox_result_finish(&results[0]);
    sandbox_result_finish(&results[1]);
}

static void test_the_first_of_a_pair_does_not_outlive_the_second(void **state)
{
    struct sandbox_program programs[2];
    struct sandbox_result results[2];

    (void)state;
    programs[0] = fixture_program(SANDBOX_SH, "sleep 1000");
    programs[1] = fixture_program(SANDBOX_SH, "echo done");
    assert_int_equal(sandbox_run(slot.fd, programs, 2, results), 0);
    assert_int_equal(results[0].outcome, SANDBOX_ENDED);
    assert_int_equal(results[0].signal, SIGKILL);
    assert_string_equal(results[0].message, "ended with its peer");
    assert_true(text_equals(results[1].standard_output, "done\n"));
    sandbox_result_finish(&results[0]);
    sandbox_result_finish(&results[1]);
}

static void test_a_pair_may_be_of_two_languages_and_has_two_limits(void **state)
{
    struct sandbox_program programs[2];
    struct sandbox_result results[2];

    (void)state;
    programs[0] =
        fixture_program(SANDBOX_PYTHON, "import socket\ns = socket.socket(fileno=4)\ns.sendall(b'x')\nwhile 1: pass");
    programs[1] = fixture_program(SANDBOX_SH, "head -c 1 <&4; cat <&4; exit 4");
    programs[0].limits.wall_ms = 500;
    assert_int_equal(sandbox_run(slot.fd, programs, 2, results), 0);
    assert_int_equal(results[0].outcome, SANDBOX_TIMEOUT);
    assert_int_equal(results[1].outcome, SANDBOX_ENDED);
    assert_int_equal(results[1].exit_code, 4);
    assert_true(text_equals(results[1].standard_output, "x"));
    sandbox_result_finish(&results[0]);
    sandbox_result_finish(&results[1]);
}

static void test_of_a_pair_that_is_not_compiled_nothing_runs(void **state)
{
    struct sandbox_program programs[2];
    struct sandbox_result results[2];

    (void)state;
    programs[0] = fixture_program(SANDBOX_SH, "echo ran");
    programs[1] = fixture_program(SANDBOX_C, "no");
    assert_int_equal(sandbox_run(slot.fd, programs, 2, results), 0);
    assert_int_equal(results[1].outcome, SANDBOX_NOT_COMPILED);
    assert_int_equal(results[0].outcome, SANDBOX_BROKEN);
    assert_false(results[0].began);
    sandbox_result_finish(&results[0]);
    sandbox_result_finish(&results[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_c_and_cpp_are_compiled_and_run),
        cmocka_unit_test(test_a_source_is_compiled_once),
        cmocka_unit_test(test_messages_of_the_compiler_come_back),
        cmocka_unit_test(test_a_source_that_attacks_the_compiler_is_not_compiled),
        cmocka_unit_test(test_a_binary_that_cannot_be_executed_is_its_own_fault),
        cmocka_unit_test(test_testlib_is_on_the_include_path_where_it_is_asked_for),
        cmocka_unit_test(test_without_its_folder_testlib_is_refused),
        cmocka_unit_test(test_python_is_run_by_its_zygote),
        cmocka_unit_test(test_a_long_source_arrives_whole),
        cmocka_unit_test(test_a_program_does_not_find_the_one_before_it_in_its_memory),
        cmocka_unit_test(test_a_program_that_fails_with_all_its_memory_lacked_memory),
        cmocka_unit_test(test_memory_of_processes_without_a_parent_counts),
        cmocka_unit_test(test_a_pair_talks_over_descriptor_4),
        cmocka_unit_test(test_the_first_of_a_pair_does_not_outlive_the_second),
        cmocka_unit_test(test_a_pair_may_be_of_two_languages_and_has_two_limits),
        cmocka_unit_test(test_of_a_pair_that_is_not_compiled_nothing_runs),
    };

    signal(SIGPIPE, SIG_IGN);
    if (fixture_level() == SANDBOX_LEVEL_NONE) {
        puts("1..0 # SKIP no sandbox here");
        return 0;
    }
    return cmocka_run_group_tests(tests, start_slot, stop_slot);
}
