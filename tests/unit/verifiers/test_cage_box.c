/* Boxes of the reduced level are folders that hostile programs have filled: whatever they made must go. */
#include "tests/unit/base/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "verifiers/sandbox/cage_parts_private.h"

#define DEPTH 3000 /* a path of it is longer than any path may be */

struct boxes {
    char path[64];
    int fd;
};

static struct boxes boxes;

/* As an ordinary user: root would be stopped by no mode. */
static int make_boxes(void **state)
{
    (void)state;
    if (geteuid() == 0 && seteuid(65534) < 0)
        return -1;
    boxes.fd = cage_boxes_make(boxes.path, sizeof boxes.path);
    return boxes.fd < 0 ? -1 : mkdirat(boxes.fd, "box", 0700);
}

static int remove_boxes(void **state)
{
    (void)state;
    close(boxes.fd);
    cage_boxes_sweep();
    return seteuid(getuid());
}

static void assert_box_goes(void)
{
    assert_int_equal(cage_box_remove(boxes.fd, "box"), 0);
    assert_int_equal(faccessat(boxes.fd, "box", F_OK, 0), -1);
    assert_int_equal(rmdir(boxes.path), 0); /* nothing else is in it, either */
}

static int open_box(void)
{
    return openat(boxes.fd, "box", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void test_a_deep_box_goes(void **state)
{
    int folder = open_box();

    (void)state;
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(mkdirat(folder, "deeper", 0700), 0);
        int next = openat(folder, "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(folder);
        folder = next;
    }
    close(folder);
    assert_box_goes();
}

static void test_a_box_of_folders_without_rights_goes(void **state)
{
    int folder = open_box();

    (void)state;
    assert_int_equal(mkdirat(folder, "full", 0700), 0);
    assert_int_equal(mkdirat(folder, "full/inside", 0), 0);
    assert_int_equal(fchmodat(folder, "full", 0, 0), 0);
    close(folder);
    assert_int_equal(fchmodat(boxes.fd, "box", 0, 0), 0);
    assert_box_goes();
}

static void test_a_box_of_many_files_with_odd_names_goes(void **state)
{
    char name[32];
    int folder = open_box();

    (void)state;
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, i % 3 ? "\n%d" : "-%d\xff", i);
        assert_int_equal(i % 2 ? mknodat(folder, name, S_IFIFO | 0600, 0) : mkdirat(folder, name, 0700), 0);
    }
    close(folder);
    assert_box_goes();
}

/* It would be a way out of the box. */
static void test_the_target_of_a_link_stays(void **state)
{
    char outside[] = "/tmp/cage-outside-XXXXXX";
    char file[64];
    int folder = open_box();

    (void)state;
    assert_non_null(mkdtemp(outside));
    snprintf(file, sizeof file, "%s/file", outside);
    close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(symlinkat(outside, folder, "link"), 0);
    assert_int_equal(mkdirat(folder, "folder", 0700), 0);
    assert_int_equal(symlinkat(file, folder, "folder/link"), 0);
    close(folder);
    assert_box_goes();
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(outside), 0);
}

static void test_boxes_of_a_dead_holder_are_taken_away(void **state)
{
    char path[64] = "";
    int pipes[2];
    pid_t pid;

    (void)state;
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        int fd = cage_boxes_make(path, sizeof path);
        _exit(fd >= 0 && mkdirat(fd, "0", 0700) == 0 && write(pipes[1], path, sizeof path) > 0 ? 0 : 1);
    }
    waitpid(pid, NULL, 0);
    assert_int_equal(read(pipes[0], path, sizeof path), sizeof path);
    assert_int_equal(access(path, F_OK), 0);
    cage_boxes_sweep();
    assert_int_equal(access(path, F_OK), -1);
    close(pipes[0]);
    close(pipes[1]);
}

/* From a container, say, that shares the folder and sees no process outside. */
static void sweep_elsewhere(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
            print_message("this is no other pid namespace: %s\n", strerror(errno));
        pid = fork();
        if (pid == 0)
            cage_boxes_sweep();
        waitpid(pid, NULL, 0);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static void test_boxes_of_a_holder_that_lives_stay(void **state)
{
    (void)state;
    sweep_elsewhere();
    assert_int_equal(faccessat(boxes.fd, "box", F_OK, 0), 0);
    assert_int_equal(access(boxes.path, F_OK), 0);
    assert_box_goes();
}

static void test_every_interface_of_landlock_is_understood(void **state)
{
    struct sandbox_settings settings = {.level = SANDBOX_LEVEL_REDUCED};
    struct sock_fprog filter;
    int abi = cage_landlock_abi();

    (void)state;
    for (int old = 1; old <= abi; old++) { /* a kernel understands rulesets of its predecessors */
        int ruleset = cage_landlock_make(old, boxes.fd, &settings);
        assert_true(ruleset >= 0);
        close(ruleset);
        assert_int_equal(cage_filter_make(SANDBOX_LEVEL_REDUCED, old, &filter), 0);
        free(filter.filter);
    }
}

#define WITH_BOXES(test) cmocka_unit_test_setup_teardown(test, make_boxes, remove_boxes)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BOXES(test_a_deep_box_goes),
        WITH_BOXES(test_a_box_of_folders_without_rights_goes),
        WITH_BOXES(test_a_box_of_many_files_with_odd_names_goes),
        WITH_BOXES(test_the_target_of_a_link_stays),
        WITH_BOXES(test_boxes_of_a_dead_holder_are_taken_away),
        WITH_BOXES(test_boxes_of_a_holder_that_lives_stay),
        WITH_BOXES(test_every_interface_of_landlock_is_understood),
    };

    /* The last one is about Landlock alone. */
    return _cmocka_run_group_tests("cage-box", tests, ARRAY_LENGTH(tests) - (cage_landlock_abi() == 0), NULL, NULL);
}
