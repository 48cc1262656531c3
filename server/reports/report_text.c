#include "server/reports/report_text_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_control(unsigned char byte)
{
    return (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f;
}

void html_text(struct buffer *out, struct text text)
{
    for (size_t i = 0; i < text.length_bytes; i++) {
        char byte = text.data[i];
        if (byte == '&')
            buffer_append_string(out, "&amp;");
        else if (byte == '<')
            buffer_append_string(out, "&lt;");
        else if (byte == '>')
            buffer_append_string(out, "&gt;");
        else if (byte == '"')
            buffer_append_string(out, "&quot;");
        else if (byte == '\'')
            buffer_append_string(out, "&#39;");
        else if (is_control((unsigned char)byte))
            buffer_append_string(out, "\xEF\xBF\xBD");
        else
            buffer_append_byte(out, byte);
    }
}

void markdown_text(struct buffer *out, struct text text)
{
    for (size_t i = 0; i < text.length_bytes; i++) {
        char byte = text.data[i];
        if (byte == '\n' || byte == '\t') {
            buffer_append_byte(out, ' ');
        } else if (is_control((unsigned char)byte)) {
            buffer_append_string(out, "\xEF\xBF\xBD");
        } else {
            if (byte && strchr("\\`*_{}[]()<>#+-.!|~&:@$=\"'/", byte))
                buffer_append_byte(out, '\\');
            buffer_append_byte(out, byte);
        }
    }
}

void report_number(double value, char ret_text[REPORT_NUMBER_BYTES])
{
    double size = fabs(value);

    if (!isfinite(value))
        snprintf(ret_text, REPORT_NUMBER_BYTES, "–");
    else if (size >= 1e6 && size < 1e9)
        snprintf(ret_text, REPORT_NUMBER_BYTES, "%.4gM", value / 1e6);
    else if (size >= 1e4 && size < 1e6)
        snprintf(ret_text, REPORT_NUMBER_BYTES, "%.4gk", value / 1e3);
    else
        snprintf(ret_text, REPORT_NUMBER_BYTES, "%.4g", value);
}

void report_percent(double share, char ret_text[REPORT_NUMBER_BYTES])
{
    if (isfinite(share))
        snprintf(ret_text, REPORT_NUMBER_BYTES, "%.3g %%", 100 * share);
    else
        snprintf(ret_text, REPORT_NUMBER_BYTES, "–");
}
