#include "server/render/csv.h"

#include "server/base/json_scan.h"
#include "server/render/csv_private.h"

#include <string.h>

/* THE list of columns, in their order. */
static const struct csv_column {
    const char *name;
    const char *member;
    const char *key; /* inside the member; NULL: it itself */
} columns[] = {
    {"id", "id", NULL},
    {"run", "run", NULL},
    {"incarnation", "incarnation", NULL},
    {"purpose", "purpose", NULL},
    {"policy_revision", "policy_revision", NULL},
    {"revision_at_end", "revision_at_end", NULL},
    {"batch", "batch", NULL},
    {"group", "group", NULL},
    {"task", "task", NULL},
    {"draw", "draw", NULL},
    {"tags", "tags", NULL},
    {"sample_index", "sample_index", NULL},
    {"created_at", "created_at", NULL},
    {"state", "state", NULL},
    {"reward", "reward", NULL},
    {"shaped_reward", "shaped_reward", NULL},
    {"advantage", "advantage", NULL},
    {"rewards", "rewards", NULL},
    {"heldout", "heldout", NULL},
    {"failure", "failure", "code"},
    {"failure_stage", "failure", "stage"},
    {"failure_message", "failure", "message"},
    {"finish_reason", "finish_reason", NULL},
    {"completion_tokens", "completion_tokens", NULL},
    {"duplicate", "duplicate", NULL},
    {"trainable", "trainable", NULL},
    {"straddles", "straddles", NULL},
    {"engine", "engine", NULL},
    {"engine_revision", "engine_revision", NULL},
    {"engine_model", "engine_model", NULL},
    {"engine_version", "engine_version", NULL},
    {"tokenizer_sha256", "tokenizer_sha256", NULL},
    {"rolloutd_version", "rolloutd_version", NULL},
    {"logprobs_mode", "logprobs_mode", NULL},
    {"seed", "seed", NULL},
    {"seed_sent", "seed_sent", NULL},
    {"seed_honoured", "seed_honoured", NULL},
    {"resample", "resample", NULL},
    {"attempts", "attempts", NULL},
    {"queued_us", "timing", "queued_us"},
    {"engine_us", "timing", "engine_us"},
    {"verify_us", "timing", "verify_us"},
    {"prompt", "prompt", NULL},
    {"reference", "reference", NULL},
    {"text", "text", NULL},
};

render_fields csv_fields(void)
{
    render_fields fields = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(columns); i++)
        fields |= render_field(text_of(columns[i].member));
    return fields;
}

static bool has_column(render_fields fields, const struct csv_column *column)
{
    return fields & render_field(text_of(column->member));
}

void csv_add_header(struct buffer *out, render_fields fields)
{
    bool first = true;
    for (size_t i = 0; i < ARRAY_LENGTH(columns); i++) {
        if (!has_column(fields, &columns[i]))
            continue;
        buffer_append_format(out, "%s%s", first ? "" : ",", columns[i].name);
        first = false;
    }
    buffer_append_string(out, "\r\n");
}

/* The JSON of each column; TEXT_NONE: it has none. */
static void find_cells(struct text row, struct text cells[ARRAY_LENGTH(columns)], const char *member)
{
    struct json_scan scan;
    struct text key;
    json_scan_init(&scan, row);
    for (json_scan_object(&scan); json_scan_member(&scan, &key);) {
        struct text value = json_scan_raw(&scan);
        for (size_t i = 0; i < ARRAY_LENGTH(columns); i++) {
            const char *wanted = member ? columns[i].key : columns[i].member;
            if (!wanted || !text_equals(key, wanted) || (member && strcmp(columns[i].member, member) != 0))
                continue;
            if (member || !columns[i].key)
                cells[i] = value;
            else if (value.length_bytes && value.data[0] == '{' && !cells[i].data)
                find_cells(value, cells, columns[i].member);
        }
    }
}

static bool needs_quotes(struct text text)
{
    static const char marks[] = ",\"\r\n#";
    bool edge = text.length_bytes == 0 || text.data[0] == ' ' || text.data[text.length_bytes - 1] == ' ';
    for (size_t i = 0; !edge && i < text.length_bytes; i++)
        edge = memchr(marks, text.data[i], sizeof(marks) - 1) != NULL;
    return edge;
}

static void add_text(struct buffer *out, struct text text)
{
    if (!needs_quotes(text)) {
        buffer_append(out, text.data, text.length_bytes);
        return;
    }
    buffer_append_byte(out, '"');
    for (size_t i = 0; i < text.length_bytes; i++) {
        if (text.data[i] == '"')
            buffer_append_byte(out, '"');
        buffer_append_byte(out, text.data[i]);
    }
    buffer_append_byte(out, '"');
}

static void add_cell(struct buffer *out, struct text json)
{
    _cleanup_buffer_ struct buffer text = {0};
    struct json_scan scan;
    if (!json.data || text_equals(json, "null"))
        return;
    if (json.data[0] != '"') {
        add_text(out, json);
        return;
    }
    buffer_init(&text, CSV_ROW_BYTES_MAX);
    json_scan_init(&scan, json);
    json_scan_string(&scan, &text);
    add_text(out, text.length_bytes ? buffer_text(&text) : TEXT_LITERAL(""));
}

void csv_add_row(struct buffer *out, render_fields fields, struct text row)
{
    struct text cells[ARRAY_LENGTH(columns)] = {0};
    bool first = true;
    find_cells(row, cells, NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(columns); i++) {
        if (!has_column(fields, &columns[i]))
            continue;
        if (!first)
            buffer_append_byte(out, ',');
        add_cell(out, cells[i]);
        first = false;
    }
    buffer_append_string(out, "\r\n");
}
