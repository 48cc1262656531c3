-- Engines that were named at run time. The settings file's are not here, except what was said of them at run time: a row without a
-- URL says only that one of them is drained. A key is never on record: token_name says which file or variable holds it.
CREATE TABLE engines (
    name TEXT PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 64),
    url TEXT,
    kind TEXT,
    model TEXT,
    pool TEXT NOT NULL DEFAULT 'default',
    in_flight INTEGER CHECK (in_flight >= 0),
    shared INTEGER NOT NULL CHECK (shared IN (0, 1)),
    draining INTEGER NOT NULL CHECK (draining IN (0, 1)),
    token_name TEXT,
    changed_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
