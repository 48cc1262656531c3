#include "support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *load_json(const char *path)
{
    json_error_t error;
    json_t *json = json_load_file(path, JSON_ALLOW_NUL, &error);

    if (!json) {
        fprintf(stderr, "%s:%d: %s\n", path, error.line, error.text);
        abort();
    }
    return json;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

char **list_files(const char *folder, const char *ending, size_t *ret_count)
{
    DIR *directory = opendir(folder);
    char **names = NULL;
    size_t count = 0, ending_bytes = strlen(ending);

    if (!directory) {
        perror(folder);
        abort();
    }
    for (struct dirent *entry; (entry = readdir(directory));) {
        size_t length = strlen(entry->d_name);

        if (length < ending_bytes || strcmp(entry->d_name + length - ending_bytes, ending) != 0)
            continue;
        names = xrealloc(names, (count + 1) * sizeof(*names));
        names[count++] = xasprintf("%s/%s", folder, entry->d_name);
    }
    closedir(directory);
    if (count)
        qsort(names, count, sizeof(*names), by_name);
    *ret_count = count;
    return names;
}

struct body body_of(const char *bytes, size_t length_bytes)
{
    struct body body = {malloc(length_bytes ? length_bytes : 1), length_bytes};

    if (length_bytes)
        memcpy(body.data, bytes, length_bytes);
    return body;
}

enum exchange_outcome parse_bytes(struct exchange *exchange, int status, const char *bytes, size_t length_bytes,
                                  struct sample *ret_sample, struct sample_error *ret_error)
{
    struct body body = body_of(bytes, length_bytes);
    struct engine_reply reply = {.status = status, .body = {body.data, body.length_bytes}};
    enum exchange_outcome outcome = exchange_parse(exchange, &reply, ret_sample, ret_error);

    free(body.data);
    return outcome;
}

struct sample_request plain_request(void)
{
    static const uint32_t prompt_ids[] = {1, 411, 907, 23};

    return (struct sample_request){
        .prompt_ids = prompt_ids,
        .prompt_id_count = 4,
        .sampling = {.max_tokens = 16, .temperature = 1, .top_p = 1},
        .model = TEXT_LITERAL("demo-1b"),
        .seed = UINT64_C(8795940449617632684),
    };
}

json_t *built_body(struct exchange *exchange, const char **ret_path)
{
    struct engine_call call;
    struct sample_error error;
    json_error_t problem;
    json_t *json;

    assert_true(exchange_build(exchange, &call, &error));
    assert_string_equal(call.method, "POST");
    json = json_loadb(call.body.data, call.body.length_bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &problem);
    if (!json)
        fail_msg("no JSON: %s in %.*s", problem.text, (int)call.body.length_bytes, call.body.data);
    if (ret_path)
        *ret_path = call.path;
    engine_call_finish(&call);
    return json;
}
