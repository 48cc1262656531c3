/* The programs of tests/fixtures/python/ in a slot: by its zygote, and by /usr/bin/python3 as a command. Both results are the
 * same. Without a cage test_python.c compares them. */
#include "tests/unit/verifiers/grade.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>

#include "server/base/sanitizer.h"
#include "tests/unit/verifiers/slot_fixture.h"

#define PROGRAMS_MAX 128
#define FILE_MAX_BYTES 60000
#define OUTPUT_LIMIT_BYTES ((int64_t)16 << 20)
#define MEMORY_LIMIT_BYTES ((int64_t)2 << 30) /* a thread of python3 asks for as much as its stack may be */

static struct slot_fixture slot;
static const char *programs; /* their folder */

static struct text read_fixture(const char *name, const char *ending, char ret_bytes[FILE_MAX_BYTES])
{
    char path[PATH_MAX];
    FILE *file;
    size_t length;

    snprintf(path, sizeof path, "%s/%s%s", programs, name, ending);
    file = fopen(path, "rb");
    length = file ? fread(ret_bytes, 1, FILE_MAX_BYTES, file) : 0;
    if (file)
        fclose(file);
    return (struct text){ret_bytes, length};
}

/* --- both --- */

static struct sandbox_program of_zygote(struct text source, struct text input)
{
    return (struct sandbox_program){
        .language = SANDBOX_PYTHON,
        .source = source,
        .input = input,
        .arguments = {"one", "two words"},
        .argument_count = 2,
        .limits = fixture_limits,
    };
}

static struct sandbox_program of_command(struct text source, struct text input)
{
    return (struct sandbox_program){
        .language = SANDBOX_COMMAND,
        .input = input,
        .arguments = {"/usr/bin/python3", "-s", "solution.py", "one", "two words"},
        .argument_count = 5,
        .files = {{"solution.py", source}},
        .file_count = 1,
        .limits = fixture_limits,
    };
}

static void expect_same_text(const char *what, struct text cold, struct text forked)
{
    if (!text_same(cold, forked))
        fail_msg("%s of python3 (%zu bytes):\n%.*s\nof the zygote (%zu bytes):\n%.*s", what, cold.length_bytes,
                 (int)cold.length_bytes, cold.data, forked.length_bytes, (int)forked.length_bytes, forked.data);
}

static void test_a_program_is_as_with_python3(void **state)
{
    static char source_bytes[FILE_MAX_BYTES];
    static char input_bytes[FILE_MAX_BYTES];
    struct text source = read_fixture(*state, ".py", source_bytes);
    struct text input = read_fixture(*state, ".in", input_bytes);
    struct sandbox_program programs_of_both[2] = {of_command(source, input), of_zygote(source, input)};
    struct sandbox_result cold;
    struct sandbox_result forked;

    for (int i = 0; i < 2; i++) {
        programs_of_both[i].limits.output_bytes = OUTPUT_LIMIT_BYTES;
        programs_of_both[i].limits.memory_bytes = MEMORY_LIMIT_BYTES;
    }
    cold = fixture_run(&slot, &programs_of_both[0]);
    forked = fixture_run(&slot, &programs_of_both[1]);
    assert_true(source.length_bytes > 0);
    expect_same_text("stderr", cold.standard_error, forked.standard_error);
    expect_same_text("stdout", cold.standard_output, forked.standard_output);
    assert_string_equal(forked.message, cold.message);
    assert_int_equal(forked.outcome, cold.outcome);
    assert_int_equal(forked.exit_code, cold.exit_code);
    assert_int_equal(forked.signal, cold.signal);
    sandbox_result_finish(&cold);
    sandbox_result_finish(&forked);
}

/* --- whose memory it is --- */

#define SECRET "KEY-OF-THE-SERVICE"

/* Every program can read the memory that it has from its zygote. It looks for a text whose letters are one too high, so that
 * it is not in the program itself; its own it must find. */
static void test_a_program_finds_nothing_of_the_service_in_its_memory(void **state)
{
    static const char looks[] = "higher = bytes((x + 1) & 255 for x in range(256))\n"
                                "own = bytes(reversed(b'EREH-SI-NWO-SIHT'))\n"
                                "secrets = mine = 0\n"
                                "with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb', 0) as memory:\n"
                                "    for line in maps:\n"
                                "        area, rights = line.split()[:2]\n"
                                "        if rights[0] != 'r' or '[v' in line: continue\n"
                                "        start, end = (int(x, 16) for x in area.split('-'))\n"
                                "        memory.seek(start)\n"
                                "        block = memory.read(end - start).translate(higher)\n"
                                "        secrets += block.count(b'LFZ.PG.UIF.TFSWJDF')\n"
                                "        mine += block.count(b'UIJT.PXO.JT.IFSF')\n"
                                "print(secrets, mine > 0)\n";
    struct sandbox_program program = fixture_program(SANDBOX_PYTHON, looks);
    struct sandbox_result result = fixture_run(&slot, &program);

    (void)state;
    if (!text_equals(result.standard_output, "0 True\n"))
        fail_msg("%.*s%.*s", (int)result.standard_output.length_bytes, result.standard_output.data,
                 (int)result.standard_error.length_bytes, result.standard_error.data);
    sandbox_result_finish(&result);
}

/* --- all --- */

static int start(void **state)
{
    (void)state;
    setenv("SERVICE_KEY", SECRET, 1);
    slot = fixture_start(NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    fixture_stop(&slot);
    return 0;
}

/* The slot decides about standard streams: programs with other ones are left out. */
static bool is_for_slots(const char *name)
{
    static char bytes[FILE_MAX_BYTES];
    struct text source = read_fixture(name, ".py", bytes);

    return !memmem(source.data, source.length_bytes, "# stdout:", 9) &&
           !memmem(source.data, source.length_bytes, "# streams:", 10);
}

static size_t add_programs(struct CMUnitTest *tests, size_t count)
{
    struct dirent **names;
    int found = scandir(programs, &names, NULL, alphasort);

    for (int i = 0; i < found; i++) {
        char *ending = strstr(names[i]->d_name, ".py");

        if (!ending || count == PROGRAMS_MAX)
            continue;
        *ending = '\0';
        if (is_for_slots(names[i]->d_name) && !(UNDER_SANITIZER && strcmp(names[i]->d_name, "memory_error") == 0))
            tests[count++] =
                (struct CMUnitTest){names[i]->d_name, test_a_program_is_as_with_python3, NULL, NULL, names[i]->d_name};
    }
    return count;
}

int main(void)
{
    struct CMUnitTest tests[PROGRAMS_MAX] = {
        cmocka_unit_test(test_a_program_finds_nothing_of_the_service_in_its_memory),
    };
    size_t count;

    if (fixture_level() == SANDBOX_LEVEL_NONE) {
        puts("1..0 # SKIP no sandbox here");
        return 0;
    }
    programs = getenv("PROGRAMS");
    count = UNDER_SANITIZER ? 0 : 1; /* its shadow is terabytes of memory to look through */
    count = programs ? add_programs(tests, count) : 0;
    if (count < 40) {
        print_error("only %zu programs\n", count);
        return 1;
    }
    return _cmocka_run_group_tests("python-slot", tests, count, start, stop);
}
