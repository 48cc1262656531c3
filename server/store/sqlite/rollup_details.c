#include "server/store/sqlite/rollup_details.h"

#include "server/base/cleanup.h"
#include "server/base/json_scan.h"
#include "server/store/deciding_score.h"
#include "server/store/sqlite/values.h"

#include <math.h>

const char *const store_rollup_count_names[] = {
#define COUNT_WORD(name, word) word,
    STORE_ROLLUP_COUNTS(COUNT_WORD)
#undef COUNT_WORD
        NULL};

/* --- of one group --- */

/* It may have a NUL in it. */
static struct text name_of(const struct rollup_detail *row)
{
    return (struct text){row->name, row->name_bytes};
}

static bool is_same(const struct rollup_detail *row, const struct rollup_detail *wanted, struct text name)
{
    return row->is_score == wanted->is_score && row->kind == wanted->kind && row->revision == wanted->revision &&
           row->incarnation == wanted->incarnation && row->provenance_seq == wanted->provenance_seq &&
           text_same(name, name_of(row));
}

/* FNV-1a. */
static uint64_t hash_of(const struct rollup_detail *row, struct text name)
{
    uint64_t hash = 0xcbf29ce484222325U ^ (uint64_t)row->revision ^ (uint64_t)row->provenance_seq << 32;
    for (size_t i = 0; i < name.length_bytes; i++)
        hash = (hash ^ (unsigned char)name.data[i]) * 0x100000001b3U;
    return hash ^ hash >> 32;
}

/* Of the row, or where it belongs: 0. */
static size_t *find_place(struct rollup_details *details, const struct rollup_detail *wanted, struct text name)
{
    size_t mask = 2 * details->room - 1;
    size_t at = hash_of(wanted, name);
    while (details->places[at & mask] && !is_same(&details->rows[details->places[at & mask] - 1], wanted, name))
        at++;
    return &details->places[at & mask];
}

static void grow(struct rollup_details *details)
{
    details->room = details->room ? 2 * details->room : 8;
    details->rows = xrealloc(details->rows, details->room * sizeof(*details->rows));
    free(details->places);
    details->places = xcalloc(2 * details->room, sizeof(*details->places));
    for (size_t i = 0; i < details->count; i++)
        *find_place(details, &details->rows[i], name_of(&details->rows[i])) = i + 1;
}

/* The names of engines may be the client's, another one for each member. */
static void add(struct rollup_details *details, const struct rollup_detail *wanted, struct text name)
{
    if (details->count == details->room)
        grow(details);
    size_t *place = find_place(details, wanted, name);
    if (*place) {
        details->rows[*place - 1].n += wanted->n;
        details->rows[*place - 1].sum += wanted->sum;
        return;
    }
    details->rows[details->count] = *wanted;
    struct rollup_detail *row = &details->rows[details->count];
    row->name = xstrndup(name.data, name.length_bytes);
    row->name_bytes = name.length_bytes;
    *place = ++details->count;
}

static void count(struct rollup_details *details, const struct rollup_member *member, enum store_rollup_count_kind kind,
                  struct text name, int64_t provenance_seq)
{
    const struct rollup_detail one = {.incarnation = member->incarnation,
                                      .revision = member->revision,
                                      .kind = kind,
                                      .provenance_seq = provenance_seq,
                                      .n = 1};
    add(details, &one, name);
}

static void add_scores(struct rollup_details *details, const struct rollup_member *member)
{
    struct json_scan scan;
    struct text name;

    if (!member->heldout.data)
        return;
    json_scan_init(&scan, member->heldout);
    for (json_scan_object(&scan); json_scan_member(&scan, &name);) {
        double score = store_scan_score(&scan);
        const struct rollup_detail one = {.incarnation = member->incarnation,
                                          .revision = member->revision,
                                          .is_score = true,
                                          .n = !isnan(score),
                                          .sum = isnan(score) ? 0 : score};
        add(details, &one, name);
    }
}

void rollup_details_add(struct rollup_details *details, const struct rollup_member *member)
{
    add_scores(details, member);
    if (member->failure.data)
        count(details, member, STORE_ROLLUP_FAILURE, member->failure, 0);
    if (member->engine.data)
        count(details, member, STORE_ROLLUP_ENGINE, member->engine, member->provenance_seq);
    if (member->seed_not_honoured)
        count(details, member, STORE_ROLLUP_SEED_NOT_HONOURED, TEXT_LITERAL(""), 0);
    if (member->processed_logprobs)
        count(details, member, STORE_ROLLUP_PROCESSED_LOGPROBS, TEXT_LITERAL(""), 0);
}

/* --- on record --- */

static int write_one(struct store *store, const struct group_row *group, const struct rollup_detail *row)
{
    sqlite3_stmt *put = database_statement(&store->writer, row->is_score ? SQL_ADD_ROLLUP_SCORE : SQL_ADD_ROLLUP_COUNT);

    bind_int(put, 1, group->run_seq);
    bind_int(put, 2, row->incarnation);
    bind_int(put, 3, row->revision);
    bind_text(put, 4, text_of(store_purpose_names[group->purpose]));
    bind_text(put, 5, name_of(row));
    bind_int(put, 6, row->n);
    if (row->is_score) {
        bind_int(put, 7, group->task_seq);
        sqlite3_bind_double(put, 8, row->sum);
    } else {
        bind_text(put, 7, text_of(store_rollup_count_names[row->kind]));
        bind_int_or_null(put, 8, row->provenance_seq ? row->provenance_seq : -1);
    }
    return database_run(put);
}

int rollup_details_write(struct store *store, const struct group_row *group, const struct rollup_details *details)
{
    int result = SQLITE_OK;

    for (size_t i = 0; result == SQLITE_OK && i < details->count; i++)
        result = write_one(store, group, &details->rows[i]);
    return result;
}

void rollup_details_finish(struct rollup_details *details)
{
    for (size_t i = 0; i < details->count; i++)
        free(details->rows[i].name);
    free(details->rows);
    free(details->places);
}
