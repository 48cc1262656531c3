/* plot: numbers over revisions as SVG inside a page of HTML.
 *
 * Pure: series in, text out; any thread. Lines with a band of one standard error, marks, or bars that stand on each
 * other. A value that is NAN is a gap. The picture has a title and a description of it in words; the
 * colours are classes (s0 … s7) of the page's style, and no attribute needs a style of its own. */
#ifndef SERVER_REPORTS_PLOT_PRIVATE_H
#define SERVER_REPORTS_PLOT_PRIVATE_H

#include "server/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLOT_SERIES_MAX 8

struct plot_series {
    struct text name;
    enum plot_kind { PLOT_LINE, PLOT_MARKS, PLOT_BARS } kind;
    size_t n;
    const int64_t *x;     /* [n], never falling */
    const double *y;      /* [n]; NAN: none */
    const double *errors; /* [n]; NAN: none; NULL: there are none */
};

struct plot {
    const char *id;    /* of the elements, unique in the page */
    const char *title; /* HTML */
    const char *x_name;
    bool from_zero; /* the axis includes 0 */
    bool is_share;  /* marks in per cent */
    struct plot_series series[PLOT_SERIES_MAX];
    size_t count;
};

/* Whether there is anything to see. */
bool plot_is_empty(const struct plot *plot);
/* A figure with its caption, its legend and its picture. */
void plot_write(const struct plot *plot, struct buffer *out);

#endif
