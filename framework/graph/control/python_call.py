"""`PythonCall`: a Python function of tensors that each replay of a graph calls.

It sees tensors with values, and a tape of its own follows what it does: by this tape, which
goes through the graph as a *token*, gradients come from the very call of the forward pass.
Gradients of gradients call the function again.
"""

from typing import NamedTuple

import numpy as np

from ...errors import InvalidArgumentError
from ...ops.conversion import identity
from ...readers import active_tracer, reading
from ...tape import GradientTape
from ...tensor import convert_to_tensor, new_tensor
from ...tensor_shape import TensorShape
from ..boxes import handle_of
from .effects import refuse_mapped
from .parts import ControlNode, spec_of
from .recording import place

__all__ = ["PythonCall", "called", "copies", "fitting"]

TOKEN = (), np.dtype(object)


class Token(NamedTuple):
    """What a call leaves for its gradient."""

    tape: object
    inputs: list
    outputs: list


def called(title, function, inputs, specs):
    """``function(*inputs)`` as a list of tensors of these specs, now or in each replay."""
    inputs = [convert_to_tensor(x) for x in inputs]
    refuse_mapped(title, inputs)
    if active_tracer() is None:
        return fitting(title, function(*inputs), specs)
    kinds = [x.array.dtype.kind for x in inputs]
    return list(place(PythonCall(title, function, kinds, specs), inputs))


def fitting(title, results, specs):
    """What a function returned, as tensors; raises where it is not what was announced."""
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    if not specs:
        return []
    if len(results) != len(specs):
        raise InvalidArgumentError(
            f"{title}: the function must return {len(specs)} values, as Tout says, got "
            f"{len(results)}"
        )
    found = []
    for i, (x, (shape, dtype)) in enumerate(zip(results, specs)):
        x = convert_to_tensor(x, dtype=dtype)
        if not TensorShape(shape).is_compatible_with(x.shape):
            raise InvalidArgumentError(
                f"{title}: the function returned shape {tuple(x.shape)} as value {i}, but "
                f"Tout says {shape}"
            )
        found.append(x)
    return found


class PythonCall(ControlNode):
    """Calls ``function`` with tensors, and gives tensors of these specs.

    ``keeps``: it gives a token, too. ``by_token(token, *inputs)``, if there is one, takes
    the place of the function: the last input then is the token of an earlier call;
    ``repeats`` says that it was a call of this very function.
    """

    __slots__ = ("title", "function", "kinds", "specs", "keeps", "by_token", "repeats")

    def __init__(
        self, title, function, kinds, specs, keeps=False, by_token=None, repeats=False
    ):
        super().__init__((), [*specs, TOKEN] if keeps else specs)
        self.title, self.function, self.kinds = title, function, kinds
        self.specs, self.keeps = specs, keeps
        self.by_token, self.repeats = by_token, repeats

    @property
    def is_effect(self):
        return self.by_token is None

    runs_python = is_effect

    @property
    def name(self):
        return self.title

    def input_kinds(self):
        return self.kinds

    def kernel(self):
        if self.by_token is not None:
            return self._later
        return self._followed if self.keeps else self._called

    def _called(self, *arrays):
        with reading(()):
            results = self.function(*[_own(a) for a in arrays])
            return copies(fitting(self.title, results, self.specs))

    def _followed(self, *arrays):
        inputs = [_own(a) for a in arrays]
        with reading(()), GradientTape(persistent=True) as tape:
            tape.watch([x for x in inputs if x.array.dtype.kind in "fc"])
            outputs = fitting(self.title, self.function(*inputs), self.specs)
        return [*copies(outputs), handle_of(Token(tape, inputs, outputs))]

    def _later(self, *arrays):
        *arrays, token = arrays
        with reading(()):
            found = self.by_token(token.item(), *[new_tensor(a) for a in arrays])
            return copies(fitting(self.title, found, self.specs))

    def interpret(self, args, env):
        if active_tracer() is not None:
            return place(self.again(), args)
        if self.repeats:  # the token has tensors that tapes follow
            return args[-1].array.item().outputs
        own = args if self.by_token is None else args[:-1]
        outputs = called(self.title, self.function, own, self.specs)
        if self.keeps:
            return [*outputs, new_tensor(handle_of(Token(None, args, outputs)))]
        return outputs

    def again(self, **changes):
        """Another node like this one."""
        kept = {name: getattr(self, name) for name in PythonCall.__slots__}
        return PythonCall(**{**kept, **changes})

    # --- gradient

    def split(self):
        """As `split_effects`: for the node."""
        repeated = self.again(
            kinds=[*self.kinds, "O"], by_token=lambda t, *_: t.outputs, repeats=True
        )
        return self.again(keeps=True), [TOKEN], repeated

    def recorded(self):
        if self.repeats:
            return self.again(), self._gradient_by_input
        if self.by_token is None:
            return self.again(keeps=True), self._gradient_by_output
        function = self.function  # called now, so that its own gradient is known

        def without_token(*arguments):
            return function(*arguments[:-1])

        twin = self.again(function=without_token, by_token=None, keeps=True)
        return twin, twin._gradient_by_output

    def _gradient_by_output(self, inputs, outputs, cotangents, wanted):
        return self._back(inputs, outputs[-1], cotangents, wanted)

    def _gradient_by_input(self, inputs, outputs, cotangents, wanted):
        return self._back(inputs[:-1], inputs[-1], cotangents, wanted)

    def _back(self, inputs, token, cotangents, wanted):
        """The gradients of the inputs ``wanted``, from the tape of the token."""
        cotangents = cotangents[: len(self.specs)]
        kept = [i for i, c in enumerate(cotangents) if c is not None]
        given, size = [cotangents[i] for i in kept], len(inputs)
        function, title, specs = self.function, self.title, self.specs

        def by_token(token, *arguments):
            return pulled(token.tape, token.inputs, token.outputs, arguments[size:])

        def anew(*arguments):
            own = [identity(x) for x in arguments[:size]]
            with GradientTape(watch_accessed_variables=False) as tape:
                tape.watch([own[i] for i in wanted])
                outputs = fitting(title, function(*own), specs)
            return pulled(tape, own, outputs, arguments[size:])

        def pulled(tape, inputs, outputs, cotangents):
            return tape.gradient(
                [outputs[i] for i in kept],
                [inputs[i] for i in wanted],
                output_gradients=list(cotangents),
                unconnected_gradients="zero",
            )

        tensors = [*inputs, *given, token]
        kinds = [x.array.dtype.kind for x in tensors]
        wanted_specs = [spec_of(inputs[i]) for i in wanted]
        node = PythonCall(
            f"{title}_gradient", anew, kinds, wanted_specs, by_token=by_token
        )
        return place(node, tensors)


def copies(tensors):
    """Arrays that a plan may bind to variables: Python may have kept the tensors."""
    return [np.array(x.array) for x in tensors]


def _own(array):
    """A tensor of a copy: the memory of a plan serves for something else later on."""
    return new_tensor(np.array(array))
