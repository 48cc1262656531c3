"""Loaded by schemathesis. A request for a lease waits for groups that nobody makes: as long as its `wait` says, so it says nothing."""
import re

import schemathesis


@schemathesis.hook
def before_call(context, case, **kwargs):
    del context, kwargs
    if case.operation.label == "POST /v1/runs/{run}/leases" and isinstance(case.body, dict):
        wait = case.body.get("wait")
        if isinstance(wait, str) and re.fullmatch(r"\d+(us|ms|s|m|h|d)", wait):
            case.body["wait"] = "0s"
