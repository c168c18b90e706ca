"""`PythonCall`: a Python function of tensors that each replay of a graph calls.

It sees tensors with values, and a tape of its own follows what it does: by this tape, which
goes through the graph as a *token*, gradients come from the very call of the forward pass.
The tape records its gradients as well: so do those of higher order.
"""

from typing import NamedTuple

import numpy as np

from tapewright.autodiff.gradient_tape import GradientTape
from tapewright.core.devices import array_module, copy_to
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.interpreters import (
    active_interpreters,
    active_tracer,
    use_interpreters,
)
from tapewright.core.tensor import convert_to_tensor, new_tensor
from tapewright.core.tensor_shape import TensorShape

from ..tracing.handles import handle_of
from .effects import refuse_mapped
from .records import emit
from .region_node import RegionNode
from .regions import spec_of

__all__ = ["PythonCall", "called", "copies", "fitting"]

TOKEN = (), np.dtype(object)


class Token(NamedTuple):
    """What a call leaves for its gradient."""

    tape: object
    recording: object  # of the tape, as an interpreter
    inputs: list
    outputs: list


def called(title, function, inputs, specs):
    """``function(*inputs)`` as a list of tensors of these specs, now or in each replay."""
    inputs = [convert_to_tensor(x) for x in inputs]
    refuse_mapped(title, inputs)
    if active_tracer() is None:
        return fitting(title, function(*inputs), specs)
    return list(emit(PythonCall(title, function, len(inputs), specs), inputs))


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


class PythonCall(RegionNode):
    """Calls ``function`` with ``taken`` tensors, and gives tensors of these specs.

    ``keeps``: how many times it gives its token, too. ``by_token(token, *inputs)``, if
    there is one, takes the place of the function: the last input then is the token of an
    earlier call; ``repeats`` says that it was a call of this very function.
    """

    OPERANDS, RESULTS = ("argument", "token"), ("returned", "kept")
    SETTINGS = "title", "function", "taken", "specs", "keeps", "by_token", "repeats"
    __slots__ = SETTINGS[1:]

    def __init__(
        self, title, function, taken, specs, keeps=0, by_token=None, repeats=False,
        regions=(), line=None,
    ):  # fmt: skip
        super().__init__(regions, [*specs, *[TOKEN] * keeps], title, line=line)
        self.function, self.taken, self.specs = function, taken, specs
        self.keeps, self.by_token, self.repeats = keeps, by_token, repeats

    @property
    def is_effect(self):
        return self.by_token is None

    runs_python = is_effect

    def counts(self):
        sizes = {"argument": self.taken, "token": int(self.by_token is not None)}
        return sizes | {"returned": len(self.specs), "kept": self.keeps}

    def narrowed(self, used):
        return None

    def kernel(self):
        if self.by_token is not None:
            return self._later
        return self._followed if self.keeps else self._called

    def _called(self, *arrays):
        with use_interpreters(()):
            results = self.function(*[_own(a) for a in arrays])
            return copies(fitting(self.title, results, self.specs))

    def _followed(self, *arrays):
        with use_interpreters(()):
            outputs, token = self._taped([_own(a) for a in arrays])
        return [*copies(outputs), *[handle_of(token)] * self.keeps]

    def _taped(self, inputs):
        """The outputs, and the token of the call."""
        with GradientTape(persistent=True) as tape:
            tape.watch(_floating(inputs))
            outputs = fitting(self.title, self.function(*inputs), self.specs)
            return outputs, Token(tape, active_interpreters()[-1], inputs, outputs)

    def _later(self, *arrays):
        *arrays, box = arrays
        inputs = [_own(a) if a.dtype != object else new_tensor(a) for a in arrays]
        with use_interpreters(()):
            outputs, token = self._told(box.item(), inputs)
        return [*copies(outputs), *[handle_of(token)] * self.keeps]

    def _told(self, token, inputs):
        """The outputs by the token of an earlier call, and a token that knows of them."""
        if not self.keeps:
            return fitting(self.title, self.by_token(token, *inputs), self.specs), None
        inputs = [*token.inputs, *inputs[len(token.inputs) :]]
        with use_interpreters((*active_interpreters(), token.recording)):
            token.tape.watch(_floating(inputs[len(token.inputs) :]))
            outputs = fitting(self.title, self.by_token(token, *inputs), self.specs)
        return outputs, Token(token.tape, token.recording, inputs, outputs)

    def is_traced(self, operands):
        return active_tracer() is not None

    def run(self, operands):
        if self.by_token is not None:  # the token has tensors that tapes follow
            outputs, token = self._told(operands[-1].array.item(), operands[:-1])
        elif self.keeps:
            outputs, token = self._taped(operands)
        else:
            return called(self.title, self.function, operands, self.specs)
        return [*outputs, *[new_tensor(handle_of(token))] * self.keeps]

    # --- gradient

    def split(self):
        repeated = self.again(by_token=lambda t, *_: t.outputs, repeats=True)
        return self.again(keeps=self.keeps + 1), [TOKEN], repeated

    def joined(self, operands, tokens):
        return [*operands, *tokens]

    def recorded(self):
        if self.repeats:
            return self.again(), self._gradient_by_input
        twin = self.again(keeps=max(self.keeps, 1))
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

        def by_token(token, *arguments):
            return token.tape.gradient(
                [token.outputs[i] for i in kept],
                [token.inputs[i] for i in wanted],
                output_gradients=list(arguments[size:]),
                unconnected_gradients="zero",
            )

        tensors, title = [*inputs, *given], f"{self.title}_gradient"
        specs = [spec_of(inputs[i]) for i in wanted]
        node = PythonCall(title, None, len(tensors), specs, by_token=by_token)
        return emit(node, [*tensors, token])


def copies(tensors):
    """Arrays that a plan may bind to variables: Python may have kept the tensors."""
    return [_own(x.array).array for x in tensors]


def _floating(tensors):
    return [x for x in tensors if x.array.dtype.kind in "fc"]


def _own(array):
    """A tensor of a copy: the memory of a plan serves for something else later on."""
    return new_tensor(copy_to(array_module(type(array)), array))
