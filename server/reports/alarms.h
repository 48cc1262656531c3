/* alarms: whether a run goes wrong, from the roll-ups of its newest revisions and its newest optimizer step.
 *
 * Worker threads. Bounded: revisions by the window, and roll-ups by ALARM_ROWS_MAX. */
#ifndef SERVER_REPORTS_ALARMS_H
#define SERVER_REPORTS_ALARMS_H

#include "server/base/words.h"
#include "server/store/store.h"

#define ALARM_ROWS_MAX 200000

#define ALARM_KIND(name, word) ALARM_##name,
enum alarm_kind { ALARM_WORDS(ALARM_KIND) ALARM_KINDS };
#undef ALARM_KIND
extern const char *const alarm_names[]; /* ended by NULL */

/* Shares from 0 to 1; 0: no such alarm. */
struct alarm_limits {
    int64_t revisions; /* the window of `divergence` */
    int64_t rollouts;  /* revisions with fewer judged ones do not count */
    double divergence; /* standard errors by which both means moved */
    double zero_variance;
    double truncated;
    double failed;
    double logprob_gap;
    double precision_min; /* of a verifier, by labels */
    double recall_min;
};

struct settings;
void alarm_limits_init(struct alarm_limits *limits, const struct settings *settings);

enum alarm_state { ALARM_UNKNOWN, ALARM_CLEAR, ALARM_RAISED };

struct alarm_finding {
    enum alarm_state state;
    int64_t from_revision; /* of `divergence`: where the truth was best; else `revision` */
    int64_t revision;      /* -1: not known */
    double value;          /* of `divergence`: by how much the truth fell; of `precision` and `recall`: the lowest */
    double threshold;
    char engine[65];   /* of `logprob_gap`; "": none */
    char verifier[65]; /* of `precision` and `recall`; "": none */
};

/* calibration_alarms.c: `precision` and `recall`, from the newest labelled revisions of the surviving line. */
void alarms_find_by_labels(struct store_reader *reader, struct text run, const struct alarm_limits *limits,
                           struct alarm_finding findings[ALARM_KINDS]);

/* Of the newest revisions of the run's incarnation of now, training alone. NOT_FOUND: no such run, or it is being deleted. */
enum store_status alarms_find(struct store_reader *reader, struct text run, const struct alarm_limits *limits,
                              struct alarm_finding ret_findings[ALARM_KINDS]);

#define ALARM_RECENT_BATCHES 200 /* that are looked at */
#define ALARM_RECENT_RUNS 32
#define ALARM_RECENT_US (INT64_C(7) * 24 * 3600 * 1000000)

/* Runs with a training batch among the newest batches of the record, newest first. Zero-initialised. */
struct alarm_recent {
    char *names[ALARM_RECENT_RUNS];
    size_t count;
};
/* Batches that were made at since_us or later. */
enum store_status alarms_find_recent(struct store_reader *reader, int64_t since_us, struct alarm_recent *recent);
void alarm_recent_finish(struct alarm_recent *recent);

#define ALARM_EVIDENCE_BYTES 512
/* The path and query of the GET that shows it. run: a valid name. */
void alarm_say_evidence(enum alarm_kind kind, const struct alarm_finding *finding, struct text run,
                        char ret_evidence[ALARM_EVIDENCE_BYTES]);

#endif
