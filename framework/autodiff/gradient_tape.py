"""`GradientTape`: watches, records and differentiates.

The interpreter that records is `core.tape.Tape`. Gradients pull one cotangent back
through its records (`backward`), Jacobians many at once (`jacobian`).
"""

from __future__ import annotations

import enum
import inspect
import math
import warnings
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self, TypeVar, overload

import numpy as np

from tapewright.core.composite import CompositeTensor
from tapewright.core.errors import RecordingError, ShapeError
from tapewright.core.interpreters import (
    ARRAY_EVAL,
    active_interpreters,
    set_interpreters,
    use_interpreters,
)
from tapewright.core.messages.provenance import paused
from tapewright.core.messages.source_lines import lines_are_recorded, user_stacklevel
from tapewright.core.nest import flatten, pack
from tapewright.core.op_definition.user_gradients import conjugate
from tapewright.core.primitive import kernels_are_wrapped
from tapewright.core.settings.ufunc_settings import ignoring_float_errors
from tapewright.core.tape import Tape, TapeWithLines
from tapewright.core.tensor import IndexedSlices, Tensor, convert_to_tensor
from tapewright.core.typing import Gradient, TensorNest
from tapewright.core.variable import Variable, on_device_of, unwrap_value
from tapewright.ops.array.creation import zeros, zeros_like
from tapewright.ops.array.joining import stack
from tapewright.ops.array.shape import reshape

from .backward import (
    backward_pass,
    endpoints,
    seed_cotangent,
    sum_cotangents,
    to_gradient,
)
from .explain import Remains, Report, Summary, explain, summarize
from .jacobian import (
    JacobianPass,
    check_blocks,
    examples_first,
    second_derivatives,
    side_by_side,
)

__all__ = ["GradientTape", "UnconnectedGradients"]


K = TypeVar("K")

_MOST_NAMED = 3  # variables that a tape in print names


class UnconnectedGradients(enum.Enum):
    """Gradient of a source that the target does not depend on: NONE or ZERO.

    The names "none" and "zero" are accepted in place of the members.
    """

    NONE = "none"
    ZERO = "zero"


class GradientTape:
    """Record operations for automatic differentiation.

    Ops are recorded while the context of the tape is active. Trainable variables are
    watched automatically when they are read; tensors must be watched by `watch`. Tapes
    can be nested, for higher-order derivatives, and used side by side: a gradient
    computed inside the context of an outer tape is itself recorded.

    Args:
        persistent: If True, several gradients can be taken; records then live as long
            as the tape. If False, the first gradient releases them.
        watch_accessed_variables: If False, only the arguments of `watch` are watched.

    Raises:
        ValueError: If the tape is entered while it is recording.

    Example:
        >>> x = tw.Variable(3.0)
        >>> with tw.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.gradient(y, x))
        tf.Tensor(6.0, shape=(), dtype=float32)

        A second derivative, by nested tapes, of a tensor that is watched:

        >>> x = tw.constant(3.0)
        >>> with tw.GradientTape() as outer:
        ...     outer.watch(x)
        ...     with tw.GradientTape() as inner:
        ...         inner.watch(x)
        ...         y = x * x * x
        ...     dy = inner.gradient(y, x)
        >>> dy.numpy(), outer.gradient(dy, x).numpy()
        (np.float32(27.0), np.float32(18.0))
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True):
        self._persistent = persistent
        self._accessed = watch_accessed_variables
        self._tw_tape = None
        self._pushed = None  # the tape on the interpreter stack, while there is one
        self._spent = False
        self._warned = False
        self._watched = ()
        self._remains = None  # of a tape that is spent, if a gradient was None

    # --- recording

    def __enter__(self) -> Self:
        if self._active:
            raise ValueError(
                "The tape is already recording and cannot be entered again"
            )
        if self._tw_tape is None:
            self._tw_tape = self._new_tape()
            self._spent, self._remains = False, None
        self._push()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._active:
            self._pop()

    def _new_tape(self):
        return (TapeWithLines if lines_are_recorded() else Tape)(self._accessed)

    def _push(self, at=None):
        interpreters = list(active_interpreters())
        interpreters.insert(len(interpreters) if at is None else at, self._tw_tape)
        set_interpreters(interpreters)
        self._pushed = self._tw_tape

    def _pop(self):
        interpreters = active_interpreters()
        set_interpreters(tuple([r for r in interpreters if r is not self._pushed]))
        self._pushed = None

    @property
    def _active(self):
        return self._pushed is not None

    @property
    def _here(self):
        """True if the tape records in this thread, rather than in another that entered it."""
        return self._active and self._pushed in active_interpreters()

    def watch(self, tensor: TensorNest) -> None:
        """Watch a tensor, so that ops on it are recorded from now on.

        Args:
            tensor: Tensor or variable, or any nest of them.

        Raises:
            ValueError: If ``tensor`` contains anything else, such as an array or a
                number.

        Example:
            >>> x = tw.constant(3.0)
            >>> with tw.GradientTape() as tape:
            ...     tape.watch(x)
            ...     y = x * x
            >>> tape.gradient(y, x).numpy()
            np.float32(6.0)
        """
        if self._tw_tape is None:
            if self._spent:
                raise self._spent_error()
            self._tw_tape = self._new_tape()
        things = [_part(unwrap_value(x)) for x in flatten(tensor)]
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
                    stacklevel=user_stacklevel(),
                )
            elif isinstance(thing, Variable):
                self._tw_tape.watch_variable(thing)
            else:
                if hasattr(
                    thing, "_tw_logits"
                ):  # losses now depend on the probabilities
                    del thing._tw_logits
                self._tw_tape.watch(thing)

    def stop_recording(self) -> AbstractContextManager[None]:
        """Context manager in which this tape does not record.

        Raises:
            RecordingError: If the tape is not recording (a ``RuntimeError``).

        Example:
            >>> x = tw.Variable(3.0)
            >>> with tw.GradientTape() as tape:
            ...     y = x * x
            ...     with tape.stop_recording():
            ...         z = y * y
            >>> print(tape.gradient(z, x))
            None
        """
        return _Pause(self)

    def reset(self) -> None:
        """Discard all records and watched values; a recording tape continues to record."""
        if self._tw_tape is not None:
            self._tw_tape.forget()
        self._watched, self._remains = (), None

    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the watched variables, in order of construction."""
        if self._tw_tape is not None:
            self._watched = self._tw_tape.variables.values()
        self._watched = tuple(sorted(self._watched, key=lambda v: v._tw_serial))
        return self._watched

    # --- inspection

    def __repr__(self) -> str:
        """Return the state, the number of ops, and what is watched."""
        parts = ["persistent"] if self._persistent else []
        if self._spent:
            parts.append("spent")
        tape = self._tw_tape
        if tape is not None:
            parts += ["recording"] if self._active else []
            parts.append(_counted(len(tape.records), "op"))
            watched = [repr(each.path) for each in self.watched_variables()]
            if len(watched) > _MOST_NAMED:
                watched = [_counted(len(watched), "variable")]
            reads = {key for keys in tape.keys_of.values() for key in keys}
            tensors = len(tape.leaves - reads)
            watched += [_counted(tensors, "tensor")] if tensors else []
            parts.append(f"watches {', '.join(watched) or 'nothing'}")
        return f"<GradientTape: {', '.join(parts) or 'empty'}>"

    def explain(self, target: TensorNest, sources: TensorNest) -> Report:
        """Explain for each source why its gradient exists, or why it is None.

        The `Report` prints as text. For programs, ``report[i].reason`` is one word
        ("connected", "not_watched", "stop_gradient", ...:
        ``tapewright.autodiff.explain.REASONS``), and ``report[i].path`` lists the ops
        on the path; with ``debugging.enable_traceback`` on, it includes the user's
        lines. No gradient is computed and nothing changes. After `gradient`, a tape
        that is not persistent can explain its target only if a gradient was None: it
        then keeps the names and keys, without arrays.

        Args:
            target: Tensor or variable, or any nest of them.
            sources: Tensor or variable, or any nest of them.

        Returns:
            `Report` with one `Explanation` for each source.

        Raises:
            RuntimeError: If `gradient` has released the records and no gradient was
                None, or ``target`` is not the target of that gradient.

        Example:
            >>> x, y = tw.Variable(2.0, name="x"), tw.Variable(3.0, name="y")
            >>> with tw.GradientTape() as tape:
            ...     z = y * y
            >>> print(tape.explain(z, x))
            sources[0], variable 'x' () float32: unrelated
                the target does not depend on the source
        """
        targets, flat_sources = _checked(target, "target"), _checked(sources, "sources")
        if len(targets) != 1:
            raise TypeError(
                f"explain: target must be a single tensor, got {len(targets)}"
            )
        if self._tw_tape is None and self._remains is not None:
            if not self._remains.covers(targets[0]):
                raise RecordingError(
                    "explain: the tape is spent, and can explain the target of its gradient "
                    "only; call explain before gradient, or make the tape with "
                    "GradientTape(persistent=True)"
                )
            return explain(self._remains.tape, targets[0], flat_sources)
        return explain(self._kept(), targets[0], flat_sources)

    def summary(self) -> Summary:
        """Summarize the tape: the count of each op, and the memory that the tape holds.

        Returns:
            `Summary`, which prints as a table. Its ``rows`` are
            ``(op, line, count, bytes)``, with the user's line if
            ``debugging.enable_traceback`` is on.
        """
        return summarize(self._kept())

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the tape keeps alive, without variables."""
        return self.summary().nbytes

    def _kept(self):
        if self._tw_tape is None:
            if self._spent:
                raise RecordingError(
                    "A non-persistent GradientTape is empty after gradient, unless a "
                    "gradient was None, which `explain` explains; inspect it before, or "
                    "create it with GradientTape(persistent=True)"
                )
            self._tw_tape = self._new_tape()
        return self._tw_tape

    # --- differentiating

    @overload
    def gradient(
        self,
        target: TensorNest,
        sources: Tensor | Variable,
        output_gradients: TensorNest = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Gradient: ...
    @overload
    def gradient(
        self,
        target: TensorNest,
        sources: list[Any],
        output_gradients: TensorNest = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> list[Gradient]: ...
    @overload
    def gradient(
        self,
        target: TensorNest,
        sources: tuple[Any, ...],
        output_gradients: TensorNest = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> tuple[Gradient, ...]: ...
    @overload
    def gradient(
        self,
        target: TensorNest,
        sources: dict[K, Any],
        output_gradients: TensorNest = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> dict[K, Gradient]: ...
    def gradient(
        self,
        target,
        sources,
        output_gradients=None,
        unconnected_gradients=UnconnectedGradients.NONE,
    ):
        """Compute the gradient of ``target`` with respect to ``sources``.

        If there are several targets or entries, their sum is differentiated.

        Args:
            target: Tensor or variable, or any nest of them, to differentiate.
            sources: Tensor or variable, or any nest of them, to differentiate by.
            output_gradients: Cotangent for each target, of its shape; None for ones.
            unconnected_gradients: "none" or "zero", the gradient of a source that the
                target does not depend on.

        Returns:
            Nest like ``sources`` of tensors, `IndexedSlices` (from `gather`) or None.
            The gradient of a floating target by itself is its cotangent, watched or
            not.

        Raises:
            RuntimeError: If a second gradient is taken of a tape that is not
                persistent.
            LookupError: If an op on the path has no gradient.
            TypeError: If a target or source is not a tensor.
            ValueError: If ``unconnected_gradients`` is unknown, or ``output_gradients``
                do not match the targets.

        Example:
            >>> w, b = tw.Variable([1.0, 2.0]), tw.Variable(0.5)
            >>> with tw.GradientTape() as tape:
            ...     loss = tw.reduce_sum(w * 3.0 + b)
            >>> [g.numpy().tolist() for g in tape.gradient(loss, [w, b])]
            [[3.0, 3.0], 2.0]
        """
        unconnected = _unconnected(unconnected_gradients)
        targets = _checked(target, "target", True)
        flat_sources = _checked(sources, "sources", True)
        seeds = _seeds(targets, output_gradients)
        tape, interpreters = self._begin()
        pairs, keys = endpoints(tape, targets, flat_sources)
        on_arrays = not interpreters and not kernels_are_wrapped()
        cotangents = {}
        for (tensor, key), seed in zip(pairs, seeds):
            seed_cotangent(cotangents, key, tensor, seed, on_arrays)
        with use_interpreters((ARRAY_EVAL,) if on_arrays else interpreters):
            gradients = self._pull_back(tape, cotangents, keys, on_arrays, interpreters)
        results = [to_gradient(g, on_arrays) for g in gradients]
        if unconnected is UnconnectedGradients.NONE:
            self._keep_reasons(tape, pairs, flat_sources, results, cotangents.keys())
        else:
            results = [
                zeros_like(s) if g is None else g for g, s in zip(results, flat_sources)
            ]
        return pack(sources, list(map(_as_source, flatten(sources), results)))

    @ignoring_float_errors
    def _pull_back(self, tape, cotangents, keys, on_arrays, interpreters):
        release = not self._persistent
        if tape.confluent:
            from . import confluence  # takes 5 ms, and few tapes need it

            options = on_arrays, release, interpreters
            confluence.pull_back(tape, cotangents, keys, *options)
        else:
            backward_pass(tape, cotangents, keys, on_arrays, release)
        return [sum_cotangents(cotangents, k) for k in keys]

    @overload
    def jacobian(
        self,
        target: TensorNest,
        sources: Tensor | Variable,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        *,
        memory_limit: int | None = None,
    ) -> Gradient: ...
    @overload
    def jacobian(
        self,
        target: TensorNest,
        sources: list[Any],
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        *,
        memory_limit: int | None = None,
    ) -> list[Gradient]: ...
    @overload
    def jacobian(
        self,
        target: TensorNest,
        sources: tuple[Any, ...],
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        *,
        memory_limit: int | None = None,
    ) -> tuple[Gradient, ...]: ...
    @overload
    def jacobian(
        self,
        target: TensorNest,
        sources: dict[K, Any],
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        *,
        memory_limit: int | None = None,
    ) -> dict[K, Gradient]: ...
    def jacobian(
        self,
        target,
        sources,
        unconnected_gradients=UnconnectedGradients.NONE,
        parallel_iterations=None,
        experimental_use_pfor=True,
        *,
        memory_limit=None,
    ):
        """Compute the Jacobian of ``target`` with respect to ``sources``.

        All cotangents are pulled back in one batched pass. Where a row of the target
        depends on one row of a source only, zeros are not computed.

        The keyword argument ``memory_limit`` is the number of bytes that a pass may use
        besides the result; by default there is no limit.

        Args:
            target: One tensor or variable, to differentiate.
            sources: Tensor or variable, or any nest of them, to differentiate by.
            unconnected_gradients: "none" or "zero", the Jacobian of a source that the
                target does not depend on.
            parallel_iterations: Number of cotangents in a pass; by default as many as
                ``memory_limit`` allows, but at least one.
            experimental_use_pfor: If False, run one pass for each entry of the target.

        Shapes:
            The shape of the target, followed by the shape of the source.

        Returns:
            Nest like ``sources`` of tensors, or None as in `gradient`.

        Raises:
            RuntimeError: As in `gradient`; also if ``experimental_use_pfor`` is False
                and the tape is not persistent.
            LookupError: As in `gradient`.
            TypeError: As in `gradient`; also if there are several targets.
            ValueError: As in `gradient`.

        Example:
            >>> x = tw.Variable([1.0, 2.0])
            >>> with tw.GradientTape() as tape:
            ...     y = x * x
            >>> tape.jacobian(y, x).numpy()
            array([[2., 0.],
                   [0., 4.]], dtype=float32)
        """
        unconnected = _unconnected(unconnected_gradients)
        target = _single(target, "jacobian", "target")
        flat_sources = _checked(sources, "sources")
        bounds = _bounds(parallel_iterations, memory_limit)
        if self._has_coinciding_values():
            with self._several_gradients():
                results = self._looped_jacobian(target, flat_sources)
        elif not experimental_use_pfor:
            results = self._looped_jacobian(target, flat_sources)
        else:
            results = self._batched_jacobian(target, flat_sources, bounds)
        if unconnected is UnconnectedGradients.ZERO:
            results = [
                _zeros(target.shape + s.shape, s) if j is None else j
                for j, s in zip(results, flat_sources)
            ]
        return pack(sources, results)

    def batch_jacobian(
        self,
        target: Tensor | Variable,
        source: Tensor | Variable,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        *,
        check: bool = False,
        memory_limit: int | None = None,
    ) -> Gradient:
        """Compute the Jacobian of each example of a batch.

        ``target[i]`` must depend on ``source[i]`` only; otherwise the result is the
        derivative of the sum over the batch. The pass has one cotangent for each entry
        of a single example.

        The keyword argument ``check=True`` first checks that the examples are
        independent: without cost if the ops show it, otherwise by the full Jacobian.
        The latter fails in a function that is being traced, where it has no values. The
        keyword argument ``memory_limit`` is the same as in `jacobian`.

        Args:
            target: Tensor or variable, to differentiate.
            source: Tensor or variable, to differentiate by.
            unconnected_gradients: "none" or "zero", the result if the target does not
                depend on the source.
            parallel_iterations: Number of cotangents in a pass, as in `jacobian`.
            experimental_use_pfor: If False, run one pass for each entry of an example.

        Shapes:
            Target ``[b, y...]``, source ``[b, x...]``, result ``[b, y..., x...]``.

        Raises:
            RuntimeError: As in `jacobian`.
            LookupError: As in `jacobian`.
            TypeError: As in `jacobian`.
            ValueError: As in `jacobian`; also if a rank is below 2, the first sizes
                differ, or a check fails.

        Example:
            >>> x = tw.Variable([[1.0, 2.0], [3.0, 4.0]])
            >>> with tw.GradientTape() as tape:
            ...     y = x * x
            >>> tape.batch_jacobian(y, x).shape
            TensorShape([2, 2, 2])
        """
        unconnected = _unconnected(unconnected_gradients)
        target = _single(target, "batch_jacobian", "target")
        source = _single(source, "batch_jacobian", "source")
        bounds = _bounds(parallel_iterations, memory_limit)
        shape, inner = tuple(target.shape), tuple(source.shape)
        for name, value in (("target", target), ("source", source)):
            if len(value.shape) < 2:
                raise ShapeError("batch_jacobian", f"{name} must have rank 2 or more",
                                 target=target, source=source)  # fmt: skip
        if shape[0] != inner[0]:
            raise ShapeError("batch_jacobian", "the first dimension of target and source "
                             "must agree", target=target, source=source)  # fmt: skip
        if self._has_coinciding_values():
            with self._several_gradients():
                jacobian = self._looped_batch_jacobian(target, source, check)
        elif not experimental_use_pfor:
            jacobian = self._looped_batch_jacobian(target, source, check)
        else:
            jacobian = self._batched_batch_jacobian(target, source, bounds, check)
        if jacobian is not None:
            return jacobian
        if unconnected is UnconnectedGradients.NONE:
            return None
        return _zeros(shape + inner[1:], source)

    def hessian(
        self,
        target: Tensor | Variable,
        sources: TensorNest,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        *,
        flat: bool = False,
        memory_limit: int | None = None,
    ) -> Gradient:
        """Compute the Hessian, all second derivatives of a scalar ``target``.

        No second tape is needed.

        Args:
            target: Tensor or variable with one entry, to differentiate.
            sources: Tensor or variable, or any nest of them, to differentiate by.
            unconnected_gradients: "none" or "zero", the block of two sources if the
                target does not depend on one of them.
            parallel_iterations: Number of cotangents in a pass, as in `jacobian`.
            flat: If True, return one matrix ``[n, n]`` over the entries of all sources,
                in the order of `autodiff.ravel`.
            memory_limit: Number of bytes that a pass may use besides the result.

        Returns:
            For one source, a tensor with its shape twice over. For several, a nest of
            nests: ``result[i][j]`` has the shape of source i, followed by the shape of
            source j.

        Raises:
            ShapeError: If the target has more than one entry (a ``ValueError``).
            RuntimeError: As in `jacobian`.
            LookupError: As in `jacobian`.
            TypeError: As in `jacobian`.
            ValueError: As in `jacobian`.

        Example:
            >>> x = tw.Variable([1.0, 2.0])
            >>> with tw.GradientTape() as tape:
            ...     y = x[0] * x[1] * x[1]
            >>> print(tape.hessian(y, x))
            tf.Tensor(
            [[0. 4.]
             [4. 2.]], shape=(2, 2), dtype=float32)
        """
        unconnected = _unconnected(unconnected_gradients)
        target = _single(target, "hessian", "target")
        flat_sources = _checked(sources, "sources")
        bounds = _bounds(parallel_iterations, memory_limit)
        if math.prod(target.shape) != 1:
            raise ShapeError(
                "hessian", "target must have exactly one entry", target=target
            )
        if flat and len({s.dtype for s in flat_sources}) > 1:
            raise TypeError("hessian: sources must have one dtype if flat is True")
        tape, interpreters = self._begin()
        ((tensor, key),), keys = endpoints(tape, [target], flat_sources)
        with use_interpreters(interpreters), np.errstate(all="ignore"):
            if key is not None and _coincide(tape):
                from . import confluence

                blocks = confluence.second_derivatives(
                    tape, tensor, key, flat_sources, keys, interpreters
                )
            else:
                blocks = second_derivatives(
                    tape, tensor, key, flat_sources, keys, interpreters, *bounds
                )
            if flat:
                return side_by_side(
                    blocks, [tuple(s.shape) for s in flat_sources], tensor
                )
        if unconnected is UnconnectedGradients.ZERO:
            blocks = [
                [
                    _zeros(s.shape + t.shape, s) if block is None else block
                    for block, t in zip(row, flat_sources)
                ]
                for row, s in zip(blocks, flat_sources)
            ]
        return pack(sources, [pack(sources, row) for row in blocks])

    # --- the parts of a Jacobian

    def _batched_jacobian(self, target, sources, bounds):
        if target.dtype.is_differentiable and math.prod(target.shape) == 1:
            flat = [None] * len(sources)
            for i, g in enumerate(self.gradient(target, sources)):
                if g is not None:
                    g = convert_to_tensor(g)
                    flat[i] = reshape(g, tuple(target.shape) + tuple(g.shape))
            return flat
        tape, interpreters = self._begin()
        pairs, keys = endpoints(tape, [target], sources)
        ((tensor, key),) = pairs
        jacobians = [None] * len(sources)
        if key is not None:
            passes = JacobianPass(tape, tensor, key, keys, interpreters, *bounds)
            with use_interpreters(interpreters), np.errstate(all="ignore"):
                jacobians = passes.full([tuple(s.shape) for s in sources])
                jacobians = [conjugate(j) for j in jacobians]
        self._keep_reasons(tape, pairs, sources, jacobians)
        return jacobians

    def _batched_batch_jacobian(self, target, source, bounds, check):
        tape, interpreters = self._begin()
        pairs, keys = endpoints(tape, [target], [source])
        ((tensor, key),) = pairs
        jacobian = None
        if key is not None:
            passes = JacobianPass(tape, tensor, key, keys, interpreters, *bounds)
            with use_interpreters(interpreters), np.errstate(all="ignore"):
                jacobian = conjugate(passes.by_example(tuple(source.shape), check))
        self._keep_reasons(tape, pairs, [source], [jacobian])
        return jacobian

    def _has_coinciding_values(self):
        """Return whether gradients have parts that a batched pass lacks; see `confluence`."""
        return self._tw_tape is not None and _coincide(self._tw_tape)

    @contextmanager
    def _several_gradients(self):
        """Allow several gradients, and release the tape afterwards unless it is persistent."""
        if self._persistent:
            yield
            return
        if self._here:
            self._pop()
        self._persistent = True
        try:
            yield
        finally:
            self._persistent = False
            self._begin()

    def _need_persistent(self, who):
        if not self._persistent:
            raise RecordingError(
                f"{who} with experimental_use_pfor=False needs a persistent tape: "
                "GradientTape(persistent=True)"
            )

    def _looped_jacobian(self, target, sources):
        self._need_persistent("jacobian")
        shape, size = tuple(target.shape), math.prod(target.shape)
        rows = [
            self.gradient(target, list(sources), output_gradients=[seed])
            for seed in _unit_cotangents(target, [(i,) for i in range(size)])
        ]
        results = []
        for source, column in zip(sources, zip(*rows)):
            full = shape + tuple(source.shape)
            results.append(_stacked(column, size, full))
        return results

    def _looped_batch_jacobian(self, target, source, check):
        self._need_persistent("batch_jacobian")
        if check:
            (full,) = self._looped_jacobian(target, [source])
            check_blocks(full, len(target.shape))
        shape, inner = tuple(target.shape), tuple(source.shape)
        size = math.prod(shape[1:])
        picks = [[row * size + i for row in range(shape[0])] for i in range(size)]
        rows = [
            self.gradient(target, source, output_gradients=[seed])
            for seed in _unit_cotangents(target, picks)
        ]
        full = _stacked(rows, size, (size, *inner))
        return full if full is None else examples_first(full, shape, inner)

    def _keep_reasons(self, tape, pairs, sources, results, reached=()):
        """Keep what explains the results that are None, here and on the variables.

        ``reached``: the keys that had a cotangent, if the pass has released the records.
        """
        missing = [s for s, g in zip(sources, results) if g is None]
        if missing:
            self._remains = Remains(tape, pairs, reached)
            for source in missing:
                if isinstance(source, Variable):
                    source._tw_unconnected = self._remains

    # --- the life of a tape

    def _spent_error(self):
        return RecordingError(
            "A non-persistent GradientTape can only be used to compute one set of gradients "
            "(or jacobians); make it with GradientTape(persistent=True) for more"
        )

    def _begin(self):
        """Return the tape, released unless persistent, and the active interpreters."""
        if self._tw_tape is None:
            if self._spent:
                raise self._spent_error()
            self._tw_tape = self._new_tape()
        if self._here and not self._persistent:
            self._pop()
        elif self._here and not self._warned:
            self._warned = True
            warnings.warn(
                "gradient of a persistent tape was called inside the tape's context, so the "
                "gradient itself is recorded, which costs time and memory; call it outside, "
                "or inside tape.stop_recording(), unless you need its derivatives",
                stacklevel=user_stacklevel(),
            )
        tape = self._tw_tape
        if not self._persistent:
            self._watched = tuple(tape.variables.values())
            self._tw_tape, self._spent = None, True
        return tape, active_interpreters()


# The signatures are TensorFlow's, for tools that compare them: without our own arguments.
for _method in (GradientTape.jacobian, GradientTape.batch_jacobian):
    _signature = inspect.signature(_method)
    _method.__signature__ = _signature.replace(
        parameters=[
            p for p in _signature.parameters.values() if p.kind is not p.KEYWORD_ONLY
        ]
    )


def _counted(count, noun):
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class _Pause:
    """Context of `GradientTape.stop_recording`."""

    def __init__(self, tape):
        self._tw_tape = tape

    def __enter__(self) -> None:
        tape = self._tw_tape
        if not tape._here:
            raise RecordingError("stop_recording: the tape is not recording here")
        self._level = active_interpreters().index(tape._pushed)
        tape._pop()
        self._token = paused.set(paused.get() + 1)

    def __exit__(self, *exc: object) -> None:
        paused.reset(self._token)
        if self._tw_tape._tw_tape is not None:  # no gradient has spent the tape
            self._tw_tape._push(self._level)


# ------------------------------------------------------------------ checking arguments


def _coincide(tape):
    """Return whether values of a factorization on the tape coincide: see `confluence`."""
    if not tape.confluent:
        return False
    from . import confluence

    return confluence.coincide(tape)


def _unconnected(value):
    if type(value) is UnconnectedGradients:
        return value
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {value!r}; it must be 'none' or 'zero'"
        ) from None


def _part(x):
    """Return the tensor through which gradients of a sparse or ragged tensor flow."""
    plain = not isinstance(x, CompositeTensor) or isinstance(x, IndexedSlices)
    return x if plain else x._tw_gradient_part()


def _as_source(source, gradient):
    if gradient is None or _part(source) is source:
        return gradient
    return source._tw_with_gradient(gradient)


def _checked(structure, name, composites=False):
    """Return the leaves, all tensors or variables; with ``composites``, parts of others."""
    leaves = []
    for leaf in flatten(structure):
        if type(leaf) is not Tensor and type(leaf) is not Variable:
            leaf = unwrap_value(leaf)
            leaf = _part(leaf) if composites else leaf
            _check_leaf(leaf, name)
        leaves.append(leaf)
    return leaves


def _check_leaf(leaf, name):
    if isinstance(leaf, IndexedSlices):
        raise TypeError(
            f"{name}: IndexedSlices must be made dense by convert_to_tensor"
        )
    if not isinstance(leaf, (Tensor, Variable)):
        raise TypeError(
            f"{name} must be a tensor or variable, or a nest of them, got "
            f"{type(leaf).__name__}; results of NumPy or Python are not on the "
            "tape"
        )


def _single(value, who, name):
    value = unwrap_value(value)
    if not isinstance(value, (Tensor, Variable)):
        raise TypeError(
            f"{who}: {name} must be a single tensor, got {type(value).__name__}; "
            "stack or concat several into one"
        )
    return value


def _bounds(parallel_iterations, memory_limit):
    """Return both as ints of at least 1, or None."""
    given = {"parallel_iterations": parallel_iterations, "memory_limit": memory_limit}
    for name, bound in given.items():
        if bound is not None and int(bound) < 1:
            raise ValueError(f"{name} must be 1 or more, or None, got {bound}")
    return [None if bound is None else int(bound) for bound in given.values()]


def _seeds(targets, output_gradients):
    """Return one cotangent for each target, None for ones."""
    if output_gradients is None:
        return [None] * len(targets)
    given = [x if x is None else _part(x) for x in flatten(output_gradients)]
    if len(given) != len(targets):
        raise ValueError(
            f"output_gradients must have one entry for each of {len(targets)} targets, got "
            f"{len(given)}"
        )
    seeds = []
    for seed, target in zip(given, targets):
        if seed is not None:
            if not isinstance(seed, Tensor):
                with on_device_of(target):
                    seed = convert_to_tensor(seed, dtype_hint=target.dtype)
            if seed.shape != target.shape or seed.dtype != target.dtype:
                raise ShapeError("output_gradients", "each must have the shape and dtype of "
                                 "its target", output_gradient=seed, target=target)  # fmt: skip
        seeds.append(seed)
    return seeds


def _zeros(shape, source):
    """Return zeros in the dtype and on the device of a source."""
    with on_device_of(source):
        return zeros(shape, source.dtype)


def _unit_cotangents(target, picks):
    """Return a cotangent for each list of entries: 1 at these entries and 0 elsewhere.

    For an empty target they are zeros: their pass shows the sources that it depends on.
    """
    shape = tuple(target.shape)
    for entries in picks or [()]:
        seed = np.zeros(math.prod(shape), target.dtype.dtype)
        seed[list(entries)] = 1
        with on_device_of(target):
            yield convert_to_tensor(seed.reshape(shape))


def _stacked(rows, size, shape):
    """Stack the first ``size`` gradients into this shape; None if one of them is None."""
    if any([row is None for row in rows]):
        return None
    rows = [convert_to_tensor(row) for row in rows]
    return reshape(stack(rows)[:size], shape)
