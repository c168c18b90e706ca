"""`GradientTape`: watches, records, and walks back.

A walk carries the conjugates of TensorFlow's cotangents, so that rules need not know of
complex numbers (see `adjoint`); they are conjugated on the way in and out. It runs on
arrays when nobody watches, and through ops when an outer tape does, so that gradients of
gradients come from the same rules.
"""

import enum
import inspect
import math
import warnings

import numpy as np

from . import backend
from .adjoint import conjugate
from .batching import Batcher, NotDiagonal
from .errors import RecordingError, ShapeError
from .nest import flatten, is_nested, pack
from .ops.creation import zeros
from .ops.indexing import dense
from .ops.shape import broadcast_to, concat, reshape, stack, transpose
from .readers import BARE, Recording, active_readers, reading, set_readers
from .tensor import IndexedSlices, Tensor, convert_to_tensor, module_of, new_tensor
from .variable import Variable

__all__ = ["GradientTape", "UnconnectedGradients"]


class UnconnectedGradients(enum.Enum):
    """What `gradient` gives for a source that the target does not depend on."""

    NONE = "none"
    ZERO = "zero"


class GradientTape:
    """Records ops while its context is active, and differentiates what they computed.

    Trainable variables are watched when they are read; tensors on `watch`. Tapes nest
    and run side by side; a gradient taken inside an outer tape is itself recorded.

    Args: ``persistent``: more than one gradient may be taken; what was recorded then
    lives as long as the tape. ``watch_accessed_variables``: False watches nothing that
    was not named to `watch`.

    >>> x = Variable(3.0)
    >>> with GradientTape() as tape:
    ...     y = x * x
    >>> print(tape.gradient(y, x))
    tf.Tensor(6.0, shape=(), dtype=float32)
    """

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self._persistent = persistent
        self._settings = (watch_accessed_variables, not persistent)
        self._recording = None
        self._pushed = None  # the recording on the reader stack, while there is one
        self._spent = False
        self._warned = False
        self._watched = ()

    # --- recording

    def __enter__(self):
        if self._active:
            raise ValueError(
                "The tape is recording already: it cannot be entered twice"
            )
        if self._recording is None:
            self._recording = self._new_recording()
            self._spent = False
        self._push()
        return self

    def __exit__(self, *exc):
        if self._active:
            self._pop()

    def _new_recording(self):
        return Recording(*self._settings)

    def _push(self, at=None):
        readers = list(active_readers())
        readers.insert(len(readers) if at is None else at, self._recording)
        set_readers(readers)
        self._pushed = self._recording

    def _pop(self):
        readers = active_readers()
        set_readers(tuple([r for r in readers if r is not self._pushed]))
        self._pushed = None

    @property
    def _active(self):
        return self._pushed is not None

    @property
    def _here(self):
        """Recording in this thread; another one may have entered the tape."""
        return self._active and self._pushed in active_readers()

    def watch(self, tensor):
        """Traces a tensor or variable, or any nest of them, from here on.

        Raises: ``ValueError`` for what is neither: an array or number is not on a tape.
        """
        if self._recording is None:
            if self._spent:
                raise self._spent_error()
            self._recording = self._new_recording()
        things = flatten(tensor)
        for thing in things:
            if not isinstance(thing, (Tensor, Variable)):
                raise ValueError(
                    f"watch: tensor must be a tensor or variable, or a nest of them, got "
                    f"{type(thing).__name__}; make one with convert_to_tensor first"
                )
        for thing in things:
            if not thing.dtype.is_differentiable:
                warnings.warn(
                    f"watch: only real and complex tensors are differentiable, this one is "
                    f"{thing.dtype.name}: its gradient will be None",
                    stacklevel=2,
                )
            elif isinstance(thing, Variable):
                self._recording.watch_variable(thing)
            else:
                self._recording.watch(thing)

    def stop_recording(self):
        """A context in which this tape does not record.

        Raises: ``RecordingError`` (a RuntimeError) if it is not recording anyway.
        """
        return _Pause(self)

    def reset(self):
        """Forgets everything recorded and watched, and goes on recording if it was."""
        if self._recording is not None:
            self._recording.__init__(*self._settings)
        self._watched = ()

    def watched_variables(self):
        """The watched variables, a tuple in order of construction."""
        if self._recording is not None:
            self._watched = self._recording.variables.values()
        self._watched = tuple(sorted(self._watched, key=lambda v: v.serial))
        return self._watched

    # --- differentiating

    def gradient(
        self,
        target,
        sources,
        output_gradients=None,
        unconnected_gradients=UnconnectedGradients.NONE,
    ):
        """The gradient of (the sum of) ``target`` with respect to ``sources``.

        Args: ``target``, ``sources``: a tensor or variable, or any nest of them;
        ``output_gradients``: a cotangent for each target, of its shape (default ones);
        ``unconnected_gradients``: "none" or "zero", for sources that do not matter.

        Returns: a nest like ``sources`` of tensors, `IndexedSlices` (from `gather`) or
        None.

        Raises: ``RuntimeError`` for a second gradient of a tape that is not persistent;
        ``LookupError`` if an op on the way has no gradient; ``TypeError`` for a target
        or source that is no tensor; ``ValueError`` for unknown ``unconnected_gradients``
        or ``output_gradients`` that do not fit.
        """
        unconnected = _unconnected(unconnected_gradients)
        targets = _checked(target, "target")
        flat_sources = _checked(sources, "sources")
        seeds = _seeds(targets, output_gradients)
        recording, readers = self._begin()
        targets = _read_targets(recording, targets)
        keys = [_source_keys(recording, s) for s in flat_sources]
        bare = not readers
        cotangents = {}
        for tensor, seed in zip(targets, seeds):
            _seed(cotangents, recording, tensor, seed, bare)
        with reading(readers or (BARE,)), np.errstate(all="ignore"):
            _walk(recording, cotangents, keys, bare, release=not self._persistent)
            found = [_collect(cotangents, k) for k in keys]
        results = [_finished(g, bare) for g in found]
        if unconnected is UnconnectedGradients.ZERO:
            results = [
                _zeros(s) if g is None else g for g, s in zip(results, flat_sources)
            ]
        return pack(sources, results) if is_nested(sources) else results[0]

    def jacobian(
        self,
        target,
        sources,
        unconnected_gradients=UnconnectedGradients.NONE,
        parallel_iterations=None,
        experimental_use_pfor=True,
    ):
        """All derivatives of ``target``, one tensor, by ``sources``.

        Shape: that of the target, then that of the source. All cotangents go back in one
        batched walk; in chunks of ``parallel_iterations`` if that is given. Where rows
        of the target depend on one row of a source only, zeros are not computed.
        ``experimental_use_pfor=False`` walks once for each entry of the target.

        Raises: as `gradient`; ``TypeError`` for several targets; ``RuntimeError`` for
        ``experimental_use_pfor=False`` on a tape that is not persistent.
        """
        unconnected = _unconnected(unconnected_gradients)
        target = _single(target, "jacobian", "target")
        flat_sources = _checked(sources, "sources")
        chunk = _chunk(parallel_iterations)
        if not experimental_use_pfor:
            results = self._looped_jacobian(target, flat_sources)
        else:
            results = self._batched_jacobian(target, flat_sources, chunk)
        if unconnected is UnconnectedGradients.ZERO:
            results = [
                zeros(target.shape + s.shape, s.dtype) if j is None else j
                for j, s in zip(results, flat_sources)
            ]
        return pack(sources, results) if is_nested(sources) else results[0]

    def batch_jacobian(
        self,
        target,
        source,
        unconnected_gradients=UnconnectedGradients.NONE,
        parallel_iterations=None,
        experimental_use_pfor=True,
        *,
        check=False,
    ):
        """The Jacobian of each example: ``[b, y...]`` by ``[b, x...]`` to ``[b, y..., x...]``.

        ``target[i]`` must depend on ``source[i]`` only; otherwise the result is the
        derivative of the sum over the batch. Costs as many cotangents as one example of
        the target has entries. ``check=True`` makes sure first that examples are
        independent: at no great cost where the ops show it, else by the full Jacobian.

        Raises: ``ValueError`` if a rank is below 2, if the first dimensions differ or
        if a check fails, and as `jacobian`.
        """
        unconnected = _unconnected(unconnected_gradients)
        target = _single(target, "batch_jacobian", "target")
        source = _single(source, "batch_jacobian", "source")
        chunk = _chunk(parallel_iterations)
        shape, inner = tuple(target.shape), tuple(source.shape)
        for name, value in (("target", target), ("source", source)):
            if len(value.shape) < 2:
                raise ShapeError("batch_jacobian", f"{name} must have rank 2 or more",
                                 target=target, source=source)  # fmt: skip
        if shape[0] != inner[0]:
            raise ShapeError("batch_jacobian", "the first dimension of target and source "
                             "must agree", target=target, source=source)  # fmt: skip
        if not experimental_use_pfor:
            found = self._looped_batch_jacobian(target, source, check)
        else:
            found = self._batched_batch_jacobian(target, source, chunk, check)
        if found is not None:
            return found
        if unconnected is UnconnectedGradients.NONE:
            return None
        return zeros(shape + inner[1:], source.dtype)

    # --- the parts of a Jacobian

    def _batched_jacobian(self, target, sources, chunk):
        if target.dtype.is_differentiable and target.shape.num_elements() == 1:
            flat = [None] * len(sources)
            for i, g in enumerate(self.gradient(target, sources)):
                if g is not None:
                    g = convert_to_tensor(g)
                    flat[i] = reshape(g, tuple(target.shape) + tuple(g.shape))
            return flat
        recording, readers = self._begin()
        (tensor,) = _read_targets(recording, [target])
        keys = [_source_keys(recording, s) for s in sources]
        if tensor.key not in recording.known:
            return [None] * len(sources)
        walk = _JacobianWalk(recording, tensor, keys, readers)
        with reading(readers), np.errstate(all="ignore"):
            found = walk.by_structure(chunk) or walk.by_brute_force(chunk)
            return [conjugate(j) for j in found]

    def _batched_batch_jacobian(self, target, source, chunk, check):
        recording, readers = self._begin()
        (tensor,) = _read_targets(recording, [target])
        keys = [_source_keys(recording, source)]
        if tensor.key not in recording.known:
            return None
        walk = _JacobianWalk(recording, tensor, keys, readers)
        with reading(readers), np.errstate(all="ignore"):
            if check:
                walk.check_examples(chunk)
            return conjugate(walk.by_example(chunk))

    def _need_persistent(self, who):
        if not self._persistent:
            raise RecordingError(
                f"{who} with experimental_use_pfor=False needs a persistent tape: "
                "GradientTape(persistent=True)"
            )

    def _looped_jacobian(self, target, sources):
        self._need_persistent("jacobian")
        shape, size = tuple(target.shape), target.shape.num_elements()
        rows = []
        for i in range(size):
            seed = _one_hot(target, (i,), size, shape)
            rows.append(self.gradient(target, list(sources), output_gradients=[seed]))
        results = []
        for i, source in enumerate(sources):
            found = [convert_to_tensor(r[i]) for r in rows if r[i] is not None]
            full = shape + tuple(source.shape)
            results.append(
                reshape(stack(found), full) if len(found) == size and size else None
            )
        return results

    def _looped_batch_jacobian(self, target, source, check):
        self._need_persistent("batch_jacobian")
        if check:
            (full,) = self._looped_jacobian(target, [source])
            _check_blocks(full, len(target.shape))
        shape, inner = tuple(target.shape), tuple(source.shape)
        size = math.prod(shape[1:])
        rows = []
        for i in range(size):
            picks = [row * size + i for row in range(shape[0])]
            seed = _one_hot(target, picks, shape[0] * size, shape)
            rows.append(self.gradient(target, source, output_gradients=[seed]))
        if any(row is None for row in rows) or not rows:
            return None
        return _examples_first(
            stack([convert_to_tensor(r) for r in rows]), shape, inner
        )

    # --- the life of a tape

    def _spent_error(self):
        return RecordingError(
            "A non-persistent GradientTape can only be used to compute one set of gradients "
            "(or jacobians); make it with GradientTape(persistent=True) for more"
        )

    def _begin(self):
        """What to walk over, and the readers that see it; a tape for one walk is spent."""
        if self._recording is None:
            if self._spent:
                raise self._spent_error()
            self._recording = self._new_recording()
        if self._here and not self._persistent:
            self._pop()
        elif self._here and not self._warned:
            self._warned = True
            warnings.warn(
                "gradient of a persistent tape inside its own context: the gradient itself "
                "is recorded, which costs time and memory. Take it outside, or inside "
                "tape.stop_recording(), unless you want its derivatives",
                stacklevel=3,
            )
        recording = self._recording
        if not self._persistent:
            self._watched = tuple(recording.variables.values())
            self._recording, self._spent = None, True
        return recording, active_readers()


# `check` is an addition: tools that compare signatures see TensorFlow's.
_signature = inspect.signature(GradientTape.batch_jacobian)
GradientTape.batch_jacobian.__signature__ = _signature.replace(
    parameters=[p for name, p in _signature.parameters.items() if name != "check"]
)


class _Pause:
    """The context of `GradientTape.stop_recording`."""

    def __init__(self, tape):
        self._tape = tape

    def __enter__(self):
        tape = self._tape
        if not tape._here:
            raise RecordingError("stop_recording: the tape is not recording here")
        self._place = active_readers().index(tape._pushed)
        tape._pop()

    def __exit__(self, *exc):
        if self._tape._recording is not None:  # no gradient has released the tape
            self._tape._push(self._place)


# ------------------------------------------------------------------ checking arguments


def _unconnected(value):
    if type(value) is UnconnectedGradients:
        return value
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {value!r}; it must be 'none' or 'zero'"
        ) from None


def _checked(structure, name):
    """The leaves, all tensors or variables."""
    leaves = flatten(structure)
    for leaf in leaves:
        if isinstance(leaf, IndexedSlices):
            raise TypeError(
                f"{name}: IndexedSlices must be made dense by convert_to_tensor"
            )
        if not isinstance(leaf, (Tensor, Variable)):
            raise TypeError(
                f"{name} must be a tensor or variable, or a nest of them, got "
                f"{type(leaf).__name__}; what NumPy or Python computed has left the tape"
            )
    return leaves


def _single(value, who, name):
    if not isinstance(value, (Tensor, Variable)):
        raise TypeError(
            f"{who}: {name} must be a single tensor, got {type(value).__name__}; "
            "stack or concat several into one"
        )
    return value


def _chunk(parallel_iterations):
    if parallel_iterations is None:
        return None
    if int(parallel_iterations) < 1:
        raise ValueError(
            f"parallel_iterations must be 1 or more, or None, got {parallel_iterations}"
        )
    return int(parallel_iterations)


def _seeds(targets, output_gradients):
    """One cotangent for each target, None for ones."""
    if output_gradients is None:
        return [None] * len(targets)
    given = flatten(output_gradients)
    if len(given) != len(targets):
        raise ValueError(
            f"output_gradients: {len(given)} given for {len(targets)} targets; there must "
            "be one for each"
        )
    seeds = []
    for seed, target in zip(given, targets):
        if seed is not None:
            seed = convert_to_tensor(seed, dtype_hint=target.dtype)
            if seed.shape != target.shape or seed.dtype != target.dtype:
                raise ShapeError("output_gradients", "each must have the shape and dtype of "
                                 "its target", output_gradient=seed, target=target)  # fmt: skip
        seeds.append(seed)
    return seeds


# ------------------------------------------------------------------------ the walk


def _source_keys(recording, source):
    """The keys under which the tape knows a source: a variable has one for each read."""
    if isinstance(source, Variable):
        return tuple(recording.keys_of.get(id(source), ()))
    return (source.key,) if source.key in recording.known else ()


def _read_targets(recording, targets):
    """Targets as tensors: a variable stands for its latest read on the tape."""
    read = []
    for target in targets:
        if isinstance(target, Variable):
            with reading((recording,)):
                target = target.read()
        read.append(target)
    return read


def _seed(cotangents, recording, tensor, seed, bare):
    if tensor.key not in recording.known:
        return
    if seed is None:
        array = tensor.array
        seed = new_tensor(module_of(tensor).ones(array.shape, array.dtype))
    else:
        seed = conjugate(seed)
    seed = seed.array if bare else seed
    old = cotangents.get(tensor.key)
    cotangents[tensor.key] = seed if old is None else old + seed


def _walk(recording, cotangents, keys, bare, release):
    """Backwards over the records; cotangents of the sources are left in the dict."""
    wanted = {key for each in keys for key in each}
    records, kept = recording.records, {}
    # With every leaf wanted, every record is on a path; else only those from a source.
    useful = None if recording.leaves <= wanted else _reachable(records, wanted)
    for i in range(len(records) - 1, -1, -1):
        record = records.pop() if release else records[i]
        key = record[1]
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
        if useful is not None and useful.isdisjoint(record[2 : 2 + record[0].width]):
            continue  # nothing behind it is asked for
        step = record[0].raw if bare else record[0].ops
        try:
            step(record, g, cotangents, useful)
        except NotDiagonal as mixing:
            mixing.adjoint = record[0]
            raise
    cotangents.update(kept)


def _reachable(records, wanted):
    """The keys that depend on a wanted one."""
    useful = set(wanted)
    for record in records:
        for key in record[2 : 2 + record[0].width]:
            if key in useful:
                if type(record[1]) is tuple:
                    useful.update(record[1])
                else:
                    useful.add(record[1])
                break
    return useful


def _collect(cotangents, keys):
    """The sum of the cotangents under these keys, or None."""
    total = None
    for key in keys:
        g = cotangents.get(key)
        if g is not None:
            total = g if total is None else total + g
    return total


def _finished(g, bare):
    """A cotangent as the user gets it: a tensor (or slices), in TensorFlow's convention."""
    if g is None:
        return None
    if isinstance(g, IndexedSlices):
        if bare:
            g = IndexedSlices(
                new_tensor(g.values), new_tensor(g.indices), g.dense_shape
            )
        return IndexedSlices(conjugate(g.values), g.indices, g.dense_shape)
    return conjugate(new_tensor(g) if bare else g)


def _zeros(source):
    return zeros(source.shape, source.dtype)


def _one_hot(target, picks, size, shape):
    seed = np.zeros(size, target.dtype.dtype)
    seed[list(picks)] = 1
    return convert_to_tensor(backend.current_module().asarray(seed.reshape(shape)))


# ----------------------------------------------------------------------- Jacobians


class _JacobianWalk:
    """Walks of one recording with many cotangents for one target."""

    def __init__(self, recording, target, keys, readers):
        self.recording, self.target = recording, target
        self.keys, self.readers = keys, readers
        self.shape = tuple(target.array.shape)
        self.xp = module_of(target)

    def by_structure(self, chunk):
        """Seeds that share the rows of one axis, or None where no axis allows it.

        If each index of an axis of the target meets one index of an axis of each source
        only, one seed serves all of them.
        """
        for axis, rows in enumerate(self.shape):
            if rows > 1:
                try:
                    return self._along(axis, chunk, strict=True)
                except NotDiagonal:
                    continue
        return None

    def by_brute_force(self, chunk):
        """One seed for each entry of the target; rows share seeds as long as they can."""
        if chunk is None and self.shape[0] > 1:
            return self._along(0, None, strict=False)
        size = math.prod(self.shape)
        parts = []
        for seeds in self._seeds(size, self.shape, chunk):
            batcher = Batcher()
            parts.append(self._send(batcher, batcher.map(seeds)))
        return [
            None if j is None else reshape(j, self.shape + tuple(j.array.shape[1:]))
            for j in self._joined(parts)
        ]

    def check_examples(self, chunk):
        """Raises `ShapeError` if an example meets another one of the source."""
        if self.shape[0] < 2:
            return
        try:
            self._along(0, chunk, strict=True)
        except NotDiagonal as mixing:
            (full,) = self.by_brute_force(chunk)
            adjoint = mixing.adjoint
            _check_blocks(full, len(self.shape), getattr(adjoint, "op", adjoint).name)

    def by_example(self, chunk):
        """One seed for each entry of one example of the target, for all examples at once."""
        batch, *inner = self.shape
        parts = []
        for seeds in self._seeds(math.prod(inner), (1, *inner), chunk):
            seeds = broadcast_to(seeds, (seeds.array.shape[0], *self.shape))
            batcher = Batcher()
            parts.append(self._send(batcher, batcher.map(seeds)))
        (j,) = self._joined(parts)
        if j is None:
            return None
        return _examples_first(j, self.shape, tuple(j.array.shape[1:]))

    def _along(self, axis, chunk, strict):
        rows = self.shape[axis]
        rest = self.shape[:axis] + self.shape[axis + 1 :]
        small = self.shape[:axis] + (1,) + self.shape[axis + 1 :]
        parts = []
        for seeds in self._seeds(math.prod(rest), small, chunk):
            count = seeds.array.shape[0]
            seeds = broadcast_to(seeds, (count, *self.shape))
            batcher = Batcher(strict)
            found = self._send(batcher, batcher.map(seeds, axis - len(self.shape)))
            parts.append(
                [g if g is None else _split_rows(g, rows, count) for g in found]
            )
        return [
            None if j is None else _row_axis_home(j, rows, rest, axis)
            for j in self._joined(parts, 1)
        ]

    def _seeds(self, count, shape, chunk):
        """Unit cotangents ``[chunk, *shape]``, chunk by chunk."""
        dtype = self.target.array.dtype
        step = count if chunk is None else min(chunk, count)
        for start in range(0, max(count, 1), max(step, 1)):
            size = min(step, count - start)
            seeds = self.xp.eye(size, count, start, dtype=dtype)
            yield new_tensor(seeds.reshape(size, *shape))

    def _send(self, batcher, seeds):
        with reading((*self.readers, batcher)):
            cotangents = {self.target.key: seeds}
            _walk(self.recording, cotangents, self.keys, bare=False, release=False)
            found = [_collect(cotangents, keys) for keys in self.keys]
        with reading(self.readers):
            return [g if g is None else batcher.spell_out(g, seeds) for g in found]

    def _joined(self, parts, axis=0):
        joined = []
        for pieces in zip(*parts):
            if pieces[0] is None:
                joined.append(None)
            else:
                joined.append(
                    pieces[0] if len(pieces) == 1 else concat(pieces, axis=axis)
                )
        return joined


def _check_blocks(full, target_rank, op_name=None):
    """Raises `ShapeError` unless the full Jacobian is zero between different examples."""
    if full is None:
        return
    array = backend.to_numpy(full.array)
    inner = tuple([i for i in range(array.ndim) if i not in (0, target_rank)])
    met = (array != 0).any(axis=inner)
    np.fill_diagonal(met, False)
    if met.any():
        i, k = np.argwhere(met)[0]
        cause = "" if op_name is None else f" (through {op_name}, or an op before it)"
        raise ShapeError(
            "batch_jacobian",
            f"the examples are not independent: target[{i}] depends on source[{k}]{cause}; "
            "take the full jacobian",
        )


def _split_rows(j, rows, count):
    return reshape(j, (rows, count, *j.array.shape[1:]))


def _row_axis_home(j, rows, rest, axis):
    """``[rows, entries of the rest, source...]`` to target axes, then source axes."""
    source = tuple(j.array.shape[2:])
    j = reshape(j, (rows, *rest, *source))
    if axis == 0:
        return j
    order = [*range(1, axis + 1), 0, *range(axis + 1, j.array.ndim)]
    return transpose(j, order)


def _examples_first(j, target_shape, source_shape):
    """``[entries, batch, source...]`` to ``[batch, target..., source...]``."""
    j = transpose(j, (1, 0, *range(2, j.array.ndim)))
    return reshape(j, (*target_shape, *source_shape[1:]))
