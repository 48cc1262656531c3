#include "server/store/sqlite/reader.h"

#include "server/store/sqlite/columns.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- cursors
 * ---------------------------------------------------------------------------------------------------------------- */

/* The seq, then a digest of the list and the seq: 32 hexadecimal digits. A cursor of another list, a cut or an altered
 * one is found out. It is no secret: who forges one gets a page he could have had anyway. */
static uint64_t cursor_digest(const struct list_key *key, int64_t seq)
{
    uint8_t bytes[sizeof(key->digest) + sizeof(seq)];
    uint8_t sha256[SHA256_BYTES];
    uint64_t digest;
    memcpy(bytes, key->digest, sizeof(key->digest));
    memcpy(bytes + sizeof(key->digest), &seq, sizeof(seq));
    sha256_of(bytes, sizeof(bytes), sha256);
    memcpy(&digest, sha256, sizeof(digest));
    return digest;
}

void cursor_write(const struct list_key *key, int64_t seq, char ret_cursor[CURSOR_BYTES])
{
    snprintf(ret_cursor, CURSOR_BYTES, "%016" PRIx64 "%016" PRIx64, (uint64_t)seq, cursor_digest(key, seq));
}

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : 0; /* whatever else it was, the comparison finds it out */
}

bool cursor_read(const struct list_key *key, struct text cursor, int64_t *ret_seq)
{
    enum { SEQ_DIGITS = 16, CURSOR_DIGITS = 32 };
    if (cursor.length_bytes != CURSOR_DIGITS)
        return false;
    uint64_t seq = 0;
    for (size_t i = 0; i < SEQ_DIGITS; i++)
        seq = seq << 4 | (uint64_t)digit_value(cursor.data[i]);
    char expected[CURSOR_BYTES];
    cursor_write(key, (int64_t)seq, expected);
    *ret_seq = (int64_t)seq;
    return memcmp(expected, cursor.data, CURSOR_DIGITS) == 0;
}

static void key_text(struct buffer *key, struct text text)
{
    buffer_append_format(key, "%d:%zu:", text.data != NULL, text.length_bytes);
    if (text.length_bytes)
        buffer_append(key, text.data, text.length_bytes);
}

static void key_numbers(struct buffer *key, const int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buffer_append_format(key, "%" PRId64 ",", numbers[i]);
}

static struct list_key key_finish(const struct buffer *key)
{
    uint8_t sha256[SHA256_BYTES];
    struct list_key list_key;
    sha256_of(key->data, key->length_bytes, sha256);
    memcpy(list_key.digest, sha256, sizeof(list_key.digest));
    return list_key;
}

enum { KEY_BYTES = 64 * 1024 };

static struct list_key rollouts_key(const struct store_rollout_filter *filter)
{
    _cleanup_buffer_ struct buffer key = {0};
    buffer_init(&key, KEY_BYTES);
    buffer_append_string(&key, "rollouts");
    const struct text texts[] = {filter->run,     filter->task,          filter->batch, filter->group,
                                 filter->failure, filter->finish_reason, filter->engine};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        key_text(&key, texts[i]);
    const int64_t numbers[] = {filter->state,        filter->purpose,       filter->incarnation, filter->revision_min,
                               filter->revision_max, filter->since_us,      filter->until_us,    filter->straddles,
                               filter->trainable,    filter->seed_honoured, filter->descending};
    key_numbers(&key, numbers, ARRAY_LENGTH(numbers));
    for (size_t i = 0; i < filter->tag_count; i++) {
        key_text(&key, filter->tags[i].name);
        key_text(&key, filter->tags[i].value);
    }
    buffer_append_format(&key, "%a,%a", filter->reward_min, filter->reward_max);
    return key_finish(&key);
}

/* ---- rollouts
 * --------------------------------------------------------------------------------------------------------------- */

/* A filter with its names resolved; -1: any. */
struct resolved {
    const struct store_rollout_filter *filter;
    int64_t run_seq;
    int64_t task_seq;
    int64_t batch_seq;
    int64_t group_seq;
};

/* SQLITE_ROW: all names are known; SQLITE_DONE: one is not, so nothing can fit. */
static int resolve(struct store_reader *reader, const struct store_rollout_filter *filter,
                   struct resolved *ret_resolved)
{
    *ret_resolved = (struct resolved){filter, -1, -1, -1, -1};
    const struct {
        enum statement which;
        struct text name;
        int64_t *seq;
    } names[] = {
        {SQL_RUN_SEQ, filter->run, &ret_resolved->run_seq},
        {SQL_TASK_SEQ, filter->task, &ret_resolved->task_seq},
        {SQL_BATCH_SEQ, filter->batch, &ret_resolved->batch_seq},
    };
    int result = SQLITE_ROW;
    for (size_t i = 0; i < ARRAY_LENGTH(names) && result == SQLITE_ROW; i++)
        if (names[i].name.data)
            result = reader_find_seq(reader, names[i].which, names[i].name, names[i].seq);
    int64_t n;
    if (result == SQLITE_ROW && filter->group.data)
        result = reader_find_group(reader, filter->group, &ret_resolved->group_seq, &n);
    return result;
}

/* The index to walk: the one that promises the fewest rows. The other conditions are checked row by row. */
static sqlite3_stmt *choose_scan(struct store_reader *reader, const struct resolved *resolved)
{
    const struct store_rollout_filter *filter = resolved->filter;
    bool one_revision = filter->revision_min >= 0 && filter->revision_min == filter->revision_max;
    const struct {
        bool fits;
        enum statement which;
        int64_t number;
        struct text text;
    } scans[] = {
        {resolved->group_seq >= 0, SQL_SCAN_GROUP_UP, resolved->group_seq, TEXT_NONE},
        {resolved->batch_seq >= 0, SQL_SCAN_BATCH_UP, resolved->batch_seq, TEXT_NONE},
        {resolved->task_seq >= 0, SQL_SCAN_TASK_UP, resolved->task_seq, TEXT_NONE},
        {filter->failure.data, SQL_SCAN_FAILURE_UP, 0, filter->failure},
        {filter->state > STORE_ROLLOUT_SCORED, SQL_SCAN_STATE_UP, 0,
         filter->state < 0 ? TEXT_NONE : text_of(store_rollout_state_names[filter->state])},
        {resolved->run_seq >= 0 && one_revision, SQL_SCAN_REVISION_UP, resolved->run_seq, TEXT_NONE},
        {resolved->run_seq >= 0, SQL_SCAN_RUN_UP, resolved->run_seq, TEXT_NONE},
        {true, SQL_SCAN_ALL_UP, 0, TEXT_NONE},
    };
    size_t i = 0;
    while (!scans[i].fits)
        i++;
    sqlite3_stmt *scan = database_statement(&reader->database, scans[i].which + (filter->descending ? 1U : 0U));
    if (scans[i].text.data)
        bind_text(scan, 1, scans[i].text);
    else
        bind_int(scan, 1, scans[i].number);
    if (one_revision)
        bind_int(scan, 3, filter->revision_min);
    return scan;
}

static bool fits_number(sqlite3_stmt *row, int place, int64_t wanted)
{
    return wanted < 0 || (sqlite3_column_type(row, place) != SQLITE_NULL && sqlite3_column_int64(row, place) == wanted);
}

static bool fits_range(sqlite3_stmt *row, int place, int64_t minimum, int64_t maximum)
{
    int64_t value = sqlite3_column_int64(row, place);
    return (minimum < 0 || value >= minimum) && (maximum < 0 || value <= maximum);
}

static bool fits_reward(sqlite3_stmt *row, int place, double minimum, double maximum)
{
    if (isnan(minimum) && isnan(maximum))
        return true;
    double value = column_double(row, place); /* NAN, which fits no bound, for a rollout without a reward */
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

static bool fits_numbers(sqlite3_stmt *row, const struct resolved *resolved)
{
    const struct store_rollout_filter *filter = resolved->filter;
    return fits_number(row, SCAN_AT_run_seq, resolved->run_seq) &&
           fits_number(row, SCAN_AT_batch_seq, resolved->batch_seq) &&
           fits_number(row, SCAN_AT_group_seq, resolved->group_seq) &&
           fits_number(row, SCAN_AT_task_seq, resolved->task_seq) &&
           fits_number(row, SCAN_AT_incarnation, filter->incarnation) &&
           fits_number(row, SCAN_AT_straddles, filter->straddles) &&
           fits_number(row, SCAN_AT_trainable, filter->trainable) &&
           fits_number(row, SCAN_AT_seed_honoured, filter->seed_honoured);
}

/* A row of a SCAN. */
static bool fits(sqlite3_stmt *row, const struct resolved *resolved)
{
    const struct store_rollout_filter *filter = resolved->filter;
    return fits_numbers(row, resolved) && fits_name(row, SCAN_AT_state, store_rollout_state_names, filter->state) &&
           fits_name(row, SCAN_AT_purpose, store_purpose_names, filter->purpose) &&
           fits_range(row, SCAN_AT_policy_revision, filter->revision_min, filter->revision_max) &&
           fits_reward(row, SCAN_AT_reward, filter->reward_min, filter->reward_max) &&
           fits_text(row, SCAN_AT_failure_code, filter->failure) &&
           fits_text(row, SCAN_AT_finish_reason, filter->finish_reason) &&
           fits_text(row, SCAN_AT_engine, filter->engine) &&
           fits_range(row, SCAN_AT_created_at_us, filter->since_us, filter->until_us < 0 ? -1 : filter->until_us - 1);
}

/* The rows of a group stand mostly together: its tags are read once. */
struct tag_check {
    int64_t group_seq; /* -1: of none yet */
    bool fits;
};

static int read_tags(struct store_reader *reader, const struct store_rollout_filter *filter, struct tag_check *check)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_GROUP_TAGS);
    bind_int(row, 1, check->group_seq);
    int result = database_first(row);
    check->fits = result == SQLITE_ROW;
    for (size_t i = 0; i < filter->tag_count && check->fits; i++)
        check->fits = store_tag_is(column_view(row, 0), &filter->tags[i]);
    sqlite3_reset(row);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

/* Whether a row of a SCAN has the tags that are wanted. An SQLite result code. */
static int check_tags(struct store_reader *reader, const struct store_rollout_filter *filter, sqlite3_stmt *row,
                      struct tag_check *check)
{
    int64_t group_seq = sqlite3_column_int64(row, SCAN_AT_group_seq);
    if (filter->tag_count == 0 || group_seq == check->group_seq)
        return SQLITE_OK;
    check->group_seq = group_seq;
    return read_tags(reader, filter, check);
}

static int read_one(struct store_reader *reader, int64_t seq, unsigned with, struct store_rollouts *rollouts)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_ROLLOUT);
    bind_int(row, 1, seq);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? SQLITE_CORRUPT : result;
    struct store_rollout *rollout = &rollouts->rollouts[rollouts->count++];
    read_rollout_row(row, rollouts->memory, rollout);
    return read_rollout_sides(reader, with, rollouts->memory, rollout);
}

static enum store_status scan_rollouts(struct store_reader *reader, const struct resolved *resolved, int64_t after,
                                       const struct store_page_limits *limits, unsigned with,
                                       struct store_rollouts *page)
{
    struct list_key key = rollouts_key(resolved->filter);
    struct tag_check tags = {.group_seq = -1, .fits = true};
    sqlite3_stmt *scan = choose_scan(reader, resolved);
    bind_int(scan, 2, after);
    int result;
    size_t before_bytes = store_memory_bytes(page->memory);
    for (; (result = sqlite3_step(scan)) == SQLITE_ROW; page->scanned++) {
        page->bytes = store_memory_bytes(page->memory) - before_bytes;
        if (page->count == limits->rows || page->scanned == limits->scanned ||
            page->bytes > limits->bytes) { /* and there is at least one more to look at */
            cursor_write(&key, after, page->next);
            break;
        }
        after = sqlite3_column_int64(scan, SCAN_AT_seq);
        if (!fits(scan, resolved))
            continue;
        result = check_tags(reader, resolved->filter, scan, &tags);
        if (result != SQLITE_OK)
            break;
        if (!tags.fits)
            continue;
        result = read_one(reader, after, with, page);
        if (result != SQLITE_OK)
            break;
    }
    return reader_status(reader, result, page->memory);
}

bool store_rollouts_cursor_fits(const struct store_rollout_filter *filter, struct text cursor)
{
    struct list_key key = rollouts_key(filter);
    int64_t after;
    return !cursor.data || cursor_read(&key, cursor, &after);
}

enum store_status store_list_rollouts(struct store_reader *reader, const struct store_rollout_filter *filter,
                                      struct text cursor, const struct store_page_limits *limits, unsigned with,
                                      struct store_rollouts *ret_rollouts)
{
    *ret_rollouts = (struct store_rollouts){0};
    int64_t after = filter->descending ? INT64_MAX : 0;
    struct list_key key = rollouts_key(filter);
    if (cursor.data && !cursor_read(&key, cursor, &after))
        return STORE_INVALID_CURSOR;
    ret_rollouts->memory = store_memory_create();
    ret_rollouts->rollouts = store_memory_take(ret_rollouts->memory, limits->rows, sizeof(*ret_rollouts->rollouts));
    if (!ret_rollouts->rollouts || reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    struct resolved resolved;
    int result = resolve(reader, filter, &resolved);
    enum store_status status = reader_status(reader, result, ret_rollouts->memory);
    if (result == SQLITE_ROW)
        status = scan_rollouts(reader, &resolved, after, limits, with, ret_rollouts);
    reader_end(reader);
    return status;
}

/* ---- batches
 * ---------------------------------------------------------------------------------------------------------------- */

static struct list_key batches_key(struct text run, int state, bool descending)
{
    _cleanup_buffer_ struct buffer key = {0};
    buffer_init(&key, KEY_BYTES);
    buffer_append_string(&key, "batches");
    key_text(&key, run);
    key_numbers(&key, (const int64_t[]){state, descending}, 2);
    return key_finish(&key);
}

static enum store_status scan_batches(struct store_reader *reader, sqlite3_stmt *scan, int state,
                                      const struct list_key *key, int64_t after, const struct store_page_limits *limits,
                                      struct store_batches *page)
{
    int result;
    for (; (result = sqlite3_step(scan)) == SQLITE_ROW; page->scanned++) {
        if (page->count == limits->rows || page->scanned == limits->scanned) {
            cursor_write(key, after, page->next);
            break;
        }
        after = sqlite3_column_int64(scan, BATCH_AT_seq);
        if (fits_name(scan, BATCH_AT_state, store_batch_state_names, state))
            read_batch_row(scan, page->memory, &page->batches[page->count++]);
    }
    return reader_status(reader, result, page->memory);
}

static sqlite3_stmt *choose_batches(struct store_reader *reader, struct text run, int64_t run_seq, bool descending,
                                    int64_t after)
{
    enum statement which = run.data ? SQL_LIST_RUN_BATCHES_UP : SQL_LIST_BATCHES_UP;
    sqlite3_stmt *scan = database_statement(&reader->database, which + (descending ? 1U : 0U));
    bind_int(scan, 1, after);
    if (run.data)
        bind_int(scan, 2, run_seq);
    return scan;
}

bool store_batches_cursor_fits(struct text run, int state, bool descending, struct text cursor)
{
    struct list_key key = batches_key(run, state, descending);
    int64_t after;
    return !cursor.data || cursor_read(&key, cursor, &after);
}

enum store_status store_list_batches(struct store_reader *reader, struct text run, int state, bool descending,
                                     struct text cursor, const struct store_page_limits *limits,
                                     struct store_batches *ret_batches)
{
    *ret_batches = (struct store_batches){0};
    int64_t after = descending ? INT64_MAX : 0;
    struct list_key key = batches_key(run, state, descending);
    if (cursor.data && !cursor_read(&key, cursor, &after))
        return STORE_INVALID_CURSOR;
    ret_batches->memory = store_memory_create();
    ret_batches->batches = store_memory_take(ret_batches->memory, limits->rows, sizeof(*ret_batches->batches));
    if (!ret_batches->batches || reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    int64_t run_seq = -1;
    int result = run.data ? reader_find_seq(reader, SQL_RUN_SEQ, run, &run_seq) : SQLITE_ROW;
    enum store_status status = reader_status(reader, result, ret_batches->memory);
    if (result == SQLITE_ROW)
        status = scan_batches(reader, choose_batches(reader, run, run_seq, descending, after), state, &key, after,
                              limits, ret_batches);
    reader_end(reader);
    return status;
}

enum store_status store_unfinished_batches(struct store_reader *reader, struct store_batches *ret_batches)
{
    *ret_batches = (struct store_batches){.memory = store_memory_create()};
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_UNFINISHED_BATCHES);
    bind_text(rows, 1, text_of(reader->owner));
    size_t capacity = 0;
    int result;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        struct store_batch *batches = store_memory_grow(ret_batches->memory, ret_batches->batches, ret_batches->count,
                                                        &capacity, sizeof(*batches));
        if (!batches)
            break;
        ret_batches->batches = batches;
        read_batch_row(rows, ret_batches->memory, &batches[ret_batches->count++]);
    }
    reader_end(reader);
    return reader_status(reader, result, ret_batches->memory);
}

void store_batches_finish(struct store_batches *batches)
{
    store_memory_destroy(TAKE_PTR(batches->memory));
}
