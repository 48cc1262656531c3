#include "server/store/duplicates.h"

#include "server/base/cleanup.h"
#include "server/base/hash.h"

#include <stdlib.h>
#include <string.h>

struct completion_digest {
    bool is_taken;
    bool of_ids;
    uint8_t sha256[SHA256_BYTES];
};

void duplicates_init(struct duplicates *duplicates, size_t n)
{
    size_t places = 2;
    while (places < 2 * n)
        places *= 2;
    duplicates->digests = xcalloc(places, sizeof(*duplicates->digests));
    duplicates->mask = places - 1;
}

void duplicates_finish(struct duplicates *duplicates)
{
    free(TAKE_PTR(duplicates->digests));
}

static bool same(const struct completion_digest *left, const struct completion_digest *right)
{
    return left->of_ids == right->of_ids && memcmp(left->sha256, right->sha256, SHA256_BYTES) == 0;
}

bool duplicates_add(struct duplicates *duplicates, struct text ids, struct text text)
{
    struct text completion = ids.data ? ids : text;
    if (!completion.data)
        return false;
    struct completion_digest own = {.is_taken = true, .of_ids = ids.data != NULL};
    size_t place;
    sha256_of(completion.data, completion.length_bytes, own.sha256);
    memcpy(&place, own.sha256, sizeof(place));
    struct completion_digest *there = &duplicates->digests[place & duplicates->mask];
    while (there->is_taken && !same(there, &own))
        there = &duplicates->digests[++place & duplicates->mask];
    bool repeats = there->is_taken;
    *there = own;
    return repeats;
}
