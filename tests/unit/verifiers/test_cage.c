/* Abilities of a program in a cage, and its remains. The tests of the full level are left out where a machine does
 * not offer it (a container with Docker's default profile, for one). */
#include "tests/unit/base/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cage_fixture.h"
#include "holder.h"
#include "server/base/cleanup.h"
#include "server/base/sanitizer.h"
#include "verifiers/sandbox/cage_self_test_private.h"
#include "verifiers/sandbox/probe.h"

/* --- what must fail --- */

static void act_self_test(struct cage *cage, int out, const void *arg)
{
    struct cage_self_test test = *(const struct cage_self_test *)arg;
    struct cage_program program = holder_program(out, cage_self_test, &test);

    holder_run(cage, &program, out);
}

static void test_forbidden_calls_of_a_program_fail(void **state)
{
    char secret[] = "/tmp/cage-secret-XXXXXX";
    _cleanup_close_ int fd = mkstemp(secret);
    struct cage_self_test test = {level_of(state), secret};
    _cleanup_free_ char *text = NULL;

    assert_int_equal(fchmod(fd, 0644), 0);
    text = in_holder(test.level, act_self_test, &test);
    unlink(secret);
    assert_string_equal(text, "[exit 0]");
}

/* The same program, as an ordinary user without a cage: else the test above could not fail. */
static void test_without_a_cage_much_of_it_works(void **state)
{
    struct cage_self_test test = {SANDBOX_LEVEL_FULL, "/etc/passwd"};
    int status;
    int null = open("/dev/null", O_WRONLY);
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        if (dup2(null, 1) < 0 || (geteuid() == 0 && setuid(65534) < 0) || chdir("/dev/shm") < 0)
            _exit(0);
        cage_self_test(&test);
    }
    close(null);
    /* It has asked to be traced, which works, too. */
    while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status))
        ptrace(PTRACE_CONT, pid, NULL, NULL);
    assert_true(WIFEXITED(status));
    assert_in_range(WEXITSTATUS(status), 25, 100);
}

#if defined(__x86_64__)
static void call_32_bits(void *unused)
{
    (void)unused;
    __asm__ volatile("int $0x80" : : "a"(20) : "memory");
    _exit(0);
}

static void act_call_32_bits(struct cage *cage, int out, const void *arg)
{
    struct cage_program program = holder_program(out, call_32_bits, NULL);

    (void)arg;
    holder_run(cage, &program, out);
}

#define X32_BIT 0x40000000

static void call_x32(void *unused)
{
    (void)unused;
    _exit(syscall(X32_BIT | SYS_getpid) == -1 && errno == ENOSYS ? 0 : 1);
}

static void act_call_x32(struct cage *cage, int out, const void *arg)
{
    struct cage_program program = holder_program(out, call_x32, NULL);

    (void)arg;
    holder_run(cage, &program, out);
}

static void test_a_call_of_x32_does_not_exist(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_call_x32, NULL);

    assert_string_equal(text, "[exit 0]");
}

static void test_a_call_of_another_architecture_ends_the_program(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_call_32_bits, NULL);

    assert_string_equal(text, "[signal 31]");
}
#endif

/* --- what it is given --- */

static void test_the_environment_has_nothing_of_the_service(void **state)
{
    _cleanup_free_ char *text = NULL;

    setenv("ROLLOUTD_TOKEN", "token-of-the-service", 1);
    text = script_in_holder(level_of(state), "env; echo $HOME $TMPDIR; pwd");
    assert_null(strstr(text, "token-of-the-service"));
    assert_non_null(strstr(text, "PATH=/usr/local/bin:/usr/bin:/bin\n"));
    assert_non_null(strstr(text, "[exit 0]"));
}

static void test_home_is_the_box(void **state)
{
    assert_script(state, "test \"$HOME\" = \"$(pwd)\" && test \"$TMPDIR\" = \"$(pwd)\" && echo x >$HOME/own && cat own",
                  "x\n[exit 0]");
}

/* A shell keeps its own descriptors above 9, so that these are what it was given. */
static void test_only_the_named_descriptors_are_open(void **state)
{
    assert_script(state, "for i in 0 1 2 3 4 5 6 7 8 9; do (true <&$i) 2>/dev/null && echo $i; done; exit 0",
                  "0\n1\n2\n[exit 0]");
}

static void test_limits_are_those_asked_for(void **state)
{
    assert_script(state, "ulimit -t; ulimit -c; ulimit -n; ulimit -d; ulimit -f", "60\n0\n64\n1310720\n2048\n[exit 0]");
}

static void act_files(struct cage *cage, int out, const void *arg)
{
    const char *const arguments[] = {"sh", "-c", "cat bytes; ./run; echo more >>bytes && cat bytes; ls", NULL};
    struct cage_command command = {"/bin/sh", -1, arguments};
    struct cage_program program = holder_program(out, cage_exec, &command);
    int memory = memfd_create("run", MFD_CLOEXEC);
    const struct cage_file files[] = {{"bytes", TEXT_LITERAL("of the holder\n"), -1, false},
                                      {"run", TEXT_NONE, memory, true}};

    (void)arg;
    dprintf(memory, "#!/bin/sh\necho I run\n");
    program.files = files;
    program.file_count = ARRAY_LENGTH(files);
    holder_run(cage, &program, out);
}

static void test_files_are_in_the_box(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_files, NULL);

    assert_string_equal(text, "of the holder\nI run\nof the holder\nmore\nbytes\nrun\n[exit 0]");
}

static void act_descriptors(struct cage *cage, int out, const void *arg)
{
    const char *const arguments[] = {"sh", "-c", "echo record >&3; read word <&4; echo $word; echo answer >&4", NULL};
    struct cage_command command = {"/bin/sh", -1, arguments};
    struct cage_program program = holder_program(out, cage_exec, &command);
    int records[2];
    int peer[2];
    char bytes[64];

    (void)arg;
    if (pipe(records) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, peer) < 0 || write(peer[0], "question\n", 9) != 9)
        return;
    program.fds[3] = records[1];
    program.fds[4] = peer[1];
    holder_run(cage, &program, out);
    dprintf(out, "%.*s", (int)read(records[0], bytes, sizeof bytes), bytes);
    dprintf(out, "%.*s", (int)read(peer[0], bytes, sizeof bytes), bytes);
}

static void test_records_and_a_peer_are_descriptors_3_and_4(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_descriptors, NULL);

    assert_string_equal(text, "question\n[exit 0]record\nanswer\n");
}

static void act_command_of_a_descriptor(struct cage *cage, int out, const void *arg)
{
    const char *const arguments[] = {"echo", "from a descriptor", NULL};
    struct cage_command command = {NULL, open("/usr/bin/echo", O_RDONLY | O_CLOEXEC), arguments};
    struct cage_program program = holder_program(out, cage_exec, &command);

    (void)arg;
    holder_run(cage, &program, out);
}

static void test_a_binary_can_be_a_descriptor(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_command_of_a_descriptor, NULL);

    assert_string_equal(text, "from a descriptor\n[exit 0]");
}

/* --- how it ends --- */

static void test_a_program_dies_of_its_own_signal(void **state)
{
    assert_script(state, "kill -TERM $$; echo alive", "[signal 15]");
}

static void test_a_broken_pipe_ends_a_program(void **state)
{
    assert_script(state, "/usr/bin/yes | true; echo done", "done\n[exit 0]");
}

static void act_missing(struct cage *cage, int out, const void *arg)
{
    const char *const arguments[] = {"x", NULL};
    struct cage_command command = {arg, -1, arguments};
    struct cage_program program = holder_program(out, cage_exec, &command);

    holder_run(cage, &program, out);
}

static void test_a_file_that_cannot_be_executed_never_began(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_missing, "/usr/bin/is-not-there");

    assert_string_equal(text, "[never began: exec: No such file or directory]");
}

static void test_a_status_of_127_is_a_programs_own(void **state)
{
    assert_script(state, "exit 127", "[exit 127]");
}

/* Descriptor 5 told the holder of failures until the program began. */
static void claim_failure(void *unused)
{
    struct cage_failure lie = {CAGE_EXEC, EIO};

    (void)unused;
    for (int fd = 3; fd < 64; fd++)
        if (write(fd, &lie, sizeof lie) >= 0)
            _exit(1);
    _exit(7);
}

static void act_lie(struct cage *cage, int out, const void *arg)
{
    struct cage_program program = holder_program(out, claim_failure, NULL);

    (void)arg;
    holder_run(cage, &program, out);
}

static void test_a_program_cannot_claim_that_it_never_began(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_lie, NULL);

    assert_string_equal(text, "[exit 7]");
}

static void act_kill(struct cage *cage, int out, const void *arg)
{
    const char *const arguments[] = {"sh", "-c", "trap '' TERM HUP; (sleep 1000 & sleep 1000) & echo ready; wait",
                                     NULL};
    struct cage_command command = {"/bin/sh", -1, arguments};
    struct cage_program program = holder_program(out, cage_exec, &command);
    struct cage_failure failure;
    struct cage_child child;
    char bytes[16];
    int ready[2];

    (void)arg;
    if (pipe2(ready, O_CLOEXEC) < 0)
        return;
    program.fds[1] = program.fds[2] = ready[1];
    if (cage_spawn(cage, &program, &child, &failure) < 0)
        return;
    close(ready[1]);
    dprintf(out, "%.*s", (int)read(ready[0], bytes, sizeof bytes), bytes);
    cage_kill(&child);
    holder_tell_end(cage, &child, out);
    /* The end of file shows that none of them has the pipe any more. */
    dprintf(out, "%zd", read(ready[0], bytes, sizeof bytes));
}

static void test_a_kill_ends_all_of_its_processes(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_kill, NULL);

    assert_string_equal(text, "ready\n[signal 9]0");
}

/* --- what is left --- */

static void run_script(struct cage *cage, int out, const char *script)
{
    const char *const arguments[] = {"sh", "-c", script, NULL};
    struct cage_command command = {"/bin/sh", -1, arguments};
    struct cage_program program = holder_program(out, cage_exec, &command);

    holder_run(cage, &program, out);
}

static bool has_children(void)
{
    return waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD;
}

static void act_leave_daemon(struct cage *cage, int out, const void *arg)
{
    (void)arg;
    run_script(cage, out, "(trap '' TERM HUP; sleep 1000 <&- >&- 2>&- & sleep 1000 <&- >&- 2>&- &) & exit 3");
    dprintf(out, "%s", has_children() ? "children are left" : "");
}

static void test_no_process_is_left(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_leave_daemon, NULL);

    assert_string_equal(text, "[exit 3]");
}

/* One fork of its own, which may fail where the bombs of others, of the same user, are counted, too. */
static void act_bomb(struct cage *cage, int out, const void *arg)
{
    (void)arg;
    run_script(cage, out, "trap 'exit 4' EXIT; bomb() { bomb | bomb & }; bomb 2>/dev/null & exit 4");
    dprintf(out, "%s", has_children() ? "children are left" : "");
    run_script(cage, out, "echo next");
}

static void test_a_fork_bomb_ends_with_its_program(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_bomb, NULL);

    assert_string_equal(text, "[exit 4]next\n[exit 0]");
}

static void act_box_of_another(struct cage *cage, int out, const void *arg)
{
    (void)arg;
    run_script(cage, out, "mkdir -p a/b/c; mkdir -m 0 closed; echo x >a/b/c/file; ln -s /usr a/link");
    run_script(cage, out, "ls -A");
}

static void test_a_box_is_empty_for_the_next_program(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_box_of_another, NULL);

    assert_string_equal(text, "[exit 0][exit 0]");
}

static int count_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static int count_mounts(void)
{
    FILE *file = fopen("/proc/self/mountinfo", "r");
    int count = 0;

    for (int c; file && (c = getc(file)) != EOF;)
        count += c == '\n';
    if (file)
        fclose(file);
    return count;
}

static void act_many(struct cage *cage, int out, const void *arg)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int descriptors = count_descriptors();
    int mounts = count_mounts();

    (void)arg;
    for (int i = 0; i < 50; i++)
        run_script(cage, null, i % 2 ? "exit 1" : "sleep 1000 & exit 0");
    dprintf(out, "%d %d", count_descriptors() - descriptors, count_mounts() - mounts);
}

static void test_fifty_programs_leave_no_descriptor_and_no_mount(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_many, NULL);

    assert_string_equal(text, "0 0");
}

/* The inits of programs have the holder's memory. */
static void act_closed(struct cage *cage, int out, const void *arg)
{
    (void)arg;
    run_script(cage, out, "exit 0");
    dprintf(out, "%d", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
}

static void test_the_holders_memory_stays_closed(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_closed, NULL);

    assert_string_equal(text, "[exit 0]0");
}

int main(void)
{
    struct CMUnitTest tests[] = {
        BOTH(test_forbidden_calls_of_a_program_fail),
        cmocka_unit_test(test_without_a_cage_much_of_it_works),
#if defined(__x86_64__)
        BOTH(test_a_call_of_another_architecture_ends_the_program),
        BOTH(test_a_call_of_x32_does_not_exist),
#endif
        BOTH(test_the_environment_has_nothing_of_the_service),
        BOTH(test_home_is_the_box),
        BOTH(test_only_the_named_descriptors_are_open),
        BOTH(test_limits_are_those_asked_for),
        BOTH(test_files_are_in_the_box),
        BOTH(test_records_and_a_peer_are_descriptors_3_and_4),
        BOTH(test_a_binary_can_be_a_descriptor),
        BOTH(test_a_program_dies_of_its_own_signal),
        BOTH(test_a_broken_pipe_ends_a_program),
        BOTH(test_a_file_that_cannot_be_executed_never_began),
        BOTH(test_a_status_of_127_is_a_programs_own),
        BOTH(test_a_program_cannot_claim_that_it_never_began),
        BOTH(test_a_kill_ends_all_of_its_processes),
        BOTH(test_no_process_is_left),
        BOTH(test_a_fork_bomb_ends_with_its_program),
        BOTH(test_a_box_is_empty_for_the_next_program),
        BOTH(test_fifty_programs_leave_no_descriptor_and_no_mount),
        BOTH(test_the_holders_memory_stays_closed),
    };

    return run_offered("cage", tests, ARRAY_LENGTH(tests));
}
