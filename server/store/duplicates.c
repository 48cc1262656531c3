#include "server/store/duplicates.h"

#include "server/base/cleanup.h"
#include "server/base/hash.h"

#include <stdlib.h>
#include <string.h>

struct completion_digest {
    bool of_ids;
    uint8_t sha256[SHA256_BYTES];
};

void duplicates_init(struct duplicates *duplicates, size_t n)
{
    duplicates->digests = xcalloc(n + 1, sizeof(*duplicates->digests));
    duplicates->count = 0;
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
    struct completion_digest *own = &duplicates->digests[duplicates->count];
    own->of_ids = ids.data != NULL;
    sha256_of(completion.data, completion.length_bytes, own->sha256);
    for (size_t i = 0; i < duplicates->count; i++)
        if (same(&duplicates->digests[i], own))
            return true;
    duplicates->count++;
    return false;
}
