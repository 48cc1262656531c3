/* Verdicts of text verifiers in this process: how many a second, and the slowest one on a mebibyte of the same.
 *
 *     verdicts VERDICTS [verifier ...]
 *
 * VERDICTS: lines of JSON as in tests/fingerprints/verdicts.jsonl. All lines of a verifier are judged in turn for half a second
 * of CPU time: as they are, then each behind 1 KiB of closed reasoning. Then each of its options judges 1 MiB of each text of
 * `patterns`. Then each judges a mebibyte of short lines and of long ones, a step for each line (`lines_ms`). One line of JSON for each verifier. */
#include "server/base/buffer.h"
#include "verifiers/registry.h"
#include "verifiers/text/pieces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MEBIBYTE ((size_t)1 << 20)
#define LINES_MAX 10000
#define BENCH_S 0.5
#define REASONING_BYTES 1024

struct line {
    const struct verifier *verifier;
    json_t *root;
    json_t *options;
    struct buffer reasoned; /* the completion behind its reasoning */
};

static struct line lines[LINES_MAX];
static size_t line_count;

/* Repeated to a mebibyte; a tail stands once at the end, a head once at the beginning. */
static const struct {
    const char *unit;
    const char *tail;
    const char *head;
} patterns[] = {
    {" ", ""},
    {" ", "x"},
    {"\n", "B"},
    {"a", ""},
    {"A ", ""},
    {"B\n", ""},
    {"A or B ", ""},
    {"1", ""},
    {"1+", "1"},
    {"(", ""},
    {"{", ""},
    {"}", ""},
    {"$", ""},
    {"\\", ""},
    {"<", ""},
    {"*", ""},
    {"#", ""},
    {",", ""},
    {"\xC3\xA9", ""},
    {"\xE2\x80\x99", ""},
    {"\xE2\x80\x8B", ""},
    {"\xF0\x9D\x90\x81", ""},
    {"\xEF\xBC\xA2", ""},
    {"\xFF", ""},
    {"\0x", ""},
    {"\r\n", ""},
    {"Answer: ", ""},
    {"Answer: B\n", ""},
    {"answer is correct ", ""},
    {"answer to i am ", ""},
    {"wrong answer: ", ""},
    {"answer\n", ""},
    {"the the the answer ", ""},
    {"the answer is not ", ""},
    {"Option A ", ""},
    {"Option A (", ""},
    {"I pick B ", ""},
    {"\\boxed{", ""},
    {"\\boxed{}", ""},
    {"\\boxed{1}", ""},
    {"\\boxed 1 ", ""},
    {"\\boxed{B}", ""},
    {"<answer>", ""},
    {"</answer>", ""},
    {"<answer>B</answer>", ""},
    {"<answer>1+2</answer>", ""},
    {"<think>", ""},
    {"</think>", ""},
    {"<think></think>", ""},
    {"<think></think><answer></answer>", ""},
    {"<THINK ", ""},
    {"< / think", ""},
    {"<|im_end", ""},
    {"2024-02-2", ""},
    {"a gas giant ", ""},
    {"\\frac{1}{", ""},
    {"answer is 1 because ", ""},
    {"#### 1 ", ""},
    {"x=1,", ""},
    {"or ", "", "Answer: A because "},
    {"the ", "", "Answer: the "},
    {"A ", "", "Answer: A "},
    {"is be ", "", "Answer: A is "},
    {"A is be ", "", "Answer: A because "},
};

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void add_reasoning(struct buffer *out, struct text completion)
{
    buffer_init(out, MEBIBYTE);
    buffer_append_string(out, "<think>");
    while (out->length_bytes < REASONING_BYTES)
        buffer_append_string(out, "so the answer may be 4, ");
    buffer_append_string(out, "</think>\n");
    buffer_append(out, completion.data, completion.length_bytes);
}

static void add_line(const char *text)
{
    json_t *root = json_loads(text, JSON_ALLOW_NUL, NULL);
    struct verifier_problem problem;
    struct line *line = &lines[line_count];

    line->root = root;
    line->verifier = registry_find(json_text_of(json_object_get(root, "verifier")));
    line->options =
        line->verifier ? registry_fill_options(line->verifier, json_object_get(root, "options"), &problem) : NULL;
    if (!line->options || line_count == LINES_MAX - 1) {
        json_decref(root);
        return;
    }
    add_reasoning(&line->reasoned, json_text_of(json_object_get(root, "completion")));
    line_count++;
}

static void read_lines(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;

    if (!file)
        exit(2);
    while (getline(&text, &room, file) > 1)
        add_line(text);
    free(text);
    fclose(file);
}

static struct verifier_input input_of(const struct line *line, struct text completion)
{
    return (struct verifier_input){.completion = completion,
                                   .prompt = TEXT_NONE,
                                   .reference = json_object_get(line->root, "reference"),
                                   .options = line->options,
                                   .completion_tokens = -1,
                                   .sandbox_fd = -1};
}

static double grade(const struct line *line, struct text completion)
{
    struct verifier_input input = input_of(line, completion);
    struct verdict verdict;
    double began = cpu_s();

    registry_grade(line->verifier, &input, &verdict);
    verdict_finish(&verdict);
    return cpu_s() - began;
}

/* As a worker does it. */
static double grade_lines(const struct line *line, struct text completion)
{
    struct verifier_input input = input_of(line, completion);
    double began = cpu_s();
    size_t count;
    _cleanup_free_ struct piece *pieces = pieces_of(completion, PIECES_PER_LINE, &count);
    size_t calls = line->verifier->grades_pieces ? 1 : count;

    for (size_t i = 0; i < calls; i++) {
        struct verdict verdict;
        if (line->verifier->grades_pieces) {
            input.pieces = pieces;
            input.piece_count = count;
        } else {
            input.completion = pieces[i].text;
        }
        registry_grade(line->verifier, &input, &verdict);
        verdict_finish(&verdict);
    }
    return cpu_s() - began;
}

static bool is_at_limit(const struct line *line)
{
    return text_equals(json_text_of(json_object_get(line->root, "reason")), "work_limit");
}

/* Verdicts in a second of CPU time; lines that were written to reach a limit are none of them. */
static double rate_of(const struct verifier *verifier, bool reasoned)
{
    size_t verdicts = 0;
    double began = cpu_s();

    while (cpu_s() - began < BENCH_S)
        for (size_t i = 0; i < line_count; i++)
            if (lines[i].verifier == verifier && !is_at_limit(&lines[i])) {
                grade(&lines[i], reasoned ? buffer_text(&lines[i].reasoned)
                                          : json_text_of(json_object_get(lines[i].root, "completion")));
                verdicts++;
            }
    return (double)verdicts / (cpu_s() - began);
}

static char *fill(size_t pattern)
{
    char *text = xcalloc(1, MEBIBYTE);
    size_t unit = patterns[pattern].unit[0] ? strlen(patterns[pattern].unit) : 2;
    size_t tail = strlen(patterns[pattern].tail);

    for (size_t at = 0; at < MEBIBYTE; at++)
        text[at] = patterns[pattern].unit[at % unit];
    memcpy(text + MEBIBYTE - tail, patterns[pattern].tail, tail);
    if (patterns[pattern].head)
        memcpy(text, patterns[pattern].head, strlen(patterns[pattern].head));
    return text;
}

static bool is_repeated(size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (lines[i].verifier == lines[index].verifier && json_equal(lines[i].options, lines[index].options))
            return true;
    return false;
}

/* 65,536 lines of 16 bytes, and 4,096 of 256. */
static double slowest_lines_s(const struct verifier *verifier)
{
    static const size_t line_bytes[] = {16, 256};
    double slowest_s = 0;

    for (size_t width = 0; width < ARRAY_LENGTH(line_bytes); width++) {
        _cleanup_free_ char *text = xcalloc(1, MEBIBYTE);
        for (size_t at = 0; at < MEBIBYTE; at++)
            text[at] = at % line_bytes[width] == line_bytes[width] - 1 ? '\n' : "so \\boxed{4} ab "[at % 16];
        for (size_t i = 0; i < line_count; i++) {
            if (lines[i].verifier != verifier || is_repeated(i))
                continue;
            double took_s = grade_lines(&lines[i], (struct text){text, MEBIBYTE});
            slowest_s = took_s > slowest_s ? took_s : slowest_s;
        }
    }
    return slowest_s;
}

static void report(const struct verifier *verifier)
{
    double slowest_s = 0;
    size_t of_line = 0, of_pattern = 0;

    for (size_t pattern = 0; pattern < ARRAY_LENGTH(patterns); pattern++) {
        _cleanup_free_ char *text = fill(pattern);
        for (size_t i = 0; i < line_count; i++) {
            if (lines[i].verifier != verifier || is_repeated(i))
                continue;
            double took_s = grade(&lines[i], (struct text){text, MEBIBYTE});
            if (took_s > slowest_s) {
                slowest_s = took_s;
                of_line = i;
                of_pattern = pattern;
            }
        }
    }
    char *options = json_dumps(json_object_get(lines[of_line].root, "options"), JSON_COMPACT);
    printf("{\"verifier\":\"%s\",\"verdicts_s\":%.0f,\"reasoned_s\":%.0f,\"slowest_ms\":%.1f,\"lines_ms\":%.1f,"
           "\"unit\":\"%s\","
           "\"options\":%s}\n",
           verifier->name, rate_of(verifier, false), rate_of(verifier, true), slowest_s * 1e3,
           slowest_lines_s(verifier) * 1e3, patterns[of_pattern].unit, options ? options : "null");
    free(options);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    read_lines(argv[1]);
    for (int i = 2; i < argc; i++)
        if (registry_find(text_of(argv[i])))
            report(registry_find(text_of(argv[i])));
    return 0;
}
