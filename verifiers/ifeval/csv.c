/* IFBench's tables: rows of fields, in the form of RFC 4180. */
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/rules_private.h"

struct field {
    struct text raw; /* as it stands, quotes included, without blanks around */
    bool quoted;
    bool last; /* of its row */
};

/* Behind the opening quote: up to the one that closes, doubled ones aside. */
static size_t quoted_end(struct text text)
{
    size_t at = 1;

    while (at < text.length_bytes) {
        at += text_index_of(text_from(text, at), TEXT_LITERAL("\""));
        if (at + 1 >= text.length_bytes || text.data[at + 1] != '"')
            break;
        at += 2;
    }
    return at < text.length_bytes ? at + 1 : text.length_bytes;
}

/* False at the end of the text. */
static bool next_field(struct text *rest, char separator, struct field *ret_field)
{
    struct text ahead = *rest;
    size_t end = 0;

    if (!rest->data)
        return false;
    while (ahead.length_bytes && *ahead.data == ' ')
        ahead = text_from(ahead, 1);
    ret_field->quoted = ahead.length_bytes && *ahead.data == '"';
    if (ret_field->quoted)
        end = quoted_end(ahead);
    while (end < ahead.length_bytes && ahead.data[end] != separator && ahead.data[end] != '\n')
        end++;
    ret_field->raw = text_stripped((struct text){ahead.data, end});
    ret_field->last = end == ahead.length_bytes || ahead.data[end] == '\n';
    *rest = end < ahead.length_bytes ? text_from(ahead, end + 1) : TEXT_NONE;
    return true;
}

struct table {
    char separator;
    const char *const *header; /* five names */
    size_t rows;               /* the header not counted */
};

#define COLUMNS 5

/* The name, in quotes or not. */
static bool is_name(const struct field *field, const char *name)
{
    struct text text = field->raw;

    if (field->quoted && text.length_bytes > 1)
        text = (struct text){text.data + 1, text.length_bytes - 2};
    return text_equals(text, name);
}

/* Every row has five fields, the first one those of the header; `holds` holds for every field, and `once` for one below
 * the header. Either may be NULL. */
static bool is_table(struct text text, const struct table *table, bool (*holds)(const struct field *field),
                     bool (*once)(const struct field *field))
{
    struct text rest = text_stripped(text);
    struct field field;
    size_t row = 0;
    size_t column = 0;
    bool found = !once;

    while (next_field(&rest, table->separator, &field)) {
        if (column == COLUMNS || (row == 0 && !is_name(&field, table->header[column])) || (holds && !holds(&field)))
            return false;
        found = found || (row > 0 && once(&field));
        column++;
        if (!field.last)
            continue;
        if (column != COLUMNS)
            return false;
        column = 0;
        row++;
    }
    return found && row == table->rows + 1;
}

RULE(is_city_csv)
{
    static const char *const header[COLUMNS] = {"ID", "Country", "City", "Year", "Count"};
    static const struct table table = {',', header, 7};

    return is_table(passage->text, &table, NULL, NULL);
}

/* Closed, and in quotes as a whole. */
static bool is_in_quotes(const struct field *field)
{
    return field->quoted && field->raw.length_bytes > 1 && quoted_end(field->raw) == field->raw.length_bytes &&
           field->raw.data[field->raw.length_bytes - 1] == '"';
}

/* Something in the quotes that is neither a letter, a number, _ nor white space. */
static bool is_special(const struct field *field)
{
    struct text rest = field->raw;

    if (!is_in_quotes(field))
        return false;
    rest = (struct text){rest.data + 1, rest.length_bytes - 2};
    while (rest.length_bytes) {
        uint32_t point = character_take(&rest);
        if (point != '_' && !(character_classes(point) & (CHARACTER_LETTER | CHARACTER_NUMBER | CHARACTER_SPACE)))
            return true;
    }
    return false;
}

RULE(is_special_csv)
{
    static const char *const header[COLUMNS] = {"ProductID", "Category", "Brand", "Price", "Stock"};
    static const struct table table = {',', header, 14};

    return is_table(passage->text, &table, NULL, is_special);
}

RULE(is_quoted_csv)
{
    static const char *const header[COLUMNS] = {"StudentID", "Subject", "Grade", "Semester", "Score"};
    static const struct table table = {'\t', header, 3};

    return is_table(passage->text, &table, is_in_quotes, NULL);
}
