"""Writes the files of a version, which all later ones have to open.

    python tests/golden/write.py VERSION            a new folder, at a release
    python tests/golden/write.py VERSION CASE...    cases that were added since, into it

VERSION is the major and minor part of the version that is installed. Nothing that is there
is written again.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

os.environ["TAPEWRIGHT_TARGET"] = "numpy"
from golden_cases import assert_same  # noqa: E402
from golden_folders import HERE, JSON, PRESENT, answers, cases_of, pack, packed, sums  # noqa: E402

README = """# Files written by tapewright {version}

Every later version has to open them to the numbers beside them; `test_golden.py` does so.
They are never rewritten: `SHA256SUMS` tells. `<name>.gz` is a file as it was written,
packed; `<case>.npz` has what it gives, and the cases are in `golden_models.py`,
`golden_modules.py` and `golden_checkpoints.py`.
"""


def main(version, *names):
    folder = HERE / version
    if version != PRESENT:
        sys.exit(
            f"write.py: VERSION must be {PRESENT}, the one installed, got {version}"
        )
    cases = [case for case in cases_of(version) if not names or case.name in names]
    unknown = set(names) - {case.name for case in cases}
    if unknown:
        sys.exit(f"write.py: no case is named {', '.join(sorted(unknown))}")
    there = [
        name for case in cases for name in packed(case) if (folder / name).exists()
    ]
    if there or (folder.exists() and not names):
        sys.exit(
            f"write.py: {folder} has files already, which stay as they are: {there}"
        )
    if names and sums(folder) != (folder / "SHA256SUMS").read_text():
        sys.exit(f"write.py: files of {folder} are not as they were written")
    folder.mkdir(exist_ok=True)
    for case in cases:
        write(case, folder)
    (folder / "README.md").write_text(README.format(version=version))
    (folder / "SHA256SUMS").write_text(sums(folder))


def write(case, folder):
    """Writes the files of a case and its numbers, once they are read as they were written."""
    with tempfile.TemporaryDirectory() as work:
        wanted = answers(case, case.write(Path(work)))
        for name in case.files:
            assert_same(answers(case, case.read(Path(work) / name)), wanted)
        for name in [*case.files, *case.beside]:
            pack(Path(work) / name, folder, name)
    arrays, plain = wanted
    np.savez_compressed(
        folder / f"{case.name}.npz", **arrays, **{JSON: json.dumps(plain)}
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
