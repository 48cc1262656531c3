/* IFBench's custom instructions: each belongs to one prompt. */
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/rules_private.h"

/* --- numbers and dates --- */

/* All numbers of the text are 14, 21, … 49, in this order. */
RULE(counts_sevens)
{
    struct text rest = passage->text;
    int64_t number = 0;
    int64_t wanted = 14;
    bool inside = false;

    for (size_t i = 0; i <= rest.length_bytes; i++) {
        char byte = i < rest.length_bytes ? rest.data[i] : 0;
        if (byte >= '0' && byte <= '9') {
            number = inside ? number * 10 + byte - '0' : byte - '0';
            if (number == 0 || number > wanted)
                return false;
            inside = true;
            continue;
        }
        if (inside && number != wanted)
            return false;
        wanted += inside ? 7 : 0;
        inside = false;
    }
    return wanted == 56;
}

static int digits_of(struct text text, size_t at, size_t count)
{
    int number = 0;

    for (size_t i = at; i < at + count; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return -1;
        number = number * 10 + text.data[i] - '0';
    }
    return number;
}

static bool is_date(struct text text)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year;
    int month;
    int day;

    if (text.length_bytes != 10 || text.data[4] != '-' || text.data[7] != '-')
        return false;
    year = digits_of(text, 0, 4);
    month = digits_of(text, 5, 2);
    day = digits_of(text, 8, 2);
    if (year < 1769 || year > 1821 || month < 1 || month > 12)
        return false;
    bool leap = month == 2 && year % 4 == 0 && year != 1800;
    return day >= 1 && day <= lengths[month - 1] + leap;
}

/* In Napoleon's life: 1769 to 1821. */
RULE(lists_dates)
{
    struct parts parts = parts_of(passage->text);
    struct text part;

    while (next_part(&parts, TEXT_LITERAL(","), &part))
        if (!is_date(text_stripped(part)))
            return false;
    return true;
}

/* --- questions --- */

/* The text behind "Question 3" and white space; TEXT_NONE if the text begins with something else. */
static struct text behind_label(struct text text)
{
    struct text digits;

    if (!text_begins_with(text, TEXT_LITERAL("Question ")))
        return TEXT_NONE;
    text = digits = text_from(text, strlen("Question "));
    while (text.length_bytes && *text.data >= '0' && *text.data <= '9')
        text = text_from(text, 1);
    if (text.data == digits.data)
        return TEXT_NONE;
    if (text.length_bytes && is_one_of(*text.data, ".|):;"))
        text = text_from(text, 1);
    return text;
}

/* A. or b) and a word */
static bool is_answer(struct text line)
{
    struct text run;

    line = text_stripped(line);
    if (line.length_bytes < 3 || (*line.data | 32) < 'a' || (*line.data | 32) > 'e' || !is_one_of(line.data[1], ".|)"))
        return false;
    line = text_stripped(text_from(line, 2));
    return next_run(&line, &run) && run.data == line.data - run.length_bytes;
}

/* Five options; returns the characters of the question in front of them, or 0. */
static size_t length_of_question(struct text question)
{
    struct parts lines = parts_of(question);
    struct text line;
    size_t options = 0;
    size_t length = 0;

    while (next_line(&lines, &line)) {
        line = text_stripped(line);
        if (is_answer(line))
            options++;
        else if (options == 0 && line.length_bytes)
            length += characters_count(line) + (length > 0);
    }
    return options == 5 ? length : 0;
}

/* Four questions, each labelled and longer than the one before, and nothing in front of them. */
RULE(asks_four_questions)
{
    struct text rest = passage->text;
    size_t before = 0;
    size_t count = 0;

    if (!text_begins_with(rest, TEXT_LITERAL("Question")))
        return false;
    while (rest.length_bytes) {
        struct text question = behind_label(rest);
        if (!question.data)
            return false;
        size_t end = 0;
        do
            end += text_index_of(text_from(question, end), TEXT_LITERAL("Question "));
        while (end < question.length_bytes && !behind_label(text_from(question, end)).data && (end += 9));
        size_t length = length_of_question((struct text){question.data, end});
        if (length <= before)
            return false;
        before = length;
        count++;
        rest = text_from(question, end);
    }
    return count == 4;
}

/* --- lists --- */

/* Without marks above and below letters, and without what is no ASCII. */
static void append_plain(struct buffer *out, struct text text)
{
    static const struct {
        uint32_t first, last;
        const char *plain; /* one letter each; - for none */
    } blocks[] = {
        {0xc0, 0xff, "AAAAAA-CEEEEIIII-NOOOOO--UUUUY--aaaaaa-ceeeeiiii-nooooo--uuuuy-y"},
        {0x100, 0x17e,
         "AaAaAaCcCcCcCcDd--EeEeEeEeEeGgGgGgGgHh--IiIiIiIiI---JjKk-LlLlLlLl--NnNnNnn--OoOoOo--RrRrRrSsSsSsSsTtTt--"
         "UuUuUuUuUuUuWwYyYZzZzZz"},
        {0x218, 0x21b, "SsTt"},
    };

    while (text.length_bytes) {
        uint32_t point = character_take(&text);
        char plain = point < 0x80 ? (char)point : '-';
        for (size_t i = 0; i < ARRAY_LENGTH(blocks); i++)
            if (point >= blocks[i].first && point <= blocks[i].last)
                plain = blocks[i].plain[point - blocks[i].first];
        if (point < 0x80 || plain != '-')
            buffer_append_byte(out, plain);
    }
}

/* Does `left` come before `right` in the alphabet? */
static int compare_plain(struct text left, struct text right)
{
    _cleanup_buffer_ struct buffer plain_left;
    _cleanup_buffer_ struct buffer plain_right;
    size_t shorter;
    int order;

    buffer_init(&plain_left, left.length_bytes);
    buffer_init(&plain_right, right.length_bytes);
    append_plain(&plain_left, left);
    append_plain(&plain_right, right);
    shorter = plain_left.length_bytes < plain_right.length_bytes ? plain_left.length_bytes : plain_right.length_bytes;
    order = memcmp(buffer_text(&plain_left).data, buffer_text(&plain_right).data, shorter);
    return order ? order : (plain_left.length_bytes > shorter) - (plain_right.length_bytes > shorter);
}

/* From the line with Zimbabwe on, at least 52 lines, each not behind the one before it in the alphabet. */
RULE(lists_countries_backwards)
{
    struct parts lines = parts_of(passage->text);
    struct text line;
    struct text before = TEXT_NONE;
    size_t count = 0;

    while (next_line(&lines, &line)) {
        line = word_bare(line);
        if (!line.length_bytes || (count == 0 && !text_contains(line, TEXT_LITERAL("Zimbabwe"))))
            continue;
        if (count++ > 0 && compare_plain(before, line) < 0)
            return false;
        before = line;
    }
    return count >= 52;
}

RULE(lists_capitals)
{
    static const char *const capitals[] = {
        "Reykjavik",  "Helsinki", "Oslo",     "Tallinn",    "Stockholm", "Riga",      "Moscow",
        "Copenhagen", "Vilnius",  "Minsk",    "Dublin",     "Berlin",    "Amsterdam", "Warsaw",
        "London",     "Brussels", "Prague",   "Luxembourg", "Paris",     "Vienna",    "Bratislava",
        "Budapest",   "Vaduz",    "Chisinau", "Bern",       "Ljubljana", "Zagreb",
    };
    struct parts parts = parts_of(passage->text);
    struct text part;
    size_t count = 0;

    while (next_part(&parts, TEXT_LITERAL(","), &part)) {
        part = text_stripped(part);
        if (!part.length_bytes)
            continue;
        if (count == ARRAY_LENGTH(capitals) || compare_plain(part, text_of(capitals[count++])) != 0)
            return false;
    }
    return count == ARRAY_LENGTH(capitals);
}

/* --- reversals and the alphabet --- */

/* "eagle bald", for the words stand in reverse order. */
RULE(reverses_words)
{
    struct text rest = passage_lowered(passage);
    struct text word;
    bool eagle = false;

    while (next_lettered(&rest, &word)) {
        if (eagle && text_equals(word_bare(word), "bald"))
            return true;
        eagle = text_equals(word_bare(word), "eagle");
    }
    return false;
}

RULE(reverses_characters)
{
    return text_contains(passage_lowered(passage), TEXT_LITERAL("elgae dlab"));
}

RULE(tells_alphabet)
{
    const struct spans *sentences = passage_sentences(passage);
    struct text word;

    if (sentences->count != 26)
        return false;
    for (size_t i = 0; i < 26; i++) {
        struct text sentence = sentences->span[i];
        if (!next_lettered(&sentence, &word) || word_first_letter(word) != 'a' + i)
            return false;
    }
    return true;
}
