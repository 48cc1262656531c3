/* program: one program, run, and what became of it. It is in no list of verifiers and grades nothing: its detail is the
 * result, for clients that compare outputs themselves.
 *
 * The completion is the source. Options: {"language", "stdin", "files": [{"name", "base64"}], "wall_ms",
 * "memory_bytes"}. The service makes them. */
#include "server/base/hash.h"
#include "server/base/utf8.h"
#include "verifiers/registry.h"
#include "verifiers/sandbox/sandbox.h"
#include "verifiers/worker/worker.h"

/* Both outputs, each byte of them escaped, fit into a reply. */
#define OUTPUT_BYTES (INT64_C(4) << 20)
#define DISK_BYTES (INT64_C(64) << 20)
#define FILES_BYTES ((size_t)32 << 20)
#define PROCESSES 32
#define PROCESSORS 4 /* that it may keep busy for its whole time */

static const char *const outcome_names[] = {
    [SANDBOX_ENDED] = "ended",   [SANDBOX_TIMEOUT] = "timeout",     [SANDBOX_MEMORY] = "memory",
    [SANDBOX_OUTPUT] = "output", [SANDBOX_VIOLATION] = "violation", [SANDBOX_NOT_COMPILED] = "not_compiled",
    [SANDBOX_BROKEN] = "broken",
};

static int find_language(struct text name, enum sandbox_language *ret_language)
{
    for (int i = 0; sandbox_language_names[i]; i++)
        if (text_equals(name, sandbox_language_names[i])) {
            *ret_language = (enum sandbox_language)i;
            return i == SANDBOX_COMMAND ? -1 : 0;
        }
    return -1;
}

/* The bytes of all files are in `bytes`, which has room for them. */
static int add_files(const json_t *files, struct buffer *bytes, struct sandbox_program *program)
{
    const json_t *file;
    size_t i;

    if (json_array_size(files) > SANDBOX_FILES_MAX || !buffer_reserve(bytes, FILES_BYTES))
        return -1;
    json_array_foreach (files, i, file) {
        size_t start = bytes->length_bytes;
        program->files[i].name = json_string_value(json_object_get(file, "name"));
        if (!program->files[i].name || !base64_decode(json_text_of(json_object_get(file, "base64")), bytes))
            return -1;
        program->files[i].bytes = (struct text){bytes->data + start, bytes->length_bytes - start};
        program->file_count++;
    }
    return 0;
}

static int describe(const struct verifier_input *input, struct buffer *bytes, struct sandbox_program *program)
{
    int64_t wall_ms = json_integer_value(json_object_get(input->options, "wall_ms"));

    *program = (struct sandbox_program){
        .source = input->completion,
        .input = json_text_of(json_object_get(input->options, "stdin")),
        .limits = {.wall_ms = wall_ms,
                   .cpu_ms = wall_ms * PROCESSORS,
                   .memory_bytes = json_integer_value(json_object_get(input->options, "memory_bytes")),
                   .output_bytes = OUTPUT_BYTES,
                   .disk_bytes = DISK_BYTES,
                   .processes = PROCESSES},
    };
    if (find_language(json_text_of(json_object_get(input->options, "language")), &program->language) < 0)
        return -1;
    const json_t *files = json_object_get(input->options, "files");
    return json_array_size(files) ? add_files(files, bytes, program) : 0;
}

static json_t *mended(struct text text)
{
    _cleanup_buffer_ struct buffer out;

    buffer_init(&out, text.length_bytes * 3 + 1);
    utf8_append_mended(&out, text);
    return json_stringn(out.length_bytes ? out.data : "", out.length_bytes);
}

static json_t *detail_of(const struct sandbox_result *result)
{
    json_t *detail = json_pack("{s:s, s:i, s:i, s:I}", "outcome", outcome_names[result->outcome], "exit_code",
                               result->exit_code, "signal", result->signal, "wall_us", (json_int_t)result->wall_us);

    json_object_set_new(detail, "stdout", mended(result->standard_output));
    json_object_set_new(detail, "stderr", mended(result->standard_error));
    return detail;
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    _cleanup_(sandbox_result_finish) struct sandbox_result result = {.exit_code = -1};
    _cleanup_buffer_ struct buffer bytes;
    struct sandbox_program program;

    buffer_init(&bytes, FILES_BYTES);
    if (describe(input, &bytes, &program) < 0) {
        verdict_fail(ret_verdict, "verifier_crashed", "the program cannot be read");
        return;
    }
    if (input->sandbox_fd < 0 || sandbox_run(input->sandbox_fd, &program, 1, &result) < 0) {
        verdict_fail(ret_verdict, SANDBOX_UNAVAILABLE, "there is no slot to run programs in");
        return;
    }
    if (result.outcome == SANDBOX_BROKEN) {
        verdict_fail(ret_verdict, SANDBOX_UNAVAILABLE, "%s", result.message);
        return;
    }
    verdict_set_score(ret_verdict, 0, "ran");
    ret_verdict->detail = detail_of(&result);
}

const struct verifier verifier_program = {
    .name = "program", .version = "1", .help = "runs a program", .runs_programs = true, .grade = grade};
