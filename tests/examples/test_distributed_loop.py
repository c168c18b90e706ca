"""The loop of several processes, here in one; tests/distribute runs it in several."""

import re


def test_one_process_learns(script, run):
    code, text = run(script, "--epochs", "1", picture=True)
    assert code == 0
    assert re.search(r"^1 process, \d+ steps: \d+\.\d\d%$", text, re.MULTILINE)
