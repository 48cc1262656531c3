#include "server/store/deciding_score.h"

#include <math.h>

double store_scan_score(struct json_scan *scan)
{
    struct text key;
    double score = NAN;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "score") && json_scan_peek(scan) == JSON_KIND_NUMBER)
            json_scan_number(scan, &score);
        else
            json_scan_skip(scan);
    }
    return score;
}

/* The score of a name, or of whichever comes first. False: there is none. */
static bool find_score(struct text scores, struct text name, double *ret_score)
{
    struct json_scan scan;
    struct text key;
    bool found = false;

    if (!scores.data)
        return false;
    json_scan_init(&scan, scores);
    for (json_scan_object(&scan); !found && json_scan_member(&scan, &key);) {
        found = !name.data || text_same(key, name);
        if (found)
            *ret_score = store_scan_score(&scan);
        else
            json_scan_skip(&scan);
    }
    return found && json_scan_ok(&scan);
}

double store_deciding_score(struct text pass_verifier, struct text rewards, struct text heldout, double reward)
{
    double score = NAN;

    if (pass_verifier.data) {
        if (!find_score(heldout, pass_verifier, &score))
            find_score(rewards, pass_verifier, &score);
        return score;
    }
    return find_score(heldout, TEXT_NONE, &score) ? score : reward;
}
