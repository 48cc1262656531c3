/* report_text: texts and numbers in HTML and Markdown. Pure; any thread.
 *
 * Texts from outside (names, codes, notes) go through one of the escapes, so that they are text and no markup:
 * control bytes become U+FFFD, and no character of HTML or Markdown keeps its meaning. */
#ifndef SERVER_REPORTS_REPORT_TEXT_PRIVATE_H
#define SERVER_REPORTS_REPORT_TEXT_PRIVATE_H

#include "server/base/buffer.h"

#include <stdint.h>

#define REPORT_NUMBER_BYTES 32

/* In elements and in attributes between quotation marks; line ends stay. */
void html_text(struct buffer *out, struct text text);
/* In a paragraph, a heading or a cell of a table: line ends become spaces. */
void markdown_text(struct buffer *out, struct text text);

/* Four significant digits, 12.3k, 4.56M; "–" for NAN. */
void report_number(double value, char ret_text[REPORT_NUMBER_BYTES]);
/* The same to so many digits, without letters: for marks on an axis. */
void report_percent(double share, char ret_text[REPORT_NUMBER_BYTES]);

#endif
