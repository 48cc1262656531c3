/* The file of settings, written from the table. */
#include "client/adapters/adapter.h"
#include "server/base/cleanup.h"
#include "server/settings/table.h"

#include <string.h>

enum { LINE_BYTES = 120, DESCRIPTION_BYTES = 256, ENGINE_BYTES = 32, EXTERNAL_BYTES = 44 };

/* Words of several texts as comment lines, each behind `margin`. */
struct comment {
    FILE *out;
    const char *margin;
    size_t column; /* 0: at the start of a line */
};

static void comment_word(struct comment *comment, const char *word, size_t length_bytes)
{
    if (comment->column && comment->column + 1 + length_bytes > LINE_BYTES) {
        fputc('\n', comment->out);
        comment->column = 0;
    }
    if (comment->column == 0)
        comment->column = (size_t)fprintf(comment->out, "%s#", comment->margin);
    fprintf(comment->out, " %.*s", (int)length_bytes, word);
    comment->column += 1 + length_bytes;
}

static void comment_text(struct comment *comment, const char *text)
{
    while (*text) {
        size_t length_bytes = strcspn(text, " ");
        comment_word(comment, text, length_bytes);
        text += length_bytes;
        text += strspn(text, " ");
    }
}

static void comment_end(struct comment *comment)
{
    if (comment->column)
        fputc('\n', comment->out);
    comment->column = 0;
}

static void comment_limits(struct comment *comment, const struct setting_row *row)
{
    char description[DESCRIPTION_BYTES];
    if (row->kind == SETTING_TEXT || row->kind == SETTING_ENGINES || row->kind == SETTING_EXTERNALS)
        return;
    setting_describe(row, false, description, sizeof(description));
    _cleanup_free_ char *sentence = xasprintf("(%s)", description);
    comment_word(comment, sentence, strlen(sentence)); /* never broken over two lines */
}

static void comment_kinds(struct comment *comment)
{
    comment_text(comment, "Kinds:");
    for (size_t i = 0; engine_kinds[i]; i++) {
        _cleanup_free_ char *word = xasprintf("%s%s", engine_kinds[i], engine_kinds[i + 1] ? "," : ".");
        comment_text(comment, word);
    }
}

/* The help stands behind a column. */
static void print_field(FILE *out, const char *start, const char *name, const char *example, int column,
                        const char *help)
{
    int written = fprintf(out, "#  %s %s: %s", start, name, example);
    fprintf(out, "%*s # %s\n", written < column ? column - written : 0, "", help);
}

static void print_engine_example(FILE *out)
{
    for (size_t i = 0; i < ENGINE_FIELD_COUNT; i++)
        print_field(out, i ? " " : "-", engine_fields[i].name, engine_fields[i].example, ENGINE_BYTES,
                    engine_fields[i].help);
}

static void print_external_example(FILE *out)
{
    for (size_t i = 0; i < EXTERNAL_FIELD_COUNT; i++)
        print_field(out, i ? " " : "-", external_fields[i].name, external_fields[i].example, EXTERNAL_BYTES,
                    external_fields[i].help);
}

static void print_row(FILE *out, const struct setting_row *row, size_t group_bytes)
{
    struct comment comment = {.out = out, .margin = group_bytes ? "  " : ""};
    const char *name = group_bytes ? row->key + group_bytes + 1 : row->key;
    bool engines = row->kind == SETTING_ENGINES;
    bool externals = row->kind == SETTING_EXTERNALS;
    comment_text(&comment, row->help);
    comment_limits(&comment, row);
    if (engines)
        comment_kinds(&comment);
    comment_end(&comment);
    fprintf(out, "%s%s: %s\n", comment.margin, name,
            engines || externals ? "[]"
            : *row->standard     ? row->standard
                                 : "\"\"");
    if (engines)
        print_engine_example(out);
    if (externals)
        print_external_example(out);
}

static void print_group(FILE *out, const char *key, size_t group_bytes)
{
    struct comment comment = {.out = out, .margin = ""};
    const char *help = setting_group_help(key, group_bytes);
    if (help)
        comment_text(&comment, help);
    comment_end(&comment);
    fprintf(out, "%.*s:\n", (int)group_bytes, key);
}

void settings_print_config(FILE *out)
{
    const char *group = "";
    size_t group_bytes = 0;
    fputs("# rolloutd: every setting with its default, as rolloutd --print-config writes it. A missing key has its "
          "default;\n"
          "# flags and the environment (ROLLOUTD_LOG_LEVEL for log.level) win over this file. Durations: 250ms, 30s, "
          "5m, 2h; sizes:\n"
          "# 10KiB, 64MiB, 1GiB.\n",
          out);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const struct setting_row *row = &setting_rows[i];
        const char *dot = strchr(row->key, '.');
        size_t bytes = dot ? (size_t)(dot - row->key) : 0;
        bool same = bytes && bytes == group_bytes && memcmp(row->key, group, bytes) == 0;
        if (!same)
            fputc('\n', out);
        if (bytes && !same)
            print_group(out, row->key, bytes);
        print_row(out, row, bytes);
        group = row->key;
        group_bytes = bytes;
    }
}
