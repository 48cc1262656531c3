/* Provenance of rollouts: each distinct combination once, and the distinct values of a batch. */
#include "tests/unit/store/fixture.h"

#include <stdio.h>
#include <string.h>

static struct fixture *fixture;

static void use(void **state)
{
    fixture = *state;
}

static struct store_settings settings_of(const char *json)
{
    struct store_settings settings = {.json = text_of(json)};
    sha256_of(settings.json.data, settings.json.length_bytes, settings.sha256);
    return settings;
}

static struct store_rollout made_by(int64_t sample_index, const char *engine, const char *model, const char *version)
{
    struct store_rollout rollout = scored_rollout(sample_index, 1.0);
    rollout.engine = engine ? text_of(engine) : TEXT_NONE;
    rollout.engine_model = model ? text_of(model) : TEXT_NONE;
    rollout.engine_version = version ? text_of(version) : TEXT_NONE;
    rollout.rolloutd_version = TEXT_LITERAL("1.2.3");
    return rollout;
}

static void put(const char *batch_id, int64_t group, const struct store_rollout *rollout,
                const struct store_settings *settings)
{
    char group_id[ID_BYTES];
    id_of_group(batch_id, group, group_id);
    struct store_op op = {.kind = STORE_INSERT_ROLLOUT,
                          .insert_rollout = {.group_id = group_id, .rollout = rollout, .settings = settings}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
}

static void assert_names(const struct store_names *names, size_t count, const char *const *want)
{
    assert_int_equal(names->count, count);
    for (size_t i = 0; i < count; i++)
        assert_true(text_equals(names->names[i], want[i]));
}

static void test_a_rollout_is_read_back_with_its_provenance(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    char rollout_id[ID_BYTES];
    char group_id[ID_BYTES];
    record_batch(fixture, 1, 2, batch_id);
    struct store_rollout rollout = made_by(0, "e1", "m", NULL);
    rollout.tokenizer_sha256 = TEXT_LITERAL("abc");
    put(batch_id, 0, &rollout, NULL);
    id_of_group(batch_id, 0, group_id);
    id_of_rollout(group_id, 0, rollout_id);
    struct store_rollouts read;
    assert_int_equal(store_read_rollout(fixture->reader, text_of(rollout_id), 0, &read), STORE_OK);
    assert_true(text_equals(read.rollouts[0].engine_model, "m"));
    assert_null(read.rollouts[0].engine_version.data);
    assert_true(text_equals(read.rollouts[0].tokenizer_sha256, "abc"));
    assert_true(text_equals(read.rollouts[0].rolloutd_version, "1.2.3"));
    store_rollouts_finish(&read);
}

static void test_equal_provenance_is_one_row_also_with_nulls(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_batch(fixture, 2, 4, batch_id);
    for (int64_t group = 0; group < 2; group++) {
        const struct store_rollout rollouts[] = {made_by(0, "e1", "m", NULL), made_by(1, "e2", "m", NULL),
                                                 made_by(2, NULL, NULL, NULL), made_by(3, NULL, NULL, NULL)};
        for (size_t i = 0; i < 4; i++)
            put(batch_id, group, &rollouts[i], NULL);
    }
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM provenances"), 2);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM batch_provenances"), 3);
    assert_int_equal(number_by_hand(fixture, "SELECT count(DISTINCT provenance_seq) FROM rollouts"), 2);
}

static void test_a_batch_has_the_distinct_values_of_its_rollouts_in_the_order_in_which_they_came(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    char other_id[ID_BYTES];
    record_batch(fixture, 1, 3, batch_id);
    record_batch(fixture, 1, 1, other_id);
    const struct store_rollout rollouts[] = {made_by(0, "e2", "n", "1"), made_by(1, "e1", "m", "1"),
                                             made_by(2, "e2", "m", "2")};
    for (size_t i = 0; i < 3; i++)
        put(batch_id, 0, &rollouts[i], NULL);
    struct store_rollout elsewhere = made_by(0, "e9", "o", "9");
    put(other_id, 0, &elsewhere, NULL);
    struct store_provenance provenance;
    assert_int_equal(store_read_provenance(fixture->reader, text_of(batch_id), &provenance), STORE_OK);
    assert_names(&provenance.engines, 2, (const char *const[]){"e1", "e2"});
    assert_names(&provenance.engine_models, 2, (const char *const[]){"n", "m"});
    assert_names(&provenance.engine_versions, 2, (const char *const[]){"1", "2"});
    assert_names(&provenance.rolloutd_versions, 1, (const char *const[]){"1.2.3"});
    assert_int_equal(provenance.tokenizer_sha256s.count, 0);
    assert_int_equal(provenance.settings_sha256s.count, 0);
    store_provenance_finish(&provenance);
    assert_int_equal(store_read_provenance(fixture->reader, TEXT_LITERAL("b_none"), &provenance), STORE_NOT_FOUND);
}

static void test_settings_are_on_record_once_and_read_by_their_digest(void **state)
{
    use(state);
    const struct store_settings first = settings_of("{\"a\":1}");
    const struct store_settings second = settings_of("{\"a\":2}");
    struct store_op op = batch_op(1, 2);
    op.create_batch.settings = &first;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    struct store_rollout rollouts[] = {made_by(0, "e1", "m", "1"), made_by(1, "e1", "m", "1")};
    put(op.create_batch.id, 0, &rollouts[0], &first);
    put(op.create_batch.id, 0, &rollouts[1], &second);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM settings_in_force"), 2);
    struct store_provenance provenance;
    char hex[2][SHA256_HEX_BYTES];
    sha256_hex(first.sha256, hex[0]);
    sha256_hex(second.sha256, hex[1]);
    assert_int_equal(store_read_provenance(fixture->reader, text_of(op.create_batch.id), &provenance), STORE_OK);
    assert_names(&provenance.settings_sha256s, 2, (const char *const[]){hex[0], hex[1]});
    store_provenance_finish(&provenance);
    struct store_settings_row row;
    assert_int_equal(store_read_settings(fixture->reader, second.sha256, &row), STORE_OK);
    assert_true(text_equals(row.json, "{\"a\":2}"));
    assert_true(row.first_at_us > 0);
    store_settings_row_finish(&row);
    const struct store_settings unknown = settings_of("{}");
    assert_int_equal(store_read_settings(fixture->reader, unknown.sha256, &row), STORE_NOT_FOUND);
}

/* As the schema before has them: without a row of provenance. */
static void test_rollouts_from_before_give_the_engines_alone(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_batch(fixture, 1, 2, batch_id);
    struct store_rollout rollouts[] = {made_by(0, "e1", "m", "1"), made_by(1, "e2", "m", "1")};
    for (size_t i = 0; i < 2; i++)
        put(batch_id, 0, &rollouts[i], NULL);
    assert_int_equal(by_hand(fixture, "UPDATE rollouts SET provenance_seq = NULL; DELETE FROM batch_provenances"), 0);
    struct store_provenance provenance;
    assert_int_equal(store_read_provenance(fixture->reader, text_of(batch_id), &provenance), STORE_OK);
    assert_names(&provenance.engines, 2, (const char *const[]){"e1", "e2"});
    assert_int_equal(provenance.engine_models.count, 0);
    store_provenance_finish(&provenance);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_a_rollout_is_read_back_with_its_provenance),
        CLAIM(test_equal_provenance_is_one_row_also_with_nulls),
        CLAIM(test_a_batch_has_the_distinct_values_of_its_rollouts_in_the_order_in_which_they_came),
        CLAIM(test_settings_are_on_record_once_and_read_by_their_digest),
        CLAIM(test_rollouts_from_before_give_the_engines_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
