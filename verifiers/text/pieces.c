#include "verifiers/text/pieces.h"

#include "server/base/cleanup.h"

const char *const pieces_kind_names[PIECES_KINDS] = {
    [PIECES_NONE] = "none",
    [PIECES_PER_LINE] = "per_line",
    [PIECES_PER_PARAGRAPH] = "per_paragraph",
};

enum pieces_kind pieces_kind_of(struct text name)
{
    for (int kind = PIECES_PER_LINE; kind < PIECES_KINDS; kind++)
        if (text_equals(name, pieces_kind_names[kind]))
            return (enum pieces_kind)kind;
    return PIECES_NONE;
}

struct line {
    struct text text; /* without its break */
    size_t end_bytes; /* behind it */
    bool blank;
};

static bool is_white(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\v' || byte == '\f';
}

static bool is_blank(struct text text)
{
    for (size_t i = 0; i < text.length_bytes; i++)
        if (!is_white(text.data[i]))
            return false;
    return true;
}

static bool next_line(struct text whole, size_t at, struct line *ret_line)
{
    if (at >= whole.length_bytes)
        return false;
    const char *start = whole.data + at;
    const char *feed = memchr(start, '\n', whole.length_bytes - at);
    size_t length_bytes = feed ? (size_t)(feed - start) : whole.length_bytes - at;

    ret_line->end_bytes = at + length_bytes + (feed ? 1 : 0);
    if (feed && length_bytes > 0 && start[length_bytes - 1] == '\r')
        length_bytes--;
    ret_line->text = (struct text){start, length_bytes};
    ret_line->blank = is_blank(ret_line->text);
    return true;
}

bool pieces_next(struct text whole, enum pieces_kind kind, size_t *at, struct piece *ret_piece)
{
    struct line line;
    bool found = false;

    while (*at < whole.length_bytes && whole.data[*at] == '\n')
        ++*at;
    while (next_line(whole, *at, &line) && !(found && line.blank)) {
        *at = line.end_bytes;
        if (line.blank)
            continue;
        const char *start = found ? ret_piece->text.data : line.text.data;
        const char *end = line.text.data + line.text.length_bytes;
        *ret_piece = (struct piece){{start, (size_t)(end - start)}, line.end_bytes};
        found = true;
        if (kind == PIECES_PER_LINE)
            break;
    }
    return found;
}

struct piece *pieces_of(struct text whole, enum pieces_kind kind, size_t *ret_count)
{
    struct piece *pieces = xcalloc(16, sizeof *pieces);
    size_t room = 16;
    size_t count = 0;
    size_t at = 0;
    struct piece piece;

    while (count <= PIECES_MAX && pieces_next(whole, kind, &at, &piece)) {
        if (count == room) {
            room *= 2;
            pieces = xrealloc(pieces, room * sizeof *pieces);
        }
        pieces[count++] = piece;
    }
    *ret_count = count;
    return pieces;
}
