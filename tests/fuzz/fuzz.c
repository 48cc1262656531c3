#include "tests/fuzz/fuzz.h"

#include "server/base/hash.h"
#include "server/settings/settings.h"
#include "server/store/store.h"

#include <jansson.h>
#include <string.h>

/* --- parts of an input --- */

uint8_t fuzz_take_byte(struct text *rest)
{
    if (rest->length_bytes == 0)
        return 0;
    rest->length_bytes--;
    return (uint8_t)*rest->data++;
}

char *fuzz_take_part(struct text *rest, size_t *ret_length_bytes)
{
    const char *end = rest->length_bytes ? memchr(rest->data, FUZZ_SEPARATOR, rest->length_bytes) : NULL;
    size_t length_bytes = end ? (size_t)(end - rest->data) : rest->length_bytes;
    char *part = xstrndup("", 0);

    if (length_bytes > 0) {
        part = xrealloc(part, length_bytes + 1);
        memcpy(part, rest->data, length_bytes);
        part[length_bytes] = '\0';
        rest->data += length_bytes + (end != NULL);
        rest->length_bytes -= length_bytes + (end != NULL);
    } else if (end) {
        rest->data++;
        rest->length_bytes--;
    }
    if (ret_length_bytes)
        *ret_length_bytes = length_bytes;
    return part;
}

/* --- the surroundings of a call, made once --- */

static struct settings settings;
static struct store *store;
static struct store_reader *reader;
static char directory[] = "/tmp/rolloutd-fuzz-XXXXXX";

static void remove_surroundings(void)
{
    static const char *const names[] = {"record.db", "record.db-wal", "record.db-shm", "record.db-lock"};
    store_reader_destroy(reader);
    store_close(store);
    settings_finish(&settings);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        _cleanup_free_ char *path = xasprintf("%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
}

static void no_operations(void *arg, struct store_op *list)
{
    (void)arg;
    FUZZ_CHECK(!list);
}

static void make_surroundings(void)
{
    char program[] = "rolloutd";
    char *argv[] = {program, NULL};
    char message[SETTINGS_MESSAGE_BYTES] = "";
    struct settings_run run;
    int error;

    FUZZ_CHECK(settings_load(1, argv, &settings, &run, message) == 0);
    FUZZ_CHECK(mkdtemp(directory));
    _cleanup_free_ char *path = xasprintf("%s/record.db", directory);
    struct store_options options = {.path = path, .finished = no_operations};
    store = store_open(&options, message, &error);
    reader = store ? store_reader_create(store, message) : NULL;
    if (!reader)
        fprintf(stderr, "%s\n", message);
    FUZZ_CHECK(reader);
    atexit(remove_surroundings);
}

void fuzz_call_init(struct call *call, const uint8_t *body, size_t body_bytes)
{
    if (!reader)
        make_surroundings();
    call_init(call);
    call->settings = &settings;
    call->reader = reader;
    call->request_id = "r1";
    call->authorized = true;
    call->content_type = "application/json";
    call->body = xrealloc(NULL, body_bytes + 1);
    if (body_bytes > 0)
        memcpy(call->body, body, body_bytes);
    call->body[body_bytes] = '\0';
    call->body_bytes = body_bytes;
    sha256_of(body, body_bytes, call->body_sha256);
}

static void check_refusal(const json_t *root, int status)
{
    const char *code = json_string_value(json_object_get(json_object_get(root, "error"), "code"));
    bool known = false;

    FUZZ_CHECK(code);
    for (size_t i = 0; i < ERR_COUNT; i++)
        known |= strcmp(error_rows[i].code, code) == 0 && error_rows[i].status == status;
    FUZZ_CHECK(known);
    FUZZ_CHECK(json_string_length(json_object_get(json_object_get(root, "error"), "message")) > 0);
    FUZZ_CHECK(status != 500);
}

void fuzz_check_reply(const struct call *call)
{
    const struct reply *reply = &call->reply;
    json_error_t error;

    if (getenv("FUZZ_SHOW"))
        fprintf(stderr, "%d %.*s\n", reply->status, (int)reply->body.length_bytes, buffer_text(&reply->body).data);
    if (reply->status == 0 || reply->stream || strcmp(reply->content_type, "application/json") != 0)
        return;
    FUZZ_CHECK(!reply->body.failed);
    json_t *root =
        json_loadb(reply->body.data, reply->body.length_bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    if (!root)
        fprintf(stderr, "%d %s: %.*s\n", reply->status, error.text, (int)reply->body.length_bytes, reply->body.data);
    FUZZ_CHECK(root);
    if (reply->status >= 400)
        check_refusal(root, reply->status);
    json_decref(root);
}
