#include "verifiers/code/block.h"

#include <strings.h>

#include "verifiers/text/extract.h"

/* Words for a language behind a fence, in any case. */
static const struct {
    const char *tag;
    enum sandbox_language language;
} tags[] = {
    {"python", SANDBOX_PYTHON}, {"python3", SANDBOX_PYTHON}, {"py", SANDBOX_PYTHON},      {"py3", SANDBOX_PYTHON},
    {"pypy3", SANDBOX_PYTHON},  {"pypy", SANDBOX_PYTHON},    {"cpython", SANDBOX_PYTHON}, {"ipython", SANDBOX_PYTHON},
    {"sh", SANDBOX_SH},         {"bash", SANDBOX_SH},        {"shell", SANDBOX_SH},       {"zsh", SANDBOX_SH},
    {"c", SANDBOX_C},           {"c99", SANDBOX_C},          {"c11", SANDBOX_C},          {"gcc", SANDBOX_C},
    {"cpp", SANDBOX_CPP},       {"c++", SANDBOX_CPP},        {"cc", SANDBOX_CPP},         {"cxx", SANDBOX_CPP},
    {"c++17", SANDBOX_CPP},     {"cpp17", SANDBOX_CPP},      {"g++", SANDBOX_CPP},        {"c++11", SANDBOX_CPP},
    {"c++14", SANDBOX_CPP},     {"c++20", SANDBOX_CPP},
};

enum tag { TAG_NONE, TAG_RIGHT, TAG_OTHER };

struct fence {
    size_t indent_bytes;
    size_t count; /* of its signs; 0: the line is no fence */
    char sign;
    struct text word;
    bool alone; /* nothing but blanks, or a tag ("</answer>"), is behind the signs */
};

struct block {
    struct text span;
    size_t indent_bytes;
    bool found;
};

static bool is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static struct text next_line(struct text text, size_t *at)
{
    const char *start = text.data + *at;
    const char *feed = memchr(start, '\n', text.length_bytes - *at);
    size_t length_bytes = feed ? (size_t)(feed - start) : text.length_bytes - *at;

    *at += length_bytes + (feed != NULL);
    return (struct text){start, length_bytes};
}

/* The first word: "python" of "python title=x", "{.python}" and "python:main.py". */
static struct text word_of(struct text info)
{
    size_t start = 0;
    size_t end;

    while (start < info.length_bytes && (is_blank(info.data[start]) || strchr("{.", info.data[start])))
        start++;
    for (end = start; end < info.length_bytes && !is_blank(info.data[end]) && !strchr("}{,:;=(", info.data[end]);)
        end++;
    return (struct text){info.data + start, end - start};
}

/* A tag may stand directly behind the signs that close: "```</answer>", "```<|im_end|>". */
static bool is_alone(struct text info)
{
    struct text rest = text_trimmed(info);

    return !rest.length_bytes ||
           (rest.length_bytes > 2 && rest.data[0] == '<' && (rest.data[1] == '/' || rest.data[1] == '|'));
}

static bool read_fence(struct text line, struct fence *ret_fence)
{
    size_t at = 0;
    size_t start;

    *ret_fence = (struct fence){.count = 0};
    while (at < line.length_bytes && (line.data[at] == ' ' || line.data[at] == '\t'))
        at++;
    start = ret_fence->indent_bytes = at;
    if (at == line.length_bytes || (line.data[at] != '`' && line.data[at] != '~'))
        return false;
    ret_fence->sign = line.data[at];
    while (at < line.length_bytes && line.data[at] == ret_fence->sign)
        at++;
    struct text info = {line.data + at, line.length_bytes - at};
    if (at - start < 3 || (ret_fence->sign == '`' && memchr(info.data, '`', info.length_bytes)))
        return false;
    ret_fence->count = at - start;
    ret_fence->word = word_of(info);
    ret_fence->alone = is_alone(info);
    return true;
}

static size_t count_of(struct text text, size_t at, const char *bytes)
{
    size_t end = at;

    while (end < text.length_bytes && text.data[end] && strchr(bytes, text.data[end]))
        end++;
    return end - at;
}

static struct text behind(struct text text, size_t bytes)
{
    return (struct text){text.data + bytes, text.length_bytes - bytes};
}

/* Of "- " and "12. " with what is before it; 0: the line begins no item of a list. */
static size_t list_mark_bytes(struct text line)
{
    size_t at = count_of(line, 0, " \t");
    size_t digits = count_of(line, at, "0123456789");
    size_t mark = count_of(line, at + digits, digits ? ".)" : "-*+");

    return mark == 1 && count_of(line, at + digits + 1, " \t") ? at + digits + 1 : 0;
}

static size_t answer_tag_bytes(struct text line)
{
    static const char tag[] = "<answer>";
    size_t at = count_of(line, 0, " \t");

    return line.length_bytes - at >= strlen(tag) && memcmp(line.data + at, tag, strlen(tag)) == 0 ? at + strlen(tag)
                                                                                                  : 0;
}

/* A fence that opens may stand behind the mark of a list, and behind <answer>. */
static bool read_opening(struct text line, struct fence *ret_fence)
{
    size_t mark_bytes = list_mark_bytes(line);
    size_t tag_bytes = answer_tag_bytes(line);

    if (!read_fence(behind(line, mark_bytes + tag_bytes), ret_fence))
        return false;
    ret_fence->indent_bytes = tag_bytes ? 0 : ret_fence->indent_bytes + mark_bytes;
    return true;
}

/* "3", "3.11" of "python3.11". */
static bool is_python_3(struct text word)
{
    static const char name[] = "python3";

    return word.length_bytes > strlen(name) && strncasecmp(word.data, name, strlen(name)) == 0 &&
           count_of(word, strlen(name), ".0123456789") == word.length_bytes - strlen(name);
}

bool code_block_language(struct text word, enum sandbox_language *ret_language)
{
    if (is_python_3(word)) {
        *ret_language = SANDBOX_PYTHON;
        return true;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(tags); i++)
        if (strlen(tags[i].tag) == word.length_bytes && strncasecmp(tags[i].tag, word.data, word.length_bytes) == 0) {
            *ret_language = tags[i].language;
            return true;
        }
    return false;
}

static enum tag tag_of(const struct fence *fence, enum sandbox_language wanted)
{
    enum sandbox_language language;

    if (!fence->word.length_bytes)
        return TAG_NONE;
    return code_block_language(fence->word, &language) && language == wanted ? TAG_RIGHT : TAG_OTHER;
}

static bool closes(const struct fence *fence, const struct fence *open)
{
    return fence->alone && fence->sign == open->sign && fence->count >= open->count;
}

/* To the signs that close it. False: there are none. */
static bool read_block(struct text text, size_t *at, const struct fence *open, struct block *ret_block)
{
    size_t start = *at;

    while (*at < text.length_bytes) {
        struct text line = next_line(text, at);
        struct fence fence;
        if (read_fence(line, &fence) && closes(&fence, open)) {
            *ret_block =
                (struct block){{text.data + start, (size_t)(line.data - text.data) - start}, open->indent_bytes, true};
            *at = (size_t)(line.data - text.data) + fence.indent_bytes + fence.count;
            return true;
        }
    }
    return false;
}

static bool opens_reasoning(struct text line)
{
    return text_find(line, 0, "<think>") < line.length_bytes;
}

static void forget(struct block blocks[3])
{
    blocks[TAG_NONE].found = blocks[TAG_RIGHT].found = false;
}

/* ret_blocks: the last one of each kind of tag. */
static void find_blocks(struct text text, enum sandbox_language language, struct block ret_blocks[3])
{
    size_t at = 0;

    while (at < text.length_bytes) {
        struct fence open;
        struct text line = next_line(text, &at);
        if (opens_reasoning(line))
            forget(ret_blocks);
        if (opens_reasoning(line) || extract_turn(line).length_bytes < line.length_bytes)
            return;
        if (!read_opening(line, &open))
            continue;
        enum tag tag = tag_of(&open, language);
        if (!read_block(text, &at, &open, &ret_blocks[tag])) {
            if (tag != TAG_OTHER)
                forget(ret_blocks);
            return;
        }
    }
}

static void append_code(const struct block *block, struct buffer *code)
{
    size_t at = 0;

    while (at < block->span.length_bytes) {
        struct text line = next_line(block->span, &at);
        size_t skipped = 0;
        while (skipped < block->indent_bytes && skipped < line.length_bytes &&
               (line.data[skipped] == ' ' || line.data[skipped] == '\t'))
            skipped++;
        if (line.length_bytes > skipped && line.data[line.length_bytes - 1] == '\r')
            line.length_bytes--;
        buffer_append(code, line.data + skipped, line.length_bytes - skipped);
        buffer_append_byte(code, '\n');
    }
}

static bool is_quote(char byte)
{
    return byte == '"' || byte == '\'';
}

/* Behind the last </think> that is no text of a program: there a quote is beside it. */
static struct text behind_reasoning(struct text text)
{
    const size_t tag_bytes = strlen("</think>");
    size_t from = 0;

    for (size_t at = 0; (at = text_find(text, at, "</think>")) < text.length_bytes; at += tag_bytes) {
        bool quoted = at > 0 && is_quote(text.data[at - 1]);
        if (!quoted && !(at + tag_bytes < text.length_bytes && is_quote(text.data[at + tag_bytes])))
            from = at + tag_bytes;
    }
    return behind(text, from);
}

bool code_block_find(struct text completion, enum sandbox_language language, struct text *ret_span, struct buffer *code)
{
    struct block blocks[3] = {{.found = false}};
    const struct block *block;

    find_blocks(behind_reasoning(completion), language, blocks);
    block = blocks[TAG_RIGHT].found ? &blocks[TAG_RIGHT] : &blocks[TAG_NONE];
    if (!block->found || !text_trimmed(block->span).length_bytes)
        return false;
    *ret_span = block->span;
    append_code(block, code);
    return true;
}
