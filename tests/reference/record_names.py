"""Write the public names of TensorFlow and Keras, a line for each of their namespaces.

    python tests/reference/record_names.py

Errors about names that tapewright lacks, and a page of the documentation, are made of this
list. It was written with TensorFlow 2.21 and Keras 3.15.1.
"""

import os
from pathlib import Path
from types import ModuleType

WRITTEN = Path(__file__).parents[2] / "framework" / "api" / "known_names.txt"
# Not part of the interface, or thousands of names of which nobody looks for one.
LEFT_OUT = {
    "keras.datasets", "tf.compat.v1", "tf.compat.v2", "tf.dtensor",
    "tf.keras.datasets", "tf.lite", "tf.mlir", "tf.raw_ops",
    "tf.security", "tf.tools", "tf.tpu",
}  # fmt: skip
# Other names of namespaces of Keras.
SAME = {f"tf.{n}" for n in ("initializers", "losses", "metrics", "optimizers")}


def walk(path, module, found):
    """Add the names of a namespace, and of those inside of it, to ``found``."""
    names = [n for n in dir(module) if n[0] != "_" and n != "src"]
    key = path.removeprefix("tf.") if path.startswith("tf.keras") else path
    found.setdefault(key, set()).update(names)
    for name in names:
        inner = f"{path}.{name}"
        value = getattr(module, name)
        is_module = isinstance(value, ModuleType)
        if is_module and inner not in LEFT_OUT | SAME and "applications." not in inner:
            walk(inner, value, found)


if __name__ == "__main__":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

    import tensorflow as tf

    import keras

    known = {}
    walk("keras", keras, known)
    walk("tf", tf, known)
    walk("tf.keras", tf.keras, known)
    lines = [f"{key}: {' '.join(sorted(known[key]))}" for key in sorted(known)]
    WRITTEN.write_text("\n".join(lines) + "\n")
    print(sum(map(len, known.values())), "names,", WRITTEN.stat().st_size, "bytes")
