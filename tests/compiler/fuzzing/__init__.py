"""Random programs that run traced and eager; `fuzz.py` beside this folder is the door.

`kinds` and `structures` list the steps that there are, `generating` makes programs of
them, `programs` writes them as Python source, `checking` runs and compares, `shrinking`
makes what fails small.
"""

from . import checking, generating, kinds, programs, shrinking, structures
