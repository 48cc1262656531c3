/* The whole check of a record, by `rolloutd verify-database`: what a start has no time for. */
#include "server/base/cleanup.h"
#include "server/base/hash.h"
#include "server/store/packed.h"
#include "server/store/sqlite/inspect.h"
#include "server/store/sqlite/migrate.h"
#include "server/store/sqlite/reader.h"
#include "server/store/sqlite/store_private.h"
#include "server/store/sqlite/verify_private.h"

#include <errno.h>

enum { ROWS_SHOWN = 20 };

struct verifying {
    struct database database;
    struct buffer *problems;
    struct store_verify_report *report;
};

static void say(struct verifying *verifying, const char *problem, const char *where)
{
    verifying->report->problems++;
    buffer_append_format(verifying->problems, "%s%s%.900s\n", problem, where && *problem ? ": " : "",
                         where ? where : "");
}

/* In front of an invariant: leaves out runs that are being deleted, whose rows are incomplete by design. */
static const char without_deleted[] =
    "WITH runs AS (SELECT * FROM main.runs WHERE deletion_seq IS NULL),"
    " batches AS (SELECT * FROM main.batches WHERE run_seq NOT IN (SELECT seq FROM main.runs WHERE deletion_seq"
    " IS NOT NULL)) ";

/* Each row of it, the first column, is one thing that is wrong. Damage under way ends that query and is one, too. */
static void ask(struct verifying *verifying, const char *problem, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(verifying->database.handle, sql, -1, &statement, NULL);
    while (result == SQLITE_OK || result == SQLITE_ROW) {
        result = sqlite3_step(statement);
        const char *text = result == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
        if (text && strcmp(text, "ok") != 0)
            say(verifying, problem, text);
    }
    if (result != SQLITE_DONE)
        say(verifying, *problem ? problem : "damaged", sqlite3_errmsg(verifying->database.handle));
    sqlite3_finalize(statement);
}

#define SHOWN " LIMIT 20"
_Static_assert(ROWS_SHOWN == 20, "as many as integrity_check shows");

/* Invariants over several columns. Each row gives the ids of what is wrong. */
static const struct verify_invariant invariants[] = {
    {"a batch's counters are not those of its rollouts",
     "SELECT b.id FROM batches b WHERE b.scored <> (SELECT count(*) FROM rollouts r WHERE r.batch_seq = b.seq AND "
     "r.state"
     " = 'scored') OR b.failed <> (SELECT count(*) FROM rollouts r WHERE r.batch_seq = b.seq AND r.state = 'failed') OR"
     " b.cancelled <> (SELECT count(*) FROM rollouts r WHERE r.batch_seq = b.seq AND r.state = 'cancelled')" SHOWN},
    {"a run's counters are not those of its batches",
     "SELECT u.name FROM runs u WHERE (u.batches, u.scored, u.failed, u.cancelled) <> (SELECT count(*),"
     " coalesce(sum(b.scored), 0), coalesce(sum(b.failed), 0), coalesce(sum(b.cancelled), 0) FROM batches b"
     " WHERE b.run_seq = u.seq)" SHOWN},
    {"a batch has another number of groups or members than it says",
     "SELECT b.id FROM batches b WHERE (b.group_count, b.rollout_count) <> (SELECT count(*), coalesce(sum(g.n), 0)"
     " FROM groups g WHERE g.batch_seq = b.seq)" SHOWN},
    {"a closed group lacks members, or their rewards are not as many as it says",
     "SELECT b.id || ' group ' || g.group_index FROM groups g JOIN batches b ON b.seq = g.batch_seq WHERE g.state ="
     " 'complete' AND (g.n, g.rewarded) <> (SELECT count(*), count(r.reward) FROM rollouts r WHERE r.group_seq = "
     "g.seq)" SHOWN},
    {"a complete batch has a group that is not closed",
     "SELECT b.id || ' group ' || g.group_index FROM groups g JOIN batches b ON b.seq = g.batch_seq WHERE g.state ="
     " 'running' AND b.state = 'complete'" SHOWN},
    /* The incarnation is the run's at the dispatch: a run that goes back while a batch runs gives it a later one. */
    {"a rollout is of another batch, run, task, incarnation or purpose than its group",
     "SELECT b.id || ' rollout ' || r.seq FROM rollouts r JOIN groups g ON g.seq = r.group_seq JOIN batches b ON b.seq "
     "="
     " g.batch_seq JOIN runs u ON u.seq = b.run_seq WHERE r.batch_seq <> g.batch_seq OR r.task_seq <> g.task_seq OR"
     " r.run_seq <> b.run_seq OR r.incarnation NOT BETWEEN b.incarnation AND u.incarnation OR r.purpose <> "
     "b.purpose" SHOWN},
    {"a rollout's index is outside its group",
     "SELECT b.id || ' rollout ' || r.seq FROM rollouts r JOIN groups g ON g.seq = r.group_seq JOIN batches b ON b.seq "
     "="
     " g.batch_seq WHERE r.sample_index < g.first_sample_index OR r.sample_index >= g.first_sample_index + g.n" SHOWN},
    {"a rollout has an advantage before its group is closed",
     "SELECT b.id || ' rollout ' || r.seq FROM rollouts r JOIN groups g ON g.seq = r.group_seq JOIN batches b ON b.seq "
     "="
     " g.batch_seq WHERE g.state = 'running' AND r.advantage IS NOT NULL" SHOWN},
    {"a rollout has another number of ids than of tokens",
     "SELECT b.id || ' rollout ' || r.seq FROM rollout_arrays a JOIN rollouts r ON r.seq = a.rollout_seq JOIN batches "
     "b ON"
     " b.seq = r.batch_seq WHERE length(a.completion_ids) <> 4 * r.completion_tokens" SHOWN},
    {"a rollout has advantages of tokens and none of its own, or not as many as tokens",
     "SELECT b.id || ' rollout ' || r.seq FROM rollout_advantages a JOIN rollouts r ON r.seq = a.rollout_seq JOIN "
     "batches"
     " b ON b.seq = r.batch_seq WHERE r.advantage IS NULL OR length(a.advantages) = 0 OR"
     " length(a.advantages) > 12 * r.completion_tokens" SHOWN},
    {"a batch or group has no contents",
     "SELECT b.id FROM batches b WHERE NOT EXISTS (SELECT 1 FROM batch_contents c WHERE c.batch_seq = b.seq) OR EXISTS"
     " (SELECT 1 FROM groups g WHERE g.batch_seq = b.seq AND NOT EXISTS (SELECT 1 FROM group_contents c WHERE"
     " c.group_seq = g.seq))" SHOWN},
};

/* Of schema VERIFY_REFILL_SCHEMA and later. */
static const struct verify_invariant refill_invariants[] = {
    {"a dropped group has an advantage, or is not closed",
     "SELECT b.id || ' group ' || g.group_index FROM groups g JOIN batches b ON b.seq = g.batch_seq WHERE g.dropped = 1"
     " AND (g.state <> 'complete' OR EXISTS (SELECT 1 FROM rollouts r WHERE r.group_seq = g.seq AND r.advantage IS NOT"
     " NULL))" SHOWN},
    {"a batch has more groups from its reserve than dropped ones, or they do not come last",
     "SELECT b.id FROM batches b JOIN groups g ON g.batch_seq = b.seq GROUP BY b.seq HAVING total(g.drawn) >"
     " total(g.dropped) OR min(CASE WHEN g.drawn = 1 THEN g.group_index END) < max(CASE WHEN g.drawn IS NULL THEN"
     " g.group_index END)" SHOWN},
};

static int64_t number(struct verifying *verifying, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;
    if (sqlite3_prepare_v2(verifying->database.handle, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* Whether the file has this table, index, trigger or view as the migrations make it. */
static void compare_thing(struct verifying *verifying, sqlite3_stmt *expected, sqlite3_stmt *find)
{
    const char *name = (const char *)sqlite3_column_text(expected, 1);
    sqlite3_reset(find);
    bind_text(find, 1, column_view(expected, 0));
    bind_text(find, 2, column_view(expected, 1));
    if (sqlite3_step(find) != SQLITE_ROW)
        say(verifying, "the schema lacks this, which the next start makes if it is an index", name);
    else if (strcmp((const char *)sqlite3_column_text(find, 0), (const char *)sqlite3_column_text(expected, 2)) != 0)
        say(verifying, "the schema has this in another form", name);
}

/* Of the newest version alone: an older one lacks what its start would add. */
static void compare_schema(struct verifying *verifying)
{
    static const char list[] = "SELECT type, name, sql FROM sqlite_schema WHERE sql NOT NULL";
    static const char find_sql[] = "SELECT sql FROM sqlite_schema WHERE type = ?1 AND name = ?2 AND sql NOT NULL";
    struct database model = {0};
    sqlite3_stmt *expected = NULL;
    sqlite3_stmt *find = NULL;
    int result = migrate_model(&model);
    if (result == SQLITE_OK)
        result = sqlite3_prepare_v2(model.handle, list, -1, &expected, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_prepare_v2(verifying->database.handle, find_sql, -1, &find, NULL);
    while (result == SQLITE_OK && sqlite3_step(expected) == SQLITE_ROW)
        compare_thing(verifying, expected, find);
    if (result != SQLITE_OK)
        say(verifying, "the schema cannot be read", sqlite3_errmsg(verifying->database.handle));
    sqlite3_finalize(expected);
    sqlite3_finalize(find);
    database_close(&model);
}

/* By the row, or by the text itself if the row does not say it. */
static bool find_length(sqlite3_stmt *row, size_t *ret_plain_bytes)
{
    int64_t plain_bytes = column_int_or(row, 2, -1);
    if (sqlite3_column_type(row, 2) == SQLITE_NULL)
        return store_unpacked_bytes(column_view(row, 3), ret_plain_bytes);
    *ret_plain_bytes = (size_t)plain_bytes;
    return plain_bytes >= 0;
}

/* Whether the text of a row comes out as long as the row says, and has its digest, if it has one. */
static bool comes_out(sqlite3_stmt *row)
{
    uint8_t digest[SHA256_BYTES];
    size_t plain_bytes;
    struct text sha256 = column_view(row, 4);
    _cleanup_free_ char *plain = find_length(row, &plain_bytes) ? malloc(plain_bytes + 1) : NULL;
    enum store_codec codec = (enum store_codec)column_name(row, 1, store_codec_names);
    if (!plain || !store_unpack(codec, column_view(row, 3), plain, plain_bytes))
        return false;
    sha256_of(plain, plain_bytes, digest);
    return !sha256.data || text_same(sha256, (struct text){(const char *)digest, sizeof(digest)});
}

/* ---- lean requests: their digest is the batch's */

struct lean_request {
    int64_t batch_seq;
    sqlite3_stmt *given;
};

static bool find_values(void *arg, const struct lean_part *part, struct text *ret_values)
{
    const struct lean_request *request = arg;
    sqlite3_reset(request->given);
    reader_bind_given(request->given, request->batch_seq, part);
    bool there = sqlite3_step(request->given) == SQLITE_ROW;
    *ret_values = there ? column_view(request->given, 0) : TEXT_NONE;
    return ret_values->data != NULL;
}

static bool lean_comes_out(sqlite3_stmt *row, sqlite3_stmt *given)
{
    struct lean_request request = {sqlite3_column_int64(row, 1), given};
    struct text packed = column_view(row, 2);
    uint8_t digest[SHA256_BYTES];
    size_t lean_bytes;
    if (!store_unpacked_bytes(packed, &lean_bytes))
        return false;
    _cleanup_free_ char *lean = malloc(lean_bytes + 1);
    _cleanup_buffer_ struct buffer body;
    buffer_init(&body, SIZE_MAX);
    if (!lean || !store_unpack(STORE_CODEC_ZSTD, packed, lean, lean_bytes) ||
        !lean_unpack((struct text){lean, lean_bytes}, find_values, &request, &body) ||
        (int64_t)body.length_bytes != column_int_or(row, 3, -1))
        return false;
    sha256_of(body.data, body.length_bytes, digest);
    return text_same(column_view(row, 4), (struct text){(const char *)digest, sizeof(digest)});
}

static void check_lean_requests(struct verifying *verifying)
{
    static const char list[] = "SELECT b.id, b.seq, q.body, q.body_bytes, b.request_sha256 FROM requests q"
                               " JOIN main.batches b ON b.seq = q.batch_seq JOIN main.runs r ON r.seq = b.run_seq"
                               " WHERE q.codec = 'lean' AND r.deletion_seq IS NULL";
    sqlite3_stmt *rows = NULL;
    sqlite3_stmt *given = NULL;
    int shown = 0;
    int result = sqlite3_prepare_v2(verifying->database.handle, list, -1, &rows, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_prepare_v2(verifying->database.handle, statement_rows[SQL_READ_GIVEN].sql, -1, &given, NULL);
    while (result == SQLITE_OK && shown < ROWS_SHOWN && sqlite3_step(rows) == SQLITE_ROW)
        if (!lean_comes_out(rows, given)) {
            say(verifying, "the request of this batch is damaged", (const char *)sqlite3_column_text(rows, 0));
            shown++;
        }
    if (result != SQLITE_OK)
        say(verifying, "requests cannot be read", sqlite3_errmsg(verifying->database.handle));
    sqlite3_finalize(rows);
    sqlite3_finalize(given);
}

/* Prompts, references, requests and completions, which may be packed. */
static void check_texts(struct verifying *verifying)
{
    static const char list[] =
        "SELECT 'content ' || seq, codec, plain_bytes, content, sha256 FROM contents UNION ALL"
        " SELECT 'request of ' || b.id, q.codec, coalesce(q.body_bytes, length(q.body)), q.body, NULL"
        " FROM requests q JOIN batches b ON b.seq = q.batch_seq WHERE q.codec <> 'lean' UNION ALL"
        " SELECT 'rollout ' || rollout_seq, 'zstd', NULL, packed, NULL FROM rollout_texts WHERE packed IS NOT NULL";
    sqlite3_stmt *rows = NULL;
    int shown = 0;
    int result = sqlite3_prepare_v2(verifying->database.handle, list, -1, &rows, NULL);
    while ((result == SQLITE_OK || result == SQLITE_ROW) && shown < ROWS_SHOWN) {
        result = sqlite3_step(rows);
        if (result == SQLITE_ROW && !comes_out(rows)) {
            say(verifying, "a prompt, reference, request or completion is damaged",
                (const char *)sqlite3_column_text(rows, 0));
            shown++;
        }
    }
    if (result != SQLITE_DONE && result != SQLITE_ROW)
        say(verifying, "prompts, requests and completions cannot be read", sqlite3_errmsg(verifying->database.handle));
    sqlite3_finalize(rows);
}

static void ask_invariant(struct verifying *verifying, const struct verify_invariant *invariant, bool deleting)
{
    _cleanup_free_ char *sql = xasprintf("%s%s", deleting ? without_deleted : "", invariant->sql);
    ask(verifying, invariant->problem, sql);
}

static void verify_all(struct verifying *verifying)
{
    struct store_verify_report *report = verifying->report;
    report->schema_version = number(verifying, "PRAGMA user_version");
    report->batches = number(verifying, "SELECT count(*) FROM batches");
    report->rollouts = number(verifying, "SELECT count(*) FROM rollouts");
    ask(verifying, "", "PRAGMA integrity_check(20)");
    ask(verifying, "a row refers to one that is not there",
        "SELECT \"table\" || ' ' || coalesce(rowid, '') || ' in ' || parent FROM pragma_foreign_key_check" SHOWN);
    if (report->schema_version == migrate_latest())
        compare_schema(verifying);
    if (report->schema_version == migrate_latest()) {
        check_texts(verifying);
        check_lean_requests(verifying);
    }
    if (report->schema_version >= VERIFY_LABELS_SCHEMA)
        ask(verifying, "a label is of another run than its rollout",
            "SELECT u.name || ' rollout ' || r.seq FROM labels l JOIN rollouts r ON r.seq = l.rollout_seq JOIN runs u"
            " ON u.seq = l.run_seq WHERE l.run_seq <> r.run_seq" SHOWN);
    /* -1: an older schema, which knows of no deletions. */
    bool deleting = number(verifying, "SELECT count(*) FROM runs WHERE deletion_seq IS NOT NULL") > 0;
    for (size_t i = 0; i < ARRAY_LENGTH(invariants); i++)
        ask_invariant(verifying, &invariants[i], deleting);
    for (size_t i = 0; report->schema_version >= VERIFY_REFILL_SCHEMA && i < ARRAY_LENGTH(refill_invariants); i++)
        ask_invariant(verifying, &refill_invariants[i], deleting);
    for (size_t i = 0; report->schema_version >= VERIFY_REVERIFY_SCHEMA && i < verify_reverify_count; i++)
        ask_invariant(verifying, &verify_reverify[i], deleting);
    for (size_t i = 0; report->schema_version >= VERIFY_ROLLUPS_SCHEMA && !deleting && i < verify_rollups_count; i++)
        ask(verifying, verify_rollups[i].problem, verify_rollups[i].sql);
    for (size_t i = 0; report->schema_version >= VERIFY_DELIVERIES_SCHEMA && !deleting && i < verify_deliveries_count;
         i++)
        ask(verifying, verify_deliveries[i].problem, verify_deliveries[i].sql);
}

int store_verify(const char *path, struct buffer *problems, struct store_verify_report *ret_report,
                 char message[STORE_MESSAGE_BYTES])
{
    _cleanup_free_ char *real = NULL;
    struct verifying verifying = {.problems = problems, .report = ret_report};
    *ret_report = (struct store_verify_report){0};
    int refused = inspect_resolve(path, &real, message);
    if (refused == 0)
        refused = inspect_to_read(real, message);
    if (refused < 0)
        return refused;
    int result = database_open_to_verify(&verifying.database, real);
    refused = result == SQLITE_OK ? inspect_version(&verifying.database, real, message)
                                  : store_refuse(EIO, message, "the database %s cannot be read: %s", real,
                                                 sqlite3_errmsg(verifying.database.handle));
    if (refused == 0)
        refused = inspect_size(&verifying.database, real, message);
    if (refused == 0)
        verify_all(&verifying);
    database_close(&verifying.database);
    return refused;
}
