#include "tests/unit/store/fixture.h"

#include <stdio.h>
#include <string.h>

static struct fixture *fixture;

static void use(void **state)
{
    fixture = *state;
}

/* A batch of groups of 2, all scored, with these tags; "" stands for none. */
static void record_tagged(const char *const *tags, size_t count)
{
    static struct store_new_group groups[8];
    struct store_op op = batch_op(count, 2);
    memcpy(groups, op.create_batch.groups, count * sizeof(groups[0]));
    for (size_t g = 0; g < count; g++)
        groups[g].tags = *tags[g] ? text_of(tags[g]) : TEXT_NONE;
    op.create_batch.groups = groups;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    for (size_t g = 0; g < count; g++)
        for (int64_t i = 0; i < 2; i++) {
            struct store_rollout rollout = scored_rollout(i, 1.0);
            assert_int_equal(insert(fixture, op.create_batch.id, (int64_t)g, &rollout), STORE_OK);
        }
}

static size_t count_with(size_t count, const struct store_tag *tags)
{
    struct store_rollout_filter filter;
    struct store_rollouts page;
    store_rollout_filter_init(&filter);
    memcpy(filter.tags, tags, count * sizeof(*tags));
    filter.tag_count = count;
    assert_int_equal(store_list_rollouts(fixture->reader, &filter, TEXT_NONE,
                                         &(struct store_page_limits){1000, 100000, SIZE_MAX}, 0, &page),
                     STORE_OK);
    size_t found = page.count;
    store_rollouts_finish(&page);
    return found;
}

#define WITH(...)                                                                                                      \
    count_with(sizeof((struct store_tag[]){__VA_ARGS__}) / sizeof(struct store_tag),                                   \
               (const struct store_tag[]){__VA_ARGS__})
#define TAG(name, value)                                                                                               \
    {                                                                                                                  \
        TEXT_LITERAL(name), TEXT_LITERAL(value)                                                                        \
    }

static const char *const mixture[] = {"{\"level\":\"2\",\"source\":\"gsm8k\"}", "{\"source\":\"math\"}", "",
                                      "{\"source\":\"gsm8k\"}", "{\"source\":\"gsm8k\"}"};

static void test_a_filter_finds_the_rollouts_of_groups_with_all_its_tags(void **state)
{
    use(state);
    record_tagged(mixture, 5);
    assert_int_equal(WITH(TAG("source", "gsm8k")), 6);
    assert_int_equal(WITH(TAG("source", "math")), 2);
    assert_int_equal(WITH(TAG("source", "gsm8k"), TAG("level", "2")), 2);
    assert_int_equal(WITH(TAG("source", "gsm8")), 0);
    assert_int_equal(WITH(TAG("sourc", "gsm8k")), 0);
    assert_int_equal(WITH(TAG("source", "")), 0);
    assert_int_equal(WITH(TAG("level", "2"), TAG("source", "math")), 0);
}

static void test_equal_tags_are_on_record_once_over_all_runs(void **state)
{
    use(state);
    record_tagged(mixture, 5);
    record_tagged(mixture, 5);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM tags"), 3);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM groups WHERE tags_seq IS NULL"), 2);
}

static void test_tags_come_back_with_groups_and_rollouts(void **state)
{
    use(state);
    record_tagged(mixture, 5);
    struct store_rollout_filter filter;
    struct store_rollouts page;
    store_rollout_filter_init(&filter);
    assert_int_equal(store_list_rollouts(fixture->reader, &filter, TEXT_NONE,
                                         &(struct store_page_limits){1000, 100000, SIZE_MAX}, 0, &page),
                     STORE_OK);
    assert_int_equal(page.count, 10);
    for (size_t i = 0; i < page.count; i++) {
        struct store_group group;
        assert_int_equal(store_read_group(fixture->reader, text_of(page.rollouts[i].group_id), 0, &group), STORE_OK);
        struct text wanted = text_of(mixture[group.index]);
        assert_true(text_same(page.rollouts[i].tags, wanted) && text_same(group.tags, wanted));
        assert_true((page.rollouts[i].tags.data == NULL) == (wanted.length_bytes == 0));
        store_group_finish(&group);
    }
    store_rollouts_finish(&page);
}

static void test_a_cursor_belongs_to_its_tags(void **state)
{
    use(state);
    struct store_rollout_filter filter;
    struct store_rollouts page;
    record_tagged(mixture, 5);
    store_rollout_filter_init(&filter);
    filter.tags[0] = (struct store_tag)TAG("source", "gsm8k");
    filter.tag_count = 1;
    assert_int_equal(store_list_rollouts(fixture->reader, &filter, TEXT_NONE,
                                         &(struct store_page_limits){1, 100000, SIZE_MAX}, 0, &page),
                     STORE_OK);
    assert_true(store_rollouts_cursor_fits(&filter, text_of(page.next)));
    filter.tags[0].value = TEXT_LITERAL("math");
    assert_false(store_rollouts_cursor_fits(&filter, text_of(page.next)));
    filter.tag_count = 0;
    assert_false(store_rollouts_cursor_fits(&filter, text_of(page.next)));
    store_rollouts_finish(&page);
}

static void test_a_value_is_found_whatever_characters_it_has(void **state)
{
    (void)state;
    struct text tags = TEXT_LITERAL("{\"a\":\"\\\"\\\\\\n\\u0001\xC3\xA9\",\"b\":\"\"}");
    struct buffer value;
    buffer_init(&value, 64);
    assert_true(store_tag_find(tags, TEXT_LITERAL("a"), &value));
    assert_string_equal(value.data, "\"\\\n\x01\xC3\xA9");
    buffer_clear(&value);
    assert_true(store_tag_find(tags, TEXT_LITERAL("b"), &value));
    assert_int_equal(value.length_bytes, 0);
    assert_false(store_tag_find(tags, TEXT_LITERAL("c"), &value));
    assert_false(store_tag_find(TEXT_NONE, TEXT_LITERAL("a"), &value));
    buffer_finish(&value);
}

static void test_names_are_short_words(void **state)
{
    (void)state;
    char longest[STORE_TAG_NAME_BYTES + 1];
    memset(longest, 'a', sizeof(longest));
    assert_true(store_tag_name_is_valid((struct text){longest, STORE_TAG_NAME_BYTES}));
    assert_false(store_tag_name_is_valid((struct text){longest, STORE_TAG_NAME_BYTES + 1}));
    assert_true(store_tag_name_is_valid(TEXT_LITERAL("a.B-c_9")));
    assert_false(store_tag_name_is_valid(TEXT_LITERAL("")));
    assert_false(store_tag_name_is_valid(TEXT_LITERAL("a b")));
    assert_false(store_tag_name_is_valid(TEXT_LITERAL("caf\xC3\xA9")));
    assert_false(store_tag_name_is_valid(TEXT_LITERAL("a\0")));
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_a_filter_finds_the_rollouts_of_groups_with_all_its_tags),
        CLAIM(test_equal_tags_are_on_record_once_over_all_runs),
        CLAIM(test_tags_come_back_with_groups_and_rollouts),
        CLAIM(test_a_cursor_belongs_to_its_tags),
        CLAIM(test_a_value_is_found_whatever_characters_it_has),
        CLAIM(test_names_are_short_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
