#include "server/batches/placement_private.h"

#include "client/adapters/detokenize.h"
#include "client/pool/pool.h"
#include "client/transport/transport.h"
#include "server/base/cleanup.h"
#include "server/verify/spec.h"

#include <stdlib.h>

#define STEPS_MAX 1024 /* of all verdicts on one sample */
#define AT_ONCE 16     /* questions */
#define REPLY_SLACK_BYTES ((size_t)64 << 10)

/* A step's end: the first `high` ids reach it, the first `low` do not. */
struct aim {
    size_t byte_end;
    size_t low, high;
};

struct question {
    struct placement *placement;
    struct transfer *transfer;
    struct engine_call call;
    size_t count; /* of ids */
    bool answered;
    struct buffer body;
};

struct placement {
    struct transport *transport;
    struct engine *engine;
    const struct engine_adapter *adapter; /* the engine's, as it was */
    char *model;
    char *text;
    size_t text_bytes;
    uint32_t *ids;
    size_t id_count;
    uint32_t *ends; /* [id_count] */
    struct aim *aims;
    size_t aim_count;
    bool checked; /* all ids together are the text */
    bool failed;
    struct question questions[AT_ONCE];
    size_t question_count;
    size_t waiting;
    void (*replied)(void *arg);
    void *arg;
};

struct placement *placement_create(const struct placement_sample *sample)
{
    if (!sample->engine->adapter->detokenize.text_key || !sample->ids || sample->id_count == 0)
        return NULL;
    struct placement *placement = xcalloc(1, sizeof *placement);
    placement->transport = sample->transport;
    placement->engine = sample->engine;
    placement->adapter = sample->engine->adapter;
    engine_hold(placement->engine);
    placement->model = sample->model.data ? xstrndup(sample->model.data, sample->model.length_bytes) : NULL;
    placement->text = xcalloc(sample->text.length_bytes + 1, 1);
    memcpy(placement->text, sample->text.data ? sample->text.data : "", sample->text.length_bytes);
    placement->text_bytes = sample->text.length_bytes;
    placement->id_count = sample->id_count;
    placement->ids = xcalloc(sample->id_count, sizeof *placement->ids);
    memcpy(placement->ids, sample->ids, sample->id_count * sizeof *placement->ids);
    placement->ends = xcalloc(sample->id_count, sizeof *placement->ends);
    return placement;
}

static void question_finish(struct question *question)
{
    if (question->transfer)
        transport_cancel(TAKE_PTR(question->transfer));
    engine_call_finish(&question->call);
    buffer_finish(&question->body);
}

void placement_destroy(struct placement *placement)
{
    if (!placement)
        return;
    for (size_t i = 0; i < placement->question_count; i++)
        question_finish(&placement->questions[i]);
    engine_release(placement->engine);
    free(placement->model);
    free(placement->text);
    free(placement->ids);
    free(placement->ends);
    free(placement->aims);
    free(placement);
}

/* --- what is looked for ---------------------------------------------------------------------------------- */

static int compare_aims(const void *left, const void *right)
{
    size_t a = ((const struct aim *)left)->byte_end;
    size_t b = ((const struct aim *)right)->byte_end;
    return (a > b) - (a < b);
}

/* Sorted, each end once. */
static void settle_aims(struct placement *placement)
{
    size_t kept = 0;

    if (placement->aim_count > 0)
        qsort(placement->aims, placement->aim_count, sizeof placement->aims[0], compare_aims);
    for (size_t i = 0; i < placement->aim_count; i++)
        if (kept == 0 || placement->aims[kept - 1].byte_end != placement->aims[i].byte_end)
            placement->aims[kept++] = placement->aims[i];
    placement->aim_count = kept;
}

bool placement_aim(struct placement *placement, const struct verdict_set *set)
{
    placement->aims = xcalloc(STEPS_MAX, sizeof placement->aims[0]);
    for (size_t v = 0; v < set->count; v++)
        for (size_t i = 0; i < set->verdicts[v].step_count; i++) {
            if (placement->aim_count == STEPS_MAX)
                return false;
            placement->aims[placement->aim_count++] =
                (struct aim){.byte_end = set->verdicts[v].steps[i].byte_end, .high = placement->id_count};
        }
    settle_aims(placement);
    return placement->aim_count > 0 && placement->aims[placement->aim_count - 1].byte_end <= placement->text_bytes;
}

/* --- questions ------------------------------------------------------------------------------------------- */

static void answered(struct placement *placement)
{
    if (--placement->waiting == 0)
        placement->replied(placement->arg);
}

static void take_reply(void *arg, struct transfer_reply *reply)
{
    struct question *question = arg;

    question->transfer = NULL;
    question->answered = reply->result == TRANSFER_DONE && reply->status >= 200 && reply->status < 300;
    if (question->answered) {
        question->body = reply->body;
        buffer_init(&reply->body, 0);
    }
    answered(question->placement);
}

/* All ids first; then the middle of each aim's range, each once. */
static void choose(struct placement *placement)
{
    placement->question_count = 0;
    if (!placement->checked) {
        placement->questions[placement->question_count++] = (struct question){.count = placement->id_count};
        return;
    }
    for (size_t i = 0; i < placement->aim_count && placement->question_count < AT_ONCE; i++) {
        const struct aim *aim = &placement->aims[i];
        size_t middle = aim->low + (aim->high - aim->low) / 2;
        size_t asked = placement->question_count;
        if (aim->high - aim->low < 2 || (asked > 0 && placement->questions[asked - 1].count == middle))
            continue;
        placement->questions[placement->question_count++] = (struct question){.count = middle};
    }
}

static void ask(struct placement *placement, struct question *question, int64_t timeout_us)
{
    const struct engine *engine = placement->engine;

    question->placement = placement;
    buffer_init(&question->body, 0);
    if (!detokenize_build(placement->adapter, text_of(placement->model), placement->ids, question->count,
                          &question->call)) {
        buffer_init(&question->call.body, 0);
        placement->failed = true;
    }
    struct transfer_request request = {.base_url = engine->url,
                                       .path = "/detokenize",
                                       .method = "POST",
                                       .bearer_token = engine->token,
                                       .body = buffer_text(&question->call.body),
                                       .timeout_us = timeout_us,
                                       .reply_limit_bytes = 8 * placement->text_bytes + REPLY_SLACK_BYTES};
    question->transfer = transport_start(placement->transport, &request, take_reply, question);
}

void placement_send(struct placement *placement, int64_t timeout_us, void (*replied)(void *arg), void *arg)
{
    placement->replied = replied;
    placement->arg = arg;
    choose(placement);
    placement->waiting = placement->question_count;
    for (size_t i = 0; i < placement->question_count; i++)
        ask(placement, &placement->questions[i], timeout_us);
}

/* --- answers --------------------------------------------------------------------------------------------- */

#define REPLACEMENT "\xef\xbf\xbd"
#define REPLACEMENT_BYTES 3

/* A character whose last bytes are behind the ids ends as U+FFFD. */
static struct text without_open_character(struct text text)
{
    while (text.length_bytes >= REPLACEMENT_BYTES &&
           memcmp(text.data + text.length_bytes - REPLACEMENT_BYTES, REPLACEMENT, REPLACEMENT_BYTES) == 0)
        text.length_bytes -= REPLACEMENT_BYTES;
    return text;
}

static bool agrees(struct text whole, struct text part)
{
    size_t common = part.length_bytes < whole.length_bytes ? part.length_bytes : whole.length_bytes;
    return common == 0 || memcmp(whole.data, part.data, common) == 0;
}

/* How many bytes of the sample's text the first ids are. False: they are others. Without what stands before it a tokenizer
 * leaves the first space out. */
static bool find_reach(const struct placement *placement, struct text answer, size_t *ret_reach)
{
    struct text whole = {placement->text, placement->text_bytes};
    size_t skipped = 0;

    if (!agrees(whole, answer))
        answer = without_open_character(answer);
    if (!agrees(whole, answer) && whole.length_bytes > 0 && whole.data[0] == ' ') {
        skipped = 1;
        whole = (struct text){whole.data + 1, whole.length_bytes - 1};
    }
    *ret_reach = answer.length_bytes + skipped;
    return agrees(whole, answer);
}

static void learn(struct placement *placement, size_t count, size_t reach)
{
    for (size_t i = 0; i < placement->aim_count; i++) {
        struct aim *aim = &placement->aims[i];
        if (reach >= aim->byte_end)
            aim->high = count < aim->high ? count : aim->high;
        else
            aim->low = count > aim->low ? count : aim->low;
    }
}

static void read_answer(struct placement *placement, const struct question *question)
{
    _cleanup_buffer_ struct buffer text;
    size_t reach = 0;

    buffer_init(&text, 8 * placement->text_bytes + REPLY_SLACK_BYTES);
    if (!question->answered || !detokenize_read(placement->adapter, buffer_text(&question->body), &text) ||
        !find_reach(placement, buffer_text(&text), &reach) ||
        (question->count == placement->id_count && reach < placement->aims[placement->aim_count - 1].byte_end)) {
        placement->failed = true;
        return;
    }
    learn(placement, question->count, reach);
}

/* Each token ends where the last step does that it reaches. */
static void fill_ends(struct placement *placement)
{
    size_t at = 0;

    for (size_t i = 0; i < placement->aim_count; i++) {
        const struct aim *aim = &placement->aims[i];
        uint32_t before = at > 0 ? placement->ends[at - 1] : 0;
        for (; at + 1 < aim->high; at++)
            placement->ends[at] = before;
        at = aim->high;
        placement->ends[at - 1] = (uint32_t)aim->byte_end;
    }
    for (; at > 0 && at < placement->id_count; at++)
        placement->ends[at] = placement->ends[at - 1];
}

/* One of the aims is not found yet. Answers that contradict each other end it. */
static bool is_open(struct placement *placement)
{
    bool open = false;

    for (size_t i = 0; i < placement->aim_count; i++) {
        const struct aim *aim = &placement->aims[i];
        placement->failed = placement->failed || aim->high <= aim->low;
        open = open || aim->high > aim->low + 1;
    }
    return open && !placement->failed;
}

bool placement_read(struct placement *placement)
{
    for (size_t i = 0; i < placement->question_count; i++) {
        if (!placement->failed)
            read_answer(placement, &placement->questions[i]);
        question_finish(&placement->questions[i]);
    }
    placement->question_count = 0;
    placement->checked = true;
    if (!placement->failed && is_open(placement))
        return true;
    if (!placement->failed)
        fill_ends(placement);
    return false;
}

const uint32_t *placement_ends(const struct placement *placement)
{
    return placement->failed || !placement->checked ? NULL : placement->ends;
}
