"""Plugin of pytest that appends the outcome of each test to a file as soon as it is known.

    OUTCOMES=outcomes.txt PYTHONPATH=benchmarks pytest -p outcomes tests

A run that is stopped before its end leaves a line ``outcome, a tab, id`` for each test that it
has finished, and the report of each failure. `read` returns the ids by outcome. With a file of
ids in ``ONLY``, one a line, only these tests run; ids that no longer exist are ignored.
"""

import os

__all__ = ["read"]

OUTCOMES = ("passed", "failed", "skipped")


def pytest_collection_modifyitems(config, items):
    if path := os.environ.get("ONLY"):
        with open(path) as file:
            ids = set(file.read().splitlines())
        kept = [item for item in items if item.nodeid in ids]
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in ids])
        items[:] = kept


def pytest_runtest_logreport(report):
    # With xdist, workers send their reports to the main process, which writes them.
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    if report.when == "call" or report.outcome != "passed":
        details = f"{report.longreprtext}\n" if report.failed else ""
        with open(os.environ["OUTCOMES"], "a") as file:  # pytest may print to it, too
            file.write(f"\n{report.outcome}\t{report.nodeid}\n{details}")


def read(text):
    """Return the ids of tests by outcome, from the lines that the plugin wrote."""
    found = {outcome: [] for outcome in OUTCOMES}
    for line in text.splitlines():
        outcome, tab, test = line.partition("\t")
        if tab and outcome in found and test not in found[outcome]:
            found[outcome].append(test)
    return found
