"""Results of pure functions of the compiler, kept on disk beside machine code.

They are read with ``pickle`` from the cache folder, whose machine code is run anyway.
"""

import hashlib
import pickle
from pathlib import Path

from . import engine, object_cache


def recall(make, *key):
    """Return ``make()``, or the result that an earlier call, or process, has stored.

    Args:
        make: Function without arguments or effects.
        *key: Everything that the result depends on besides the source of the compiler
            and this CPU. It is compared by its ``repr``.
    """
    cache = object_cache.current()
    cpu = engine.maker(), engine.vector_registers(), engine.converts_halves()
    parts = ["recall", SOURCE, repr(cpu), repr(key)]
    name = hashlib.sha256("\0".join(parts).encode()).digest()
    content = cache.load(name)
    if content is not None:
        return pickle.loads(content)
    result = make()
    cache.store(name, pickle.dumps(result))
    return result


def _source():
    """Return a hash of the source of the compiler."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[3].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


SOURCE = _source()  # read at import: files that change later are not the code that runs
