#include "tests/unit/verifiers/slot_fixture.h"

#include "tests/unit/base/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/sanitizer.h"
#include "verifiers/sandbox/probe.h"
#include "verifiers/sandbox/usage_private.h"

const struct sandbox_limits fixture_limits = {
    .wall_ms = 60000,
    .cpu_ms = 60000,
    .memory_bytes = INT64_C(256) << 20,
    .output_bytes = 1 << 20,
    .disk_bytes = 16 << 20,
    .processes = 16,
};

/* Of a user that no other test is: without namespaces, processes are counted by user. */
static struct sandbox_settings settings_of(enum sandbox_level level, const char *testlib)
{
    struct sandbox_settings settings = {.uid = (uid_t)(100000 + getpid()), .level = level, .min_level = level};

    snprintf(settings.testlib, sizeof settings.testlib, "%s", testlib ? testlib : "");
    return settings;
}

/* SLOT_LEVEL=reduced: the lower one, also where a better one is possible. */
enum sandbox_level fixture_level(void)
{
    const char *wanted = getenv("SLOT_LEVEL");
    static struct sandbox_report report;
    static bool asked;
    struct sandbox_settings settings = settings_of(SANDBOX_LEVEL_FULL, NULL);

    if (!asked)
        sandbox_probe(&settings, &report);
    asked = true;
    if (wanted && strcmp(wanted, "reduced") == 0 && report.level == SANDBOX_LEVEL_FULL)
        return SANDBOX_LEVEL_REDUCED;
    return report.level;
}

/* As the spawner does it. */
static void become_slot(int fd, const struct sandbox_settings *settings)
{
    int null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    dup2(fd, 3);
    dup2(null, 0);
    dup2(null, 1);
    if (!UNDER_SANITIZER)
        dup2(null, 2);
    close_range(4, ~0u, 0);
    slot_main(3, settings);
}

struct slot_fixture fixture_start(const char *testlib)
{
    struct sandbox_settings settings = settings_of(fixture_level(), testlib);
    struct slot_fixture slot;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    slot.pid = fork();
    assert_true(slot.pid >= 0);
    if (slot.pid == 0)
        become_slot(pair[1], &settings);
    close(pair[1]);
    slot.fd = pair[0];
    return slot;
}

void fixture_stop(struct slot_fixture *slot)
{
    close(slot->fd);
    assert_int_equal(waitpid(slot->pid, NULL, 0), slot->pid);
}

struct sandbox_program fixture_program(enum sandbox_language language, const char *source)
{
    return (struct sandbox_program){
        .language = language, .source = text_of(source), .input = TEXT_LITERAL(""), .limits = fixture_limits};
}

struct sandbox_result fixture_run(const struct slot_fixture *slot, const struct sandbox_program *program)
{
    struct sandbox_result result;

    assert_int_equal(sandbox_run(slot->fd, program, 1, &result), 0);
    if (result.outcome == SANDBOX_BROKEN)
        print_error("broken: %s\n", result.message);
    return result;
}

struct sandbox_result fixture_sh(const struct slot_fixture *slot, const char *source)
{
    struct sandbox_program program = fixture_program(SANDBOX_SH, source);
    struct sandbox_result result = fixture_run(slot, &program);

    assert_int_equal(result.outcome, SANDBOX_ENDED);
    assert_true(result.began);
    return result;
}

size_t fixture_descendants(pid_t pid, pid_t *ret_pids, size_t room)
{
    size_t count = usage_children(pid, ret_pids, room);

    for (size_t i = 0; i < count; i++)
        count += usage_children(ret_pids[i], ret_pids + count, room - count);
    return count;
}

/* A zombie is still listed: a container's first process may never wait for it. */
static bool is_gone(pid_t pid)
{
    char path[64];
    char line[512] = "";
    const char *name_end;
    FILE *file;

    if (kill(pid, 0) < 0 && errno == ESRCH)
        return true;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return false;
    name_end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    fclose(file);
    return name_end && (name_end[2] == 'Z' || name_end[2] == 'X');
}

void fixture_wait_gone(const pid_t *pids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        while (!is_gone(pids[i]))
            poll(NULL, 0, 1);
}
