/* Brackets, quotes, lines, bullets and other layout. */
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/rules_private.h"

/* --- nesting --- */

/* Round, square and curly brackets, five deep, that close in order. A bracket that does not fit begins anew. */
RULE(nests_brackets)
{
    static const char open[] = "([{";
    static const char close[] = ")]}";
    _cleanup_buffer_ struct buffer levels;
    size_t deepest = 0;

    buffer_init(&levels, passage->text.length_bytes);
    for (size_t i = 0; i < passage->text.length_bytes; i++) {
        char byte = passage->text.data[i];
        const char *closes = byte ? strchr(close, byte) : NULL;
        if (byte && strchr(open, byte)) {
            buffer_append_byte(&levels, byte);
            deepest = levels.length_bytes > deepest ? levels.length_bytes : deepest;
        } else if (closes && levels.length_bytes && levels.data[levels.length_bytes - 1] == open[closes - close]) {
            levels.length_bytes--;
            if (deepest >= 5)
                return true;
        } else if (closes) {
            buffer_clear(&levels);
            deepest = 0;
        }
    }
    return false;
}

/* An apostrophe stands between two letters. */
static bool is_apostrophe(struct text text, size_t at)
{
    struct text before = {text.data, at};
    struct text after = text_from(text, at + 1);

    return before.length_bytes && after.length_bytes &&
           character_classes(character_take_last(&before)) & CHARACTER_LETTER &&
           character_classes(character_take(&after)) & CHARACTER_LETTER;
}

/* Double and single quotes in turn, three deep, all three closed. A quote like the last open one closes it. Only two kinds
 * alternate, so the depth and the kind of the outermost one say all. */
RULE(nests_quotes)
{
    size_t depth = 0;
    size_t deepest = 0;
    char top = 0; /* the last open one, where one is open */

    for (size_t i = 0; i < passage->text.length_bytes; i++) {
        char byte = passage->text.data[i];
        if ((byte != '"' && byte != '\'') || (byte == '\'' && is_apostrophe(passage->text, i)))
            continue;
        if (depth > 0 && byte == top) {
            top = byte == '"' ? '\'' : '"';
            if (deepest - --depth >= 3)
                return true;
        } else {
            top = byte;
            depth++;
        }
        deepest = depth > deepest ? depth : deepest;
    }
    return false;
}

/* No quote directly behind another one, and none at the end, digits and punctuation aside. */
RULE(explains_quotes)
{
    bool quote = false; /* the last character that counts was one */
    bool letter = true; /* something stood behind it */

    for (struct text rest = passage->text; rest.length_bytes;) {
        uint32_t point = character_take(&rest);
        unsigned classes = character_classes(point);
        if (classes & CHARACTER_SPACE)
            continue;
        if (point == '"' || point == 0x201c || point == 0x201d) {
            if (quote && !letter)
                return false;
            quote = true;
            letter = false;
            continue;
        }
        letter = true;
        if (!(classes & (CHARACTER_PUNCTUATION | CHARACTER_DIGIT)))
            quote = false;
    }
    return !quote;
}

/* --- options --- */

/* Where an option ends: at a slash, the word "or" or a comma, whichever of them the options have first in this order. */
static size_t option_end(struct text options, struct text all, size_t *ret_sign_bytes)
{
    static const struct text signs[] = {{"/", 1}, {" or ", 4}, {",", 1}};

    for (size_t i = 0; i < ARRAY_LENGTH(signs); i++) {
        if (!text_contains(all, signs[i]))
            continue;
        *ret_sign_bytes = signs[i].length_bytes;
        return text_index_of(options, signs[i]);
    }
    return options.length_bytes;
}

/* Letters a, b and c in front: then the punctuation of an option counts. */
static bool are_lettered(struct text options)
{
    struct text run;

    for (const char *letter = "abc"; *letter; letter++)
        if (!next_run(&options, &run) || run.length_bytes != 1 || (run.data[0] | 32) != *letter)
            return false;
    return true;
}

RULE(is_option)
{
    bool strict = are_lettered(kwarg[0].text);
    struct text text = strict ? text_stripped(passage->text) : word_bare(passage->text);
    struct text rest = kwarg[0].text;
    size_t sign_bytes = 0;

    while (rest.length_bytes) {
        size_t end = option_end(rest, kwarg[0].text, &sign_bytes);
        struct text option = {rest.data, end};
        if (strict ? text_same(text, text_stripped(option)) : text_same_letters(text, word_bare(option)))
            return true;
        rest = end < rest.length_bytes ? text_from(rest, end + sign_bytes) : (struct text){"", 0};
    }
    return false;
}

/* --- lines --- */

RULE(has_words_on_lines)
{
    struct parts lines = parts_of(passage->text);
    struct text line;
    struct text word;

    while (next_full_line(&lines, &line)) {
        next_lettered(&line, &word);
        if (next_lettered(&line, &word))
            return false;
    }
    return true;
}

RULE(is_indented)
{
    struct parts lines = parts_of(passage->text);
    struct text line;
    size_t before = 0;

    for (bool first = true; next_full_line(&lines, &line); first = false) {
        size_t indent = 0;
        while (line.data[indent] == ' ') /* a full line does not end with its spaces */
            indent++;
        if (!first && indent <= before)
            return false;
        before = indent;
    }
    return true;
}

static bool is_line_of(struct text line, char mark)
{
    line = text_stripped(line);
    return line.length_bytes && *line.data == mark;
}

/* Lines that begin with *, and behind each of them, before the next one, one that begins with - */
RULE(has_sub_bullets)
{
    struct parts lines = parts_of(passage->text);
    struct text line;
    bool any = false;
    bool open = false; /* the last bullet has none yet */

    while (next_line(&lines, &line)) {
        if (is_line_of(line, '*')) {
            if (open)
                return false;
            any = open = true;
        } else if (is_line_of(line, '-')) {
            open = false;
        }
    }
    return any && !open;
}

/* Sentences of a text that end with a full stop. */
static size_t count_statements(struct text text)
{
    _cleanup_spans_ struct spans sentences = {0};
    size_t count = 0;

    split_sentences(text, &sentences);
    for (size_t i = 0; i < sentences.count; i++)
        count += text_contains(text_from(sentences.span[i], sentences.span[i].length_bytes - 1), TEXT_LITERAL("."));
    return count;
}

/* At least two statements, then nothing but at least two bullets. */
RULE(has_sentences_then_bullets)
{
    struct parts lines = parts_of(passage->text);
    struct text line;
    size_t before_bytes = 0;
    size_t bullets = 0;

    while (next_full_line(&lines, &line)) {
        if (is_line_of(line, '*')) {
            before_bytes = bullets++ ? before_bytes : (size_t)(line.data - passage->text.data);
        } else if (bullets > 0) {
            return false;
        }
    }
    return bullets >= 2 && count_statements((struct text){passage->text.data, before_bytes}) >= 2;
}

RULE(has_list_marks)
{
    return text_count_of(passage->text, kwarg[0].text) >= 2;
}

/* <i>…</i> or <em>…</em> with something in it, and something behind it. */
RULE(has_thesis)
{
    static const struct text open[] = {{"<i>", 3}, {"<em>", 4}};
    static const struct text close[] = {{"</i>", 4}, {"</em>", 5}};

    for (size_t i = 0; i < ARRAY_LENGTH(open); i++) {
        size_t at = text_index_of(passage->text, open[i]);
        if (at == passage->text.length_bytes)
            continue;
        struct text thesis = text_from(passage->text, at + open[i].length_bytes);
        size_t end = text_index_of(thesis, close[i]);
        if (end == thesis.length_bytes)
            continue;
        if (!text_is_blank((struct text){thesis.data, end}) &&
            !text_is_blank(text_from(thesis, end + close[i].length_bytes)))
            return true;
    }
    return false;
}

RULE(follows_template)
{
    static const struct text headings[] = {{"My Answer:", 10}, {"My Conclusion:", 14}, {"Future Outlook:", 15}};
    struct text rest = passage->text;

    for (size_t i = 0; i < ARRAY_LENGTH(headings); i++) {
        size_t at = text_index_of(rest, headings[i]);
        if (at == rest.length_bytes)
            return false;
        rest = text_from(rest, at + headings[i].length_bytes);
    }
    return true;
}

RULE(has_no_space)
{
    struct text rest = passage->text;

    while (rest.length_bytes)
        if (character_classes(character_take(&rest)) & CHARACTER_SPACE)
            return false;
    return true;
}

/* --- words in marks --- */

RULE(has_bracketed_words)
{
    struct text rest = passage->text;
    struct text word;

    while (next_chunk(&rest, &word))
        if (*word.data != '[' || word.data[word.length_bytes - 1] != ']')
            return false;
    return true;
}

/* <<two words>> <<and two>>; a word that is left over is not looked at, a single one is no bigram. */
RULE(has_wrapped_bigrams)
{
    struct text rest = passage->text;
    struct text first;
    struct text second;
    bool any = false;

    while (next_chunk(&rest, &first) && next_chunk(&rest, &second)) {
        if (!text_begins_with(first, TEXT_LITERAL("<<")) || !text_ends_with(second, TEXT_LITERAL(">>")) ||
            text_ends_with(first, TEXT_LITERAL(">>")) || text_begins_with(second, TEXT_LITERAL("<<")))
            return false;
        any = true;
    }
    return any;
}

/* --- sentences --- */

static bool ends_with_emoji(struct text sentence)
{
    while (sentence.length_bytes) {
        uint32_t point = character_take_last(&sentence);
        unsigned classes = character_classes(point);
        if (classes & CHARACTER_EMOJI || (point >= 0x1f1e6 && point <= 0x1f1ff) || point == 0x20e3)
            return true;
        if (!(classes & (CHARACTER_PUNCTUATION | CHARACTER_SPACE)) && point != 0xfe0f)
            return false;
    }
    return false;
}

RULE(has_emoji_behind_sentences)
{
    const struct spans *sentences = passage_sentences(passage);

    for (size_t i = 0; i < sentences->count; i++)
        if (!ends_with_emoji(sentences->span[i]))
            return false;
    return sentences->count > 0;
}

/* One hyphen between every two sentences, and nothing else. Where they end is seen with a space in each hyphen's place. */
RULE(joins_sentences)
{
    struct text text = text_stripped(passage->text);
    _cleanup_buffer_ struct buffer spaced;
    _cleanup_spans_ struct spans sentences = {0};

    buffer_init(&spaced, text.length_bytes + 1);
    buffer_append(&spaced, text.data, text.length_bytes);
    for (size_t i = 0; i < spaced.length_bytes; i++)
        if (spaced.data[i] == '-')
            spaced.data[i] = ' ';
    split_sentences(buffer_text(&spaced), &sentences);
    for (size_t i = 1; i < sentences.count; i++) {
        const char *end = sentences.span[i - 1].data + sentences.span[i - 1].length_bytes;
        if (sentences.span[i].data - end != 1 || text.data[end - spaced.data] != '-')
            return false;
    }
    return sentences.count > 0;
}
