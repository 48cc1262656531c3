/* log: one line per event to standard error, as text or JSON. Any thread; a line is one write().
 *
 *   log_event(LOG_LEVEL_WARNING, "sample failed", "batch", id, LOG_INT("attempts", 3), "code", "engine_timeout", NULL);
 *
 * Text:  2026-11-29T16:16:56.000000Z warning sample failed batch=b_01… attempts=3 code=engine_timeout
 * JSON:  {"time":"…","level":"warning","event":"sample failed","batch":"b_01…","attempts":3,"code":"engine_timeout"}
 * Values are escaped: a client's text cannot forge a line, nor command a terminal. Long values are cut at 512 bytes. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdint.h>

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

void log_setup(enum log_level minimum, enum log_format format); /* before threads start */

/* Pairs whose value is no text: JSON shows them as what they are. */
#define LOG_INT(key, value) LOG_INT_MARK key, (int64_t)(value)
#define LOG_BOOL(key, value) LOG_BOOL_MARK key, (int)(value)
/* In front of the key, how to take the value. */
#define LOG_INT_MARK "\001"
#define LOG_BOOL_MARK "\002"

/* Pairs of key and value (const char *, value may be NULL = left out), ended by a NULL key. */
void log_event(enum log_level level, const char *event, ...) __attribute__((sentinel));

#endif
