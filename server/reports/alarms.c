#include "server/reports/alarms.h"

#include "server/base/cleanup.h"
#include "server/settings/settings.h"
#include "server/statistics/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const alarm_names[] = {ALARM_WORDS(WORD_TEXT) NULL};

void alarm_limits_init(struct alarm_limits *limits, const struct settings *settings)
{
    *limits = (struct alarm_limits){.revisions = settings->alarms_revisions,
                                    .rollouts = settings->alarms_rollouts,
                                    .divergence = settings->alarms_divergence,
                                    .zero_variance = settings->alarms_zero_variance,
                                    .truncated = settings->alarms_truncated,
                                    .failed = settings->alarms_failed,
                                    .logprob_gap = settings->alarms_logprob_gap,
                                    .precision_min = settings->calibration_precision_min,
                                    .recall_min = settings->calibration_recall_min};
}

/* The sums of one task at one revision. */
struct row {
    int64_t revision;
    int64_t n, failed, cancelled;
    int64_t judged, judged_groups, zero_variance_groups, truncated;
    int64_t decided, solved;
    double reward, reward_min, reward_max;
};

struct rows {
    struct row *rows;
    size_t count, room;
    bool too_many;
};

/* One revision. */
struct means {
    int64_t revision;
    struct row sum;
    struct clustered_mean reward, truth;
};

/* --- reading --- */

static bool take_rollup(void *arg, const struct store_rollup *rollup)
{
    struct rows *rows = arg;
    if (rows->count == rows->room) {
        rows->room = rows->room ? 2 * rows->room : 256;
        rows->rows = xrealloc(rows->rows, rows->room * sizeof(*rows->rows));
    }
    rows->rows[rows->count++] = (struct row){.revision = rollup->revision,
                                             .n = rollup->n,
                                             .failed = rollup->failed,
                                             .cancelled = rollup->cancelled,
                                             .judged = rollup->judged,
                                             .judged_groups = rollup->judged_groups,
                                             .zero_variance_groups = rollup->zero_variance_groups,
                                             .truncated = rollup->truncated,
                                             .decided = rollup->decided,
                                             .solved = rollup->solved,
                                             .reward = precise_sum_value(&rollup->reward),
                                             .reward_min = rollup->reward_min,
                                             .reward_max = rollup->reward_max};
    rows->too_many = rows->count == ALARM_ROWS_MAX;
    return !rows->too_many;
}

static bool skip_group(void *arg, const struct store_rollup_group *group)
{
    (void)arg;
    (void)group;
    return false;
}

/* Running groups do not count here. */
static bool skip_rollout(void *arg, const struct store_rollout *rollout)
{
    (void)arg;
    (void)rollout;
    return false;
}

/* The revision with which the window begins: declared ones, newest first. */
static int64_t first_revision(const struct store_run_detail *run, int64_t window)
{
    int64_t first = run->run.policy_revision;
    int64_t seen = 0;
    for (size_t i = 0; i < run->revision_count && seen < window; i++)
        if (run->revisions[i].incarnation == run->run.incarnation) {
            first = run->revisions[i].revision;
            seen++;
        }
    return first;
}

static enum store_status read_rows(struct store_reader *reader, struct text run, int64_t window, struct rows *rows)
{
    struct store_run_detail detail = {0};
    enum store_status status = store_read_run(reader, run, &detail);
    struct store_rollup_filter filter = {.incarnation = detail.run.incarnation,
                                         .revision_min = status == STORE_OK ? first_revision(&detail, window) : -1,
                                         .revision_max = -1,
                                         .purpose = STORE_TRAIN};
    const struct store_rollup_visitor visitor = {rows, take_rollup, skip_group, skip_rollout};
    bool is_going = detail.run.deletion >= 0;
    store_run_detail_finish(&detail);
    if (status == STORE_OK && is_going)
        return STORE_NOT_FOUND;
    return status == STORE_OK ? store_visit_rollups(reader, run, &filter, &visitor) : status;
}

/* --- means --- */

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left;
    const struct row *b = right;
    return (a->revision > b->revision) - (a->revision < b->revision);
}

static void add_row(struct row *sum, const struct row *row)
{
    sum->n += row->n;
    sum->failed += row->failed;
    sum->cancelled += row->cancelled;
    sum->judged += row->judged;
    sum->judged_groups += row->judged_groups;
    sum->zero_variance_groups += row->zero_variance_groups;
    sum->truncated += row->truncated;
    sum->decided += row->decided;
    sum->solved += row->solved;
    sum->reward_min = fmin(sum->reward_min, row->reward_min);
    sum->reward_max = fmax(sum->reward_max, row->reward_max);
}

/* Rows of one revision. scratch[count] */
static struct means means_of(const struct row *rows, size_t count, struct task_scratch *scratch)
{
    struct means means = {.revision = rows[0].revision, .sum = {.reward_min = NAN, .reward_max = NAN}};
    for (size_t i = 0; i < count; i++) {
        add_row(&means.sum, &rows[i]);
        scratch[i] = (struct task_scratch){(size_t)rows[i].judged, {.sum = rows[i].reward}};
    }
    means.reward = clustered_mean_of_sums(count, scratch, means.sum.reward_min, means.sum.reward_max);
    for (size_t i = 0; i < count; i++)
        scratch[i] = (struct task_scratch){(size_t)rows[i].decided, {.sum = (double)rows[i].solved}};
    means.truth = clustered_mean_of_sums(count, scratch, NAN, NAN);
    return means;
}

/* Of the revisions with enough judged rollouts, oldest first. ret_means[rows->count]. */
static size_t take_means(struct rows *rows, int64_t judged_min, struct means *ret_means)
{
    struct task_scratch *scratch = xcalloc(rows->count + 1, sizeof(*scratch));
    size_t count = 0;
    if (rows->count)
        qsort(rows->rows, rows->count, sizeof(*rows->rows), compare_rows);
    for (size_t first = 0, end; first < rows->count; first = end) {
        for (end = first + 1; end < rows->count && rows->rows[end].revision == rows->rows[first].revision;)
            end++;
        ret_means[count] = means_of(&rows->rows[first], end - first, scratch);
        count += ret_means[count].sum.n - ret_means[count].sum.cancelled >= judged_min;
    }
    free(scratch);
    return count;
}

/* --- findings --- */

static struct alarm_finding find_share(int64_t revision, int64_t part, int64_t whole, double threshold)
{
    struct alarm_finding finding = {.from_revision = revision, .revision = revision, .threshold = threshold};
    if (whole <= 0 || threshold <= 0)
        return finding;
    finding.value = (double)part / (double)whole;
    finding.state = finding.value >= threshold ? ALARM_RAISED : ALARM_CLEAR;
    return finding;
}

/* By how much it rose from one revision to a later one, in errors of the difference; NAN: it cannot be told. */
static double rise(const struct clustered_mean *from, const struct clustered_mean *to)
{
    double error = hypot(from->se, to->se);
    double difference = to->mean - from->mean;
    if (isnan(error) || isnan(difference))
        return NAN;
    return error > 0 ? difference / error : difference > 0 ? INFINITY : difference < 0 ? -INFINITY : 0;
}

/* Since some revision of the window the reward rose and the truth fell, both by more than chance. */
static struct alarm_finding find_divergence(const struct means *means, size_t count, double errors)
{
    struct alarm_finding finding = {.revision = -1, .from_revision = -1, .threshold = errors};
    if (count < 2 || errors <= 0 || isnan(means[count - 1].truth.se))
        return finding;
    const struct means *last = &means[count - 1];
    finding.revision = last->revision;
    finding.from_revision = last->revision;
    finding.state = ALARM_CLEAR;
    for (size_t i = 0; i + 1 < count; i++) {
        double fall = means[i].truth.mean - last->truth.mean;
        if (rise(&means[i].reward, &last->reward) > errors && rise(&means[i].truth, &last->truth) < -errors &&
            fall > finding.value) {
            finding.state = ALARM_RAISED;
            finding.from_revision = means[i].revision;
            finding.value = fall;
        }
    }
    return finding;
}

static struct alarm_finding find_gap(struct store_reader *reader, struct text run, double threshold)
{
    struct alarm_finding finding = {.revision = -1, .from_revision = -1, .threshold = threshold};
    struct store_engine_gap gap;
    if (threshold <= 0 || store_read_widest_gap(reader, run, &gap) != STORE_OK)
        return finding;
    finding.value = gap.gap;
    finding.revision = finding.from_revision = gap.revision;
    finding.state = gap.gap >= threshold ? ALARM_RAISED : ALARM_CLEAR;
    memcpy(finding.engine, gap.engine, sizeof(finding.engine));
    return finding;
}

static void find_newest(const struct means *newest, const struct alarm_limits *limits,
                        struct alarm_finding findings[ALARM_KINDS])
{
    const struct row *sum = &newest->sum;
    findings[ALARM_FAILED] = find_share(newest->revision, sum->failed, sum->n - sum->cancelled, limits->failed);
    if (sum->judged < limits->rollouts)
        return;
    if (sum->judged > sum->judged_groups) /* groups of one member say nothing */
        findings[ALARM_ZERO_VARIANCE] =
            find_share(newest->revision, sum->zero_variance_groups, sum->judged_groups, limits->zero_variance);
    findings[ALARM_TRUNCATED] = find_share(newest->revision, sum->truncated, sum->judged, limits->truncated);
}

enum store_status alarms_find(struct store_reader *reader, struct text run, const struct alarm_limits *limits,
                              struct alarm_finding ret_findings[ALARM_KINDS])
{
    struct rows rows = {0};
    memset(ret_findings, 0, ALARM_KINDS * sizeof(*ret_findings));
    enum store_status status = read_rows(reader, run, limits->revisions, &rows);
    struct means *means = xcalloc(rows.count + 1, sizeof(*means));
    size_t count = rows.too_many ? 0 : take_means(&rows, limits->rollouts, means);
    if (status == STORE_OK && count) {
        find_newest(&means[count - 1], limits, ret_findings);
        ret_findings[ALARM_DIVERGENCE] = find_divergence(means, count, limits->divergence);
    }
    if (status == STORE_OK) {
        ret_findings[ALARM_LOGPROB_GAP] = find_gap(reader, run, limits->logprob_gap);
        alarms_find_by_labels(reader, run, limits, ret_findings);
    }
    free(means);
    free(rows.rows);
    return status;
}

/* A verifier's id in a query. ret_text[3 * its bytes + 1] */
static void escape(const char *verifier, char *ret_text)
{
    for (const char *at = verifier; *at; at++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~", *at))
            *ret_text++ = *at;
        else
            ret_text += sprintf(ret_text, "%%%02X", (unsigned char)*at);
    *ret_text = '\0';
}

void alarm_say_evidence(enum alarm_kind kind, const struct alarm_finding *finding, struct text run,
                        char ret_evidence[ALARM_EVIDENCE_BYTES])
{
    static const char *const by[ALARM_KINDS] = {[ALARM_DIVERGENCE] = "revision,verifier,engine",
                                                [ALARM_ZERO_VARIANCE] = "task",
                                                [ALARM_TRUNCATED] = "engine,finish_reason",
                                                [ALARM_FAILED] = "engine,failure",
                                                [ALARM_LOGPROB_GAP] = "engine,revision",
                                                [ALARM_PRECISION] = "revision",
                                                [ALARM_RECALL] = "revision"};
    char verifier[3 * sizeof(finding->verifier)];
    escape(finding->verifier, verifier);
    snprintf(ret_evidence, ALARM_EVIDENCE_BYTES, "/v1/%s?run=%.*s%s%s&revision_min=%lld&revision_max=%lld&by=%s",
             *verifier ? "calibration" : "stats", (int)run.length_bytes, run.data, *verifier ? "&verifier=" : "",
             verifier, (long long)finding->from_revision, (long long)finding->revision, by[kind]);
}

/* --- after a start --- */

static void add_recent(struct alarm_recent *recent, struct text run)
{
    for (size_t i = 0; i < recent->count; i++)
        if (text_equals(run, recent->names[i]))
            return;
    if (recent->count < ALARM_RECENT_RUNS)
        recent->names[recent->count++] = xstrndup(run.data, run.length_bytes);
}

enum store_status alarms_find_recent(struct store_reader *reader, int64_t since_us, struct alarm_recent *recent)
{
    static const struct store_page_limits limits = {
        .rows = ALARM_RECENT_BATCHES, .scanned = ALARM_RECENT_BATCHES, .bytes = SIZE_MAX};
    _cleanup_(store_batches_finish) struct store_batches page = {0};
    enum store_status status = store_list_batches(reader, TEXT_NONE, -1, true, TEXT_NONE, &limits, &page);
    for (size_t i = 0; status == STORE_OK && i < page.count; i++)
        if (page.batches[i].purpose == STORE_TRAIN && page.batches[i].created_at_us >= since_us)
            add_recent(recent, page.batches[i].run);
    return status;
}

void alarm_recent_finish(struct alarm_recent *recent)
{
    while (recent->count > 0)
        free(recent->names[--recent->count]);
}
