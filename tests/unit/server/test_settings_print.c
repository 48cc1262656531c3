/* The file that shows every key: rolloutd --print-config. */
#include "server/settings/table.h"
#include "tests/unit/base/cmocka_all.h"
#include "tests/unit/server/settings_fixture.h"

#include <string.h>

enum { CONFIG_BYTES = 65536 };

static void print_config(char ret_text[CONFIG_BYTES])
{
    FILE *out = fmemopen(ret_text, CONFIG_BYTES, "w");
    assert_non_null(out);
    settings_print_config(out);
    assert_int_equal(fclose(out), 0);
}

static void test_the_printed_file_gives_every_key_its_default(void **state)
{
    (void)state;
    _cleanup_(raw_settings_finish) struct raw_settings raw = {0};
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

static void test_the_printed_file_names_the_values_of_each_key(void **state)
{
    (void)state;
    char text[CONFIG_BYTES];
    print_config(text);
    assert_non_null(strstr(text, "  # Format of log lines. (one of text, json)\n  format: text\n"));
    assert_non_null(strstr(text, "\n\n# A request must have arrived completely by then. (a duration from 1ms to 1d)\n"
                                 "body_timeout: 60s\n"));
    assert_non_null(strstr(text, "\nengines: []\n#  - url: "));
}

/* Takes the comment marks off the example of a list. */
static void show_example(char *text, const char *name)
{
    char head[32];
    snprintf(head, sizeof(head), "\n%s: []\n", name);
    char *list = strstr(text, head);
    assert_non_null(list);
    memset(list + 1 + strlen(name) + 1, ' ', strlen(" []"));
    for (char *line = strchr(list + 1, '\n'); strncmp(line, "\n#  ", 4) == 0; line = strchr(line + 1, '\n'))
        line[1] = ' ';
}

/* The printed file, with that example. */
static void read_example(const char *name, struct raw_settings *raw)
{
    char text[CONFIG_BYTES];
    print_config(text);
    char message[SETTINGS_MESSAGE_BYTES];
    show_example(text, name);
    _cleanup_free_ char *path = write_file("settings.yaml", text, 0600);
    if (settings_read_file(path, raw, message) < 0)
        fail_msg("%s", message);
}

static void test_the_example_engine_of_the_printed_file_can_be_read(void **state)
{
    (void)state;
    _cleanup_(raw_settings_finish) struct raw_settings raw = {0};
    read_example("engines", &raw);
    assert_int_equal(raw.engine_count, 1);
    for (size_t i = 0; i < ENGINE_FIELD_COUNT; i++)
        assert_string_equal(*(char **)(void *)((char *)raw.engines + engine_fields[i].offset),
                            engine_fields[i].example);
}

static void test_the_example_external_of_the_printed_file_can_be_read(void **state)
{
    (void)state;
    _cleanup_(raw_settings_finish) struct raw_settings raw = {0};
    read_example("externals", &raw);
    assert_int_equal(raw.external_count, 1);
    assert_string_equal(raw.externals[0].name, "style");
    assert_int_equal(raw.externals[0].command_count, 2);
    assert_string_equal(raw.externals[0].command[1], "style.py");
    assert_int_equal(raw.externals[0].files_count, 1);
    assert_string_equal(raw.externals[0].memory, "512MiB");
}

static void test_the_lines_of_the_printed_file_fit_into_120_columns(void **state)
{
    (void)state;
    char text[CONFIG_BYTES];
    print_config(text);
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
        if (end - line > 120)
            fail_msg("a line of %td bytes: %.*s", end - line, (int)(end - line), line);
}

static void test_the_help_of_every_key_is_a_sentence(void **state)
{
    (void)state;
    for (size_t row = 0; row < SETTING_COUNT; row++)
        assert_int_equal(setting_rows[row].help[strlen(setting_rows[row].help) - 1], '.');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_printed_file_gives_every_key_its_default),
        cmocka_unit_test(test_the_printed_file_names_the_values_of_each_key),
        cmocka_unit_test(test_the_example_engine_of_the_printed_file_can_be_read),
        cmocka_unit_test(test_the_example_external_of_the_printed_file_can_be_read),
        cmocka_unit_test(test_the_lines_of_the_printed_file_fit_into_120_columns),
        cmocka_unit_test(test_the_help_of_every_key_is_a_sentence),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
