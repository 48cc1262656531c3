#include "verifiers/text/claims.h"

#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/text/extract.h"
#include "verifiers/text/markers_private.h"
#include "verifiers/text/mentions_private.h"

/* A box, tag or marker. */
struct spot {
    struct text value; /* TEXT_NONE: it was never closed */
    size_t end;        /* in the text; 0: there is none */
};

static struct text slice(struct text text, size_t start, size_t end)
{
    return (struct text){text.data + start, end - start};
}

static size_t end_of(struct text text, struct text part)
{
    return (size_t)(part.data - text.data) + part.length_bytes;
}

static struct spot box_spot(struct text text, const struct boxes *boxes)
{
    if (boxes->truncated)
        return (struct spot){TEXT_NONE, text.length_bytes};
    if (!boxes->last.data)
        return (struct spot){TEXT_NONE, 0};
    return (struct spot){boxes->last, end_of(text, boxes->last_whole.data ? boxes->last_whole : boxes->last)};
}

static struct spot tag_spot(struct text text)
{
    static const char open[] = "<answer>";
    static const char close[] = "</answer>";
    size_t next = text_find(text, 0, open);
    size_t start = 0;
    size_t end;

    if (next == text.length_bytes)
        return (struct spot){TEXT_NONE, 0};
    for (; next < text.length_bytes; next = text_find(text, start, open))
        start = next + strlen(open);
    end = text_find(text, start, close);
    if (end == text.length_bytes)
        return (struct spot){TEXT_NONE, start};
    return (struct spot){slice(text, start, end), end + strlen(close)};
}

static struct spot marker_spot(const struct claims_rule *rule, struct text text)
{
    struct text value = markers_last(rule, text);

    return (struct spot){value, value.data ? end_of(text, value) + (value.length_bytes == 0) : 0};
}

static void read_spot(const struct claims_rule *rule, struct spot spot, struct claim *ret_claim)
{
    *ret_claim = (struct claim){TEXT_NONE, {.outcome = LABELS_BLANK}};
    if (!spot.value.data)
        return;
    ret_claim->value = text_trimmed(spot.value);
    ret_claim->labels = labels_read(rule->labels, ret_claim->value);
}

/* A tag may hold a sentence with a box or a marker in it. */
static void read_tag(const struct claims_rule *rule, struct spot tag, struct claim *ret_claim)
{
    struct boxes boxes;
    struct spot inner;

    read_spot(rule, tag, ret_claim);
    if (!tag.value.data || ret_claim->labels.outcome != LABELS_UNREADABLE)
        return;
    extract_boxes(tag.value, &boxes);
    inner = box_spot(tag.value, &boxes);
    if (!inner.end)
        inner = marker_spot(rule, tag.value);
    if (inner.end)
        read_spot(rule, inner, ret_claim);
}

/* The one that ends last. A box or marker inside the tag is a part of it. */
static void read_last(const struct claims_rule *rule, struct text text, const struct boxes *boxes,
                      struct claim *ret_claim)
{
    struct spot box = box_spot(text, boxes);
    struct spot tag = tag_spot(text);
    struct spot marker = marker_spot(rule, text);

    if (tag.end && tag.end >= box.end && tag.end >= marker.end)
        read_tag(rule, tag, ret_claim);
    else
        read_spot(rule, box.end && box.end >= marker.end ? box : marker, ret_claim);
}

static void read_lenient(const struct claims_rule *rule, struct text text, const struct boxes *boxes,
                         struct claim *ret_claim)
{
    struct claim mentioned = {TEXT_NONE, {.outcome = LABELS_BLANK}};

    read_last(rule, text, boxes, ret_claim);
    if (ret_claim->labels.outcome != LABELS_UNREADABLE && ret_claim->value.data)
        return;
    if (boxes->truncated || (!ret_claim->value.data && tag_spot(text).end))
        return; /* it was cut off */
    mentions_find(rule->labels, text, &mentioned);
    if (mentioned.labels.outcome != LABELS_BLANK)
        *ret_claim = mentioned;
}

void claims_find(const struct claims_rule *rule, struct text completion, enum claims_mode mode, struct claim *ret_claim)
{
    struct text text = extract_final_part(completion);
    struct boxes boxes = {.count = 0};

    *ret_claim = (struct claim){TEXT_NONE, {.outcome = LABELS_BLANK}};
    if (!text.data)
        return;
    if (mode != CLAIMS_ANSWER_TAG && mode != CLAIMS_MARKER)
        extract_boxes(text, &boxes);
    if (mode == CLAIMS_AUTO)
        read_last(rule, text, &boxes, ret_claim);
    else if (mode == CLAIMS_LENIENT)
        read_lenient(rule, text, &boxes, ret_claim);
    else if (mode == CLAIMS_STRICT_BOX)
        read_spot(rule, box_spot(text, &boxes), ret_claim);
    else if (mode == CLAIMS_ANSWER_TAG)
        read_tag(rule, tag_spot(text), ret_claim);
    else
        read_spot(rule, marker_spot(rule, text), ret_claim);
    if (boxes.distinct > rule->boxes_max)
        ret_claim->labels.outcome = LABELS_SEVERAL;
}
