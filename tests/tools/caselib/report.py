"""The findings of a suite, and their form in print."""


def short(value, limit=160):
    text = value if isinstance(value, str) else repr(value)
    text = text.replace("\n", "\\n")
    return text if len(text) <= limit else text[: limit - 1] + "…"


class Suite:
    def __init__(self, name):
        self.name = name
        self.passes, self.failures, self.skipped = [], [], []
        self.rights, self.wrongs = 0, 0
        self.right_refused, self.wrong_paid = 0, 0
        self.graded = False
        self.notes = []

    def passed(self, case_id):
        self.passes.append(case_id)

    def failed(self, case_id, expected, got):
        self.failures.append({"id": case_id, "expected": expected, "got": got})

    def skip(self, case_id, reason):
        self.skipped.append({"id": case_id, "reason": reason})

    def grade(self, should_pay, paid):
        self.graded = True
        if should_pay:
            self.rights += 1
            self.right_refused += not paid
        else:
            self.wrongs += 1
            self.wrong_paid += bool(paid)

    @property
    def ok(self):
        return len(self.passes)

    @property
    def total(self):
        return len(self.passes) + len(self.failures)

    @property
    def good(self):
        return not self.failures

    def line(self):
        if not self.total:
            return f"{self.name}: not mapped, {len(self.skipped)} skipped"
        text = f"{self.name}: {self.ok}/{self.total} ok"
        if self.graded:
            text += f", right refused {self.right_refused}, wrong paid {self.wrong_paid}"
        if self.skipped:
            text += f", {len(self.skipped)} skipped"
        return text

    def figure(self):
        text = f"{self.name} {self.ok}/{self.total}"
        if self.graded:
            refused = 100 * self.right_refused / max(self.rights, 1)
            paid = 100 * self.wrong_paid / max(self.wrongs, 1)
            text += f" (right refused {refused:.1f} %, wrong paid {paid:.1f} %)"
        if self.skipped:
            text += f" ({len(self.skipped)} skipped)"
        return text

    def show(self, limit):
        for failure in self.failures[:limit]:
            print(f"  {failure['id']}: expected {short(failure['expected'])}, got {short(failure['got'])}")
        reasons = {}
        for entry in self.skipped:
            reasons.setdefault(entry["reason"], []).append(entry["id"])
        for reason, ids in reasons.items():
            print(f"  skipped ({reason}): {short(', '.join(map(str, ids)), 400)}")
        for note in self.notes:
            print(f"  note: {note}")

    def record(self):
        return {"total": self.total, "ok": self.ok, "right_refused": self.right_refused,
                "wrong_paid": self.wrong_paid, "rights": self.rights, "wrongs": self.wrongs,
                "figure": self.figure(), "passes": self.passes, "failures": self.failures, "skipped": self.skipped, "notes": self.notes}
