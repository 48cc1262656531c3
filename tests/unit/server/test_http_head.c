#include "server/base/cleanup.h"
#include "server/http/chunks_private.h"
#include "server/http/head_private.h"
#include "tests/unit/base/cmocka_all.h"

#include <stdio.h>

#define LINE "GET /v1/runs?x=1 HTTP/1.1\r\n"
#define HOST "Host: localhost\r\n"

/* F15, F06 */
static enum head_verdict read_text(const char *text, struct head *ret_head)
{
    return head_read(text, strlen(text), ret_head);
}

static void assert_bad(const char *text, const char *part_of_message)
{
    struct head head;
    assert_int_equal(read_text(text, &head), HEAD_BAD);
    assert_int_equal(head.code, ERR_BAD_REQUEST);
    if (!strstr(head.message, part_of_message))
        fail_msg("\"%s\" says \"%s\"", text, head.message);
}

static void test_a_good_head_is_taken_apart(void **state)
{
    (void)state;
    static const char text[] = "POST /a?b HTTP/1.1\r\n" HOST "X-Request-Id:  r.1 \r\nContent-Length: 0042\r\n\r\nbody";
    struct head head;
    assert_int_equal(read_text(text, &head), HEAD_GOOD);
    assert_int_equal(head.length_bytes, sizeof(text) - 1 - strlen("body"));
    assert_true(text_equals(head.method, "POST") && text_equals(head.target, "/a?b"));
    assert_true(text_equals(head.identity, "r.1"));
    assert_int_equal(head.body_bytes, 42);
    assert_false(head.chunked || head.last);
}

static void test_every_beginning_of_a_good_head_is_incomplete(void **state)
{
    (void)state;
    static const char text[] = LINE HOST "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    struct head head;
    for (size_t i = 0; i < sizeof(text) - 1; i++)
        assert_int_equal(head_read(text, i, &head), HEAD_INCOMPLETE);
    assert_int_equal(read_text(text, &head), HEAD_GOOD);
    assert_true(head.chunked && head.last);
}

static void test_the_last_request_is_known(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool last;
    } rows[] = {
        {LINE HOST "\r\n", false},
        {LINE HOST "Connection: keep-alive\r\n\r\n", false},
        {LINE HOST "Connection: upgrade , Close\r\n\r\n", true},
        {LINE HOST "Connection: closed\r\n\r\n", false},
        {LINE HOST "Connection: keep-alive\r\nConnection: close\r\n\r\n", true},
        {"GET / HTTP/1.0\r\n\r\n", true},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", true},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct head head;
        assert_int_equal(read_text(rows[i].text, &head), HEAD_GOOD);
        assert_int_equal(head.last, rows[i].last);
    }
}

static void test_a_head_that_can_be_read_in_two_ways_is_bad(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"GET / HTTP/1.1\n", "LF alone"},
        {LINE "\n", "LF alone"},
        {LINE "A: b\rC: d\r\n", "CR"},
        {LINE "A: b\x01", "control"},
        {"GET  / HTTP/1.1\r\n", "path"},
        {"GET / HTTP/1.1 \r\n", "one blank"},
        {"GET /\r\n", "one blank"},
        {"G\x16", "no request"},
        {"/ HTTP/1.1\r\n", "no method"},
        {LINE "A : b\r\n", "colon"},
        {LINE "A\r\n", "colon"},
        {LINE ": b\r\n", "colon"},
        {LINE " A: b\r\n", "folded"},
        {LINE HOST "\tb\r\n", "folded"},
        {LINE HOST HOST, "Host is given twice"},
        {LINE "\r\n", "wants a Host"},
        {LINE HOST "Content-Length: 1\r\nContent-Length: 1\r\n", "one Content-Length"},
        {LINE HOST "Content-Length: 1 \r\n", "no length"},
        {LINE HOST "Content-Length: \r\n", "no length"},
        {LINE HOST "Content-Length: 9223372036854775808\r\n", "no length"},
        {LINE HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "not both"},
        {LINE HOST "Transfer-Encoding: chunked \r\n", "chunked, once"},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "no chunks"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        assert_bad(rows[i].text, rows[i].message);
}

static void test_nul_is_a_byte_as_any_other(void **state)
{
    (void)state;
    static const char in_value[] = LINE HOST "A: b\0c\r\n\r\n", in_target[] = "GET /\0 HTTP/1.1\r\n\r\n",
                      in_name[] = LINE "A\0: b\r\n\r\n";
    struct head head;
    assert_int_equal(head_read(in_value, sizeof(in_value) - 1, &head), HEAD_BAD);
    assert_int_equal(head_read(in_target, sizeof(in_target) - 1, &head), HEAD_BAD);
    assert_int_equal(head_read(in_name, sizeof(in_name) - 1, &head), HEAD_BAD);
    assert_false(head_is_token_byte('\0') || head_is_value_byte('\0'));
}

static void test_a_head_has_an_end(void **state)
{
    (void)state;
    _cleanup_free_ char *text = xcalloc(1, HEAD_BYTES_MAX + 1);
    struct head head;
    memset(text, 'a', HEAD_BYTES_MAX);
    memcpy(text, LINE "A: ", strlen(LINE "A: "));
    assert_int_equal(head_read(text, HEAD_BYTES_MAX - 1, &head), HEAD_INCOMPLETE);
    assert_int_equal(head_read(text, HEAD_BYTES_MAX, &head), HEAD_BAD);
    assert_int_equal(head.code, ERR_HEAD_TOO_LARGE);

    size_t length = (size_t)sprintf(text, LINE HOST);
    for (unsigned i = 0; i < HEAD_FIELDS_MAX; i++)
        length += (size_t)sprintf(text + length, "A: b\r\n");
    assert_int_equal(head_read(text, length, &head), HEAD_BAD);
    assert_int_equal(head.code, ERR_HEAD_TOO_LARGE);
}

static void test_an_identity_is_sane_or_not(void **state)
{
    (void)state;
    assert_true(head_identity_is_sane(TEXT_LITERAL("a.B-7_")));
    assert_false(head_identity_is_sane(TEXT_LITERAL("")));
    assert_false(head_identity_is_sane(TEXT_LITERAL("a b")));
    assert_false(head_identity_is_sane(TEXT_LITERAL("a\0b")));
    assert_false(
        head_identity_is_sane(TEXT_LITERAL("01234567890123456789012345678901234567890123456789012345678901234")));
}

/* --- chunks --- */

static enum chunks_verdict read_chunks(const char *text, size_t step, size_t *ret_taken)
{
    struct chunks chunks = {.state = 0};
    size_t length = strlen(text);
    enum chunks_verdict verdict = CHUNKS_MORE;
    for (*ret_taken = 0; verdict == CHUNKS_MORE && *ret_taken < length;) {
        size_t left = length - *ret_taken, taken;
        verdict = chunks_read(&chunks, text + *ret_taken, left < step ? left : step, &taken);
        *ret_taken += taken;
        *ret_taken += (size_t)chunks_skip(&chunks); /* data may be skipped as well as read */
    }
    return verdict;
}

static void test_chunks_end_where_they_end_in_whatever_pieces(void **state)
{
    (void)state;
    static const char next[] = "GET /";
    static const char *const bodies[] = {"0\r\n\r\nGET /", "5\r\nabc\r\n\r\n00\r\n\r\nGET /",
                                         "A;x=\"y\"\r\n0123456789\r\n0;z\r\nB: c\r\nD:\r\n\r\nGET /"};
    for (size_t i = 0; i < ARRAY_LENGTH(bodies); i++)
        for (size_t step = 1; step <= strlen(bodies[i]); step++) {
            size_t taken;
            assert_int_equal(read_chunks(bodies[i], step, &taken), CHUNKS_END);
            assert_int_equal(taken, strlen(bodies[i]) - strlen(next));
        }
}

static void test_a_bad_chunk_is_bad_at_its_first_wrong_byte(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t taken;
    } rows[] = {{"x", 0},       {"1\n", 1},        {"1 \r\n", 1},     {"1\r\na\n", 4}, {"1\r\nab", 4},
                {"0\r\n\n", 3}, {"0\r\nA\r\n", 4}, {"0\r\n:\r\n", 3}, {"1;a\nb", 3},   {"0000000000000001", 15}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        size_t taken;
        assert_int_equal(read_chunks(rows[i].text, 100, &taken), CHUNKS_BAD);
        assert_int_equal(taken, rows[i].taken);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_good_head_is_taken_apart),
        cmocka_unit_test(test_every_beginning_of_a_good_head_is_incomplete),
        cmocka_unit_test(test_the_last_request_is_known),
        cmocka_unit_test(test_a_head_that_can_be_read_in_two_ways_is_bad),
        cmocka_unit_test(test_nul_is_a_byte_as_any_other),
        cmocka_unit_test(test_a_head_has_an_end),
        cmocka_unit_test(test_an_identity_is_sane_or_not),
        cmocka_unit_test(test_chunks_end_where_they_end_in_whatever_pieces),
        cmocka_unit_test(test_a_bad_chunk_is_bad_at_its_first_wrong_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
