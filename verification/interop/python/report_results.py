"""A plugin of pytest that prints one JSON line for each test: {"test": name} with "ok", or with
"detail" and why it did not pass.
"""

import json
import sys

results = {}


def pytest_runtest_logreport(report):
    # A test has three phases, each of which may fail; the last failure counts.
    name = report.nodeid.replace(".py::", "::")
    if report.passed:
        results.setdefault(name, None)
    elif report.skipped:
        results[name] = "skipped: " + str(report.longrepr[2])
    else:
        results[name] = str(report.longrepr)[-1500:]
    if report.when == "teardown":
        detail = results.pop(name)
        line = {"test": name, "ok": True} if detail is None else {"test": name, "detail": detail}
        print("\n" + json.dumps(line), file=sys.__stdout__, flush=True)
