"""Leases by their contract, in memory: which groups a lease gets, and what every later call means. A run's one trainer calls."""
import itertools


class Group:
    def __init__(self, identity, revision, incarnation, max_staleness):
        self.id, self.revision, self.incarnation, self.max_staleness = identity, revision, incarnation, max_staleness
        self.state, self.lease, self.deliveries, self.step, self.staleness = "ready", None, 0, None, None

    def delivery(self):
        return {"state": self.state, "lease": self.lease, "deliveries": self.deliveries, "optimizer_step": self.step, "staleness": self.staleness}

    def give_back(self):
        self.state, self.lease, self.step = "ready", None, None


class Lease:
    def __init__(self, identity, groups):
        self.id, self.groups, self.released, self.ended = identity, groups, set(), False

    def holds(self, group):
        return group.state == "leased" and group.lease == self.id

    def acked(self, group):
        return group.state == "acked" and group.lease == self.id

    def held(self):
        return [group for group in self.groups if self.holds(group)]

    def lose(self):
        self.ended = True
        for group in self.held():
            group.give_back()

    def end_if_empty(self):
        self.ended = self.ended or not self.held()


class Run:
    """A training run as the record has it. `groups` are in order of creation."""

    def __init__(self):
        self.groups, self.leases = [], []
        self.revision, self.incarnation, self.rewound_to = 1, 0, {}  # the revision that each later incarnation began with
        self.rewind = None  # (revision, step), if nothing was declared since

    # -- age ------------------------------------------------------------------------------------------------------------------

    def staleness(self, group):
        common = min([group.revision] + [revision for incarnation, revision in self.rewound_to.items() if incarnation > group.incarnation])
        return (group.revision - common) + (self.revision - common)

    def too_old(self, group, limit):
        limits = [bound for bound in (limit, group.max_staleness) if bound is not None]
        return bool(limits) and self.staleness(group) > min(limits)

    # -- a lease ----------------------------------------------------------------------------------------------------------------

    def ready(self):
        return sorted((group for group in self.groups if group.state == "ready"), key=lambda group: group.revision)

    def take(self, wanted, limit, exact):
        """The groups that a lease gets. Groups on the way there that are too old are stale."""
        found = []
        for group in itertools.takewhile(lambda _: len(found) < wanted, self.ready()):
            if self.too_old(group, limit):
                group.state, group.staleness = "stale", self.staleness(group)
            else:
                found.append(group)
        return [] if exact and len(found) < wanted else found

    def taken(self, identity, groups):
        lease = Lease(identity, groups)
        for group in groups:
            group.state, group.lease, group.staleness, group.deliveries = "leased", identity, self.staleness(group), group.deliveries + 1
        self.leases.append(lease)
        return lease

    def ack(self, lease, groups, step):
        """(how many, None), or (0, the groups that are in the way). `groups` None: all."""
        meant = [group for group in lease.groups if group.id not in lease.released] if groups is None else groups
        conflict = [group for group in meant if not lease.holds(group) and not lease.acked(group)]
        if conflict or not meant:
            return 0, conflict or lease.groups
        held = [group for group in meant if lease.holds(group)]
        for group in held:
            group.state, group.step = "acked", step
        lease.end_if_empty()
        return len(held), None

    def release(self, lease, groups):
        held = [group for group in (lease.groups if groups is None else groups) if lease.holds(group)]
        for group in held:
            lease.released.add(group.id)
            group.give_back()
        lease.end_if_empty()
        return len(held)

    # -- weights ------------------------------------------------------------------------------------------------------------------

    def declare(self, revision):
        if revision > self.revision:
            self.revision, self.rewind = revision, None

    def acked_after(self, step):
        return [group for group in self.groups if group.state == "acked" and group.step > step]

    def go_back(self, revision, step):
        if self.rewind == (revision, step) and not self.acked_after(step):
            return
        self.end_leases()
        for group in self.acked_after(step):
            group.give_back()
        self.incarnation += 1
        self.rewound_to[self.incarnation] = self.revision = revision
        self.rewind = (revision, step)

    def end_leases(self):
        ended = [lease for lease in self.leases if not lease.ended]
        for lease in ended:
            lease.lose()
        return ended

    def attach(self, step, revision):
        """The leases that it ends."""
        ended = self.end_leases()
        if revision < self.revision or self.acked_after(step):
            self.go_back(revision, step)
        else:
            self.declare(revision)
        return ended
