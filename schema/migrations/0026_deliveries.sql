-- The hand-over of groups to trainers. A lease takes ready groups for a while; an acknowledgement ends their way.
-- deliveries, leases, lease_groups, delivery_counts, pacings: go with their run.
CREATE TABLE leases (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    state TEXT NOT NULL CHECK (state = 'open' OR state = 'acked' OR state = 'released' OR state = 'expired' OR state = 'rewound' OR state = 'attached'),
    taken_at_us INTEGER NOT NULL,
    expires_at_us INTEGER NOT NULL,
    ended_at_us INTEGER, -- NULL: open
    incarnation INTEGER NOT NULL CHECK (incarnation >= 0), -- the run's, when it was taken
    policy_revision INTEGER CHECK (policy_revision >= 0), -- likewise; NULL: none declared
    max_staleness INTEGER CHECK (max_staleness >= 0), -- as asked for; NULL: none
    group_count INTEGER NOT NULL CHECK (group_count >= 1),
    held INTEGER NOT NULL CHECK (held BETWEEN 0 AND group_count), -- groups not yet acknowledged, released or lost
    CHECK ((state = 'open') = (ended_at_us IS NULL)),
    CHECK ((state = 'open') = (held > 0))
) STRICT;
CREATE INDEX leases_by_end ON leases (run_seq, ended_at_us, expires_at_us);
CREATE INDEX leases_open ON leases (expires_at_us) WHERE ended_at_us IS NULL;

-- One row for each group of a training batch with "deliver": "lease".
CREATE TABLE deliveries (
    group_seq INTEGER PRIMARY KEY REFERENCES groups (seq) ON DELETE CASCADE,
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    state TEXT NOT NULL
        CHECK (state = 'waiting' OR state = 'ready' OR state = 'leased' OR state = 'acked' OR state = 'stale' OR state = 'failed' OR state = 'dropped'),
    max_staleness INTEGER CHECK (max_staleness >= 0), -- the batch's; NULL: none
    incarnation INTEGER CHECK (incarnation >= 0), -- the first of its members; NULL: it was never ready
    revision INTEGER CHECK (revision >= 0), -- the oldest of any token, likewise
    deliveries INTEGER NOT NULL DEFAULT 0 CHECK (deliveries >= 0),
    lease_seq INTEGER REFERENCES leases (seq), -- that holds it or has acknowledged it
    optimizer_step INTEGER CHECK (optimizer_step >= 0), -- of the acknowledgement
    staleness INTEGER CHECK (staleness >= 0), -- at its last delivery, or when it was found stale
    CHECK ((state = 'leased' OR state = 'acked') = (lease_seq IS NOT NULL)),
    CHECK ((state = 'acked') = (optimizer_step IS NOT NULL)),
    CHECK (revision IS NOT NULL OR state = 'waiting' OR state = 'failed' OR state = 'dropped')
) STRICT;
CREATE INDEX deliveries_by_state ON deliveries (run_seq, state, revision, group_seq);
CREATE INDEX deliveries_by_step ON deliveries (run_seq, optimizer_step) WHERE optimizer_step IS NOT NULL;
CREATE INDEX deliveries_by_lease ON deliveries (lease_seq) WHERE lease_seq IS NOT NULL;

-- Each delivery of a group, in order within its lease.
CREATE TABLE lease_groups (
    lease_seq INTEGER NOT NULL REFERENCES leases (seq) ON DELETE CASCADE,
    place INTEGER NOT NULL CHECK (place >= 0),
    group_seq INTEGER NOT NULL REFERENCES groups (seq) ON DELETE CASCADE,
    delivery INTEGER NOT NULL CHECK (delivery >= 1), -- the how manieth of the group
    staleness INTEGER NOT NULL CHECK (staleness >= 0),
    outcome TEXT NOT NULL CHECK (outcome = 'held' OR outcome = 'acked' OR outcome = 'released' OR outcome = 'lost'),
    PRIMARY KEY (lease_seq, place)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX lease_groups_by_group ON lease_groups (group_seq, lease_seq);

-- How many deliveries of a run are in a state.
CREATE TABLE delivery_counts (
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    state TEXT NOT NULL,
    group_count INTEGER NOT NULL CHECK (group_count >= 0),
    PRIMARY KEY (run_seq, state)
) STRICT, WITHOUT ROWID;

CREATE TABLE pacings (
    run_seq INTEGER PRIMARY KEY REFERENCES runs (seq),
    groups_per_step INTEGER NOT NULL CHECK (groups_per_step >= 1),
    max_staleness INTEGER NOT NULL CHECK (max_staleness >= 0),
    max_in_flight INTEGER CHECK (max_in_flight >= 1), -- groups; NULL: no bound of its own
    on_stale TEXT NOT NULL CHECK (on_stale = 'resample' OR on_stale = 'drop'),
    changed_at_us INTEGER NOT NULL
) STRICT;

-- A key of a lease, and when an attach was answered: leases that ended then are part of the reply.
ALTER TABLE idempotency_keys ADD COLUMN lease_seq INTEGER REFERENCES leases (seq) ON DELETE CASCADE;
ALTER TABLE idempotency_keys ADD COLUMN taken_at_us INTEGER;
CREATE INDEX idempotency_keys_by_lease ON idempotency_keys (lease_seq) WHERE lease_seq IS NOT NULL;
