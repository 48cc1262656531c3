/* json_schema: is the completion a JSON text that a schema (draft 2020-12) takes?
 *
 * The schema is the option `schema`, else the reference, and is read before the completion: a broken one leaves every
 * completion unscored. The whole completion is the text; with `allow_fence` one code fence may be around it. Reasons, a
 * closed set: valid, invalid, not_json, duplicate_key, too_deep, too_large, work_limit. */
#include "verifiers/rows.h"
#include "verifiers/schema/schema.h"

#include <stdio.h>

#define PATH_BYTES 512

static const struct verifier_option options[] = {
    {"schema", OPTION_ANY, "null", NULL, 0, 0, "the schema; null: the reference is it"},
    {"allow_fence", OPTION_BOOL, "false", NULL, 0, 0, "one fence of backticks may be around the text"},
};

static int check_schema(const json_t *json, const char *option, struct verifier_problem *ret_problem)
{
    char problem[SCHEMA_PROBLEM_BYTES];
    struct schema *schema = schema_create(json, problem);

    if (!schema)
        return verifier_refuse(ret_problem, option, "%s", problem);
    schema_destroy(schema);
    return 0;
}

static int check_options(const json_t *filled, struct verifier_problem *ret_problem)
{
    const json_t *schema = json_object_get(filled, "schema");
    return json_is_null(schema) ? 0 : check_schema(schema, "schema", ret_problem);
}

static int check_reference(const json_t *reference, const json_t *filled, struct verifier_problem *ret_problem)
{
    return json_is_null(json_object_get(filled, "schema")) ? check_schema(reference, "", ret_problem) : 0;
}

/* --- the fence --- */

static bool is_space(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static struct text without_space(struct text text)
{
    while (text.length_bytes > 0 && is_space(text.data[0])) {
        text.data++;
        text.length_bytes--;
    }
    while (text.length_bytes > 0 && is_space(text.data[text.length_bytes - 1]))
        text.length_bytes--;
    return text;
}

static bool is_tag(struct text tag)
{
    static const char json[] = "json";

    if (tag.length_bytes == 0)
        return true;
    for (size_t i = 0; i < tag.length_bytes; i++)
        if (i >= sizeof json - 1 || (tag.data[i] | 0x20) != json[i])
            return false;
    return tag.length_bytes == sizeof json - 1;
}

/* The content between a first line of three or more backticks with the tag, and a last line of as many. A text without
 * such lines is its own content. */
static struct text within_fence(struct text completion)
{
    struct text whole = without_space(completion);
    const char *end = whole.data + whole.length_bytes;
    const char *line = memchr(whole.data, '\n', whole.length_bytes);
    const char *close = end;
    size_t ticks = 0;

    while (ticks < whole.length_bytes && whole.data[ticks] == '`')
        ticks++;
    if (ticks < 3 || !line)
        return completion;
    while (close > line && close[-1] == '`')
        close--;
    if ((size_t)(end - close) != ticks ||
        !is_tag(without_space((struct text){whole.data + ticks, (size_t)(line - whole.data) - ticks})))
        return completion;
    while (close[-1] == ' ' || close[-1] == '\t')
        close--;
    return close[-1] == '\n' ? (struct text){line, (size_t)(close - line)} : completion;
}

/* --- the verdict --- */

static void note_unread(struct verdict *verdict, struct text completion, const struct document *document)
{
    json_int_t at = document->text.data - completion.data + (json_int_t)document->stopped_at;

    verdict->detail = json_object();
    json_object_set_new(verdict->detail, "problem", json_string(document->problem));
    json_object_set_new(verdict->detail, "at", json_integer(at));
}

static void note_violation(struct verdict *verdict, struct text completion, const struct document *document,
                           const struct schema_violation *violation)
{
    _cleanup_buffer_ struct buffer path;

    buffer_init(&path, document->text.length_bytes * 2 + 64);
    value_path(document, violation->value, PATH_BYTES, &path);
    verdict->detail = json_object();
    json_object_set_new(verdict->detail, "path", json_stringn(buffer_text(&path).data, path.length_bytes));
    json_object_set_new(verdict->detail, "keyword", json_string(violation->keyword));
    verdict_note_extracted(verdict, completion, value_written(document, violation->value));
}

static void grade_document(const struct verifier_input *input, struct schema *schema, const char *code,
                           const struct document *document, struct verdict *ret_verdict)
{
    struct schema_violation violation;

    switch (schema_validate(schema, document, &violation)) {
    case SCHEMA_VALID:
        verdict_set(ret_verdict, true, "valid");
        break;
    case SCHEMA_INVALID:
        verdict_set(ret_verdict, false, "invalid");
        note_violation(ret_verdict, input->completion, document, &violation);
        break;
    case SCHEMA_WORK_LIMIT:
        verdict_set(ret_verdict, false, "work_limit");
        break;
    case SCHEMA_TOO_DEEP:
        verdict_set(ret_verdict, false, "too_deep");
        break;
    case SCHEMA_LOOPS:
        verdict_fail(ret_verdict, code, "a $dynamicRef of the schema comes back to the same value");
        break;
    }
}

static void grade_text(const struct verifier_input *input, struct schema *schema, const char *code,
                       struct verdict *ret_verdict)
{
    static const char *const reasons[] = {[DOCUMENT_NOT_JSON] = "not_json",
                                          [DOCUMENT_DUPLICATE_KEY] = "duplicate_key",
                                          [DOCUMENT_TOO_DEEP] = "too_deep",
                                          [DOCUMENT_TOO_LARGE] = "too_large"};
    bool fence = option_is_true(input->options, "allow_fence");
    struct document document;
    enum document_status status = document_read(fence ? within_fence(input->completion) : input->completion, &document);

    if (status == DOCUMENT_READ) {
        grade_document(input, schema, code, &document, ret_verdict);
    } else {
        verdict_set(ret_verdict, false, reasons[status]);
        note_unread(ret_verdict, input->completion, &document);
    }
    document_finish(&document);
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    const json_t *option = json_object_get(input->options, "schema");
    bool given = !json_is_null(option);
    const char *code = given ? "verifier_options" : "reference_unreadable";
    _cleanup_(schema_returnp) struct schema *schema = NULL;
    char problem[SCHEMA_PROBLEM_BYTES];

    if (!given && (!input->reference || json_is_null(input->reference))) {
        verdict_fail(ret_verdict, code, "there is no schema: neither the option nor a reference");
        return;
    }
    schema = schema_borrow(given ? option : input->reference, problem);
    if (schema)
        grade_text(input, schema, code, ret_verdict);
    else
        verdict_fail(ret_verdict, code, "%s", problem);
}

const struct verifier verifier_json_schema = {
    .name = "json_schema",
    .version = "1",
    .help = "1 if the completion is JSON that a schema (draft 2020-12) takes",
    .reads_big_numbers = true,
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_options = check_options,
    .check_reference = check_reference,
    .grade = grade,
};
