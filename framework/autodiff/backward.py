"""The backward pass: from cotangents of targets, over the records of a tape, to sources.

It carries the conjugates of TensorFlow's cotangents, so that rules need not know of
complex numbers (see `core.record`); they are conjugated on the way in and out. It runs on
arrays (``on_arrays``) when nobody watches, and through ops when an outer tape or a batcher
does, so that gradients of gradients come from the same rules.
"""

from tapewright.core.interpreters import use_interpreters
from tapewright.core.symbolic_shape import has_symbolic_shape
from tapewright.core.tensor import IndexedSlices, module_of, new_tensor, next_key
from tapewright.core.user_gradients import conjugate
from tapewright.core.variable import Variable
from tapewright.ops.array.creation import ones_like
from tapewright.ops.array.gather import dense

from .batching import NotDiagonal

__all__ = [
    "backward_pass",
    "collect",
    "ends",
    "finished",
    "reachable",
    "seed_cotangent",
    "source_keys",
]


def source_keys(tape, source):
    """The keys under which the tape knows a source: a variable has one for each read."""
    if isinstance(source, Variable):
        return tuple(tape.keys_of.get(id(source), ()))
    return (source.key,) if source.key in tape.known else ()


def ends(tape, targets, sources):
    """Pairs of each target's tensor and key, and the keys of each source.

    A variable as target stands for its latest read on the tape. A target without a path
    has None as key. One that is a source, too, leads to itself: where the tape does not
    know it, both have a key of their own.
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
        found = source_keys(tape, source)
        if not found and id(source) in tensors and source.dtype.is_differentiable:
            found = (own.setdefault(id(source), next_key()),)
        keys.append(found)
    pairs = []
    for target in targets:
        tensor = tensors[id(target)]
        known = tensor.key in tape.known
        pairs.append((tensor, tensor.key if known else own.get(id(target))))
    return pairs, keys


def seed_cotangent(cotangents, key, tensor, seed, on_arrays):
    """Add the cotangent of a target, ones if ``seed`` is None, if it has a key."""
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
    """Go back over the records; the cotangents of the sources are left in the dict.

    ``step(record, g, cotangents, useful)`` takes the place of the records' pullbacks.
    """
    wanted = {key for each in keys for key in each}
    records, kept = tape.records, {}
    # With every leaf wanted, every record is on a path; else only those from a source.
    useful = None if tape.leaves <= wanted else reachable(records, wanted)
    for i in range(len(records) - 1, -1, -1):
        record = records.pop() if release else records[i]
        pullback, key, inputs, _ = record
        g = cotangents.pop(key, None)
        if g is None:
            if type(key) is not tuple:
                continue
            g = [cotangents.pop(k, None) for k in key]
            for k, part in zip(key, g):
                if k in wanted and part is not None:
                    kept[k] = part
            if all(part is None for part in g):
                continue
        elif key in wanted:
            kept[key] = g
        if g.__class__ is IndexedSlices:
            g = dense(g)
        if useful is not None and useful.isdisjoint(inputs):
            continue  # nothing behind it is asked for
        pull_back = step or (pullback.on_arrays if on_arrays else pullback.on_tensors)
        try:
            pull_back(record, g, cotangents, useful)
        except NotDiagonal as mixing:
            mixing.op_name = pullback.name
            raise
        except FloatingPointError as error:  # from debugging.enable_check_numerics
            line = tape.lines.get(key) if tape.lines is not None else None
            error.add_note(
                f"in the gradient of {pullback.name}" + (f", {line}" if line else "")
            )
            raise
    cotangents.update(kept)


def reachable(records, wanted):
    """The keys that depend on a wanted one."""
    useful = set(wanted)
    for _, output, inputs, _ in records:
        if not useful.isdisjoint(inputs):
            useful.update(output if type(output) is tuple else (output,))
    return useful


def collect(cotangents, keys):
    """The sum of the cotangents under these keys, or None."""
    total = None
    for key in keys:
        g = cotangents.get(key)
        if g is not None:
            total = g if total is None else total + g
    return total


def finished(g, on_arrays):
    """A cotangent as the user gets it: a tensor (or slices), in TensorFlow's convention."""
    if g is None:
        return None
    if isinstance(g, IndexedSlices):
        if on_arrays:
            g = IndexedSlices(
                new_tensor(g.values), new_tensor(g.indices), g.dense_shape
            )
        return IndexedSlices(conjugate(g.values), g.indices, g.dense_shape)
    return conjugate(new_tensor(g) if on_arrays else g)
