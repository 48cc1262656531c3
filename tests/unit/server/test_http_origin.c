#include "server/base/cleanup.h"
#include "server/http/origin_private.h"
#include "tests/unit/base/cmocka_all.h"

#define PORT 8787

/* F14 */
static void test_a_host_is_ours_or_not(void **state)
{
    (void)state;
    static const char *const ours[] = {"localhost",         "LOCALHOST:1", "localhost.:8787",   "127.0.0.1",
                                       "127.255.0.9:65535", "[::1]:8787",  "[::ffff:127.0.0.1]"};
    static const char *const others[] = {"",
                                         ":8787",
                                         "localhost:",
                                         "localhost:0",
                                         "localhost:65536",
                                         "localhost:123456",
                                         "localhost.evil",
                                         "127.0.0.1.evil",
                                         "127.0.0.1@evil",
                                         "10.0.0.1",
                                         "0.0.0.0",
                                         "::1",
                                         "[::1",
                                         "[]",
                                         "[::2]",
                                         "[::1]x",
                                         "127.1"};
    for (size_t i = 0; i < ARRAY_LENGTH(ours); i++)
        assert_true(origin_host_is_ours(text_of(ours[i]), "127.0.0.1"));
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        if (origin_host_is_ours(text_of(others[i]), "127.0.0.1"))
            fail_msg("%s is taken for ours", others[i]);
    assert_false(origin_host_is_ours(TEXT_LITERAL("localhost\0.evil"), "127.0.0.1"));
}

static void test_the_address_that_is_listened_on_is_ours(void **state)
{
    (void)state;
    assert_true(origin_host_is_ours(TEXT_LITERAL("10.0.0.1:8787"), "10.0.0.1"));
    assert_true(origin_host_is_ours(TEXT_LITERAL("[fd00::1]"), "fd00:0::1"));
    assert_false(origin_host_is_ours(TEXT_LITERAL("10.0.0.2"), "10.0.0.1"));
}

static void test_an_origin_is_ours_or_not(void **state)
{
    (void)state;
    static const struct {
        struct origin_signs signs;
        bool ours;
    } rows[] = {
        {{.host = "localhost"}, true},
        {{.origin = "http://127.0.0.1:8787"}, true},
        {{.host = "localhost:9000", .origin = "http://localhost:9000"}, true}, /* a port that is forwarded */
        {{.host = "a.example", .origin = "https://A.example"}, true},
        {{.host = "localhost:9000", .origin = "http://localhost:9001"}, false},
        {{.host = "localhost", .origin = "null"}, false},
        {{.host = "", .origin = "http://"}, false},
        {{.origin = "http://127.0.0.1:8787.evil"}, false},
        {{.sec_fetch_site = "none"}, true},
        {{.sec_fetch_site = "same-site"}, false},
        {{.origin = "http://localhost:8787", .sec_fetch_site = "cross-site"}, false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        assert_int_equal(origin_is_ours(&rows[i].signs, "127.0.0.1", PORT), rows[i].ours);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_host_is_ours_or_not),
        cmocka_unit_test(test_the_address_that_is_listened_on_is_ours),
        cmocka_unit_test(test_an_origin_is_ours_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
