/* Findings of the probe in surroundings that forbid one thing or another. Each is made in a child: a user namespace of its
 * own in which a limit, a mount or a filter is set. Where not even that can be made, the test is skipped. */
#include "tests/unit/base/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "verifiers/sandbox/probe.h"

static struct sandbox_settings settings = {.uid = 65534};

static int write_text(const char *path, const char *text)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/* The user of the tests is an ordinary user in it, with all its capabilities until an exec. */
static int enter_user_namespace(int more)
{
    char users[40];
    char groups[40];

    snprintf(users, sizeof users, "1234 %u 1", geteuid());
    snprintf(groups, sizeof groups, "1234 %u 1", getegid());
    if (unshare(CLONE_NEWUSER | more) < 0 || write_text("/proc/self/setgroups", "deny") < 0 ||
        write_text("/proc/self/uid_map", users) < 0 || write_text("/proc/self/gid_map", groups) < 0)
        return -1;
    return more ? mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) : 0;
}

/* --- surroundings: 0, or -1 if they cannot be made --- */

static int nothing_forbidden(void)
{
    return 0;
}

static int no_user_namespaces(void)
{
    return enter_user_namespace(0) < 0 ? -1 : write_text("/proc/sys/user/max_user_namespaces", "0");
}

static int no_pid_namespaces_but_one(void)
{
    return enter_user_namespace(0) < 0 ? -1 : write_text("/proc/sys/user/max_pid_namespaces", "1");
}

static int a_chroot(void)
{
    if (enter_user_namespace(CLONE_NEWNS) < 0 || mount("/", "/mnt", NULL, MS_BIND | MS_REC, NULL) < 0)
        return -1;
    return chroot("/mnt") < 0 ? -1 : chdir("/");
}

/* As containers mask what a program of theirs must not see. */
static int a_masked_proc(void)
{
    return enter_user_namespace(CLONE_NEWNS) < 0 ? -1 : mount("none", "/proc/fs", "tmpfs", MS_RDONLY, NULL);
}

static int no_proc(void)
{
    return enter_user_namespace(CLONE_NEWNS) < 0 ? -1 : mount("none", "/proc", "tmpfs", MS_RDONLY, NULL);
}

static int no_device_files(void)
{
    return enter_user_namespace(CLONE_NEWNS) < 0 ? -1 : mount("none", "/dev", "tmpfs", 0, NULL);
}

static int forbid(const char *const *calls, size_t count, uint32_t action, bool namespaces)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int result = filter ? 0 : -1;

    for (size_t i = 0; i < count && result == 0; i++)
        result = seccomp_rule_add(filter, action, seccomp_syscall_resolve_name(calls[i]), 0);
    if (result == 0 && namespaces)
        result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER));
    if (result == 0)
        result = seccomp_load(filter);
    seccomp_release(filter);
    return result < 0 ? -1 : 0;
}

/* The part of Docker's default profile that matters here. */
static int a_container_profile(void)
{
    static const char *const calls[] = {"unshare",    "setns",     "mount",     "umount2",
                                        "pivot_root", "open_tree", "move_mount"};

    return forbid(calls, ARRAY_LENGTH(calls), SCMP_ACT_ERRNO(EPERM), true);
}

static int no_landlock(void)
{
    static const char *const calls[] = {"landlock_create_ruleset"};

    return forbid(calls, ARRAY_LENGTH(calls), SCMP_ACT_ERRNO(ENOSYS), false);
}

static int a_container_profile_without_landlock(void)
{
    return no_landlock() < 0 ? -1 : a_container_profile();
}

/* --- the probe in them --- */

static void probe_there(int (*make)(void), int out) __attribute__((noreturn));
static void probe_there(int (*make)(void), int out)
{
    struct sandbox_report report;

    if (make() < 0)
        _exit(0);
    sandbox_probe(&settings, &report);
    _exit(write(out, &report, sizeof report) == sizeof report ? 0 : 1);
}

/* Forked by the kernel alone: a process that a sanitizer has given a thread could not make a user namespace. */
static void probe_in(int (*make)(void), struct sandbox_report *ret_report)
{
    int pipe[2];
    ssize_t count;

    assert_int_equal(pipe2(pipe, O_CLOEXEC), 0);
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        probe_there(make, pipe[1]);
    close(pipe[1]);
    count = read(pipe[0], ret_report, sizeof *ret_report);
    close(pipe[0]);
    waitpid(pid, NULL, 0);
    if (count == 0)
        skip();
    assert_int_equal(count, sizeof *ret_report);
}

static void assert_report(int (*make)(void), enum sandbox_level level, const char *step, int error, const char *advice)
{
    struct sandbox_report report;

    probe_in(make, &report);
    assert_string_equal(report.step, step);
    assert_int_equal(report.error, error);
    assert_int_equal(report.level, level);
    assert_non_null(strstr(report.advice, advice));
    assert_int_equal(*report.open != '\0', level == SANDBOX_LEVEL_REDUCED);
}

static bool machine_offers_all(void)
{
    struct sandbox_report report;

    sandbox_probe(&settings, &report);
    return report.level == SANDBOX_LEVEL_FULL && report.landlock_abi >= 6;
}

static void test_where_nothing_is_forbidden_the_level_is_full(void **state)
{
    (void)state;
    assert_report(nothing_forbidden, SANDBOX_LEVEL_FULL, "", 0, "");
}

static void test_without_user_namespaces_the_level_is_reduced(void **state)
{
    (void)state;
    assert_report(no_user_namespaces, SANDBOX_LEVEL_REDUCED, "user namespace", ENOSPC, "user.max_user_namespaces");
}

static void test_without_pid_namespaces_for_programs_the_level_is_reduced(void **state)
{
    (void)state;
    assert_report(no_pid_namespaces_but_one, SANDBOX_LEVEL_REDUCED, "init", ENOSPC, "max_pid_namespaces");
}

static void test_in_a_chroot_the_level_is_reduced(void **state)
{
    (void)state;
    assert_report(a_chroot, SANDBOX_LEVEL_REDUCED, "user namespace", EPERM, "chroot");
}

static void test_with_a_masked_proc_the_level_is_reduced(void **state)
{
    (void)state;
    assert_report(a_masked_proc, SANDBOX_LEVEL_REDUCED, "proc", EPERM, "procMount");
}

static void test_without_proc_the_level_is_reduced(void **state)
{
    (void)state;
    assert_report(no_proc, SANDBOX_LEVEL_REDUCED, "id map", ENOENT, "/proc");
}

static void test_without_device_files_the_level_is_not_full(void **state)
{
    (void)state;
    assert_report(no_device_files, SANDBOX_LEVEL_NONE, "devices", ENOENT, "/dev must have");
}

static void test_under_a_containers_profile_the_level_is_reduced(void **state)
{
    (void)state;
    assert_report(a_container_profile, SANDBOX_LEVEL_REDUCED, "user namespace", EPERM, "seccomp profile");
}

/* It is the second lock of the full level. */
static void test_without_landlock_the_level_is_full(void **state)
{
    struct sandbox_report report;

    (void)state;
    probe_in(no_landlock, &report);
    assert_int_equal(report.level, SANDBOX_LEVEL_FULL);
    assert_int_equal(report.landlock_abi, 0);
    assert_string_equal(report.step, "");
}

static void test_without_namespaces_and_landlock_there_is_no_level(void **state)
{
    (void)state;
    assert_report(a_container_profile_without_landlock, SANDBOX_LEVEL_NONE, "user namespace", EPERM, "seccomp profile");
}

static void test_a_folder_of_the_settings_must_be_there(void **state)
{
    (void)state;
    strcpy(settings.venv, "/nowhere/to/be/found");
    assert_report(nothing_forbidden, SANDBOX_LEVEL_NONE, "folders of the settings", ENOENT, "python.venv");
    *settings.venv = '\0';
}

static void test_a_folder_below_usr_must_be_there(void **state)
{
    (void)state;
    strcpy(settings.testlib, "/usr/share/no-such-folder");
    assert_report(nothing_forbidden, SANDBOX_LEVEL_NONE, "folders of the settings", ENOENT, "sandbox.testlib");
    *settings.testlib = '\0';
}

static void test_a_folder_of_the_settings_is_named_plainly(void **state)
{
    (void)state;
    strcpy(settings.testlib, "/tmp/../etc");
    assert_report(nothing_forbidden, SANDBOX_LEVEL_NONE, "folders of the settings", EINVAL, "sandbox.testlib");
    *settings.testlib = '\0';
}

static void test_programs_are_never_run_as_root(void **state)
{
    (void)state;
    settings.uid = 0;
    assert_report(nothing_forbidden, SANDBOX_LEVEL_NONE, "drop root", EINVAL, "sandbox.uid");
    settings.uid = 65534;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_nothing_is_forbidden_the_level_is_full),
        cmocka_unit_test(test_without_user_namespaces_the_level_is_reduced),
        cmocka_unit_test(test_without_pid_namespaces_for_programs_the_level_is_reduced),
        cmocka_unit_test(test_in_a_chroot_the_level_is_reduced),
        cmocka_unit_test(test_with_a_masked_proc_the_level_is_reduced),
        cmocka_unit_test(test_without_proc_the_level_is_reduced),
        cmocka_unit_test(test_without_device_files_the_level_is_not_full),
        cmocka_unit_test(test_under_a_containers_profile_the_level_is_reduced),
        cmocka_unit_test(test_without_landlock_the_level_is_full),
        cmocka_unit_test(test_without_namespaces_and_landlock_there_is_no_level),
        cmocka_unit_test(test_a_folder_of_the_settings_must_be_there),
        cmocka_unit_test(test_a_folder_below_usr_must_be_there),
        cmocka_unit_test(test_a_folder_of_the_settings_is_named_plainly),
        cmocka_unit_test(test_programs_are_never_run_as_root),
    };

    if (machine_offers_all()) /* the last one is about root alone */
        return _cmocka_run_group_tests("probe", tests, ARRAY_LENGTH(tests) - (geteuid() != 0), NULL, NULL);
    printf("1..0 # SKIP the machine does not offer the full level: there is nothing to take away\n");
    return 0;
}
