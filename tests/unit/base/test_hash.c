#include "server/base/hash.h"
#include "tests/unit/base/cmocka_all.h"
#include "tests/unit/base/random.h"

/* FIPS 180-4, appendix B.1, and the digest of nothing. */
static void test_sha256_agrees_with_the_standard(void **state)
{
    (void)state;
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX_BYTES];
    sha256_of("abc", 3, digest);
    sha256_hex(digest, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256_of("", 0, digest);
    sha256_hex(digest, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void test_sample_seeds_are_those_of_the_formula(void **state)
{
    (void)state;
    struct text task = TEXT_LITERAL("t1");
    assert_true(sample_seed(7, 1, task, 0, 0, 0) == UINT64_C(8795940449617632684));
    assert_true(sample_seed(7, 1, task, 0, 1, 0) == UINT64_C(6427942777649207205));
    assert_true(sample_seed(UINT64_C(9007199254740993), 1, task, 0, 0, 0) == UINT64_C(6557950233363098016));
    assert_true(sample_seed(UINT64_C(9007199254740993), 1, task, 0, 1, 0) == UINT64_C(546598784542304977));
}

static void test_every_part_of_the_seed_counts(void **state)
{
    (void)state;
    struct text task = TEXT_LITERAL("t");
    uint64_t seed = sample_seed(1, 2, task, 3, 4, 5);
    assert_true(seed >> 63 == 0);
    assert_true(seed != sample_seed(2, 2, task, 3, 4, 5));
    assert_true(seed != sample_seed(1, 3, task, 3, 4, 5));
    assert_true(seed != sample_seed(1, 2, TEXT_LITERAL("t\0"), 3, 4, 5));
    assert_true(seed != sample_seed(1, 2, task, 4, 4, 5));
    assert_true(seed != sample_seed(1, 2, task, 3, 5, 5));
    assert_true(seed != sample_seed(1, 2, task, 3, 4, 6));
}

/* RFC 4648, section 10. */
static void test_base64_agrees_with_the_rfc(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < ARRAY_LENGTH(pairs); i++) {
        _cleanup_buffer_ struct buffer encoded;
        _cleanup_buffer_ struct buffer decoded;
        buffer_init(&encoded, 100);
        buffer_init(&decoded, 100);
        base64_encode(pairs[i][0], strlen(pairs[i][0]), &encoded);
        assert_true(text_equals(buffer_text(&encoded), pairs[i][1]));
        assert_true(base64_decode(text_of(pairs[i][1]), &decoded));
        assert_true(text_equals(buffer_text(&decoded), pairs[i][0]));
    }
}

static void test_base64_outside_of_its_alphabet_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"Zg",   "Zg=",  "Z===", "====", "Zg==Zg==", "Zm9v\n", "Zm9 ",
                                        "Zm-_", "Zh==", "Zm9=", "=Zg=", "Zg=v",     "Zm9vZ",  "\xff\xff\xff\xff"};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        _cleanup_buffer_ struct buffer decoded;
        buffer_init(&decoded, 100);
        assert_false(base64_decode(text_of(texts[i]), &decoded));
        assert_int_equal(decoded.length_bytes, 0);
    }
}

static void test_base64_of_random_bytes_reads_back(void **state)
{
    (void)state;
    for (size_t length = 0; length < 200; length++) {
        _cleanup_free_ uint8_t *bytes = xcalloc(length, 1);
        _cleanup_buffer_ struct buffer encoded;
        _cleanup_buffer_ struct buffer decoded;
        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)random_u64();
        buffer_init(&encoded, 4 * ((length + 2) / 3));
        buffer_init(&decoded, length);
        base64_encode(bytes, length, &encoded);
        assert_false(encoded.failed);
        assert_true(base64_decode(buffer_text(&encoded), &decoded));
        assert_int_equal(decoded.length_bytes, length);
        assert_memory_equal(buffer_text(&decoded).data, bytes, length);
    }
}

static void test_only_equal_texts_are_equal_in_constant_time(void **state)
{
    (void)state;
    assert_true(equal_in_constant_time(TEXT_LITERAL("secret"), TEXT_LITERAL("secret")));
    assert_false(equal_in_constant_time(TEXT_LITERAL("secret"), TEXT_LITERAL("secreT")));
    assert_false(equal_in_constant_time(TEXT_LITERAL("secret"), TEXT_LITERAL("secret1")));
    assert_true(equal_in_constant_time(TEXT_LITERAL(""), TEXT_LITERAL("")));
}

static void test_random_bytes_differ(void **state)
{
    (void)state;
    uint8_t one[32] = {0};
    uint8_t other[32] = {0};
    random_bytes(one, sizeof(one));
    random_bytes(other, sizeof(other));
    assert_memory_not_equal(one, other, sizeof(one));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256_agrees_with_the_standard),
        cmocka_unit_test(test_sample_seeds_are_those_of_the_formula),
        cmocka_unit_test(test_every_part_of_the_seed_counts),
        cmocka_unit_test(test_base64_agrees_with_the_rfc),
        cmocka_unit_test(test_base64_outside_of_its_alphabet_is_refused),
        cmocka_unit_test(test_base64_of_random_bytes_reads_back),
        cmocka_unit_test(test_only_equal_texts_are_equal_in_constant_time),
        cmocka_unit_test(test_random_bytes_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
