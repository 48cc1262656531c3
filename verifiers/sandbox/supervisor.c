#include "verifiers/sandbox/supervisor_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "server/base/cleanup.h"
#include "server/base/whole.h"
#include "verifiers/sandbox/compile_private.h"
#include "verifiers/sandbox/languages_private.h"
#include "verifiers/sandbox/stay_private.h"
#include "verifiers/sandbox/wire_private.h"

#define LAUNCHED_MAX 1000 /* by one holder: all of its programs have the same address space layout and hash seed */

struct supervisor {
    int client;
    struct text testlib;
    const struct sandbox_settings *settings;
    struct holder holder;
    struct binaries binaries;
    struct stayers stayers;
};

struct request {
    size_t count;
    struct sandbox_program programs[LAUNCH_TASKS_MAX];
    char *texts[LAUNCH_TASKS_MAX];
};

struct answer { /* of one program */
    struct wire_result wire;
    struct text output, error, records;
};

/* --- request --- */

static int read_program(int fd, struct sandbox_program *program, char **ret_texts)
{
    struct wire_program wire;
    size_t length_bytes;

    if (read_whole(fd, &wire, sizeof wire) < 0 || wire_check_program(&wire))
        return -1;
    length_bytes = wire_program_text_bytes(&wire);
    *ret_texts = malloc(length_bytes + 1);
    if (!*ret_texts || read_whole(fd, *ret_texts, length_bytes) < 0)
        return -1;
    return wire_read_program(&wire, *ret_texts, program) ? 0 : -1;
}

static int read_request(int fd, struct request *ret_request)
{
    struct wire_request head;

    *ret_request = (struct request){0};
    if (read_whole(fd, &head, sizeof head) < 0 || head.magic != WIRE_MAGIC || head.count < 1 ||
        head.count > LAUNCH_TASKS_MAX)
        return -1;
    ret_request->count = head.count;
    for (size_t i = 0; i < head.count; i++)
        if (read_program(fd, &ret_request->programs[i], &ret_request->texts[i]) < 0)
            return -1;
    return 0;
}

static void request_finish(struct request *request)
{
    for (size_t i = 0; i < LAUNCH_TASKS_MAX; i++)
        free(request->texts[i]);
}

/* --- reply --- */

static int send_all(int fd, struct iovec *parts, size_t count)
{
    while (count) {
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -1;
        while (count && (size_t)sent >= parts->iov_len) {
            sent -= (ssize_t)parts->iov_len;
            parts++;
            count--;
        }
        if (count) {
            parts->iov_base = (char *)parts->iov_base + sent;
            parts->iov_len -= (size_t)sent;
        }
    }
    return 0;
}

static struct iovec part_of(struct text text)
{
    return (struct iovec){(void *)(uintptr_t)text.data, text.length_bytes};
}

static int send_answers(int fd, struct answer *answers, size_t count)
{
    struct iovec parts[4 * LAUNCH_TASKS_MAX];
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        struct answer *answer = &answers[i];
        answer->wire.output_bytes = answer->output.length_bytes;
        answer->wire.error_bytes = answer->error.length_bytes;
        answer->wire.records_bytes = answer->records.length_bytes;
        parts[used++] = (struct iovec){&answer->wire, sizeof answer->wire};
        parts[used++] = part_of(answer->output);
        parts[used++] = part_of(answer->error);
        parts[used++] = part_of(answer->records);
    }
    return send_all(fd, parts, used);
}

/* --- running --- */

static void answer_without_run(struct answer *answer, enum sandbox_outcome outcome, struct text error,
                               const char *message)
{
    *answer = (struct answer){.wire = {.outcome = outcome, .exit_code = -1}, .error = error};
    snprintf(answer->wire.message, sizeof answer->wire.message, "%s", message);
}

static void answer_run(struct answer *answer, const struct finished *finished)
{
    *answer = (struct answer){
        .wire = {.outcome = finished->outcome,
                 .exit_code = finished->exit_code,
                 .signal = finished->signal,
                 .began = finished->began,
                 .wall_us = finished->wall_us,
                 .cpu_us = finished->cpu_us,
                 .peak_bytes = finished->peak_bytes},
        .output = buffer_text(&finished->pump.gathered[PUMP_OUTPUT]),
        .error = buffer_text(&finished->pump.gathered[PUMP_ERROR]),
        .records = buffer_text(&finished->pump.gathered[PUMP_RECORDS]),
    };
    memcpy(answer->wire.message, finished->message, sizeof answer->wire.message);
}

static void add_argument(struct task *task, const char *argument)
{
    task->arguments[task->argument_count++] = argument;
}

static void describe_job(const struct sandbox_program *program, int binary, struct job *ret_job)
{
    const struct language *language = &languages[program->language];
    struct task *task = &ret_job->task;

    *ret_job = (struct job){.input = program->input, .records = program->records, .target = -1};
    ret_job->python = program->language == SANDBOX_PYTHON;
    ret_job->bare = program->bare;
    task->limits = program->limits;
    task->binary = binary;
    task->venv = program->venv;
    if (language->command)
        add_argument(task, language->command);
    if (language->file)
        add_argument(task, binary < 0 ? language->file : "./solution");
    for (size_t i = 0; i < program->argument_count; i++)
        add_argument(task, program->arguments[i]);
    if (language->file && binary < 0)
        task->files[task->file_count++] = (struct sandbox_file){language->file, program->source};
    for (size_t i = 0; i < program->file_count; i++)
        task->files[task->file_count++] = program->files[i];
    /* Files that we put into the box do not count against its limit. */
    for (size_t i = 0; i < task->file_count; i++)
        task->limits.disk_bytes += (int64_t)task->files[i].bytes.length_bytes;
}

/* One go at a request. */
struct attempt {
    int binaries[LAUNCH_TASKS_MAX];
    struct job jobs[LAUNCH_TASKS_MAX];
    struct finished finished[LAUNCH_TASKS_MAX];
    struct answer answers[LAUNCH_TASKS_MAX];
};

static void attempt_init(struct attempt *attempt)
{
    *attempt = (struct attempt){.binaries = {-1, -1}};
    for (size_t i = 0; i < LAUNCH_TASKS_MAX; i++) {
        attempt->finished[i].pump = PUMP_NONE;
        answer_without_run(&attempt->answers[i], SANDBOX_BROKEN, TEXT_NONE, "its peer could not be run");
    }
}

static void attempt_finish(struct attempt *attempt)
{
    for (size_t i = 0; i < LAUNCH_TASKS_MAX; i++) {
        closep(&attempt->binaries[i]);
        pump_finish(&attempt->finished[i].pump);
    }
}

/* False: the program cannot be run, and its answer says why. */
static bool prepare(struct supervisor *supervisor, const struct sandbox_program *program, struct attempt *attempt,
                    size_t index, enum run_end *ret_end)
{
    struct answer *answer = &attempt->answers[index];
    const struct binary *binary;
    char message[200] = "";

    *ret_end = RUN_DONE;
    if (program->include_testlib && !supervisor->testlib.data) {
        answer_without_run(answer, SANDBOX_BROKEN, TEXT_NONE, "the settings name no folder with testlib.h");
        return false;
    }
    if (program->bare && !sandbox_may_be_bare(supervisor->settings, program)) {
        answer_without_run(answer, SANDBOX_BROKEN, TEXT_NONE, "the settings know no such command without a sandbox");
        return false;
    }
    if (languages[program->language].compiler) {
        *ret_end = compile(&supervisor->binaries, &supervisor->holder, supervisor->client, program, supervisor->testlib,
                           &binary, message);
        if (!binary)
            answer_without_run(answer, SANDBOX_BROKEN, TEXT_NONE, message);
        else if (binary->text)
            answer_without_run(answer, SANDBOX_NOT_COMPILED, text_of(binary->text), "");
        if (!binary || binary->text)
            return false;
        attempt->binaries[index] = fcntl(binary->fd, F_DUPFD_CLOEXEC, 0); /* the next one may push it out */
    }
    describe_job(program, attempt->binaries[index], &attempt->jobs[index]);
    return true;
}

/* Two entries of the settings may have one command and other limits. */
static void make_stayer_key(const struct sandbox_program *program, uint8_t ret_key[SHA256_BYTES])
{
    uint8_t command[SHA256_BYTES];
    struct sha256 *sha256 = sha256_create();

    sandbox_command_digest(program, command);
    sha256_add(sha256, command, sizeof command);
    sha256_add(sha256, &program->limits, sizeof program->limits);
    sha256_add(sha256, &program->bare, sizeof program->bare);
    sha256_finish(sha256, ret_key);
}

/* A command that stays, or is to leave. */
static enum run_end try_stayer(struct supervisor *supervisor, const struct sandbox_program *program,
                               struct attempt *attempt)
{
    uint8_t key[SHA256_BYTES];
    const struct finished *finished;
    enum run_end end;

    if (!prepare(supervisor, program, attempt, 0, &end))
        return RUN_DONE;
    make_stayer_key(program, key);
    if (program->stay == SANDBOX_LEAVES) {
        answer_without_run(&attempt->answers[0], SANDBOX_ENDED, TEXT_NONE, "");
        return stay_leave(&supervisor->stayers, &supervisor->holder, supervisor->client, key);
    }
    attempt->jobs[0].stays = true;
    end = stay_run(&supervisor->stayers, &supervisor->holder, supervisor->client, &attempt->jobs[0], key, &finished);
    answer_run(&attempt->answers[0], finished);
    return end;
}

static bool is_of_a_stayer(const struct request *request)
{
    return request->count == 1 && request->programs[0].language == SANDBOX_COMMAND &&
           request->programs[0].stay != SANDBOX_ONCE;
}

static enum run_end try(struct supervisor *supervisor, const struct request *request, struct attempt *attempt)
{
    enum run_end end;

    if (is_of_a_stayer(request))
        return try_stayer(supervisor, &request->programs[0], attempt);
    for (size_t i = 0; i < request->count; i++)
        if (!prepare(supervisor, &request->programs[i], attempt, i, &end) || end != RUN_DONE)
            return end;
    end = run_jobs(&supervisor->holder, supervisor->client, attempt->jobs, request->count, attempt->finished);
    for (size_t i = 0; i < request->count; i++)
        answer_run(&attempt->answers[i], &attempt->finished[i]);
    return end;
}

static int renew(struct supervisor *supervisor)
{
    stayers_forget(&supervisor->stayers);
    return holder_renew(&supervisor->holder);
}

static _Noreturn void end_supervisor(void)
{
    _exit(0); /* the keeper ends the rest */
}

/* A set-up that failed is tried again, once, with a new holder. */
static void serve_one(struct supervisor *supervisor, const struct request *request)
{
    struct attempt attempt;
    enum run_end end = RUN_NOT_BEGUN;
    bool again = true;

    attempt_init(&attempt);
    while (end == RUN_NOT_BEGUN) {
        attempt_finish(&attempt);
        attempt_init(&attempt);
        end = try(supervisor, request, &attempt);
        if (end == RUN_CLIENT_GONE || (end != RUN_DONE && renew(supervisor) < 0))
            end_supervisor();
        if (!again)
            break;
        again = false;
    }
    if (send_answers(supervisor->client, attempt.answers, request->count) < 0)
        end_supervisor();
    attempt_finish(&attempt);
}

void supervisor_serve(int client, int keeper, struct text testlib, const struct sandbox_settings *settings)
{
    static struct supervisor supervisor;
    struct request request;

    supervisor = (struct supervisor){.client = client, .testlib = testlib, .settings = settings};
    supervisor.holder = (struct holder){.keeper = keeper, .socket = -1, .zygote = -1, .bare = -1};
    stayers_init(&supervisor.stayers);
    for (size_t i = 0; i < BINARIES_MAX; i++)
        supervisor.binaries.list[i].fd = -1;
    if (renew(&supervisor) < 0)
        end_supervisor();
    while (read_request(client, &request) == 0) {
        serve_one(&supervisor, &request);
        request_finish(&request);
        if (supervisor.holder.launched >= LAUNCHED_MAX && renew(&supervisor) < 0)
            break;
    }
    end_supervisor();
}
