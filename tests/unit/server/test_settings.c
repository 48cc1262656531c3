#include "client/pool/pool.h"
#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/settings/table.h"
#include "tests/unit/base/cmocka_all.h"

#include <string.h>
#include <sys/stat.h>

/* --- loading with arguments --- */

struct loading {
    struct settings settings;
    struct settings_run run;
    char message[SETTINGS_MESSAGE_BYTES];
    int result;
};

static void loading_finish(struct loading *loading)
{
    settings_finish(&loading->settings);
}

#define _cleanup_loading_ _cleanup_(loading_finish)

/* Arguments up to a NULL. */
static void load(struct loading *loading, ...)
{
    char program[] = "rolloutd";
    char *argv[16] = {program};
    int argc = 1;
    va_list arguments;
    va_start(arguments, loading);
    while ((argv[argc] = va_arg(arguments, char *)))
        argc++;
    va_end(arguments);
    *loading = (struct loading){0};
    loading->result = settings_load(argc, argv, &loading->settings, &loading->run, loading->message);
}

static void assert_refused(const struct loading *loading, const char *message_part)
{
    assert_int_equal(loading->result, -1);
    assert_null(strchr(loading->message, '\n'));
    if (!strstr(loading->message, message_part))
        fail_msg("\"%s\" is not in \"%s\"", message_part, loading->message);
}

/* --- files for a test --- */

static char directory[] = "/tmp/rolloutd-settings-XXXXXX";

static int make_directory(void **state)
{
    (void)state;
    for (char **variable = environ; *variable;) { /* no setting of whoever runs this */
        _cleanup_free_ char *name = xstrndup(*variable, strcspn(*variable, "="));
        if (strncmp(name, "ROLLOUTD_", 9) == 0)
            unsetenv(name);
        else
            variable++;
    }
    return mkdtemp(directory) ? 0 : -1;
}

static char *write_file(const char *name, const char *content, mode_t mode)
{
    char *path = xasprintf("%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
    chmod(path, mode);
    return path;
}

static int remove_directory(void **state)
{
    (void)state;
    static const char *const names[] = {"settings.yaml", "token"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        _cleanup_free_ char *path = xasprintf("%s/%s", directory, names[i]);
        unlink(path);
    }
    return rmdir(directory);
}

/* --- precedence --- */

static void test_without_anything_the_defaults_hold(void **state)
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

static void test_the_environment_can_name_the_file(void **state)
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

static void test_a_command_is_told_of_settings_that_cannot_be_read(void **state)
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

static void test_an_empty_file_says_nothing(void **state)
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

static void test_a_bad_value_is_named_with_its_source_and_what_was_expected(void **state)
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

static void test_a_bad_file_is_named_with_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        const char *message_part;
    } rows[] = {
        {"database: a\n\nlisen: b\n", "lisen: "},
        {"database: a\n\nlisen: b\n", "settings.yaml line 3: there is no setting of this name"},
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

static void test_a_message_is_one_line_whatever_it_quotes(void **state)
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

static void test_check_version_and_help_are_told_apart(void **state)
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

static void test_other_addresses_are_refused(void **state)
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

/* --- engines --- */

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

static void test_an_unknown_kind_is_answered_with_the_known_ones(void **state)
{
    (void)state;
    _cleanup_loading_ struct loading loading;
    load(&loading, "--engine", "http://a:1#kind=vlm", NULL);
    assert_refused(&loading,
                   "kind \"vlm\" of engine \"http://a:1\" from --engine: expected one of vllm, vllm_generate, sglang, "
                   "llamacpp, openai_compat");
}

static void test_bad_engines_are_refused(void **state)
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

/* What the settings allow must be what the pool takes: --check would be no check otherwise. */
static void test_as_many_engines_as_a_pool_takes(void **state)
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

/* --- the file that shows every key --- */

enum { CONFIG_BYTES = 65536 };

static void print_config(char ret_text[CONFIG_BYTES])
{
    FILE *out = fmemopen(ret_text, CONFIG_BYTES, "w");
    assert_non_null(out);
    settings_print_config(out);
    assert_int_equal(fclose(out), 0);
}

static void raw_finish(struct raw_settings *raw)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        free(raw->settings[i].value);
        free(raw->settings[i].source);
    }
    for (size_t i = 0; i < raw->engine_count; i++)
        raw_engine_finish(&raw->engines[i]);
    free(raw->engines);
    free(raw->engines_source);
}

static void test_the_file_that_is_printed_gives_every_key_its_default(void **state)
{
    (void)state;
    _cleanup_(raw_finish) struct raw_settings raw = {0};
    char text[CONFIG_BYTES];
    print_config(text);
    _cleanup_free_ char *path = write_file("settings.yaml", text, 0600);
    char message[SETTINGS_MESSAGE_BYTES];
    if (settings_read_file(path, &raw, message) < 0)
        fail_msg("%s", message);
    for (size_t row = 0; row < SETTING_COUNT; row++) {
        const struct setting_row *setting = &setting_rows[row];
        if (*setting->standard && !raw.settings[row].value)
            fail_msg("%s is not in the file", setting->key);
        assert_string_equal(raw.settings[row].value ? raw.settings[row].value : "", setting->standard);
    }
    assert_int_equal(raw.engine_count, 0);
}

static void test_the_file_that_is_printed_says_what_a_value_may_be(void **state)
{
    (void)state;
    char text[CONFIG_BYTES];
    print_config(text);
    assert_non_null(strstr(text, "  # Log lines for people or for machines. (one of text, json)\n  format: text\n"));
    assert_non_null(strstr(text, "\n\n# A request must have arrived completely by then. (a duration from 1ms to 1d)\n"
                                 "body_timeout: 60s\n"));
    assert_non_null(strstr(text, "\nengines: []\n#  - url: "));
}

/* Takes the comment marks off the example. */
static void show_engine_example(char *text)
{
    char *list = strstr(text, "engines: []\n");
    assert_non_null(list);
    memset(list + strlen("engines:"), ' ', strlen(" []"));
    for (char *mark = list; (mark = strstr(mark, "\n#  ")); mark++)
        mark[1] = ' ';
}

static void test_the_example_engine_of_the_file_can_be_read(void **state)
{
    (void)state;
    _cleanup_(raw_finish) struct raw_settings raw = {0};
    char text[CONFIG_BYTES];
    print_config(text);
    char message[SETTINGS_MESSAGE_BYTES];
    show_engine_example(text);
    _cleanup_free_ char *path = write_file("settings.yaml", text, 0600);
    if (settings_read_file(path, &raw, message) < 0)
        fail_msg("%s", message);
    assert_int_equal(raw.engine_count, 1);
    for (size_t i = 0; i < ENGINE_FIELD_COUNT; i++)
        assert_string_equal(*(char **)(void *)((char *)raw.engines + engine_fields[i].offset),
                            engine_fields[i].example);
}

static void test_the_lines_of_the_file_that_is_printed_fit(void **state)
{
    (void)state;
    char text[CONFIG_BYTES];
    print_config(text);
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
        if (end - line > 120)
            fail_msg("a line of %td bytes: %.*s", end - line, (int)(end - line), line);
}

static void test_every_key_has_a_sentence(void **state)
{
    (void)state;
    for (size_t row = 0; row < SETTING_COUNT; row++)
        assert_int_equal(setting_rows[row].help[strlen(setting_rows[row].help) - 1], '.');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_anything_the_defaults_hold),
        cmocka_unit_test(test_flag_wins_over_environment_over_file_over_default),
        cmocka_unit_test(test_the_environment_can_name_the_file),
        cmocka_unit_test(test_a_command_finds_the_database_as_the_service_does),
        cmocka_unit_test(test_a_command_is_told_of_settings_that_cannot_be_read),
        cmocka_unit_test(test_an_empty_file_says_nothing),
        cmocka_unit_test(test_a_bad_value_is_named_with_its_source_and_what_was_expected),
        cmocka_unit_test(test_a_bad_file_is_named_with_the_line),
        cmocka_unit_test(test_a_message_is_one_line_whatever_it_quotes),
        cmocka_unit_test(test_an_unknown_argument_is_refused),
        cmocka_unit_test(test_check_version_and_help_are_told_apart),
        cmocka_unit_test(test_numeric_addresses_with_a_port_are_accepted),
        cmocka_unit_test(test_other_addresses_are_refused),
        cmocka_unit_test(test_an_open_address_needs_a_token),
        cmocka_unit_test(test_a_token_file_that_cannot_be_trusted_is_refused),
        cmocka_unit_test(test_engine_urls_carry_their_settings),
        cmocka_unit_test(test_an_unknown_kind_is_answered_with_the_known_ones),
        cmocka_unit_test(test_bad_engines_are_refused),
        cmocka_unit_test(test_as_many_engines_as_a_pool_takes),
        cmocka_unit_test(test_engine_flags_replace_those_of_environment_and_file),
        cmocka_unit_test(test_the_file_that_is_printed_gives_every_key_its_default),
        cmocka_unit_test(test_the_file_that_is_printed_says_what_a_value_may_be),
        cmocka_unit_test(test_the_example_engine_of_the_file_can_be_read),
        cmocka_unit_test(test_the_lines_of_the_file_that_is_printed_fit),
        cmocka_unit_test(test_every_key_has_a_sentence),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
