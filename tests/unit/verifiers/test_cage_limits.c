/* The limits of a program in a cage, two programs at once, and folders of the settings. The tests of the full level are
 * left out where a machine does not offer it. */
#include "tests/unit/base/cmocka_all.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cage_fixture.h"
#include "holder.h"
#include "server/base/cleanup.h"
#include "server/base/sanitizer.h"

/* --- its limits --- */

static void allocate_too_much(void *unused)
{
    (void)unused;
    char *bytes = mmap(NULL, 2040l << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    _exit(bytes == MAP_FAILED ? 0 : 1);
}

static void act_allocate(struct cage *cage, int out, const void *arg)
{
    struct cage_program program = holder_program(out, allocate_too_much, NULL);

    (void)arg;
    holder_run(cage, &program, out);
}

/* A sanitizer's own memory would count: there is no such limit for forked programs with one. */
static void test_memory_is_limited(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_allocate, NULL);

    assert_string_equal(text, UNDER_SANITIZER ? "[exit 1]" : "[exit 0]");
}

static void test_a_file_of_the_box_is_limited(void **state)
{
    assert_script(state, "trap '' XFSZ; head -c 3000000 /dev/zero >big 2>/dev/null; stat -c %s big",
                  "1048576\n[exit 0]");
}

/* --- two of them, at the full level --- */

static void act_two(struct cage *cage, int out, const void *arg)
{
    const char *const arguments[][4] = {{"sh", "-c", "echo one >&4; read word <&4; echo $word; ls", NULL},
                                        {"sh", "-c", "read word <&4; echo >own; echo $word two >&4", NULL}};
    struct cage_command commands[] = {{"/bin/sh", -1, arguments[0]}, {"/bin/sh", -1, arguments[1]}};
    struct cage_failure failure;
    struct cage_child children[2];
    int peer[2];

    (void)arg;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, peer) < 0)
        return;
    for (int i = 0; i < 2; i++) {
        struct cage_program program = holder_program(out, cage_exec, &commands[i]);
        program.fds[4] = peer[i];
        if (cage_spawn(cage, &program, &children[i], &failure) < 0)
            return;
    }
    holder_tell_end(cage, &children[1], out);
    holder_tell_end(cage, &children[0], out);
}

static void test_two_programs_at_once_share_their_socket_alone(void **state)
{
    _cleanup_free_ char *text = in_holder(level_of(state), act_two, NULL);

    /* The first one ends after the second one's word; who is told first is nobody's promise. */
    assert_true(strcmp(text, "[exit 0]one two\n[exit 0]") == 0 || strcmp(text, "one two\n[exit 0][exit 0]") == 0);
}

static void test_a_program_sees_no_process_but_its_own(void **state)
{
    assert_script(state, "cd /proc; echo $$ [0-9]*; cat /proc/1/environ 2>/dev/null; hostname; id -u",
                  "2 2\nsandbox\n1000\n[exit 0]");
}

static void test_the_whole_box_is_limited(void **state)
{
    assert_script(state,
                  "head -c 700000 /dev/zero >a && ! head -c 700000 /dev/zero >b 2>/dev/null && echo full; "
                  "i=0; while mkdir $i 2>/dev/null; do i=$((i+1)); cd .; test $i = 5000 && echo endless; done; exit 0",
                  "full\n[exit 0]");
}

static void test_the_root_is_small(void **state)
{
    assert_script(state, "ls -d /home /root /run /sys /var/lib /srv /opt 2>/dev/null; ls /dev",
                  "fd\nfull\nnull\nrandom\nshm\nstderr\nstdin\nstdout\nurandom\nzero\n[exit 0]");
}

/* --- folders of the settings --- */

static void test_a_virtual_environment_is_where_it_was(void **state)
{
    struct sandbox_settings settings = {.uid = 65534, .level = level_of(state)};
    _cleanup_free_ char *text = NULL;
    char command[SANDBOX_PATH_BYTES + 64];
    char folder[] = "/tmp/cage-venv-XXXXXX";

    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    snprintf(settings.venv, sizeof settings.venv, "%s", folder);
    snprintf(command, sizeof command, "cd %s && (echo x >y) 2>/dev/null || echo read only", folder);
    text = in_holder_of(&settings, holder_act_script, command);
    rmdir(folder);
    assert_string_equal(text, "read only\n[exit 0]");
}

/* It is the user's own, as in most installations; and what a program may read, it has a descriptor of. */
static void change_what_it_reads(void *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int flags = 0;

    if (fd < 0)
        _exit(9);
    _exit((fchmod(fd, 0777) == 0) + 2 * (futimens(fd, (struct timespec[2]){{1, 0}, {1, 0}}) == 0) +
          4 * (fchown(fd, geteuid(), getegid()) == 0) +
          8 * (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0));
}

static void act_change(struct cage *cage, int out, const void *arg)
{
    char folder[SANDBOX_PATH_BYTES];
    struct cage_program program = holder_program(out, change_what_it_reads, folder);

    snprintf(folder, sizeof folder, "%s", (const char *)arg);
    holder_run(cage, &program, out);
}

static void test_a_virtual_environment_of_the_user_stays_as_it_was(void **state)
{
    struct sandbox_settings settings = {.uid = 65534, .level = level_of(state)};
    _cleanup_free_ char *text = NULL;
    char folder[] = "/tmp/cage-venv-XXXXXX";
    struct stat status;

    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(geteuid() == 0 ? chown(folder, settings.uid, settings.uid) : 0, 0);
    snprintf(settings.venv, sizeof settings.venv, "%s", folder);
    text = in_holder_of(&settings, act_change, folder);
    assert_int_equal(stat(folder, &status), 0);
    rmdir(folder);
    assert_string_equal(text, "[exit 0]");
    assert_int_equal(status.st_mode & 07777, 0755);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        BOTH(test_memory_is_limited),
        BOTH(test_a_file_of_the_box_is_limited),
        BOTH(test_two_programs_at_once_share_their_socket_alone),
        AT(full, test_a_program_sees_no_process_but_its_own),
        AT(full, test_the_whole_box_is_limited),
        AT(full, test_the_root_is_small),
        BOTH(test_a_virtual_environment_is_where_it_was),
        BOTH(test_a_virtual_environment_of_the_user_stays_as_it_was),
    };

    return run_offered("cage-limits", tests, ARRAY_LENGTH(tests));
}
