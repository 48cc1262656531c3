/* The programs of tests/fixtures/python/ in a slot: by its zygote, and by /usr/bin/python3 as a command. What comes back is the
 * same. Without a cage test_python.c compares them. */
#include "tests/unit/verifiers/judge.h"

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

/* --- all --- */

static int start(void **state)
{
    (void)state;
    if (fixture_level() != SANDBOX_LEVEL_NONE)
        slot = fixture_start(NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    if (slot.pid)
        fixture_stop(&slot);
    return 0;
}

static int skip_without_slot(void **state)
{
    (void)state;
    if (!slot.pid)
        skip();
    return 0;
}

/* What a program gets for its standard streams is up to the slot: programs with other ones are left out. */
static bool is_for_slots(const char *name)
{
    static char bytes[FILE_MAX_BYTES];
    struct text source = read_fixture(name, ".py", bytes);

    return !memmem(source.data, source.length_bytes, "# stdout:", 9) &&
           !memmem(source.data, source.length_bytes, "# streams:", 10);
}

static size_t add_programs(struct CMUnitTest *tests)
{
    struct dirent **names;
    int found = scandir(programs, &names, NULL, alphasort);
    size_t count = 0;

    for (int i = 0; i < found; i++) {
        char *ending = strstr(names[i]->d_name, ".py");

        if (!ending || count == PROGRAMS_MAX)
            continue;
        *ending = '\0';
        if (is_for_slots(names[i]->d_name) && !(UNDER_SANITIZER && strcmp(names[i]->d_name, "memory_error") == 0))
            tests[count++] = (struct CMUnitTest){names[i]->d_name, test_a_program_is_as_with_python3, skip_without_slot,
                                                 NULL, names[i]->d_name};
    }
    return count;
}

int main(void)
{
    struct CMUnitTest tests[PROGRAMS_MAX];
    size_t count;

    programs = getenv("PROGRAMS");
    count = programs ? add_programs(tests) : 0;
    if (count < 40) {
        print_error("only %zu programs\n", count);
        return 1;
    }
    return _cmocka_run_group_tests("python-slot", tests, count, start, stop);
}
