#include "server/store/sqlite/rollout_scan.h"

#include "server/store/packed.h"
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/scores.h"

#include <math.h>

#define TEXT_ROW_BYTES 4096 /* so much of a text that is searched counts as a row */

/* ---- names ------------------------------------------------------------------------------------------------------- */

int rollout_scan_resolve(struct store_reader *reader, const struct store_rollout_filter *filter,
                         struct rollout_scan *ret_scan)
{
    *ret_scan = (struct rollout_scan){reader, filter, -1, -1, -1, -1, -1, true};
    const struct {
        enum statement which;
        struct text name;
        int64_t *seq;
    } names[] = {
        {SQL_RUN_SEQ, filter->run, &ret_scan->run_seq},
        {SQL_TASK_SEQ, filter->task, &ret_scan->task_seq},
        {SQL_BATCH_SEQ, filter->batch, &ret_scan->batch_seq},
    };
    int result = SQLITE_ROW;
    for (size_t i = 0; i < ARRAY_LENGTH(names) && result == SQLITE_ROW; i++)
        if (names[i].name.data)
            result = reader_find_seq(reader, names[i].which, names[i].name, names[i].seq);
    int64_t n;
    if (result == SQLITE_ROW && filter->group.data)
        result = reader_find_group(reader, filter->group, &ret_scan->group_seq, &n);
    return result;
}

/* ---- the index to walk ------------------------------------------------------------------------------------------- */

static bool has_one_revision(const struct store_rollout_filter *filter)
{
    return filter->revision_min >= 0 && filter->revision_min == filter->revision_max;
}

/* The index that promises the fewest rows: its statement upwards. */
static enum statement choose(const struct rollout_scan *scan)
{
    const struct store_rollout_filter *filter = scan->filter;
    const struct {
        bool fits;
        enum statement which;
    } scans[] = {
        {scan->group_seq >= 0, SQL_SCAN_GROUP_UP},
        {scan->batch_seq >= 0, SQL_SCAN_BATCH_UP},
        {scan->task_seq >= 0, SQL_SCAN_TASK_UP},
        {filter->failure.data, SQL_SCAN_FAILURE_UP},
        {filter->state > STORE_ROLLOUT_SCORED, SQL_SCAN_STATE_UP},
        {scan->run_seq >= 0 && filter->duplicate == 1, SQL_SCAN_DUPLICATE_UP},
        {scan->run_seq >= 0 && has_one_revision(filter), SQL_SCAN_REVISION_UP},
        {scan->run_seq >= 0, SQL_SCAN_RUN_UP},
        {true, SQL_SCAN_ALL_UP},
    };
    size_t i = 0;
    while (!scans[i].fits)
        i++;
    return scans[i].which;
}

/* By enum store_rollout_order. */
static const struct {
    enum statement equal, beyond;
    int place;
} orders[] = {
    [STORE_BY_REWARD] = {SQL_SCAN_REWARD_EQUAL_UP, SQL_SCAN_REWARD_BEYOND_UP, SCAN_AT_reward},
    [STORE_BY_ADVANTAGE] = {SQL_SCAN_ADVANTAGE_EQUAL_UP, SQL_SCAN_ADVANTAGE_BEYOND_UP, SCAN_AT_advantage},
    [STORE_BY_TOKENS] = {SQL_SCAN_TOKENS_EQUAL_UP, SQL_SCAN_TOKENS_BEYOND_UP, SCAN_AT_completion_tokens},
};

static int64_t first_seq(const struct store_rollout_filter *filter)
{
    return filter->descending ? INT64_MAX : 0;
}

void rollout_scan_start(const struct store_rollout_filter *filter, struct list_place *ret_place)
{
    ret_place->value = filter->descending ? INFINITY : -INFINITY; /* no value on record is infinite */
    ret_place->seq = first_seq(filter);
}

size_t rollout_scan_plan(const struct rollout_scan *scan, const struct list_place *place,
                         struct rollout_leg ret_legs[ROLLOUT_LEGS_MAX])
{
    const struct store_rollout_filter *filter = scan->filter;
    unsigned down = filter->descending ? 1 : 0;
    size_t count = 0;
    if (filter->order_by == STORE_BY_CREATED) {
        ret_legs[0] = (struct rollout_leg){choose(scan) + down, NAN, place->seq};
        return 1;
    }
    enum statement equal = orders[filter->order_by].equal + down;
    enum statement beyond = orders[filter->order_by].beyond + down;
    ret_legs[count++] = (struct rollout_leg){equal, place->value, place->seq};
    if (isnan(place->value))
        return count;
    ret_legs[count++] = (struct rollout_leg){beyond, place->value, first_seq(filter)};
    ret_legs[count++] = (struct rollout_leg){equal, NAN, first_seq(filter)};
    return count;
}

/* The text of ?1; TEXT_NONE: ?1 is a number. */
static struct text first_text(const struct store_rollout_filter *filter, enum statement up)
{
    if (up == SQL_SCAN_FAILURE_UP)
        return filter->failure;
    return up == SQL_SCAN_STATE_UP ? text_of(store_rollout_state_names[filter->state]) : TEXT_NONE;
}

static int64_t first_number(const struct rollout_scan *scan, enum statement up)
{
    if (up == SQL_SCAN_GROUP_UP)
        return scan->group_seq;
    if (up == SQL_SCAN_BATCH_UP)
        return scan->batch_seq;
    return up == SQL_SCAN_TASK_UP ? scan->task_seq : scan->run_seq;
}

sqlite3_stmt *rollout_scan_begin(const struct rollout_scan *scan, const struct rollout_leg *leg)
{
    const struct store_rollout_filter *filter = scan->filter;
    enum statement up = leg->which - (filter->descending ? 1U : 0U);
    sqlite3_stmt *statement = database_statement(&scan->reader->database, leg->which);
    struct text text = first_text(filter, up);
    if (text.data)
        bind_text(statement, 1, text);
    else
        bind_int(statement, 1, first_number(scan, up));
    bind_int(statement, 2, leg->after);
    bind_int(statement, 3, filter->revision_min);
    bind_double(statement, 4, leg->value);
    return statement;
}

struct list_place rollout_scan_place(const struct rollout_scan *scan, sqlite3_stmt *row)
{
    int order = scan->filter->order_by;
    return (struct list_place){
        .value = order == STORE_BY_CREATED ? (double)NAN : column_double(row, orders[order].place),
        .seq = sqlite3_column_int64(row, SCAN_AT_seq),
    };
}

/* ---- one row ----------------------------------------------------------------------------------------------------- */

static bool fits_number(sqlite3_stmt *row, int place, int64_t wanted)
{
    return wanted < 0 || (sqlite3_column_type(row, place) != SQLITE_NULL && sqlite3_column_int64(row, place) == wanted);
}

static bool fits_range(sqlite3_stmt *row, int place, int64_t minimum, int64_t maximum)
{
    int64_t value = sqlite3_column_int64(row, place);
    return (minimum < 0 || value >= minimum) && (maximum < 0 || value <= maximum);
}

/* A rollout without a value, NAN, fits no bound. */
static bool fits_real(sqlite3_stmt *row, int place, double minimum, double maximum)
{
    if (isnan(minimum) && isnan(maximum))
        return true;
    double value = column_double(row, place);
    return (isnan(minimum) || value >= minimum) && (isnan(maximum) || value <= maximum);
}

static bool fits_text(sqlite3_stmt *row, int place, struct text wanted)
{
    if (!wanted.data)
        return true;
    struct text value = column_view(row, place);
    return value.data && text_same(value, wanted);
}

static bool fits_name(sqlite3_stmt *row, int place, const char *const *names, int wanted)
{
    return wanted < 0 || column_name(row, place, names) == wanted;
}

static bool fits_numbers(sqlite3_stmt *row, const struct rollout_scan *scan)
{
    const struct store_rollout_filter *filter = scan->filter;
    return fits_number(row, SCAN_AT_run_seq, scan->run_seq) && fits_number(row, SCAN_AT_batch_seq, scan->batch_seq) &&
           fits_number(row, SCAN_AT_group_seq, scan->group_seq) && fits_number(row, SCAN_AT_task_seq, scan->task_seq) &&
           fits_number(row, SCAN_AT_incarnation, filter->incarnation) &&
           fits_number(row, SCAN_AT_straddles, filter->straddles) &&
           fits_number(row, SCAN_AT_trainable, filter->trainable) &&
           fits_number(row, SCAN_AT_seed_honoured, filter->seed_honoured) &&
           fits_number(row, SCAN_AT_duplicate, filter->duplicate) &&
           fits_real(row, SCAN_AT_reward, filter->reward_min, filter->reward_max) &&
           fits_real(row, SCAN_AT_advantage, filter->advantage_min, filter->advantage_max);
}

static bool fits_columns(sqlite3_stmt *row, const struct rollout_scan *scan)
{
    const struct store_rollout_filter *filter = scan->filter;
    return fits_numbers(row, scan) && fits_name(row, SCAN_AT_state, store_rollout_state_names, filter->state) &&
           fits_name(row, SCAN_AT_purpose, store_purpose_names, filter->purpose) &&
           fits_range(row, SCAN_AT_policy_revision, filter->revision_min, filter->revision_max) &&
           fits_text(row, SCAN_AT_failure_code, filter->failure) &&
           fits_text(row, SCAN_AT_finish_reason, filter->finish_reason) &&
           fits_text(row, SCAN_AT_engine, filter->engine) &&
           fits_text(row, SCAN_AT_engine_revision, filter->engine_revision) &&
           fits_range(row, SCAN_AT_created_at_us, filter->since_us, filter->until_us < 0 ? -1 : filter->until_us - 1);
}

/* ---- values beside the row --------------------------------------------------------------------------------------- */

static int read_tags(struct rollout_scan *scan, int64_t group_seq)
{
    sqlite3_stmt *row = database_statement(&scan->reader->database, SQL_READ_GROUP_TAGS);
    bind_int(row, 1, group_seq);
    int result = database_first(row);
    scan->tags_fit = result == SQLITE_ROW;
    scan->tagged_seq = group_seq;
    for (size_t i = 0; i < scan->filter->tag_count && scan->tags_fit; i++)
        scan->tags_fit = store_tag_is(column_view(row, 0), &scan->filter->tags[i]);
    sqlite3_reset(row);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

static int fits_tags(struct rollout_scan *scan, int64_t group_seq, bool *ret_fits)
{
    if (scan->filter->tag_count == 0)
        return SQLITE_OK;
    int result = group_seq == scan->tagged_seq ? SQLITE_OK : read_tags(scan, group_seq);
    *ret_fits = scan->tags_fit;
    return result;
}

static int fits_scores(const struct rollout_scan *scan, int64_t seq, bool *ret_fits)
{
    const struct store_rollout_filter *filter = scan->filter;
    bool asks_for_verdict = filter->verifier.data || filter->verdict.data || filter->reason.data;
    if (!*ret_fits || (!asks_for_verdict && isnan(filter->heldout_min)))
        return SQLITE_OK;
    sqlite3_stmt *row = database_statement(&scan->reader->database, SQL_READ_VERDICTS);
    bind_int(row, 1, seq);
    int result = database_first(row);
    *ret_fits = result == SQLITE_ROW;
    if (result == SQLITE_ROW && asks_for_verdict)
        *ret_fits = scores_have_verdict(column_view(row, 1), filter->verifier, filter->verdict, filter->reason);
    if (result == SQLITE_ROW && *ret_fits && !isnan(filter->heldout_min))
        *ret_fits = scores_reach(column_view(row, 3), filter->heldout_min);
    sqlite3_reset(row);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

/* Until the next one is viewed. False: it is damaged, or there is no memory. */
static bool view_text(struct store_reader *reader, sqlite3_stmt *row, struct text *ret_text)
{
    struct text packed = column_view(row, TEXT_AT_packed);
    size_t plain_bytes;
    *ret_text = column_view(row, TEXT_AT_text);
    if (!packed.data)
        return true;
    if (!store_unpacked_bytes(packed, &plain_bytes))
        return false;
    buffer_clear(&reader->unpacked);
    char *plain = buffer_reserve(&reader->unpacked, plain_bytes + 1);
    *ret_text = (struct text){plain, plain_bytes};
    return plain && store_unpack(STORE_CODEC_ZSTD, packed, plain, plain_bytes);
}

static int fits_completion(const struct rollout_scan *scan, int64_t seq, size_t *scanned, bool *ret_fits)
{
    struct text wanted = scan->filter->text;
    if (!*ret_fits || !wanted.data)
        return SQLITE_OK;
    sqlite3_stmt *row = database_statement(&scan->reader->database, SQL_READ_TEXT);
    bind_int(row, 1, seq);
    int result = database_first(row);
    struct text text = TEXT_NONE;
    if (result == SQLITE_ROW && !view_text(scan->reader, row, &text))
        result = SQLITE_CORRUPT;
    *ret_fits = text.data && (wanted.length_bytes == 0 ||
                              memmem(text.data, text.length_bytes, wanted.data, wanted.length_bytes) != NULL);
    *scanned += text.length_bytes / TEXT_ROW_BYTES;
    sqlite3_reset(row);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

int rollout_scan_fits(struct rollout_scan *scan, sqlite3_stmt *row, size_t *scanned, bool *ret_fits)
{
    int64_t seq = sqlite3_column_int64(row, SCAN_AT_seq);
    (*scanned)++;
    *ret_fits = fits_columns(row, scan);
    if (!*ret_fits)
        return SQLITE_OK;
    int result = fits_tags(scan, sqlite3_column_int64(row, SCAN_AT_group_seq), ret_fits);
    if (result == SQLITE_OK)
        result = fits_scores(scan, seq, ret_fits);
    return result == SQLITE_OK ? fits_completion(scan, seq, scanned, ret_fits) : result;
}
