#include "verifiers/sandbox/compile_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "verifiers/sandbox/languages_private.h"
#include "verifiers/sandbox/wire_private.h"

static const struct sandbox_limits limits = {
    .wall_ms = 30000,
    .cpu_ms = 10000, /* nobody else's program runs in the slot while it grows templates */
    .memory_bytes = INT64_C(1) << 30,
    .output_bytes = WIRE_COMPILER_TEXT_BYTES,
    .disk_bytes = INT64_C(256) << 20,
    .processes = 16,
};

/* The compiler writes into the box, since its linker removes what it writes to first. */
static const char script[] = "\"$0\" -O2 \"$1\" -I. \"$2\" -o program -lm && exec cat program >&3";

/* --- the cache --- */

static void drop(struct binary *binary)
{
    closep(&binary->fd);
    free(binary->text);
    *binary = (struct binary){.fd = -1};
}

static struct binary *find(struct binaries *binaries, const uint8_t key[SHA256_BYTES])
{
    for (size_t i = 0; i < BINARIES_MAX; i++)
        if (binaries->list[i].used && memcmp(binaries->list[i].key, key, SHA256_BYTES) == 0)
            return &binaries->list[i];
    return NULL;
}

static struct binary *least_recent(struct binaries *binaries)
{
    struct binary *least = &binaries->list[0];

    for (size_t i = 1; i < BINARIES_MAX; i++)
        if (binaries->list[i].used && (!least->used || binaries->list[i].used < least->used))
            least = &binaries->list[i];
    return least;
}

static int64_t sum_bytes(const struct binaries *binaries)
{
    int64_t sum = 0;

    for (size_t i = 0; i < BINARIES_MAX; i++)
        sum += binaries->list[i].size_bytes;
    return sum;
}

/* A place for one more of this size; what was used least recently makes room for it. */
static struct binary *make_place(struct binaries *binaries, int64_t size_bytes)
{
    while (sum_bytes(binaries) > 0 && sum_bytes(binaries) + size_bytes > BINARIES_BYTES)
        drop(least_recent(binaries));
    for (size_t i = 0; i < BINARIES_MAX; i++)
        if (!binaries->list[i].used)
            return &binaries->list[i];
    drop(least_recent(binaries));
    return make_place(binaries, size_bytes);
}

static void make_key(const struct sandbox_program *program, uint8_t ret_key[SHA256_BYTES])
{
    const uint8_t flags[2] = {(uint8_t)program->language, program->include_testlib};
    struct sha256 *sha256 = sha256_create();

    sha256_add(sha256, flags, sizeof flags);
    sha256_add(sha256, program->source.data, program->source.length_bytes);
    sha256_finish(sha256, ret_key);
}

/* --- the compiler --- */

static struct job make_job(const struct sandbox_program *program, struct text testlib, int target)
{
    const struct language *language = &languages[program->language];
    struct job job = {
        .task = {.arguments = {"/bin/sh", "-c", script, language->compiler, language->standard, language->file},
                 .argument_count = 6,
                 .files = {{language->file, program->source}},
                 .file_count = 1,
                 .limits = limits,
                 .binary = -1},
        .input = TEXT_LITERAL(""),
        .target = target,
    };

    if (program->include_testlib)
        job.task.files[job.task.file_count++] = (struct sandbox_file){"testlib.h", testlib};
    job.task.limits.disk_bytes += (int64_t)(program->source.length_bytes + testlib.length_bytes);
    return job;
}

/* The output of a compiler that failed, or the reason why it was ended. */
static char *describe(const struct finished *finished)
{
    static const char *const ended[] = {
        [SANDBOX_TIMEOUT] = "the compiler took too long\n",
        [SANDBOX_MEMORY] = "the compiler took too much memory\n",
        [SANDBOX_OUTPUT] = "the compiler said too much\n",
        [SANDBOX_BROKEN] = NULL,
    };
    const char *why = ended[finished->outcome];
    struct text said = buffer_text(&finished->pump.gathered[PUMP_ERROR]);
    char *text = xasprintf("%s%.*s", why ? why : "", (int)said.length_bytes, said.data);

    if (text[0] == '\0') {
        free(text);
        text = xasprintf("the compiler failed (exit code %d, signal %d)\n", finished->exit_code, finished->signal);
    }
    if (strlen(text) > WIRE_COMPILER_TEXT_BYTES)
        text[WIRE_COMPILER_TEXT_BYTES] = '\0';
    return text;
}

/* Nobody can write to it any more: it is executed again and again. */
static int seal(int fd, int64_t *ret_size_bytes)
{
    struct stat status;

    if (fstat(fd, &status) < 0 || status.st_size == 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
        return -1;
    *ret_size_bytes = status.st_size;
    return 0;
}

static struct binary *keep(struct binaries *binaries, const struct finished *finished, int *fd)
{
    int64_t size_bytes = 0;
    bool compiled = finished->outcome == SANDBOX_ENDED && finished->exit_code == 0 && seal(*fd, &size_bytes) == 0;
    struct binary *binary = make_place(binaries, size_bytes);

    *binary = (struct binary){.fd = -1, .size_bytes = size_bytes};
    if (!compiled) {
        binary->text = describe(finished);
        return binary;
    }
    binary->fd = *fd;
    *fd = -1;
    return binary;
}

enum run_end compile(struct binaries *binaries, struct holder *holder, int client,
                     const struct sandbox_program *program, struct text testlib, const struct binary **ret_binary,
                     char ret_message[200])
{
    uint8_t key[SHA256_BYTES];
    struct finished finished;
    struct binary *binary;
    enum run_end end = RUN_DONE;

    make_key(program, key);
    binary = find(binaries, key);
    if (!binary) {
        _cleanup_close_ int fd = memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        struct job job = make_job(program, testlib, fd);
        end = run_jobs(holder, client, &job, 1, &finished);
        snprintf(ret_message, 200, "%s", finished.message);
        if (end != RUN_CLIENT_GONE && finished.outcome != SANDBOX_BROKEN) {
            binary = keep(binaries, &finished, &fd);
            memcpy(binary->key, key, sizeof key);
        }
        pump_finish(&finished.pump);
    }
    if (binary)
        binary->used = ++binaries->uses;
    *ret_binary = binary;
    return end;
}
