"""Writes signatures.json: the arguments of Keras' classes, in order, with their defaults.

Run with Keras 3 installed: ``KERAS_BACKEND=numpy python record_signatures.py``. For each
module of `MODULES` and each class in it: ``[[name, default], ...]``, or ``[name]`` where
there is none; the first of several names of a class.
"""

import inspect
import json
from pathlib import Path

MODULES = (
    "callbacks", "constraints", "initializers", "layers", "losses", "metrics",
    "optimizers", "optimizers.schedules", "regularizers",
)  # fmt: skip


def signature(cls):
    found = []
    for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is parameter.empty:
            found.append([parameter.name])
        else:
            found.append([parameter.name, parameter.default])
    return found


def main():
    import keras

    recorded = {"keras": keras.__version__}
    for path in MODULES:
        module, seen = keras, set()
        for part in path.split("."):
            module = getattr(module, part)
        classes = recorded[path] = {}
        for name, cls in sorted(vars(module).items()):
            if inspect.isclass(cls) and cls not in seen and name[0].isupper():
                seen.add(cls)
                classes[name] = signature(cls)
    lines = json.dumps(recorded).replace(']], "', ']],\n"').replace('}, "', '},\n"')
    Path(__file__).with_name("signatures.json").write_text(lines + "\n")


if __name__ == "__main__":
    main()
