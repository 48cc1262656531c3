/* Every program of tests/fixtures/python/ by /usr/bin/python3 and by a zygote, without a cage: who reads what came out cannot
 * tell which is which. NAME.in is a program's standard input. A line `# stdout: closed` makes a program without one,
 * `# stdout: unread` one whose reader is gone; `# streams: files` gives it files for stdin and stdout.
 * For another Python: PYTHON=/path/bin/python3, VENV=a virtual environment of it, and LD_LIBRARY_PATH=/path/lib. */
#include "tests/unit/verifiers/grade.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/buffer.h"
#include "server/base/sanitizer.h"
#include "verifiers/sandbox/python_private.h"

#define PROGRAMS_MAX 128
#define OUTPUT_MAX_BYTES ((size_t)16 << 20)
#define INPUT_MAX_BYTES 60000 /* what a pipe holds */

static char folder[] = "/tmp/rolloutd-python-XXXXXX";
static char box[sizeof folder + sizeof "/box"];
static char *programs; /* their folder */
static const char *python3 = "/usr/bin/python3";
static const char *venv;

/* --- files --- */

static char *read_file(const char *path, size_t *ret_bytes)
{
    FILE *file = fopen(path, "rb");
    char *bytes = calloc(1, INPUT_MAX_BYTES + 1);

    assert_non_null(bytes);
    *ret_bytes = file ? fread(bytes, 1, INPUT_MAX_BYTES, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static char *read_fixture(const char *name, const char *ending, size_t *ret_bytes)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s%s", programs, name, ending);
    return read_file(path, ret_bytes);
}

static void write_file(const char *name, const char *bytes, size_t length_bytes)
{
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", box, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length_bytes, file), length_bytes);
    assert_int_equal(fclose(file), 0);
}

static void empty_box(void)
{
    char command[sizeof box + 64];

    snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s'", box, box);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
}

/* --- one run --- */

struct run {
    struct buffer output[2]; /* stdout, stderr */
    int status;
};

static void run_finish(struct run *run)
{
    buffer_finish(&run->output[0]);
    buffer_finish(&run->output[1]);
}

static void be_python3(void)
{
    execl(python3, python3, "-s", "solution.py", "one", "two words", (char *)NULL);
    _exit(127);
}

static void be_zygote_child(void)
{
    static const char *const arguments[] = {"one", "two words"};

    python_child(&(struct python_program){"solution.py", arguments, 2});
}

/* Behind standard input the program's own file, behind standard output a new one. */
static void use_files(void)
{
    for (int i = 0; i < 2; i++) {
        int fd = i ? open("/tmp", O_TMPFILE | O_RDWR, 0600) : open("solution.py", O_RDONLY);

        dup2(fd, i);
        close(fd);
    }
}

/* As in a cage. A lower limit that is hard stays. */
static void limit_stack(void)
{
    struct rlimit stack = {(rlim_t)64 << 20, (rlim_t)64 << 20};

    setrlimit(RLIMIT_STACK, &stack);
}

static void be_program(const int input[2], int out[2][2], const char *source, void (*be)(void))
{
    dup2(input[0], 0);
    dup2(out[0][1], 1);
    dup2(out[1][1], 2);
    close_range(3, ~0u, 0);
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL); /* cmocka has handlers */
    limit_stack();
    if (chdir(box) < 0)
        _exit(126);
    if (strstr(source, "# stdout: closed"))
        close(1);
    if (strstr(source, "# streams: files"))
        use_files();
    be();
}

static void read_both(int out[2][2], struct run *run)
{
    struct pollfd polled[2] = {{out[0][0], POLLIN, 0}, {out[1][0], POLLIN, 0}};

    while (polled[0].fd >= 0 || polled[1].fd >= 0) {
        assert_true(poll(polled, 2, -1) > 0);
        for (int i = 0; i < 2; i++) {
            char bytes[65536];
            ssize_t count = polled[i].revents ? read(polled[i].fd, bytes, sizeof bytes) : -1;

            if (count > 0)
                buffer_append(&run->output[i], bytes, (size_t)count);
            else if (polled[i].revents)
                polled[i].fd = -1;
        }
    }
}

static void run_it(const char *source, struct text text, void (*be)(void), struct run *ret_run)
{
    int input[2] = {-1, -1};
    int out[2][2] = {{-1, -1}, {-1, -1}};
    pid_t pid;

    buffer_init(&ret_run->output[0], OUTPUT_MAX_BYTES);
    buffer_init(&ret_run->output[1], OUTPUT_MAX_BYTES);
    empty_box();
    write_file("solution.py", source, strlen(source));
    if (pipe2(input, O_CLOEXEC) < 0 || pipe2(out[0], O_CLOEXEC) < 0 || pipe2(out[1], O_CLOEXEC) < 0)
        fail_msg("no pipe");
    assert_int_equal(write(input[1], text.data, text.length_bytes), text.length_bytes);
    close(input[1]);
    if (strstr(source, "# stdout: unread"))
        close(out[0][0]);
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        be_program(input, out, source, be);
    close(input[0]);
    close(out[0][1]);
    close(out[1][1]);
    read_both(out, ret_run);
    assert_false(ret_run->output[0].failed || ret_run->output[1].failed);
    assert_int_equal(waitpid(pid, &ret_run->status, 0), pid);
    close(out[0][0]);
    close(out[1][0]);
}

/* --- both --- */

static void expect_same(const struct run *cold, const struct run *forked, int stream)
{
    const struct buffer *one = &cold->output[stream];
    const struct buffer *other = &forked->output[stream];

    if (one->length_bytes == other->length_bytes &&
        (one->length_bytes == 0 || memcmp(one->data, other->data, one->length_bytes) == 0))
        return;
    fail_msg("%s of python3 (%zu bytes):\n%.*s\nof the zygote (%zu bytes):\n%.*s", stream ? "stderr" : "stdout",
             one->length_bytes, (int)one->length_bytes, one->data, other->length_bytes, (int)other->length_bytes,
             other->data);
}

static void test_a_program_is_as_with_python3(void **state)
{
    size_t source_bytes;
    size_t input_bytes;
    char *source = read_fixture(*state, ".py", &source_bytes);
    char *input = read_fixture(*state, ".in", &input_bytes);
    struct run cold;
    struct run forked;

    assert_true(source_bytes > 0);
    run_it(source, (struct text){input, input_bytes}, be_python3, &cold);
    run_it(source, (struct text){input, input_bytes}, be_zygote_child, &forked);
    expect_same(&cold, &forked, 1);
    expect_same(&cold, &forked, 0);
    assert_int_equal(forked.status, cold.status);
    run_finish(&cold);
    run_finish(&forked);
    free(source);
    free(input);
}

/* --- neighbours --- */

static void run_source(const char *source, struct run *ret_run)
{
    run_it(source, TEXT_LITERAL(""), be_zygote_child, ret_run);
    if (ret_run->status != 0)
        fail_msg("%.*s", (int)ret_run->output[1].length_bytes, ret_run->output[1].data);
}

static void test_changes_of_one_program_are_not_seen_by_the_next_one(void **state)
{
    struct run run;

    (void)state;
    run_source(
        "import builtins, json, math, os, random, re, sys\n"
        "math.pi = 3; json.dumps = None; os.environ['LEFT'] = '1'; sys.path.clear(); builtins.left = 1\n"
        "re.compile('left'); random.seed(1); sys.modules['left'] = sys; sys.setrecursionlimit(500); del builtins.abs\n",
        &run);
    run_finish(&run);
    run_source(
        "import builtins, json, math, os, random, re, sys\n"
        "print(math.pi, json.dumps(1), abs(-2), 'left' in dir(builtins), 'LEFT' in os.environ, len(sys.path) > 2)\n"
        "print('left' in sys.modules, sys.getrecursionlimit())\n",
        &run);
    buffer_append(&run.output[0], "", 1);
    assert_string_equal(run.output[0].data, "3.141592653589793 1 2 False False True\nFalse 1000\n");
    run_finish(&run);
}

static void test_each_program_has_random_numbers_of_its_own(void **state)
{
    static const char source[] = "import random\nprint(random.random(), random.getrandbits(64))\n";
    struct run one;
    struct run other;

    (void)state;
    run_source(source, &one);
    run_source(source, &other);
    assert_true(one.output[0].length_bytes > 10);
    assert_false(one.output[0].length_bytes == other.output[0].length_bytes &&
                 memcmp(one.output[0].data, other.output[0].data, one.output[0].length_bytes) == 0);
    run_finish(&one);
    run_finish(&other);
}

static void test_a_zygote_has_no_page_that_a_program_could_leave_something_in(void **state)
{
    struct run run;

    (void)state;
    run_source("for line in open('/proc/self/maps'):\n"
               "    start, flags = line.split()[:2]\n"
               "    if 'w' in flags and flags[3] == 's': print(line)\n",
               &run);
    assert_int_equal(run.output[0].length_bytes, 0);
    run_finish(&run);
}

/* --- a virtual environment --- */

static void write_below(const char *name, const char *text)
{
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Of each version one, with a numpy that says when it gets new seeds. */
static void make_venv(void)
{
    char command[512];

    snprintf(command, sizeof command,
             "cd '%s' && for version in 3.11 3.12 3.13 3.14; do mkdir -p venv$version/lib/python$version && "
             "ln -s ../../../packages venv$version/lib/python$version/site-packages; done; mkdir -p packages/numpy",
             folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
    write_below("packages/numpy/__init__.py", "from . import random\n");
    write_below("packages/numpy/random.py", "seeds = 0\ndef seed():\n    global seeds\n    seeds += 1\n");
    write_below("packages/mine.py", "value = 5\n");
}

/* A zygote of its own, and one program of it. */
static void be_zygote_of_venv(void)
{
    char path[sizeof folder + sizeof "/venv3.11"];
    char target[PATH_MAX] = "";
    char message[256];
    int status;
    pid_t pid;

    if (readlink(python3, target, sizeof target - 1) < 0)
        _exit(125);
    snprintf(path, sizeof path, "%s/venv%s", folder, strstr(target, "3."));
    if (python_zygote_init(path, message, sizeof message) < 0) {
        fputs(message, stderr);
        _exit(124);
    }
    pid = fork();
    if (pid == 0)
        be_zygote_child();
    waitpid(pid, &status, 0);
    _exit(WEXITSTATUS(status));
}

static void expect_output(const char *source, const char *expected)
{
    struct run run;

    run_it(source, TEXT_LITERAL(""), be_zygote_of_venv, &run);
    if (run.status != 0)
        fail_msg("%.*s", (int)run.output[1].length_bytes, run.output[1].data);
    buffer_append(&run.output[0], "", 1);
    assert_string_equal(run.output[0].data, expected);
    run_finish(&run);
}

static void test_packages_of_a_virtual_environment_are_there_and_numpy_is_loaded(void **state)
{
    (void)state;
    make_venv();
    expect_output("import sys\n"
                  "print('numpy' in sys.modules, 'mine' in sys.modules, sys.path[-1].endswith('/site-packages'))\n"
                  "import mine, numpy\n"
                  "print(mine.value, numpy.random.seeds)\n",
                  "True False True\n5 1\n");
    expect_output("import sys\nprint(sys.modules['num' 'py'].random.seeds)\n", "0\n");
}

static void test_a_folder_that_is_no_virtual_environment_is_named(void **state)
{
    char message[256] = "";

    (void)state;
    assert_int_equal(python_zygote_init("/nowhere", message, sizeof message), -1);
    assert_non_null(strstr(message, "/nowhere has no lib/python3"));
}

/* --- all --- */

static int make_folder(void **state)
{
    (void)state;
    clearenv();
    setenv("PATH", "/usr/bin:/bin", 1);
    setenv("LANG", "C.UTF-8", 1);
    setenv("PYTHONHASHSEED", "0", 1);
    if (!mkdtemp(folder))
        return -1;
    snprintf(box, sizeof box, "%s/box", folder);
    setenv("HOME", box, 1);
    setenv("TMPDIR", box, 1);
    return 0;
}

static int make_zygote(void **state)
{
    static bool made;
    char message[256];

    (void)state;
    if (made)
        return 0;
    /* A page of the kind that a zygote must not keep. */
    if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        return -1;
    made = python_zygote_init(venv, message, sizeof message) == 0;
    if (!made)
        print_error("%s\n", message);
    return made ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[sizeof folder + 16];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command); /* NOLINT(cert-env33-c) */
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
        if (UNDER_SANITIZER && strcmp(names[i]->d_name, "memory_error") == 0)
            continue; /* it warns of too large a request on stderr */
        tests[count++] = (struct CMUnitTest){names[i]->d_name, test_a_program_is_as_with_python3, make_zygote, NULL,
                                             names[i]->d_name};
    }
    return count;
}

/* Of a variable of the environment, which the group's setup empties. */
static char *copy_of(const char *name)
{
    const char *value = getenv(name);

    return value ? strdup(value) : NULL;
}

int main(void)
{
    struct CMUnitTest tests[PROGRAMS_MAX] = {
        /* before this process is a zygote itself */
        cmocka_unit_test(test_a_folder_that_is_no_virtual_environment_is_named),
        cmocka_unit_test(test_packages_of_a_virtual_environment_are_there_and_numpy_is_loaded),
        cmocka_unit_test_setup(test_changes_of_one_program_are_not_seen_by_the_next_one, make_zygote),
        cmocka_unit_test_setup(test_each_program_has_random_numbers_of_its_own, make_zygote),
        cmocka_unit_test_setup(test_a_zygote_has_no_page_that_a_program_could_leave_something_in, make_zygote),
    };
    size_t count;

    if (getenv("CMOCKA_MESSAGE_OUTPUT"))
        cmocka_set_message_output(CM_OUTPUT_TAP);
    programs = copy_of("PROGRAMS");
    venv = copy_of("VENV");
    if (getenv("PYTHON"))
        python3 = copy_of("PYTHON");
    count = programs ? add_programs(tests, 5) : 0;
    if (count < 40) {
        print_error("only %zu programs\n", count);
        return 1;
    }
    return _cmocka_run_group_tests("python", tests, count, make_folder, remove_folder);
}
