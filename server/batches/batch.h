/* batch: the life of one batch as a state machine. Decisions only: no I/O, no clock, no memory but its own.
 *
 * batch_step() takes an event and the time and appends actions in the order in which they must happen; step.c carries
 * them out, and their outcomes come back as further events. So every deadline, retry and cancellation can
 * be tested with a made-up clock.
 *
 *   rollout   QUEUED -> SAMPLING -> VERIFYING -> STORING -> DONE
 *                ^         | a retryable failure, attempts left and time left
 *                +-BACKOFF-+            anything else that fails: -> STORING, with a typed failure
 *                +---------+ an abort: as if it had not been sent
 *
 * With a refill a group is weighed before it is closed: one without variance is dropped, and a group of the reserve is
 * drawn in its place, in the order of the reserve. One drop is on its way to the record at a time, so that the order of
 * draws is that of the reserve, also if the service dies.
 *
 * A group is closed when all its rollouts are stored, the batch when all its groups are closed. The deadline and a
 * cancellation stop what runs and store every rollout that is not on its way into the store yet as failed or cancelled;
 * so a batch always ends. */
#ifndef SERVER_BATCHES_BATCH_H
#define SERVER_BATCHES_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rollout_phase {
    PHASE_QUEUED,
    PHASE_BACKOFF,
    PHASE_SAMPLING,
    PHASE_VERIFYING,
    PHASE_STORING,
    PHASE_DONE,
    PHASE_COUNT
};

enum rollout_end {
    END_NONE,
    END_SCORED,   /* has its verdicts, or needs none */
    END_FAILED,   /* with the failure of the last event */
    END_DEADLINE, /* failed: the batch's deadline passed */
    END_CANCELLED,
};

struct batch_rollout {
    uint32_t group;
    uint8_t phase;             /* enum rollout_phase */
    uint8_t end;               /* enum rollout_end */
    uint16_t tries;            /* dispatches */
    uint16_t attempts;         /* requests that were sent for it, the first included: what attempts_max bounds */
    uint16_t aborts;           /* requests among them that a weight update took back: not bounded */
    uint16_t resample;         /* complete answers that were refused: part of the seed */
    int64_t first_dispatch_us; /* 0: never dispatched */
    int64_t retry_at_us;       /* in BACKOFF */
};

struct batch_group {
    uint32_t first; /* rollout */
    uint32_t count;
    uint32_t unstored;
    bool closed;
    bool flat;    /* without variance, to be dropped */
    bool dropped; /* on record, or on its way there */
    bool draws;   /* and the next group of the reserve with it */
    bool begun;   /* a member was dispatched, or is on record */
};

enum batch_state { BATCH_RUNNING, BATCH_CLOSING, BATCH_COMPLETE, BATCH_CANCELLED, BATCH_EXPIRED };
extern const char *const batch_state_names[]; /* as on the wire; CLOSING is still "running" */

enum batch_exhausted { EXHAUSTED_SHORT, EXHAUSTED_DELIVER, EXHAUSTED_FAIL };

struct batch_rules {
    bool refill;
    size_t reserve;                 /* how many of the groups, the last ones, are only drawn */
    enum batch_exhausted exhausted; /* of a group without variance when none is left */
    int64_t deadline_us;            /* CLOCK_MONOTONIC */
    int64_t rollout_timeout_us;     /* from a rollout's first dispatch */
    int64_t backoff_min_us;
    int64_t backoff_max_us;
    int attempts_max;
    uint64_t jitter_seed;
};

/* Owned by the loop thread. */
struct batch {
    struct batch_rules rules;
    enum batch_state state;
    enum batch_state outcome;   /* COMPLETE until a deadline or a cancellation cuts something short */
    struct batch_group *groups; /* [group_count], and behind them the reserve */
    size_t group_count;
    size_t group_room;
    struct batch_rollout *rollouts; /* likewise */
    size_t rollout_count;
    size_t rollout_room;
    size_t flat_groups;    /* not dropped yet */
    size_t dropped_groups; /* on record */
    bool drops;            /* one is on its way to the record */
    enum rollout_end cut;  /* of what a draw brings after a deadline or a cancellation; NONE: neither came */
    size_t in_phase[PHASE_COUNT];
    size_t open_groups;
    uint32_t *queue; /* ring of QUEUED rollouts */
    size_t queue_first;
    size_t queue_count;
    int64_t next_retry_us; /* the earliest retry_at_us, or NEVER_US */
};

/* members[g]: how many rollouts group g has, at least 1 each. group_count: with the reserve. */
void batch_init(struct batch *batch, const struct batch_rules *rules, const uint32_t *members, size_t group_count);
void batch_finish(struct batch *batch);

enum batch_event_kind {
    EVENT_STARTED,       /* once, after init and batch_restore() */
    EVENT_DISPATCHED,    /* the rollout from batch_peek_queued() goes to an engine now */
    EVENT_ABORTED,       /* a weight update takes a sample back: queued again, its first dispatch still to come */
    EVENT_SAMPLED,       /* a whole, sound sample; `nothing_to_verify`: no verdict is needed */
    EVENT_SAMPLE_FAILED, /* see failure */
    EVENT_VERIFIED,      /* verdicts are in, whatever they say */
    EVENT_VERIFY_FAILED, /* no verdict */
    EVENT_STORED,
    EVENT_GROUP_WEIGHED, /* `flat`: by the refill's rule */
    EVENT_GROUP_CLOSED,
    EVENT_BATCH_CLOSED,
    EVENT_TIME, /* batch_next_time() has come */
    EVENT_CANCEL,
};

struct batch_event {
    enum batch_event_kind kind;
    uint32_t index; /* rollout or group */
    bool nothing_to_verify;
    bool flat;
    unsigned sent; /* requests. DISPATCHED: 1, or 0 if none could be sent; SAMPLED, SAMPLE_FAILED: those that curl
                      added by itself */
    struct {
        bool unsent; /* the connection was not taken: the dispatch was no request */
        bool retryable;
        bool resample;
        int64_t retry_after_us;
    } failure;
};

enum action_kind {
    ACTION_DISPATCH,      /* something is queued: let the dispatcher look */
    ACTION_VERIFY,        /* rollout */
    ACTION_PAUSE,         /* rollout: its attempt has failed, another one follows */
    ACTION_STORE,         /* rollout, by its `end` */
    ACTION_STOP_SAMPLE,   /* rollout: cancel the transfer */
    ACTION_STOP_VERIFY,   /* rollout */
    ACTION_WEIGH_GROUP,   /* group: whether it has variance */
    ACTION_DROP_GROUP,    /* group: store it without advantages, and the draw with it if it `draws` */
    ACTION_CLOSE_GROUP,   /* group: compute its advantages and store them */
    ACTION_TELL_GROUP,    /* group: on disk: tell the observers */
    ACTION_GROUP_DROPPED, /* group: on disk: it is told to nobody */
    ACTION_CLOSE_BATCH,   /* with `outcome` */
    ACTION_ANSWER,        /* terminal and on disk: tell the observers */
};

struct action {
    enum action_kind kind;
    uint32_t index;
};

struct actions {
    struct action *items;
    size_t count;
    size_t capacity;
};
void actions_finish(struct actions *actions);

void batch_step(struct batch *batch, const struct batch_event *event, int64_t now_us, struct actions *actions);

/* After a restart, before EVENT_STARTED: this rollout, or this group, is in the store already. */
void batch_restore_rollout(struct batch *batch, uint32_t index);
void batch_restore_group(struct batch *batch, uint32_t index);
/* The next group of the reserve is on record; this closed group was dropped. Before the others. */
void batch_restore_drawn(struct batch *batch);
void batch_restore_dropped(struct batch *batch, uint32_t index);
/* One of its rollouts was cut short before: so was the batch, also if nothing is left to be cut. */
void batch_restore_cut(struct batch *batch, enum batch_state outcome);

/* The next rollout to dispatch, or -1. */
int64_t batch_peek_queued(const struct batch *batch);
/* The next one of a group that was begun, which becomes the next of all; or -1. */
int64_t batch_peek_begun(struct batch *batch);
/* Number of members of begun groups that are still to be dispatched, at once or after a pause. */
size_t batch_count_owed(const struct batch *batch);

/* When EVENT_TIME is due. */
int64_t batch_next_time(const struct batch *batch);

/* Time that a request for this rollout may take, sent now. */
int64_t batch_time_left(const struct batch *batch, uint32_t index, int64_t now_us);

static inline bool batch_is_terminal(const struct batch *batch)
{
    return batch->state >= BATCH_COMPLETE;
}

#endif
