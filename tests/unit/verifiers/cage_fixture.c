#include "cage_fixture.h"

#include <stdio.h>

#include "holder.h"
#include "server/base/cleanup.h"
#include "verifiers/sandbox/probe.h"

enum sandbox_level level_full = SANDBOX_LEVEL_FULL;
enum sandbox_level level_reduced = SANDBOX_LEVEL_REDUCED;

enum sandbox_level level_of(void **state)
{
    return *(const enum sandbox_level *)*state;
}

void assert_script(void **state, const char *script, const char *output)
{
    _cleanup_free_ char *text = script_in_holder(level_of(state), script);

    assert_string_equal(text, output);
}

/* Those of the levels that this machine offers come to the front: what cmocka calls skipped has failed for others. */
static size_t keep_offered(struct CMUnitTest *tests, size_t count, enum sandbox_level offered)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (!tests[i].initial_state || *(const enum sandbox_level *)tests[i].initial_state <= offered)
            tests[kept++] = tests[i];
    return kept;
}

int run_offered(const char *group, struct CMUnitTest *tests, size_t count)
{
    struct sandbox_settings settings = {.uid = 65534};
    struct sandbox_report report;

    sandbox_probe(&settings, &report);
    count = keep_offered(tests, count, report.level);
    if (count > 0)
        return _cmocka_run_group_tests(group, tests, count, NULL, NULL);
    puts("1..0 # SKIP no sandbox here");
    return 0;
}
