#include "server/base/json_big.h"
#include "server/verify/kept_inputs_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES ((size_t)64 << 20) /* of one file: the text of a request may take six bytes for each of its own */
#define ENDING ".json"
#define UNFINISHED ENDING ".new" /* behind a dot and the name */

/* --- what stands in a file --- */

static void put_value(struct json_write *json, const char *key, const json_t *value)
{
    _cleanup_free_ char *text = value ? json_big_dump(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    json_put_raw(json, key, text_of(text));
}

static void write_verifier(struct json_write *json, const struct verifier_spec *spec)
{
    json_object_begin(json);
    json_put_string(json, "id", spec->id);
    json_put_string(json, "name", spec->verifier->name);
    json_put_string(json, "version", spec->version);
    json_put_string(json, "options_sha256", spec->options_sha256);
    json_put_raw(json, "options", text_of(spec->options_json));
    if (spec->steps)
        json_put_string(json, "steps", pieces_kind_names[spec->steps]);
    if (spec->reference_json)
        json_put_raw(json, "reference", text_of(spec->reference_json));
    json_object_end(json);
}

/* Without an index all are kept; else the one at it, and those that its `of` leads to: a list of less is refused. */
static bool is_kept(const struct kept_input *input, size_t index)
{
    size_t at = input->index < 0 ? index : (size_t)input->index;

    while (at != index && input->list->specs[at].of)
        at = input->list->specs[at].of - 1;
    return at == index;
}

static void write_input(struct json_write *json, const struct kept_input *input, const json_t *request)
{
    json_object_begin(json);
    json_put_time(json, "kept_at", input->at_utc_us);
    json_put_string(json, "code", input->code);
    json_put_string(json, "run", input->run);
    json_put_string(json, "rollout", input->rollout);
    json_key(json, "verifiers");
    json_array_begin(json);
    for (size_t i = 0; i < input->list->count; i++)
        if (is_kept(input, i))
            write_verifier(json, &input->list->specs[i]);
    json_array_end(json);
    put_value(json, "reference", json_object_get(request, "reference"));
    json_put_text(json, "prompt", json_text_of(json_object_get(request, "prompt")));
    put_value(json, "completion_tokens", json_object_get(request, "completion_tokens"));
    json_put_text(json, "completion", json_text_of(json_object_get(request, "completion")));
    json_object_end(json);
}

/* --- the folder --- */

struct kept_file {
    char *name;
    int64_t bytes;
};

struct kept_files {
    struct kept_file *list;
    size_t count;
    int64_t bytes;
};

static void files_finish(struct kept_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->list[i].name);
    free(files->list);
}

static void close_folder(DIR **folder)
{
    if (*folder)
        closedir(*folder);
}

static bool is_ours(const char *name)
{
    size_t length = strlen(name);

    return name[0] != '.' && length > strlen(ENDING) && strcmp(name + length - strlen(ENDING), ENDING) == 0;
}

/* True for a file that a killed service did not finish: writers take turns, so nobody else writes it. */
static bool is_left_over(const char *name)
{
    size_t length = strlen(name);

    return name[0] == '.' && length > strlen(UNFINISHED) && strcmp(name + length - strlen(UNFINISHED), UNFINISHED) == 0;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct kept_file *)left)->name, ((const struct kept_file *)right)->name);
}

static void list_files(DIR *folder, struct kept_files *ret_files)
{
    struct dirent *entry;
    struct stat found;

    while ((entry = readdir(folder))) {
        if (is_left_over(entry->d_name))
            unlinkat(dirfd(folder), entry->d_name, 0);
        if (!is_ours(entry->d_name) || fstatat(dirfd(folder), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(found.st_mode))
            continue;
        ret_files->list = xrealloc(ret_files->list, (ret_files->count + 1) * sizeof ret_files->list[0]);
        ret_files->list[ret_files->count++] = (struct kept_file){xstrdup(entry->d_name), found.st_size};
        ret_files->bytes += found.st_size;
    }
    if (ret_files->count)
        qsort(ret_files->list, ret_files->count, sizeof ret_files->list[0], by_name);
}

/* So that one more of this size fits: the oldest first. */
static void make_room(DIR *folder, const struct kept_inputs_limits *limits, int64_t more_bytes)
{
    _cleanup_(files_finish) struct kept_files files = {NULL, 0, 0};
    size_t left;

    list_files(folder, &files);
    left = files.count;
    for (size_t i = 0; i < files.count; i++) {
        if ((int64_t)left < limits->files && files.bytes + more_bytes <= limits->bytes)
            break;
        if (unlinkat(dirfd(folder), files.list[i].name, 0) < 0)
            continue;
        files.bytes -= files.list[i].bytes;
        left--;
    }
}

static int write_file(int folder, const char *name, struct text content)
{
    _cleanup_free_ char *temporary = xasprintf(".%.*s" UNFINISHED, (int)(strlen(name) - strlen(ENDING)), name);
    _cleanup_close_ int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    size_t written = 0;

    if (fd < 0)
        return -1;
    while (written < content.length_bytes) {
        ssize_t count = write(fd, content.data + written, content.length_bytes - written);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            unlinkat(folder, temporary, 0);
            return -1;
        }
        written += (size_t)count;
    }
    return renameat(folder, temporary, folder, name);
}

static int add_content(const char *path, const struct kept_inputs_limits *limits, const char *name, struct text content)
{
    _cleanup_(close_folder) DIR *folder = NULL;

    if ((int64_t)content.length_bytes > limits->bytes) {
        errno = EFBIG;
        return -1;
    }
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return -1;
    folder = opendir(path);
    if (!folder)
        return -1;
    (void)fchmod(dirfd(folder), 0700); /* one that was there already */
    make_room(folder, limits, (int64_t)content.length_bytes);
    return write_file(dirfd(folder), name, content);
}

int kept_inputs_add(const char *folder, const struct kept_inputs_limits *limits, const struct kept_input *input)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    _cleanup_buffer_ struct buffer content;
    struct json_write json;
    json_t *request = json_big_load(input->request, JSON_ALLOW_NUL, NULL);
    int result;

    buffer_init(&content, FILE_BYTES);
    json_write_init(&json, &content);
    write_input(&json, input, request);
    buffer_append_byte(&content, '\n');
    json_decref(request);
    if (content.failed) {
        errno = EFBIG;
        return -1;
    }
    pthread_mutex_lock(&turn);
    result = add_content(folder, limits, input->name, buffer_text(&content));
    pthread_mutex_unlock(&turn);
    return result;
}
