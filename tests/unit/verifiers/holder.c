#include "holder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/cleanup.h"

static void hold_and_act(const struct sandbox_settings *settings, holder_act act, const void *arg, int out)
    __attribute__((noreturn));
static void hold_and_act(const struct sandbox_settings *settings, holder_act act, const void *arg, int out)
{
    struct cage_failure failure;
    struct cage *cage = cage_hold(settings, &failure);

    if (cage)
        act(cage, out, arg);
    else
        dprintf(out, "no holder: %s: %s", cage_step_names[failure.step], strerror(failure.error));
    if (settings->level == SANDBOX_LEVEL_REDUCED)
        cage_boxes_sweep();
    _exit(0);
}

#define TEXT_BYTES_MAX (64 << 10)

static char *read_all(int fd)
{
    char *text = xcalloc(1, TEXT_BYTES_MAX + 1);
    size_t length = 0;
    ssize_t count;

    while (length < TEXT_BYTES_MAX && (count = read(fd, text + length, TEXT_BYTES_MAX - length)) > 0)
        length += (size_t)count;
    return text;
}

char *in_holder_of(const struct sandbox_settings *settings, holder_act act, const void *arg)
{
    int out[2];

    if (pipe2(out, O_CLOEXEC) < 0)
        return xstrdup("no pipe");
    pid_t pid = fork();
    if (pid == 0)
        hold_and_act(settings, act, arg, out[1]);
    close(out[1]);
    char *text = read_all(out[0]);
    close(out[0]);
    waitpid(pid, NULL, 0);
    return text;
}

char *in_holder(enum sandbox_level level, holder_act act, const void *arg)
{
    struct sandbox_settings settings = {.uid = 65534, .level = level};

    return in_holder_of(&settings, act, arg);
}

struct cage_program holder_program(int out, void (*run)(void *), void *arg)
{
    struct cage_program program = {
        .fds = {open("/dev/null", O_RDONLY | O_CLOEXEC), out, out, -1, -1},
        .limits = {.wall_ms = 60000,
                   .cpu_ms = 59000,
                   .memory_bytes = 256 << 20,
                   .output_bytes = 1 << 20,
                   .disk_bytes = 1 << 20,
                   .processes = 16},
        .run = run,
        .arg = arg,
    };

    return program;
}

void holder_tell_end(struct cage *cage, struct cage_child *child, int out)
{
    struct cage_failure failure;
    int status;

    if (cage_wait(cage, child, &status, NULL, &failure) < 0)
        dprintf(out, "[lost: %s]", strerror(errno));
    else if (failure.step != CAGE_NONE)
        dprintf(out, "[never began: %s: %s]", cage_step_names[failure.step], strerror(failure.error));
    else if (WIFEXITED(status))
        dprintf(out, "[exit %d]", WEXITSTATUS(status));
    else
        dprintf(out, "[signal %d]", WTERMSIG(status));
}

void holder_run(struct cage *cage, const struct cage_program *program, int out)
{
    struct cage_failure failure;
    struct cage_child child;

    if (cage_spawn(cage, program, &child, &failure) < 0)
        dprintf(out, "[not started: %s: %s]", cage_step_names[failure.step], strerror(failure.error));
    else
        holder_tell_end(cage, &child, out);
    close(program->fds[0]);
}

void holder_act_script(struct cage *cage, int out, const void *arg)
{
    const char *const arguments[] = {"sh", "-c", arg, NULL};
    struct cage_command command = {"/bin/sh", -1, arguments};
    struct cage_program program = holder_program(out, cage_exec, &command);

    holder_run(cage, &program, out);
}

char *script_in_holder(enum sandbox_level level, const char *script)
{
    return in_holder(level, holder_act_script, script);
}
