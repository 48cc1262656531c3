#include "server/reports/plot_private.h"

#include "server/reports/report_text_private.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* In units of the picture. */
enum {
    WIDTH = 640,
    HEIGHT = 260,
    LEFT = 58,
    RIGHT = 14,
    TOP = 12,
    BOTTOM = 40,
    TICKS = 5,
    MARKED_MAX = 40,
    MARK_ROOM = 40
};
#define LARGEST 1e300 /* beyond it the scale would overflow */

struct axis {
    double low, high;
};

struct canvas {
    const struct plot *plot;
    struct axis x, y;
    double bar_width;
    double least_step; /* of marks on y: bars are counts */
    struct buffer *out;
};

/* --- scales --- */

static double clamped(double value)
{
    return fmin(fmax(value, -LARGEST), LARGEST);
}

static void widen(struct axis *axis, double value)
{
    if (isnan(value))
        return;
    axis->low = fmin(axis->low, clamped(value));
    axis->high = fmax(axis->high, clamped(value));
}

/* 1, 2 or 5 times a power of ten, so that there are about `count` steps. */
static double nice_step(struct axis axis, int count)
{
    double rough = (axis.high - axis.low) / count;
    double power = pow(10, floor(log10(rough)));
    double factor = rough / power;

    return power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
}

/* Ends on marks, and has a height. */
static struct axis rounded(struct axis axis, double least_step)
{
    if (axis.high - axis.low <= 1e-9 * fmax(fabs(axis.low), fabs(axis.high)) || axis.high <= axis.low) {
        double half = fabs(axis.high) / 2;
        axis = axis.high == 0 ? (struct axis){0, 1} : (struct axis){axis.low - half, axis.high + half};
    }
    double step = fmax(least_step, nice_step(axis, TICKS));
    return (struct axis){floor(axis.low / step + 1e-9) * step, ceil(axis.high / step - 1e-9) * step};
}

static double place_x(const struct canvas *canvas, double value)
{
    double width = canvas->x.high - canvas->x.low;
    double share = width > 0 ? (value - canvas->x.low) / width : 0.5;

    return LEFT + canvas->bar_width / 2 + share * (WIDTH - LEFT - RIGHT - canvas->bar_width);
}

static double place_y(const struct canvas *canvas, double value)
{
    double share = (clamped(value) - canvas->y.low) / (canvas->y.high - canvas->y.low);

    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
}

/* Bars of one place stand on each other: how high they are together below series s. */
static double stacked(const struct plot *plot, size_t s, size_t i)
{
    double sum = 0;

    for (size_t k = 0; k < s; k++)
        if (plot->series[k].kind == PLOT_BARS && i < plot->series[k].n && !isnan(plot->series[k].y[i]))
            sum += plot->series[k].y[i];
    return sum;
}

static void measure(struct canvas *canvas)
{
    const struct plot *plot = canvas->plot;
    struct axis y = {plot->from_zero ? 0 : DBL_MAX, plot->from_zero ? 0 : -DBL_MAX};
    size_t bars = 0;

    canvas->x = (struct axis){DBL_MAX, -DBL_MAX};
    for (size_t s = 0; s < plot->count; s++) {
        const struct plot_series *series = &plot->series[s];
        for (size_t i = 0; i < series->n; i++) {
            bool is_bar = series->kind == PLOT_BARS;
            double error = series->errors && !isnan(series->errors[i]) ? series->errors[i] : 0;
            widen(&canvas->x, (double)series->x[i]);
            widen(&y, is_bar ? stacked(plot, s + 1, i) : series->y[i] - error);
            widen(&y, is_bar ? 0 : series->y[i] + error);
        }
        if (series->kind == PLOT_BARS && series->n > bars)
            bars = series->n;
    }
    canvas->least_step = bars > 0 ? 1 : 0;
    canvas->y = rounded(y, canvas->least_step);
    if (bars > 0)
        canvas->bar_width = fmin(48, 0.8 * (WIDTH - LEFT - RIGHT) / (double)bars);
}

/* --- axes --- */

static void write_y_marks(const struct canvas *canvas)
{
    double step = fmax(canvas->least_step, nice_step(canvas->y, TICKS));
    char text[REPORT_NUMBER_BYTES];

    for (int k = 0; k <= 2 * TICKS; k++) {
        double value = canvas->y.low + k * step;
        double y = place_y(canvas, value);
        if (value > canvas->y.high + step / 2)
            break;
        value = fabs(value) < step * 1e-9 ? 0 : value;
        if (canvas->plot->is_share)
            report_percent(value, text);
        else
            report_number(value, text);
        buffer_append_format(canvas->out,
                             "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                             "<text class=\"mark\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                             LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4, text);
    }
}

static void write_x_mark(const struct canvas *canvas, double value)
{
    double x = place_x(canvas, value);
    const char *anchor = x > WIDTH - MARK_ROOM ? "end" : "middle"; /* a long one stays inside the picture */

    buffer_append_format(canvas->out,
                         "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>"
                         "<text class=\"mark\" x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%.0f</text>\n",
                         x, x, HEIGHT - BOTTOM, HEIGHT - BOTTOM + 4, x, HEIGHT - BOTTOM + 17, anchor, value);
}

/* Revisions are whole numbers, however few there are. */
static void write_x_marks(const struct canvas *canvas)
{
    double width = canvas->x.high - canvas->x.low;
    double step = width > 0 ? fmax(1, nice_step(canvas->x, TICKS)) : 1;
    double first = ceil(canvas->x.low / step) * step;

    for (int k = 0; k <= 2 * TICKS && first + k * step <= canvas->x.high; k++)
        write_x_mark(canvas, first + k * step);
    buffer_append_format(canvas->out,
                         "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>"
                         "<text class=\"mark\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                         LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM, HEIGHT - BOTTOM, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5,
                         canvas->plot->x_name);
}

/* --- series --- */

static bool has_value(const struct plot_series *series, size_t i)
{
    return i < series->n && !isnan(series->y[i]);
}

/* The first place behind `at` that has no value. */
static size_t end_of_piece(const struct plot_series *series, size_t at)
{
    while (has_value(series, at))
        at++;
    return at;
}

static double error_at(const struct plot_series *series, size_t i)
{
    return series->errors && !isnan(series->errors[i]) ? series->errors[i] : 0;
}

/* Forth along the upper edge, back along the lower one. */
static void write_band(const struct canvas *canvas, const struct plot_series *series, size_t s, size_t from, size_t to)
{
    buffer_append_format(canvas->out, "<path class=\"band s%zu\" d=\"", s);
    for (size_t i = from; i < to; i++)
        buffer_append_format(canvas->out, "%c%.1f %.1f", i == from ? 'M' : 'L', place_x(canvas, (double)series->x[i]),
                             place_y(canvas, series->y[i] + error_at(series, i)));
    for (size_t i = to; i-- > from;)
        buffer_append_format(canvas->out, "L%.1f %.1f", place_x(canvas, (double)series->x[i]),
                             place_y(canvas, series->y[i] - error_at(series, i)));
    buffer_append_string(canvas->out, "Z\"/>\n");
}

static void write_piece(const struct canvas *canvas, const struct plot_series *series, size_t s, size_t from, size_t to)
{
    buffer_append_format(canvas->out, "<path class=\"line s%zu\" d=\"", s);
    for (size_t i = from; i < to; i++)
        buffer_append_format(canvas->out, "%c%.1f %.1f", i == from ? 'M' : 'L', place_x(canvas, (double)series->x[i]),
                             place_y(canvas, series->y[i]));
    buffer_append_string(canvas->out, "\"/>\n");
}

/* With its error as a bar, where no band shows it. */
static void write_mark(const struct canvas *canvas, const struct plot_series *series, size_t s, size_t i, bool whisker)
{
    double x = place_x(canvas, (double)series->x[i]);
    double error = error_at(series, i);

    if (whisker && error > 0)
        buffer_append_format(canvas->out, "<path class=\"whisker s%zu\" d=\"M%.1f %.1fL%.1f %.1f\"/>", s, x,
                             place_y(canvas, series->y[i] - error), x, place_y(canvas, series->y[i] + error));
    buffer_append_format(canvas->out, "<circle class=\"mark s%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"/>\n", s, x,
                         place_y(canvas, series->y[i]), series->kind == PLOT_MARKS ? "4" : "2.5");
}

static void write_line(const struct canvas *canvas, const struct plot_series *series, size_t s)
{
    for (size_t from = 0, to; from < series->n; from = to + 1) {
        to = end_of_piece(series, from);
        if (to > from + 1 && series->errors)
            write_band(canvas, series, s, from, to);
        if (to > from + 1)
            write_piece(canvas, series, s, from, to);
        for (size_t i = from; i < to && (series->n <= MARKED_MAX || to == from + 1); i++)
            write_mark(canvas, series, s, i, to == from + 1);
    }
}

static void write_marks(const struct canvas *canvas, const struct plot_series *series, size_t s)
{
    for (size_t i = 0; i < series->n; i++)
        if (has_value(series, i))
            write_mark(canvas, series, s, i, true);
}

static void write_bars(const struct canvas *canvas, const struct plot_series *series, size_t s)
{
    for (size_t i = 0; i < series->n; i++) {
        if (!has_value(series, i) || series->y[i] == 0)
            continue;
        double below = stacked(canvas->plot, s, i);
        double top = place_y(canvas, below + series->y[i]);
        buffer_append_format(canvas->out,
                             "<rect class=\"bar s%zu\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"/>\n", s,
                             place_x(canvas, (double)series->x[i]) - canvas->bar_width / 2, top, canvas->bar_width,
                             place_y(canvas, below) - top);
    }
}

static void write_series(const struct canvas *canvas, size_t s)
{
    static void (*const write[])(const struct canvas *, const struct plot_series *, size_t) = {
        [PLOT_LINE] = write_line, [PLOT_MARKS] = write_marks, [PLOT_BARS] = write_bars};
    const struct plot_series *series = &canvas->plot->series[s];

    write[series->kind](canvas, series, s);
}

/* --- in words --- */

static void describe(const struct plot_series *series, bool is_share, struct buffer *out)
{
    void (*format)(double, char *) = is_share ? report_percent : report_number;
    size_t count = 0;
    size_t first = 0;
    size_t last = 0;
    struct axis range = {DBL_MAX, -DBL_MAX};
    char texts[4][REPORT_NUMBER_BYTES];

    for (size_t i = 0; i < series->n; i++) {
        if (!has_value(series, i))
            continue;
        first = count++ ? first : i;
        last = i;
        widen(&range, series->y[i]);
    }
    html_text(out, series->name);
    if (count == 0) {
        buffer_append_string(out, ": no value. ");
        return;
    }
    format(series->y[first], texts[0]);
    format(series->y[last], texts[1]);
    format(range.low, texts[2]);
    format(range.high, texts[3]);
    buffer_append_format(out, ": %s at %" PRId64 ", %s at %" PRId64 "; lowest %s, highest %s, %zu values. ", texts[0],
                         series->x[first], texts[1], series->x[last], texts[2], texts[3], count);
}

static bool is_empty(const struct plot_series *series)
{
    for (size_t i = 0; i < series->n; i++)
        if (has_value(series, i))
            return false;
    return true;
}

bool plot_is_empty(const struct plot *plot)
{
    for (size_t s = 0; s < plot->count; s++)
        if (!is_empty(&plot->series[s]))
            return false;
    return true;
}

/* A small sample of the line of a series, for the legend. */
static void write_key(const struct plot_series *series, size_t s, struct buffer *out)
{
    buffer_append_string(out, "<svg class=\"key\" viewBox=\"0 0 22 10\" aria-hidden=\"true\">");
    if (series->kind == PLOT_BARS)
        buffer_append_format(out, "<rect class=\"bar s%zu\" x=\"6\" y=\"0\" width=\"10\" height=\"10\"/>", s);
    if (series->kind == PLOT_MARKS)
        buffer_append_format(out, "<circle class=\"mark s%zu\" cx=\"11\" cy=\"5\" r=\"4\"/>", s);
    if (series->kind == PLOT_LINE)
        buffer_append_format(out, "<path class=\"line s%zu\" d=\"M1 5L21 5\"/>", s);
    buffer_append_string(out, "</svg>");
}

static void write_legend(const struct plot *plot, struct buffer *out)
{
    buffer_append_string(out, "<ul class=\"legend\">");
    for (size_t s = 0; s < plot->count; s++) {
        if (is_empty(&plot->series[s]))
            continue;
        buffer_append_string(out, "<li>");
        write_key(&plot->series[s], s, out);
        buffer_append_string(out, " <bdi>");
        html_text(out, plot->series[s].name);
        buffer_append_string(out, "</bdi></li>");
    }
    buffer_append_string(out, "</ul>\n");
}

void plot_write(const struct plot *plot, struct buffer *out)
{
    struct canvas canvas = {.plot = plot, .out = out};

    buffer_append_format(out, "<figure>\n<figcaption>%s</figcaption>\n", plot->title);
    if (plot_is_empty(plot)) {
        buffer_append_string(out, "<p class=\"none\">Nothing of this is on record.</p>\n</figure>\n");
        return;
    }
    measure(&canvas);
    write_legend(plot, out);
    buffer_append_format(out,
                         "<svg role=\"img\" viewBox=\"0 0 %d %d\" aria-labelledby=\"%s-title %s-text\">"
                         "<title id=\"%s-title\">%s by revision</title><desc id=\"%s-text\">",
                         WIDTH, HEIGHT, plot->id, plot->id, plot->id, plot->title, plot->id);
    for (size_t s = 0; s < plot->count; s++)
        describe(&plot->series[s], plot->is_share, out);
    buffer_append_string(out, "</desc>\n");
    write_y_marks(&canvas);
    write_x_marks(&canvas);
    for (size_t s = 0; s < plot->count; s++)
        write_series(&canvas, s);
    buffer_append_string(out, "</svg>\n</figure>\n");
}
