"""Loads valid files in which bytes, or parts of the JSON, were changed at random.

Job ``n`` changes a file of the kind ``KINDS[n % len(KINDS)]`` with the seed ``n``. Reads
numbers of jobs and answers as child.py does; run by runner.py.
"""

import copy
import json
import os
import random
import shutil
import sys
import warnings
from pathlib import Path

import child
import files
import h5py
import numpy as np
import own

# of Keras' making, where nothing tells whether a byte was changed
UNSEALED = ("keras_h5", "keras_weights", "keras_zip")
SEALED = ("h5", "weights", "zip", "saved_model", "checkpoint")
JSON = ("json_h5", "json_zip", "json_saved_model", "json_checkpoint")
KINDS = UNSEALED + SEALED + JSON


def jobs(count, kinds=KINDS):
    """``(name, actions)`` of the first ``count`` jobs, and which of them are of ``kinds``."""
    found = [(f"{KINDS[n % len(KINDS)]}-{n}", ("load",)) for n in range(count)]
    return found, {name for name, _ in found if name.rpartition("-")[0] in kinds}


def main():
    folder = Path(sys.argv[1])
    child.limit_memory()
    valid, expected = {}, {}
    for line in sys.stdin:
        number = int(line)
        kind = KINDS[number % len(KINDS)]
        if kind not in valid:
            child.say({"making": kind})
            valid[kind] = make(kind, folder)
            expected[kind] = outcome(kind, valid[kind])["values"]
        path = folder / f"{number}{valid[kind].suffix}"
        change(kind, valid[kind], path, random.Random(number))
        child.say({"trying": number})
        told = child.attempt(lambda path: outcome(kind, path), path, False)  # noqa: B023
        told["same"] = told.pop("values", None) == expected[kind]
        child.say({"job": f"{kind}-{number}", "action": "load", **told})
        os.unlink(path)


# ----------------------------------------------------------------------- files and values


def make(kind, folder):
    """A valid file."""
    import tapewright as tw

    kind = kind.removeprefix("json_")
    if kind in own.KINDS:
        path = folder / f"valid_{kind}.h5"
        own.MAKERS[kind](str(path))
    elif kind in UNSEALED:
        of = {"keras_h5": "h5", "keras_weights": "weights", "keras_zip": "keras"}[kind]
        path = folder / f"valid_{kind}{files.SUFFIX[of]}"
        files.write(path, of, training=None if of == "weights" else files.TRAINING)
    else:
        suffix = {"h5": ".h5", "weights": ".weights.h5", "zip": ".keras"}[kind]
        path = folder / f"valid_{kind}{suffix}"
        model = child.build()
        model.compile("adam", "mse", metrics=["mae"])
        tw.keras.utils.set_random_seed(1)
        model.fit(np.ones((4, 4), "f4"), np.ones((4, 2), "f4"), verbose=0)
        (model.save_weights if kind == "weights" else model.save)(path)
    return Path(path)


def outcome(kind, path):
    """What is loaded, as bytes in hexadecimal."""
    import tapewright as tw

    kind = kind.removeprefix("json_")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "saved_model":
            loaded = tw.saved_model.load(path)
            found = [v.numpy() for v in loaded.variables]
        elif kind == "checkpoint":
            kept = own.objects()
            tw.train.Checkpoint(**kept).restore(path)
            found = [kept["v"].numpy(), kept["n"].numpy()]
        elif kind in ("weights", "keras_weights"):
            model = child.build()
            model.load_weights(path)
            found = [v.numpy() for v in model.weights]
        else:
            model = tw.keras.models.load_model(path)
            slots = model.optimizer.variables if model.optimizer else []
            found = [v.numpy() for v in [*model.weights, *slots]]
    return {"values": [np.asarray(a).tobytes().hex() for a in found]}


# -------------------------------------------------------------------------------- changes


def change(kind, valid, path, draw):
    """Writes a changed copy."""
    if kind in JSON:
        change_json(kind, valid, path, draw)
        return
    data = bytearray(valid.read_bytes())
    for _ in range(draw.choice((1, 1, 1, 2, 8))):
        draw.choice((flip, flip, overwrite, cut, insert, exchange))(data, draw)
    path.write_bytes(data)


def flip(data, draw):
    if data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def overwrite(data, draw):
    start, count = draw.randrange(len(data) + 1), draw.choice((1, 4, 8, 64))
    count = min(count, len(data) - start)
    byte = draw.choice((0, 255, None))
    data[start : start + count] = (
        draw.randbytes(count) if byte is None else bytes([byte]) * count
    )


def cut(data, draw):
    start = draw.randrange(len(data) + 1)
    del data[start : start + draw.choice((1, 100, len(data)))]


def insert(data, draw):
    start = draw.randrange(len(data) + 1)
    data[start:start] = draw.randbytes(draw.choice((1, 8, 512)))


def exchange(data, draw):
    size = min(draw.choice((8, 64)), len(data))
    a, b = (draw.randrange(len(data) - size + 1) for _ in range(2))
    data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]


def change_json(kind, valid, path, draw):
    """Changes JSON in the file, which is sealed again where it was."""
    if kind == "json_zip":
        import zipfile

        with zipfile.ZipFile(valid) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        value = json.loads(members["config.json"])
        members["config.json"] = json.dumps(changed(value, draw))
        files.write_zip(path, members.items())
        return
    from tapewright.storage.checksum import seal

    shutil.copy(valid, path)
    with h5py.File(path, "r+") as file:
        places = json_places(file)
        group, key = draw.choice(places)
        value = json.loads(file[group].attrs[key])
        file[group].attrs[key] = json.dumps(changed(value, draw))
    seal(path)


def json_places(file):
    """All attributes that are JSON."""
    found = []

    def look(name, item):
        for key, value in item.attrs.items():
            if isinstance(value, str) and value[:1] in ("{", "["):
                found.append((name or "/", key))

    look("/", file)
    file.visititems(look)
    return sorted(found)


def changed(value, draw):
    """JSON with one to three parts replaced, removed, repeated or renamed."""
    value = copy.deepcopy(value)
    for _ in range(draw.choice((1, 1, 2, 3))):
        parts = list(containers(value))
        if not parts:
            return draw.choice(ODD)
        part = draw.choice(parts)
        key = draw.choice(list(part) if isinstance(part, dict) else range(len(part)))
        other = draw.choice(parts)
        inner = list(other.values()) if isinstance(other, dict) else other
        how = draw.randrange(5)
        if how == 0:
            del part[key]
        elif how == 1:
            part[key] = copy.deepcopy(draw.choice(inner))
        elif how == 2 and isinstance(part, dict):
            part[draw.choice(("", "x", "name", "config"))] = part.pop(key)
        elif how == 3 and isinstance(part, list):
            part.insert(key, copy.deepcopy(part[key]))
        else:
            part[key] = copy.deepcopy(draw.choice(ODD))
    return value


def containers(value):
    """All lists and dicts in a value that are not empty."""
    ahead = [value]
    while ahead:
        each = ahead.pop()
        if isinstance(each, (dict, list)) and each:
            yield each
            ahead += each.values() if isinstance(each, dict) else each


ODD = (
    None, True, False, 0, 1, -1, 3, 2**31, 2**63, 10**12, 10**40, 0.5, -1e308, "", "x",
    "float32", "c0", "\x00", "name", [], {}, [[]], [None], [0, 0, 0], [10**6, 10**6],
    {"class_name": "Dense", "config": {}}, {"spec": ["float32", None]}, {"tuple": []},
    {"a": {"b": {"c": [1, 2, {"d": None}]}}},
)  # fmt: skip

if __name__ == "__main__":
    child.ANSWERS = os.fdopen(os.dup(1), "w")
    main()
