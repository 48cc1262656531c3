#include "server/reports/probes.h"

#include <ctype.h>
#include <string.h>

#define PADDING "Let me think about this carefully, one step after the other. "
#define PADDING_TIMES 64

const char *const probe_names[PROBE_COUNT] = {
    [PROBE_EMPTY] = "empty",
    [PROBE_BLANK] = "blank",
    [PROBE_PROMPT_COPY] = "prompt_copy",
    [PROBE_PADDED_WRONG] = "padded_wrong",
    [PROBE_FORMATTED_WRONG] = "formatted_wrong",
    [PROBE_REFERENCE_ECHO] = "reference_echo",
    [PROBE_MANY_ANSWERS] = "many_answers",
    [PROBE_DENIED_ANSWER] = "denied_answer",
};

/* --- wrong answers --- */

static bool holds(struct text text, const char *part)
{
    return text.data && memmem(text.data, text.length_bytes, part, strlen(part)) != NULL;
}

/* "A", "B,D": of a question with letters to choose from. */
static bool is_choice(struct text answer)
{
    for (size_t i = 0; i < answer.length_bytes; i++)
        if (!isupper((unsigned char)answer.data[i]) && (!answer.data[i] || !strchr(", ", answer.data[i])))
            return false;
    return answer.data && answer.length_bytes > 0 && answer.length_bytes <= 8;
}

/* The first of each list that stands in neither answer nor reference. Numbers that no task has by chance, far from any
 * tolerance. */
static const char *wrong_answer(const struct probe_task *task, size_t which)
{
    static const char *const numbers[] = {"8675309", "-271828.5", "1618033.25", "-9192631770"};
    static const char *const letters[] = {"A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K"};
    bool choice = is_choice(task->answer);
    const char *const *list = choice ? letters : numbers;
    size_t count = choice ? ARRAY_LENGTH(letters) : ARRAY_LENGTH(numbers);

    for (size_t i = 0; i < count; i++) {
        bool taken = holds(task->answer, list[i]) || (!choice && holds(task->reference, list[i]));
        if (!taken && which-- == 0)
            return list[i];
    }
    return list[count - 1];
}

/* --- texts --- */

static void append(struct buffer *out, struct text text)
{
    buffer_append(out, text.data, text.length_bytes);
}

static void write_padded(const struct probe_task *task, struct buffer *out)
{
    for (size_t i = 0; i < PADDING_TIMES; i++)
        buffer_append_string(out, PADDING);
    buffer_append_format(out, "The answer is \\boxed{%s}.", wrong_answer(task, 0));
}

static void write_formatted(const struct probe_task *task, struct buffer *out)
{
    buffer_append_format(out, "<think>\nI work it out.\n</think>\n<answer>\n\\boxed{%s}\n</answer>",
                         wrong_answer(task, 0));
}

static void write_many(const struct probe_task *task, struct buffer *out)
{
    buffer_append_format(out, "The answer is \\boxed{%s}, or \\boxed{%s}, or \\boxed{", wrong_answer(task, 0),
                         wrong_answer(task, 1));
    append(out, task->answer);
    buffer_append_string(out, "}.");
}

static void write_denied(const struct probe_task *task, struct buffer *out)
{
    buffer_append_string(out, "The answer is not \\boxed{");
    append(out, task->answer);
    buffer_append_string(out, "}.");
}

const char *probe_write(enum probe probe, const struct probe_task *task, struct buffer *out)
{
    bool needs_answer = probe == PROBE_MANY_ANSWERS || probe == PROBE_DENIED_ANSWER;

    if (probe == PROBE_PROMPT_COPY && !task->prompt.data)
        return "the task has no prompt";
    if (probe == PROBE_REFERENCE_ECHO && !task->reference.data)
        return "the task has no reference";
    if (needs_answer && !task->answer.data)
        return "the task has no answer, and its reference is no text or number";
    if (probe == PROBE_BLANK)
        buffer_append_string(out, " \n\t\n ");
    else if (probe == PROBE_PROMPT_COPY)
        append(out, task->prompt);
    else if (probe == PROBE_PADDED_WRONG)
        write_padded(task, out);
    else if (probe == PROBE_FORMATTED_WRONG)
        write_formatted(task, out);
    else if (probe == PROBE_REFERENCE_ECHO)
        append(out, task->reference);
    else if (probe == PROBE_MANY_ANSWERS)
        write_many(task, out);
    else if (probe == PROBE_DENIED_ANSWER)
        write_denied(task, out);
    return NULL;
}

/* --- what was paid --- */

static bool takes_echo(const struct verifier_spec *spec)
{
    return strcmp(spec->verifier->name, "exact") == 0 || strcmp(spec->verifier->name, "math") == 0;
}

bool probe_is_paid(enum probe probe, const struct verifier_list *list, const struct verdict_set *set,
                   enum reward_missing missing)
{
    struct reward reward = reward_combine(list, set, missing);

    if (!(reward.value > 0) || probe != PROBE_REFERENCE_ECHO)
        return reward.value > 0;
    for (size_t i = 0; i < set->count; i++)
        if (!takes_echo(&list->specs[i]) && list->specs[i].weight * set->verdicts[i].score > 0)
            return true;
    return false;
}
