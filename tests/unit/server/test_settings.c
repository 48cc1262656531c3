#include "server/base/clock.h"
#include "tests/unit/base/cmocka_all.h"
#include "tests/unit/server/settings_fixture.h"

#include <string.h>

/* --- precedence --- */

static void test_defaults_hold_without_flags_environment_and_file(void **state)
{
    (void)state;
    _cleanup_loading_ struct loading loading;
    load(&loading, NULL);
    const struct settings *settings = &loading.settings;
    assert_int_equal(loading.result, 0);
    assert_string_equal(settings->listen_host, "127.0.0.1");
    assert_true(settings->listen_port == 8787 && !settings->listen_ipv6);
    assert_string_equal(settings->database, "rolloutd.db");
    assert_null(settings->ready_file);
    assert_null(settings->token);
    assert_true(settings->workers >= 2 && settings->text_workers >= 2);
    assert_int_equal(settings->body_limit_bytes, 64 << 20);
    assert_int_equal(settings->default_deadline_us, 1800 * US_PER_S);
    assert_int_equal(settings->max_staleness, -1);
    assert_true(settings->sampling_n == 8 && settings->sampling_max_tokens == 1024);
    assert_true(settings->sampling_temperature == 1 && settings->sampling_top_p == 1);
    assert_int_equal(settings->engine_count, 0);
    assert_int_equal(settings->durability, DURABILITY_FULL);
}

static void test_flag_wins_over_environment_over_file_over_default(void **state)
{
    (void)state;
    _cleanup_free_ char *path = write_file(
        "settings.yaml", "database: file.db\nsampling:\n  n: 4\n  max_tokens: 5\nlog:\n  level: error\n", 0600);
    _cleanup_loading_ struct loading loading;
    setenv("ROLLOUTD_DATABASE", "environment.db", 1);
    setenv("ROLLOUTD_SAMPLING_N", "3", 1);
    load(&loading, "--config", path, "--database", "flag.db", "--set", "durability=normal", NULL);
    unsetenv("ROLLOUTD_DATABASE");
    unsetenv("ROLLOUTD_SAMPLING_N");
    assert_int_equal(loading.result, 0);
    assert_string_equal(loading.settings.database, "flag.db");
    assert_int_equal(loading.settings.sampling_n, 3);
    assert_int_equal(loading.settings.sampling_max_tokens, 5);
    assert_int_equal(loading.settings.log_level, 3);
    assert_int_equal(loading.settings.durability, DURABILITY_NORMAL);
}

static void test_a_variable_names_the_file(void **state)
{
    (void)state;
    _cleanup_free_ char *path = write_file("settings.yaml", "workers: 7\n", 0600);
    _cleanup_loading_ struct loading loading;
    setenv("ROLLOUTD_CONFIG", path, 1);
    load(&loading, NULL);
    unsetenv("ROLLOUTD_CONFIG");
    assert_int_equal(loading.settings.workers, 7);
}

static void assert_database(const char *config, const char *flag, const char *expected)
{
    _cleanup_free_ char *database = NULL;
    char message[SETTINGS_MESSAGE_BYTES];
    assert_int_equal(settings_find_database(config, flag, &database, message), 0);
    assert_string_equal(database, expected);
}

static void test_a_command_finds_the_database_as_the_service_does(void **state)
{
    (void)state;
    _cleanup_free_ char *path = write_file("settings.yaml", "database: of-file.db\nlisten: nonsense\n", 0600);
    assert_database(NULL, NULL, "rolloutd.db");
    assert_database(path, NULL, "of-file.db");
    setenv("ROLLOUTD_CONFIG", path, 1);
    assert_database(NULL, NULL, "of-file.db");
    setenv("ROLLOUTD_DATABASE", "of-environment.db", 1);
    assert_database(path, NULL, "of-environment.db");
    assert_database(path, "of-flag.db", "of-flag.db");
    unsetenv("ROLLOUTD_DATABASE");
    unsetenv("ROLLOUTD_CONFIG");
}

static void test_a_command_that_cannot_read_the_settings_names_them(void **state)
{
    (void)state;
    char *database = NULL;
    char message[SETTINGS_MESSAGE_BYTES];
    assert_int_equal(settings_find_database("/nowhere/rolloutd.yaml", NULL, &database, message), -1);
    assert_non_null(strstr(message, "/nowhere/rolloutd.yaml"));
    assert_int_equal(settings_find_database(NULL, "", &database, message), -1);
    assert_non_null(strstr(message, "database"));
    assert_null(database);
}

static void test_an_empty_file_leaves_the_defaults(void **state)
{
    (void)state;
    static const char *const contents[] = {"", "# only a comment\n", "\n\n", "database:\nengines:\n"};
    for (size_t i = 0; i < ARRAY_LENGTH(contents); i++) {
        _cleanup_free_ char *path = write_file("settings.yaml", contents[i], 0600);
        _cleanup_loading_ struct loading loading;
        load(&loading, "--config", path, NULL);
        assert_int_equal(loading.result, 0);
        assert_string_equal(loading.settings.database, "rolloutd.db");
    }
}

/* --- refusals --- */

static void test_a_wrong_value_is_refused_with_its_source_and_the_expected_form(void **state)
{
    (void)state;
    static const struct {
        const char *assignment;
        const char *message_part;
    } rows[] = {
        {"sampling.n=0", "sampling.n: \"0\" from --set: expected an integer from 1 to 65536"},
        {"sampling.n=1.0", "sampling.n: \"1.0\""},
        {"sampling.top_p=1.5", "sampling.top_p: \"1.5\" from --set: expected a number from 0 to 1"},
        {"drain_timeout=30", "drain_timeout: \"30\" from --set: expected a duration like"},
        {"connection_timeout=0s", "from 1s to 1d"},
        {"body_limit=64MB", "body_limit: \"64MB\" from --set: expected a size like"},
        {"log.level=loud", "log.level: \"loud\" from --set: expected one of debug, info, warning, error"},
        {"max_staleness=-1", "none or an integer"},
        {"database=", "database: \"\" from --set: expected text that is not empty"},
        {"log.levle=debug", "did you mean log.level?"},
        {"zzzz=1", "there is no setting of this name"},
        {"workers", "expected key=value"},
        {"engine.backoff_min=10s", "engine.backoff_min: expected at most engine.backoff_max"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        _cleanup_loading_ struct loading loading;
        load(&loading, "--set", rows[i].assignment, NULL);
        assert_refused(&loading, rows[i].message_part);
    }
}

static void test_a_wrong_file_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        const char *message_part;
    } rows[] = {
        {"database: a\n\nlisen: b\n", "lisen: "},
        {"database: a\n\nlisen: b\n", "settings.yaml line 3: there is no setting of this name"},
        {"log.level: info\n",
         "settings.yaml: in a file \"level: …\" stands in a line of its own below \"log:\", indented"},
        {"log.levle: info\n", "log.levle: "},
        {"log:\n  format: json\n  level: loud\n", "log.level: \"loud\" from "},
        {"log:\n  format: json\n  level: loud\n", "settings.yaml line 3: expected one of"},
        {"workers: [1]\n", "in mapping field 'workers'"},
        {"workers: 1\nworkers: 2\n", "already seen: workers"},
        {"database: \"a\n", "libyaml"},
        {"- a\n", "Expecting MAPPING"},
        {"engines:\n  - url: http://a:1\n    ulr: x\n", "ulr: "},
        {"engines:\n  - url: http://a:1#kind=vllm\n", "url \"http://a:1#kind=vllm\""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        _cleanup_free_ char *path = write_file("settings.yaml", rows[i].content, 0600);
        _cleanup_loading_ struct loading loading;
        load(&loading, "--config", path, NULL);
        assert_refused(&loading, rows[i].message_part);
    }
    _cleanup_loading_ struct loading loading;
    load(&loading, "--config", "/nowhere/settings.yaml", NULL);
    assert_refused(&loading, "config: \"/nowhere/settings.yaml\": No such file");
}

static void test_a_message_that_quotes_control_characters_is_one_line(void **state)
{
    (void)state;
    _cleanup_loading_ struct loading loading;
    load(&loading, "--li\nsten\x1b[31m", NULL);
    assert_refused(&loading, "--li?sten?[31m: there is no such argument");
}

static void test_an_unknown_argument_is_refused(void **state)
{
    (void)state;
    static const char *const arguments[] = {"--lisen", "listen", "-l", "--check=1", "", "--"};
    for (size_t i = 0; i < ARRAY_LENGTH(arguments); i++) {
        _cleanup_loading_ struct loading loading;
        load(&loading, arguments[i], NULL);
        assert_refused(&loading, "there is no such argument");
    }
    _cleanup_loading_ struct loading loading;
    load(&loading, "--listen", NULL);
    assert_refused(&loading, "expected --listen ADDRESS:PORT");
}

static void test_check_and_version_are_told_apart(void **state)
{
    (void)state;
    _cleanup_loading_ struct loading check;
    _cleanup_loading_ struct loading version;
    load(&check, "--check", NULL);
    assert_true(check.result == 0 && check.run.check && !check.run.version);
    load(&version, "--set", "workers=x", "--version", NULL);
    assert_true(version.result == 0 && version.run.version);
}

/* --- addresses and tokens --- */

static void test_numeric_addresses_with_a_port_are_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *listen;
        const char *host;
        int port;
        bool ipv6;
    } rows[] = {{"127.0.0.1:0", "127.0.0.1", 0, false},
                {"127.8.9.1:65535", "127.8.9.1", 65535, false},
                {"localhost:80", "127.0.0.1", 80, false},
                {"[::1]:0", "::1", 0, true},
                {"[::ffff:127.0.0.1]:9", "::ffff:127.0.0.1", 9, true}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        _cleanup_loading_ struct loading loading;
        load(&loading, "--listen", rows[i].listen, NULL);
        assert_int_equal(loading.result, 0);
        assert_string_equal(loading.settings.listen_host, rows[i].host);
        assert_int_equal(loading.settings.listen_port, rows[i].port);
        assert_int_equal(loading.settings.listen_ipv6, rows[i].ipv6);
    }
}

static void test_addresses_without_a_number_or_a_port_are_refused(void **state)
{
    (void)state;
    static const char *const addresses[] = {"127.0.0.1",    ":8787",         "::1:8787",       "[::1]",
                                            "[::1]8787",    "[127.0.0.1]:1", "example.org:80", "127.0.0.1:65536",
                                            "127.0.0.1:-1", "127.0.0.1:",    "127.0.0.1:8x",   "[fe80::1%lo]:1",
                                            "1:2:3"};
    for (size_t i = 0; i < ARRAY_LENGTH(addresses); i++) {
        _cleanup_loading_ struct loading loading;
        load(&loading, "--listen", addresses[i], NULL);
        assert_refused(&loading, "expected a numeric address and a port");
    }
}

static void test_an_open_address_needs_a_token(void **state)
{
    (void)state;
    static const char *const addresses[] = {"0.0.0.0:0", "[::]:0", "192.0.2.1:80", "[2001:db8::1]:80",
                                            "[::ffff:192.0.2.1]:80"};
    _cleanup_free_ char *token = write_file("token", "  s3cret\n", 0600);
    for (size_t i = 0; i < ARRAY_LENGTH(addresses); i++) {
        _cleanup_loading_ struct loading without;
        _cleanup_loading_ struct loading with;
        _cleanup_free_ char *assignment = xasprintf("token_file=%s", token);
        load(&without, "--listen", addresses[i], NULL);
        assert_refused(&without, "token_file");
        load(&with, "--listen", addresses[i], "--set", assignment, NULL);
        assert_int_equal(with.result, 0);
        assert_string_equal(with.settings.token, "s3cret");
    }
}

static void test_a_token_file_that_cannot_be_trusted_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        mode_t mode;
        const char *message_part;
    } rows[] = {{"secret\n", 0644, "everybody may read"},
                {"secret\n", 0602, "everybody may read or write"},
                {"", 0600, "one word"},
                {" \n", 0600, "one word"},
                {"two words\n", 0600, "one word"},
                {"caf\xc3\xa9", 0600, "one word"}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        _cleanup_free_ char *path = write_file("token", rows[i].content, rows[i].mode);
        _cleanup_free_ char *assignment = xasprintf("token_file=%s", path);
        _cleanup_loading_ struct loading loading;
        load(&loading, "--set", assignment, NULL);
        assert_refused(&loading, rows[i].message_part);
        chmod(path, 0600);
    }
    _cleanup_loading_ struct loading absent;
    _cleanup_loading_ struct loading folder;
    load(&absent, "--set", "token_file=/nowhere/token", NULL);
    assert_refused(&absent, "No such file");
    load(&folder, "--set", "token_file=/", NULL);
    assert_refused(&folder, "regular file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_hold_without_flags_environment_and_file),
        cmocka_unit_test(test_flag_wins_over_environment_over_file_over_default),
        cmocka_unit_test(test_a_variable_names_the_file),
        cmocka_unit_test(test_a_command_finds_the_database_as_the_service_does),
        cmocka_unit_test(test_a_command_that_cannot_read_the_settings_names_them),
        cmocka_unit_test(test_an_empty_file_leaves_the_defaults),
        cmocka_unit_test(test_a_wrong_value_is_refused_with_its_source_and_the_expected_form),
        cmocka_unit_test(test_a_wrong_file_is_refused_with_its_line),
        cmocka_unit_test(test_a_message_that_quotes_control_characters_is_one_line),
        cmocka_unit_test(test_an_unknown_argument_is_refused),
        cmocka_unit_test(test_check_and_version_are_told_apart),
        cmocka_unit_test(test_numeric_addresses_with_a_port_are_accepted),
        cmocka_unit_test(test_addresses_without_a_number_or_a_port_are_refused),
        cmocka_unit_test(test_an_open_address_needs_a_token),
        cmocka_unit_test(test_a_token_file_that_cannot_be_trusted_is_refused),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
