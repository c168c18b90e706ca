"""The backward pass: pull cotangents of targets back through the records of a tape.

It works on the conjugates of TensorFlow's cotangents, so that rules need not treat
complex numbers separately (see `core.record`). It runs on arrays (``on_arrays``) if no
interpreter is active, and through ops under an outer tape or a batcher, so that
higher-order gradients use the same rules.
"""

from tapewright.core.dtypes import bfloat16_is_loaded, is_bfloat16
from tapewright.core.hardware import devices
from tapewright.core.interpreters import use_interpreters
from tapewright.core.op_definition.user_gradients import conjugate
from tapewright.core.shapes.symbolic_shape import has_symbolic_shape
from tapewright.core.tensor import IndexedSlices, module_of, new_tensor, next_key
from tapewright.core.variable import Variable
from tapewright.ops.array.creation import ones_like
from tapewright.ops.array.indexed_slices import dense

from .batching import NotDiagonal


def source_keys(tape, source):
    """Return the keys of a source on the tape: a variable has one for each read."""
    if isinstance(source, Variable):
        return tuple(tape.keys_of.get(id(source), ()))
    return (source.key,) if source.key in tape.known else ()


def endpoints(tape, targets, sources):
    """Return pairs of the tensor and key of each target, and the keys of each source.

    A variable as target is its latest read on the tape. A target that is not on the
    tape has None as key, unless it is also a source: then both get a new key.
    """
    tensors, own, keys = {}, {}, []
    for target in targets:
        if id(target) not in tensors:
            if isinstance(target, Variable):
                with use_interpreters((tape,)):
                    tensors[id(target)] = target.read()
            else:
                tensors[id(target)] = target
    for source in sources:
        known_keys = source_keys(tape, source)
        if not known_keys and id(source) in tensors and source.dtype.is_differentiable:
            known_keys = (own.setdefault(id(source), next_key()),)
        keys.append(known_keys)
    pairs = []
    for target in targets:
        tensor = tensors[id(target)]
        known = tensor.key in tape.known
        pairs.append((tensor, tensor.key if known else own.get(id(target))))
    return pairs, keys


def seed_cotangent(cotangents, key, tensor, seed, on_arrays):
    """Add the cotangent of a target, ones if ``seed`` is None; nothing without a key."""
    if key is None:
        return
    if seed is None:
        array = tensor.array
        if has_symbolic_shape(array.shape):
            seed = ones_like(tensor)
        else:
            seed = new_tensor(module_of(tensor).ones(array.shape, array.dtype))
    else:
        seed = conjugate(seed)
    seed = seed.array if on_arrays else seed
    old = cotangents.get(key)
    cotangents[key] = seed if old is None else old + seed


def backward_pass(tape, cotangents, keys, on_arrays, release, step=None):
    """Pull cotangents back through the records; cotangents of sources stay in the dict.

    ``release`` drops each record, with its residuals, once it has been used. Only the
    heads that `explain` needs stay on the tape: the heads of records that no cotangent
    reached, or of all records where `reachable` visits them all anyway.

    ``step(record, g, cotangents, useful)`` replaces the pullbacks of the records.
    """
    wanted = {key for each in keys for key in each}
    records, kept, unused = tape.records, {}, []
    narrow = on_arrays and bfloat16_is_loaded()
    # If every leaf is wanted, every record is on a path; else only those from a source.
    heads = useful = None
    if not tape.leaves <= wanted:
        heads = [record[:3] for record in records]
        useful = reachable(heads, wanted)
    for i in range(len(records) - 1, -1, -1):
        record = records.pop() if release else records[i]
        key = record[1]
        g = cotangents.pop(key, None)
        if g is None:
            if type(key) is not tuple:
                if release:
                    unused.append(record[:3])
                continue
            g = [cotangents.pop(k, None) for k in key]
            for k, part in zip(key, g):
                if k in wanted and part is not None:
                    kept[k] = part
            if all(part is None for part in g):
                if release:
                    unused.append(record[:3])
                continue
            g = [dense(p) if p.__class__ is IndexedSlices else p for p in g]
        elif key in wanted:
            kept[key] = g
        if g.__class__ is IndexedSlices:
            g = dense(g)
        if useful is not None and useful.isdisjoint(record[2]):
            continue  # no source is behind it
        pull_back = step or (record[0].on_arrays if on_arrays else record[0].on_tensors)
        if narrow and _has_bfloat16(g):
            pull_back = _by_ops
        try:
            pull_back(record, g, cotangents, useful)
        except NotDiagonal as mixing:
            mixing.op_name = record[0].name
            raise
        except FloatingPointError as error:  # from debugging.enable_check_numerics
            line = tape.lines.get(key) if tape.lines is not None else None
            error.add_note(
                f"in the gradient of {record[0].name}" + (f", {line}" if line else "")
            )
            raise
        except MemoryError as error:
            who = f"the gradient of {record[0].name}"
            raise devices.memory_error(who, error) from None
    cotangents.update(kept)
    if release:
        records[:] = unused[::-1] if heads is None else heads


def _has_bfloat16(g):
    """Return whether a cotangent, or one of several, is bfloat16."""
    parts = g if type(g) is list else (g,)
    return any([part is not None and is_bfloat16(part.dtype) for part in parts])


def _by_ops(record, g, cotangents, useful):
    """Pull bfloat16 arrays back by ops, since NumPy's operators would not round."""
    many = type(g) is list
    parts = [None if c is None else new_tensor(c) for c in (g if many else (g,))]
    slopes = {}
    with use_interpreters(()):
        record[0].on_tensors(record, parts if many else parts[0], slopes, useful)
    for key, d in slopes.items():
        if isinstance(d, IndexedSlices):
            d = IndexedSlices(d.values.array, d.indices.array, d.dense_shape)
        else:
            d = d.array
        cotangents[key] = cotangents[key] + d if key in cotangents else d


def reachable(records, wanted):
    """Return the keys that depend on one of the ``wanted`` keys."""
    useful = set(wanted)
    for record in records:
        if not useful.isdisjoint(record[2]):
            output = record[1]
            useful.update(output if type(output) is tuple else (output,))
    return useful


def sum_cotangents(cotangents, keys):
    """Return the sum of the cotangents under these keys, or None."""
    total = None
    for key in keys:
        g = cotangents.get(key)
        if g is not None:
            total = g if total is None else total + g
    return total


def to_gradient(g, on_arrays):
    """Return a cotangent as a gradient for the user: a tensor or slices, conjugated."""
    if g is None:
        return None
    if isinstance(g, IndexedSlices):
        if on_arrays:
            g = IndexedSlices(
                new_tensor(g.values), new_tensor(g.indices), g.dense_shape
            )
        return IndexedSlices(conjugate(g.values), g.indices, g.dense_shape)
    return conjugate(new_tensor(g) if on_arrays else g)
