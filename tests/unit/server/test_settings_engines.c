/* Engines in the settings: URLs with their settings, and lists in the file. */
#include "client/pool/pool.h"
#include "server/base/buffer.h"
#include "tests/unit/base/cmocka_all.h"
#include "tests/unit/server/settings_fixture.h"

#include <string.h>

static void test_engine_urls_carry_their_settings(void **state)
{
    (void)state;
    _cleanup_loading_ struct loading loading;
    load(&loading, "--engine", "http://a:8000/", "--engine",
         "https://b/x#kind=vllm&model=org/name%20x&in_flight=7&shared=true&name=big&pool=p", NULL);
    assert_int_equal(loading.result, 0);
    assert_int_equal(loading.settings.engine_count, 2);
    const struct engine_settings *engines = loading.settings.engines;
    assert_string_equal(engines[0].url, "http://a:8000");
    assert_string_equal(engines[0].name, "e1");
    assert_string_equal(engines[0].pool, "default");
    assert_null(engines[0].kind);
    assert_null(engines[0].model);
    assert_true(engines[0].in_flight == 256 && !engines[0].shared);
    assert_string_equal(engines[1].url, "https://b/x");
    assert_string_equal(engines[1].name, "big");
    assert_string_equal(engines[1].pool, "p");
    assert_string_equal(engines[1].kind, "vllm");
    assert_string_equal(engines[1].model, "org/name x");
    assert_true(engines[1].in_flight == 7 && engines[1].shared);
}

static void test_an_unknown_kind_is_refused_with_the_list_of_kinds(void **state)
{
    (void)state;
    _cleanup_loading_ struct loading loading;
    load(&loading, "--engine", "http://a:1#kind=vlm", NULL);
    assert_refused(&loading,
                   "kind \"vlm\" of engine \"http://a:1\" from --engine: expected one of vllm, vllm_generate, sglang, "
                   "llamacpp, openai_compat, scorer");
}

static void test_a_pool_of_a_scorer_and_of_an_engine_that_samples_is_refused(void **state)
{
    static const char *const others[] = {"http://b:1#pool=p", "http://b:1#pool=p&kind=vllm"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
        _cleanup_loading_ struct loading loading;
        load(&loading, "--engine", "http://a:1#pool=p&kind=scorer", "--engine", others[i], NULL);
        assert_refused(&loading,
                       "pool \"p\" of engine \"http://b:1\" from --engine: expected a pool of scorers alone, or "
                       "one without any");
    }
    _cleanup_loading_ struct loading loading;
    load(&loading, "--engine", "http://a:1#pool=p&kind=scorer", "--engine", "http://b:1#pool=p&kind=scorer", "--engine",
         "http://c:1", NULL);
    assert_int_equal(loading.settings.engine_count, 3);
}

static void test_engines_that_cannot_be_read_are_refused(void **state)
{
    (void)state;
    static const char *const urls[] = {"a:8000",
                                       "ftp://a",
                                       "http://",
                                       "http:///x",
                                       "http://a b",
                                       "http://a?x=1",
                                       "http://u@a",
                                       "http://a#kind",
                                       "http://a#knd=vllm",
                                       "http://a#kind=vllm&kind=vllm",
                                       "http://a#url=http://b",
                                       "http://a#in_flight=0",
                                       "http://a#in_flight=many",
                                       "http://a#shared=yes",
                                       "http://a#name=a/b",
                                       "http://a#name=",
                                       "http://a#pool=",
                                       "http://a#token_file=/nowhere",
                                       "http://a#",
                                       ""};
    for (size_t i = 0; i < ARRAY_LENGTH(urls); i++) {
        _cleanup_loading_ struct loading loading;
        load(&loading, "--engine", urls[i], NULL);
        assert_refused(&loading, "engines: ");
    }
    _cleanup_loading_ struct loading loading;
    load(&loading, "--engine", "http://a#name=x", "--engine", "http://b#name=x", NULL);
    assert_refused(&loading, "a name that no other engine has");
}

/* The limit of the settings must be that of the pool: otherwise --check accepts settings that fail at the start. */
static void test_as_many_engines_are_accepted_as_a_pool_takes(void **state)
{
    (void)state;
    struct buffer urls;
    buffer_init(&urls, 1 << 20);
    for (int count = 0; count < POOL_ENGINES_MAX; count++)
        buffer_append_string(&urls, "http://a:1 ");
    setenv("ROLLOUTD_ENGINES", buffer_text(&urls).data, 1);
    _cleanup_loading_ struct loading enough;
    load(&enough, NULL);
    assert_int_equal(enough.result, 0);
    buffer_append_string(&urls, "http://a:1");
    setenv("ROLLOUTD_ENGINES", buffer_text(&urls).data, 1);
    _cleanup_loading_ struct loading many;
    load(&many, NULL);
    unsetenv("ROLLOUTD_ENGINES");
    assert_refused(&many, "engines: 257 engines from ");
    buffer_finish(&urls);
}

static void test_engine_flags_replace_those_of_environment_and_file(void **state)
{
    (void)state;
    _cleanup_free_ char *path = write_file(
        "settings.yaml",
        "engines:\n  - url: http://file:1\n    kind: sglang\n    in_flight: 3\n  - url: http://file:2\n", 0600);
    _cleanup_loading_ struct loading file;
    _cleanup_loading_ struct loading environment;
    _cleanup_loading_ struct loading flag;
    load(&file, "--config", path, NULL);
    assert_int_equal(file.settings.engine_count, 2);
    assert_string_equal(file.settings.engines[0].kind, "sglang");
    assert_int_equal(file.settings.engines[0].in_flight, 3);
    setenv("ROLLOUTD_ENGINES", "http://environment:1 http://environment:2 http://environment:3", 1);
    load(&environment, "--config", path, NULL);
    load(&flag, "--config", path, "--engine=http://flag:1", NULL);
    unsetenv("ROLLOUTD_ENGINES");
    assert_int_equal(environment.settings.engine_count, 3);
    assert_int_equal(flag.settings.engine_count, 1);
    assert_string_equal(flag.settings.engines[0].url, "http://flag:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine_urls_carry_their_settings),
        cmocka_unit_test(test_an_unknown_kind_is_refused_with_the_list_of_kinds),
        cmocka_unit_test(test_a_pool_of_a_scorer_and_of_an_engine_that_samples_is_refused),
        cmocka_unit_test(test_engines_that_cannot_be_read_are_refused),
        cmocka_unit_test(test_as_many_engines_are_accepted_as_a_pool_takes),
        cmocka_unit_test(test_engine_flags_replace_those_of_environment_and_file),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
