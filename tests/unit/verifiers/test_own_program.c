/* A program of Python is forked from the service: what it can do to the service's file. The test is a program whose file
 * belongs to the user that programs run as; it runs itself anew to be one. */
#include "tests/unit/base/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holder.h"
#include "server/base/cleanup.h"
#include "verifiers/sandbox/probe.h"
#include "verifiers/worker/own_program_private.h"

#define ORDINARY_USER 65534

/* --- what it is when it runs itself anew --- */

static void change_mode(void *unused)
{
    (void)unused;
    _exit(chmod("/proc/self/exe", 0777) < 0 ? 1 : 0);
}

static void act_change_mode(struct cage *cage, int out, const void *arg)
{
    struct cage_program program = holder_program(out, change_mode, NULL);

    (void)arg;
    holder_run(cage, &program, out);
}

static int attack(void)
{
    _cleanup_free_ char *text = in_holder(SANDBOX_LEVEL_FULL, act_change_mode, NULL);

    return strcmp(text, "[exit 0]") == 0 ? 0 : 1;
}

static int attack_copy(void)
{
    char *const arguments[] = {(char[]){"test"}, (char[]){"attack"}, NULL};
    int copy = own_program_copy();

    fexecve(copy, arguments, environ);
    return 2;
}

/* --- the tests --- */

static void copy_file(const char *from, const char *to)
{
    _cleanup_close_ int source = open(from, O_RDONLY | O_CLOEXEC);
    _cleanup_close_ int target = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    struct stat status;
    off_t at = 0;

    assert_int_equal(fstat(source, &status), 0);
    while (at < status.st_size)
        assert_true(sendfile(target, source, &at, (size_t)(status.st_size - at)) > 0);
    assert_int_equal(fchmod(target, 0755), 0);
    assert_int_equal(geteuid() == 0 ? fchown(target, ORDINARY_USER, ORDINARY_USER) : 0, 0);
}

static int run_as_ordinary_user(const char *path, const char *what)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (geteuid() != 0 || (setgid(ORDINARY_USER) == 0 && setuid(ORDINARY_USER) == 0))
            execl(path, path, what, NULL);
        _exit(3);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Its mode afterwards. */
static mode_t mode_after(const char *what)
{
    char folder[] = "/tmp/own-program-XXXXXX";
    char path[64];
    struct stat status;
    int result;

    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    snprintf(path, sizeof path, "%s/program", folder);
    copy_file("/proc/self/exe", path);
    result = run_as_ordinary_user(path, what);
    assert_int_equal(stat(path, &status), 0);
    unlink(path);
    rmdir(folder);
    assert_int_equal(result, 0);
    return status.st_mode & 07777;
}

static void test_a_forked_program_can_change_the_mode_of_its_users_file(void **state)
{
    (void)state;
    assert_int_equal(mode_after("attack"), 0777);
}

static void test_of_a_copy_it_cannot(void **state)
{
    (void)state;
    assert_int_equal(mode_after("attack-copy"), 0755);
}

static void test_no_copy_is_made_of_what_is_roots(void **state)
{
    struct stat status;

    (void)state;
    assert_int_equal(stat("/proc/self/exe", &status), 0);
    assert_int_equal(status.st_uid, 0);
    assert_int_equal(own_program_copy(), -1);
}

static bool offers_full(void)
{
    struct sandbox_settings settings = {.uid = ORDINARY_USER};
    struct sandbox_report report;

    sandbox_probe(&settings, &report);
    return report.level == SANDBOX_LEVEL_FULL;
}

static bool is_roots(void)
{
    struct stat status;

    return stat("/proc/self/exe", &status) == 0 && status.st_uid == 0;
}

#define ABOUT_PROGRAMS 2 /* the first tests; the last one is about root */

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_forked_program_can_change_the_mode_of_its_users_file),
        cmocka_unit_test(test_of_a_copy_it_cannot),
        cmocka_unit_test(test_no_copy_is_made_of_what_is_roots),
    };

    if (argc == 2 && strcmp(argv[1], "attack") == 0)
        return attack();
    if (argc == 2 && strcmp(argv[1], "attack-copy") == 0)
        return attack_copy();
    size_t first = offers_full() ? 0 : ABOUT_PROGRAMS;
    size_t end = is_roots() ? ARRAY_LENGTH(tests) : ABOUT_PROGRAMS;

    if (first == end) {
        puts("1..0 # SKIP no sandbox here");
        return 0;
    }
    return _cmocka_run_group_tests("own-program", tests + first, end - first, NULL, NULL);
}
