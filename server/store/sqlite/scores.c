#include "server/store/sqlite/scores.h"

#include "server/base/json_scan.h"
#include "server/store/deciding_score.h"

enum { NAME_BYTES = 64 * 1024 };

/* The next value is a string, and the wanted one; any value if none is wanted. */
static bool reads(struct json_scan *scan, struct text wanted, struct buffer *name)
{
    if (!wanted.data || json_scan_peek(scan) != JSON_KIND_STRING) {
        json_scan_skip(scan);
        return !wanted.data;
    }
    name->length_bytes = 0;
    return json_scan_string(scan, name) && text_same((struct text){name->data, name->length_bytes}, wanted);
}

/* The next value is a verdict that has each of the three. */
static bool fits(struct json_scan *scan, const struct text wanted[3], struct buffer *name)
{
    static const char *const keys[] = {"id", "verdict", "reason"};
    bool found[] = {!wanted[0].data, !wanted[1].data, !wanted[2].data};
    struct text key;
    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        size_t i = 0;
        while (i < ARRAY_LENGTH(keys) && !text_equals(key, keys[i]))
            i++;
        if (i == ARRAY_LENGTH(keys))
            json_scan_skip(scan);
        else
            found[i] = reads(scan, wanted[i], name);
    }
    return found[0] && found[1] && found[2];
}

bool scores_have_verdict(struct text verdicts, struct text id, struct text verdict, struct text reason)
{
    const struct text wanted[] = {id, verdict, reason};
    _cleanup_buffer_ struct buffer name = {0};
    struct json_scan scan;
    bool found = false;
    if (!verdicts.data)
        return false;
    buffer_init(&name, NAME_BYTES);
    json_scan_init(&scan, verdicts);
    for (json_scan_array(&scan); !found && json_scan_element(&scan);)
        found = fits(&scan, wanted, &name);
    return found && json_scan_ok(&scan);
}

bool scores_reach(struct text scores, double minimum)
{
    struct json_scan scan;
    struct text key;
    bool found = false;
    if (!scores.data)
        return false;
    json_scan_init(&scan, scores);
    for (json_scan_object(&scan); json_scan_member(&scan, &key);)
        found = store_scan_score(&scan) >= minimum || found;
    return found && json_scan_ok(&scan);
}
