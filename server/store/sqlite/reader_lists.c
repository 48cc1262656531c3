#include "server/store/sqlite/reader.h"

#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/rollout_scan.h"

/* ---- rollouts
 * --------------------------------------------------------------------------------------------------------------- */

static struct list_key rollouts_key(const struct store_rollout_filter *filter)
{
    _cleanup_buffer_ struct buffer key = {0};
    key_init(&key, "rollouts");
    const struct text texts[] = {filter->run,      filter->task,    filter->batch,           filter->group,
                                 filter->failure,  filter->engine,  filter->engine_revision, filter->finish_reason,
                                 filter->verifier, filter->verdict, filter->reason,          filter->text};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        key_text(&key, texts[i]);
    const int64_t numbers[] = {filter->state,        filter->purpose,       filter->incarnation, filter->revision_min,
                               filter->revision_max, filter->since_us,      filter->until_us,    filter->straddles,
                               filter->trainable,    filter->seed_honoured, filter->duplicate,   filter->order_by,
                               filter->descending};
    key_numbers(&key, numbers, ARRAY_LENGTH(numbers));
    for (size_t i = 0; i < filter->tag_count; i++) {
        key_text(&key, filter->tags[i].name);
        key_text(&key, filter->tags[i].value);
    }
    const double bounds[] = {filter->reward_min, filter->reward_max, filter->advantage_min, filter->advantage_max,
                             filter->heldout_min};
    for (size_t i = 0; i < ARRAY_LENGTH(bounds); i++)
        buffer_append_format(&key, "%a,", bounds[i]);
    return key_finish(&key);
}

static int read_one(struct store_reader *reader, int64_t seq, unsigned with, struct store_rollouts *rollouts)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_ROLLOUT);
    bind_int(row, 1, seq);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? SQLITE_OK : result; /* of a run that is being deleted */
    struct store_rollout *rollout = &rollouts->rollouts[rollouts->count++];
    read_rollout_row(row, rollouts->memory, rollout);
    return read_rollout_sides(reader, with, rollouts->memory, rollout);
}

/* A page on its way. */
struct rollout_page {
    struct rollout_scan *scan;
    const struct store_page_limits *limits;
    unsigned with;
    struct list_place place; /* behind the last row that was looked at */
    size_t before_bytes;
    struct store_rollouts *rollouts;
    bool full; /* and there is at least one row more to look at */
};

static bool is_full(struct rollout_page *page)
{
    struct store_rollouts *rollouts = page->rollouts;
    rollouts->bytes = store_memory_bytes(rollouts->memory) - page->before_bytes;
    return rollouts->count == page->limits->rows || rollouts->scanned >= page->limits->scanned ||
           rollouts->bytes > page->limits->bytes;
}

/* SQLITE_DONE: to its end; SQLITE_ROW: the page is full. */
static int walk(struct rollout_page *page, const struct rollout_leg *leg)
{
    sqlite3_stmt *row = rollout_scan_begin(page->scan, leg);
    int result;
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        bool fits;
        if ((page->full = is_full(page)))
            return SQLITE_ROW;
        page->place = rollout_scan_place(page->scan, row);
        result = rollout_scan_fits(page->scan, row, &page->rollouts->scanned, &fits);
        if (result == SQLITE_OK && fits)
            result = read_one(page->scan->reader, page->place.seq, page->with, page->rollouts);
        if (result != SQLITE_OK)
            return result;
    }
    return result;
}

static enum store_status scan_rollouts(struct rollout_page *page, const struct list_key *key)
{
    struct store_rollouts *rollouts = page->rollouts;
    struct rollout_leg legs[ROLLOUT_LEGS_MAX];
    size_t count = rollout_scan_plan(page->scan, &page->place, legs);
    int result = SQLITE_DONE;
    for (size_t i = 0; i < count && result == SQLITE_DONE; i++)
        result = walk(page, &legs[i]);
    if (page->full)
        cursor_write_place(key, &page->place, rollouts->next);
    return reader_status(page->scan->reader, result, rollouts->memory);
}

bool store_rollouts_cursor_fits(const struct store_rollout_filter *filter, struct text cursor)
{
    struct list_key key = rollouts_key(filter);
    struct list_place place;
    return !cursor.data || cursor_read_place(&key, cursor, &place);
}

enum store_status store_list_rollouts(struct store_reader *reader, const struct store_rollout_filter *filter,
                                      struct text cursor, const struct store_page_limits *limits, unsigned with,
                                      struct store_rollouts *ret_rollouts)
{
    *ret_rollouts = (struct store_rollouts){0};
    struct list_key key = rollouts_key(filter);
    struct rollout_scan scan;
    struct rollout_page page = {.scan = &scan, .limits = limits, .with = with, .rollouts = ret_rollouts};
    rollout_scan_start(filter, &page.place);
    if (cursor.data && !cursor_read_place(&key, cursor, &page.place))
        return STORE_INVALID_CURSOR;
    ret_rollouts->memory = store_memory_create();
    ret_rollouts->rollouts = store_memory_take(ret_rollouts->memory, limits->rows, sizeof(*ret_rollouts->rollouts));
    if (!ret_rollouts->rollouts || reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    page.before_bytes = store_memory_bytes(ret_rollouts->memory);
    int result = rollout_scan_resolve(reader, filter, &scan);
    enum store_status status = reader_status(reader, result, ret_rollouts->memory);
    if (result == SQLITE_ROW)
        status = scan_rollouts(&page, &key);
    reader_end(reader);
    return status;
}

/* ---- batches
 * ---------------------------------------------------------------------------------------------------------------- */

static struct list_key batches_key(struct text run, int state, bool descending)
{
    _cleanup_buffer_ struct buffer key = {0};
    key_init(&key, "batches");
    key_text(&key, run);
    key_numbers(&key, (const int64_t[]){state, descending}, 2);
    return key_finish(&key);
}

static int read_summary(struct store_reader *reader, int64_t seq, struct store_memory *memory, struct store_batch *into)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_BATCH_SUMMARY);
    bind_int(row, 1, seq);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? SQLITE_CORRUPT : result; /* it is written with the batch */
    into->summary = column_text(row, 0, memory);
    sqlite3_reset(row);
    return SQLITE_OK;
}

static enum store_status scan_batches(struct store_reader *reader, sqlite3_stmt *scan, int state,
                                      const struct list_key *key, int64_t after, const struct store_page_limits *limits,
                                      struct store_batches *page)
{
    int result;
    size_t before_bytes = store_memory_bytes(page->memory);
    for (; (result = sqlite3_step(scan)) == SQLITE_ROW; page->scanned++) {
        page->bytes = store_memory_bytes(page->memory) - before_bytes;
        if (page->count == limits->rows || page->scanned == limits->scanned || page->bytes > limits->bytes) {
            cursor_write(key, after, page->next);
            break;
        }
        after = sqlite3_column_int64(scan, BATCH_AT_seq);
        if (state >= 0 && column_name(scan, BATCH_AT_state, store_batch_state_names) != state)
            continue;
        struct store_batch *batch = &page->batches[page->count++];
        read_batch_row(scan, page->memory, batch);
        result = read_summary(reader, after, page->memory, batch);
        if (result != SQLITE_OK)
            break;
    }
    return reader_status(reader, result, page->memory);
}

static int read_found(struct store_reader *reader, sqlite3_stmt *rows, struct store_batches *found)
{
    int result;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        struct store_batch *batch = &found->batches[found->count++];
        int64_t seq = read_batch_row(rows, found->memory, batch);
        result = read_summary(reader, seq, found->memory, batch);
        if (result != SQLITE_OK)
            break;
    }
    return result;
}

enum store_status store_find_batches(struct store_reader *reader, enum store_batch_mark mark, struct text value,
                                     size_t limit, struct store_batches *ret_batches)
{
    static const enum statement statements[] = {
        [STORE_BATCH_BY_KEY] = SQL_FIND_KEY_BATCHES, [STORE_BATCH_BY_REQUEST_ID] = SQL_FIND_REQUEST_BATCHES};
    *ret_batches = (struct store_batches){.memory = store_memory_create()};
    ret_batches->batches = store_memory_take(ret_batches->memory, limit, sizeof(*ret_batches->batches));
    if (!ret_batches->batches || reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    sqlite3_stmt *rows = database_statement(&reader->database, statements[mark]);
    bind_text(rows, 1, value);
    bind_int(rows, 2, (int64_t)limit);
    int result = read_found(reader, rows, ret_batches);
    reader_end(reader);
    return reader_status(reader, result, ret_batches->memory);
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
