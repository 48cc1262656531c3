#include "server/base/ids.h"

#include "server/base/clock.h"
#include "server/base/hash.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

enum { UUID_DIGITS = 26, INDEX_DIGITS = 5, MOST_INDEX_DIGITS = 8 };

static const char crockford[] = "0123456789abcdefghjkmnpqrstvwxyz";

struct uuid {
    uint64_t high; /* 48 bits of milliseconds, version 7, 12 bits of counter */
    uint64_t low;  /* variant 2, 62 random bits */
};

/* RFC 9562, section 6.2, method 1: within a millisecond the 12 bits count up from a random start; when they overflow,
 * or the clock went back, the milliseconds run ahead of it. */
static struct uuid uuid_v7(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t last_stamp; /* milliseconds and counter, 60 bits */
    uint64_t random[2];
    random_bytes(random, sizeof(random));
    uint64_t stamp = (uint64_t)(clock_utc_us() / US_PER_MS) << 12 | (random[0] & 0x7FF);
    pthread_mutex_lock(&lock);
    if (stamp <= last_stamp || stamp >> 12 == last_stamp >> 12)
        stamp = last_stamp + 1;
    last_stamp = stamp;
    pthread_mutex_unlock(&lock);
    return (struct uuid){(stamp >> 12) << 16 | UINT64_C(0x7000) | (stamp & 0xFFF),
                         UINT64_C(1) << 63 | (random[1] & (UINT64_MAX >> 2))};
}

static void id_new(char kind, char ret_id[ID_BYTES])
{
    struct uuid uuid = uuid_v7();
    unsigned __int128 bits = (unsigned __int128)uuid.high << 64 | uuid.low;
    ret_id[0] = kind;
    ret_id[1] = '_';
    for (int i = UUID_DIGITS - 1; i >= 0; i--, bits >>= 5)
        ret_id[2 + i] = crockford[(unsigned)bits & 31];
    ret_id[2 + UUID_DIGITS] = '\0';
}

void id_new_batch(char ret_id[ID_BYTES])
{
    id_new('b', ret_id);
}

void id_new_lease(char ret_id[ID_BYTES])
{
    id_new('l', ret_id);
}

void id_new_reverification(char ret_id[ID_BYTES])
{
    id_new('v', ret_id);
}

/* The first letter says what it is; the rest is the parent's and an index of at least five digits, so that text order
 * is index order below 100,000. */
static void id_of_child(char kind, const char *parent_id, int64_t index, char ret_id[ID_BYTES])
{
    char id[ID_BYTES]; /* parent_id and ret_id may be the same array */
    snprintf(id, sizeof(id), "%c%s-%0*" PRId64, kind, parent_id + 1, INDEX_DIGITS, index);
    memcpy(ret_id, id, sizeof(id));
}

void id_of_group(const char *batch_id, int64_t group_index, char ret_id[ID_BYTES])
{
    id_of_child('g', batch_id, group_index, ret_id);
}

void id_of_rollout(const char *group_id, int64_t sample_index, char ret_id[ID_BYTES])
{
    id_of_child('r', group_id, sample_index, ret_id);
}

/* "-00007": five digits, or up to eight without a leading zero. */
static bool read_index(struct text text, int64_t *ret_index)
{
    int64_t index = 0;
    size_t digits = text.length_bytes - 1;
    if (digits < INDEX_DIGITS || digits > MOST_INDEX_DIGITS || (digits > INDEX_DIGITS && text.data[1] == '0'))
        return false;
    for (size_t i = 1; i < text.length_bytes; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        index = index * 10 + (text.data[i] - '0');
    }
    *ret_index = index;
    return true;
}

static bool is_root(struct text id, char kind)
{
    if (!id.data || id.length_bytes != 2 + UUID_DIGITS || id.data[0] != kind || id.data[1] != '_' || id.data[2] > '7')
        return false;
    for (size_t i = 2; i < id.length_bytes; i++)
        if (!id.data[i] || !strchr(crockford, id.data[i]))
            return false;
    return true;
}

/* Cuts the last index off; the parent's kind letter replaces the child's. The parent's length, or 0. */
static size_t split(struct text id, char kind, char parent_kind, char ret_parent_id[ID_BYTES], int64_t *ret_index)
{
    if (!id.data || id.length_bytes >= ID_BYTES || id.length_bytes == 0 || id.data[0] != kind)
        return 0;
    const char *dash = memrchr(id.data, '-', id.length_bytes);
    size_t parent_bytes = dash ? (size_t)(dash - id.data) : 0;
    if (!parent_bytes || !read_index((struct text){dash, id.length_bytes - parent_bytes}, ret_index))
        return 0;
    memcpy(ret_parent_id, id.data, parent_bytes);
    ret_parent_id[0] = parent_kind;
    ret_parent_id[parent_bytes] = '\0';
    return parent_bytes;
}

bool id_split_group(struct text id, char ret_batch_id[ID_BYTES], int64_t *ret_group_index)
{
    size_t batch_bytes = split(id, 'g', 'b', ret_batch_id, ret_group_index);
    return batch_bytes && is_root((struct text){ret_batch_id, batch_bytes}, 'b');
}

static bool is_group(struct text id)
{
    char batch_id[ID_BYTES];
    int64_t index;
    return id_split_group(id, batch_id, &index);
}

bool id_split_rollout(struct text id, char ret_group_id[ID_BYTES], int64_t *ret_sample_index)
{
    size_t group_bytes = split(id, 'r', 'g', ret_group_id, ret_sample_index);
    return group_bytes && is_group((struct text){ret_group_id, group_bytes});
}

void id_new_request(char ret_id[ID_BYTES])
{
    uint64_t random;
    random_bytes(&random, sizeof(random));
    snprintf(ret_id, ID_BYTES, "%016" PRIx64, random);
}
