/* An audit whose client has gone ends without an answer. */
#include "server/reports/audit.h"

#include "server/http/call.h"
#include "server/input/input.h"
#include "tests/unit/base/cmocka_all.h"

#include <string.h>

static const char body[] =
    "{\"groups\": [{\"task\": \"t\", \"completions\": [{\"scores\": {\"right\": 1, \"style\": 0}}, {\"scores\": "
    "{\"right\": 0, \"style\": 1}}]}],"
    " \"weights\": {\"right\": 1}, \"sweep\": {\"verifier\": \"style\", \"weights\": [0, 3]}, \"truth\": \"right\"}";

static void ask(struct call *call, bool abandoned)
{
    struct json_input input;

    call_init(call);
    call->body = strdup(body);
    call->body_bytes = strlen(body);
    call->abandoned = abandoned;
    assert_int_equal(json_input_init(&input, call, NULL), 0);
    audit_answer(&input);
    json_input_finish(&input);
}

static void test_an_audit_that_somebody_waits_for_is_answered(void **state)
{
    struct call call;
    (void)state;

    ask(&call, false);
    assert_int_equal(call.reply.status, 200);
    assert_non_null(strstr(call.reply.body.data, "\"promoted_wrong\":1"));
    call_finish(&call);
}

static void test_an_audit_that_nobody_waits_for_is_not_computed(void **state)
{
    struct call call;
    (void)state;

    ask(&call, true);
    assert_int_equal(call.reply.status, 0);
    assert_int_equal(call.reply.body.length_bytes, 0);
    call_finish(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_audit_that_somebody_waits_for_is_answered),
        cmocka_unit_test(test_an_audit_that_nobody_waits_for_is_not_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
