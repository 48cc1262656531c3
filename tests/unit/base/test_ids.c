#include "server/base/cleanup.h"
#include "server/base/ids.h"
#include "tests/unit/base/cmocka_all.h"

#include <pthread.h>
#include <stdio.h>

#define ROOT "01jdwx3m8k9q2v5r7t0a1b2c3d"

static bool is_rollout(struct text id)
{
    char group_id[ID_BYTES];
    int64_t index;
    return id_split_rollout(id, group_id, &index);
}

static bool is_group(struct text id)
{
    char batch_id[ID_BYTES];
    int64_t index;
    return id_split_group(id, batch_id, &index);
}

/* A group belongs to a batch. */
static bool is_batch(struct text id)
{
    _cleanup_free_ char *group_id = xcalloc(1, id.length_bytes + sizeof("g-00001"));
    if (id.length_bytes == 0 || id.data[0] != 'b')
        return false;
    memcpy(group_id, id.data, id.length_bytes);
    memcpy(group_id + id.length_bytes, "-00001", strlen("-00001"));
    group_id[0] = 'g';
    return is_group((struct text){group_id, id.length_bytes + strlen("-00001")});
}

static void test_ids_of_one_thread_rise(void **state)
{
    (void)state;
    char last[ID_BYTES];
    id_new_batch(last);
    for (int i = 0; i < 20000; i++) {
        char next[ID_BYTES];
        id_new_batch(next);
        assert_true(is_batch(text_of(next)));
        assert_true(strcmp(next, last) > 0);
        memcpy(last, next, sizeof(last));
    }
}

enum { THREADS = 4, DRAWN = 5000 };

static void *draw(void *ids)
{
    char(*all)[ID_BYTES] = ids;
    for (int i = 0; i < DRAWN; i++)
        id_new_batch(all[i]);
    return NULL;
}

static int compare_ids(const void *left, const void *right)
{
    return strcmp(left, right);
}

static void test_threads_never_draw_the_same_id(void **state)
{
    (void)state;
    static char ids[THREADS * DRAWN][ID_BYTES];
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, draw, ids[i * DRAWN]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    qsort(ids, THREADS * DRAWN, ID_BYTES, compare_ids);
    for (int i = 1; i < THREADS * DRAWN; i++)
        assert_string_not_equal(ids[i - 1], ids[i]);
}

static void test_children_carry_their_parent_and_their_index(void **state)
{
    (void)state;
    char group[ID_BYTES];
    char rollout[ID_BYTES];
    id_of_group("b_" ROOT, 3, group);
    assert_string_equal(group, "g_" ROOT "-00003");
    id_of_rollout(group, 7, rollout);
    assert_string_equal(rollout, "r_" ROOT "-00003-00007");
    id_of_rollout("g_" ROOT "-00003", 123456, rollout);
    assert_string_equal(rollout, "r_" ROOT "-00003-123456");
}

static void test_splitting_is_the_inverse_of_joining(void **state)
{
    (void)state;
    static const int64_t indexes[] = {0, 7, 99999, 100000, 99999999};
    for (size_t i = 0; i < ARRAY_LENGTH(indexes); i++) {
        char group[ID_BYTES];
        char rollout[ID_BYTES];
        char parent[ID_BYTES];
        int64_t index = -1;
        id_of_group("b_" ROOT, indexes[i], group);
        id_of_rollout(group, indexes[i], rollout);
        assert_true(id_split_rollout(text_of(rollout), parent, &index));
        assert_string_equal(parent, group);
        assert_int_equal(index, indexes[i]);
        assert_true(id_split_group(text_of(group), parent, &index));
        assert_string_equal(parent, "b_" ROOT);
        assert_int_equal(index, indexes[i]);
    }
}

static void test_malformed_ids_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "b_",
                                        "g_",
                                        "r_",
                                        "x_" ROOT,
                                        "b_" ROOT "0",
                                        "b_01JDWX3M8K9Q2V5R7T0A1B2C3D",
                                        "b_01jdwx3m8k9q2v5r7t0a1b2c3u",
                                        "b_81jdwx3m8k9q2v5r7t0a1b2c3d",
                                        "g_" ROOT,
                                        "g_" ROOT "-",
                                        "g_" ROOT "-0003",
                                        "g_" ROOT "-000003",
                                        "g_" ROOT "-100000000",
                                        "g_" ROOT "-0000x",
                                        "g_" ROOT "--0003",
                                        "r_" ROOT "-00003",
                                        "r_" ROOT "-00003-",
                                        "r_" ROOT "-00003-00007-00001",
                                        "r_" ROOT "-00003-000007",
                                        "b-" ROOT,
                                        "-00001",
                                        "g-00001",
                                        "g_-00001",
                                        "b_" ROOT "-00003",
                                        "r_" ROOT "-00003-99999999999999999999999999999999999999"};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        assert_false(is_batch(text_of(texts[i])));
        assert_false(is_group(text_of(texts[i])));
        assert_false(is_rollout(text_of(texts[i])));
    }
    assert_false(is_batch(TEXT_NONE));
    assert_false(is_rollout(TEXT_NONE));
}

static void test_a_nul_inside_of_an_id_is_refused(void **state)
{
    (void)state;
    static const char text[] = "g_" ROOT "\0x-00001";
    assert_false(is_group((struct text){text, sizeof(text) - 1}));
    static const char batch[] = "b_01jdwx3m8k9q2v5r7t0a1b2c3\0";
    assert_false(is_batch((struct text){batch, sizeof(batch) - 1}));
}

static void test_a_request_id_has_16_hexadecimal_digits(void **state)
{
    (void)state;
    char one[ID_BYTES];
    char other[ID_BYTES];
    id_new_request(one);
    id_new_request(other);
    assert_int_equal(strlen(one), 16);
    assert_int_equal(strspn(one, "0123456789abcdef"), 16);
    assert_string_not_equal(one, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_of_one_thread_rise),
        cmocka_unit_test(test_threads_never_draw_the_same_id),
        cmocka_unit_test(test_children_carry_their_parent_and_their_index),
        cmocka_unit_test(test_splitting_is_the_inverse_of_joining),
        cmocka_unit_test(test_malformed_ids_are_refused),
        cmocka_unit_test(test_a_nul_inside_of_an_id_is_refused),
        cmocka_unit_test(test_a_request_id_has_16_hexadecimal_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
