"""`ConcreteFunction`: one trace, called with tensors of the kinds it was traced for."""

from __future__ import annotations

import threading
from typing import Any, Literal

import numpy as np

from tapewright.core.composite import CompositeTensor
from tapewright.core.dtypes import kind_of
from tapewright.core.errors import DTypeError, TracingError
from tapewright.core.hardware.devices import array_module, current_module, use_module
from tapewright.core.interpreters import (
    ARRAY_EVAL,
    active_interpreter,
    active_interpreters,
    active_tracer,
)
from tapewright.core.nest import flatten, is_nested, map_structure
from tapewright.core.primitive import kernels_are_wrapped
from tapewright.core.settings import config
from tapewright.core.settings.ufunc_settings import ignoring_float_errors
from tapewright.core.shapes.symbolic_shape import static_shapes
from tapewright.core.state.commit import restoring
from tapewright.core.tape import Tape
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    new_tensor,
)
from tapewright.core.variable import Variable

from ..program.instructions.variable_update import updates_in
from ..program.passes.atomicity import written_variables
from ..tracing.graph import is_value
from ..tracing.handles import Resource
from ..tracing.interpret import interpret
from ..tracing.linearize import record_call
from ..tracing.tracer import SymbolicTensor
from .arguments import Arguments, revived, weakened
from .outputs import packer

ON_HOST = 64  # bytes of variables that the host may have beside a GPU


class InputStructure:
    """The structure of the arguments of a trace: a value for each parameter.

    In ``values``, a tensor is a `TensorSpec` and an object is a weak reference to it.
    """

    def __init__(self, signature, values, named):
        self.signature, self.values = signature, values
        self.named = named  # names that specs gave, not parameters

    @classmethod
    def of(cls, signature, values, named=()):
        """Describe a trace with these values, in which tensors are symbolic."""
        return cls(signature, [weakened(x) for x in values], named)

    def shown(self):
        """Yield the value of each parameter, as it is printed."""

        def text(x):
            if not isinstance(x, TensorSpec):
                return x
            return TensorSpec(
                x.shape, x.dtype, x.name if x.name in self.named else None
            )

        for x in self.values:
            if _has_specs(x):
                yield map_structure(text, x) if is_nested(x) else text(x)
            else:
                yield f"Literal[{revived(x)!r}]"

    def structured(self):
        """``(args, kwargs)`` of the function, with specs for tensors."""
        return self.signature.as_call([revived(x) for x in self.values])

    def tensors(self, args, kwargs):
        """Return the tensors of a call of this structure; raise ``TypeError`` if unlike.

        Parameters without tensors may be omitted.
        """
        given = self.signature.bind_partial(args, kwargs)
        tensors = []
        pairs = zip(self.signature.parameters, self.values, strict=True)
        for parameter, wanted in pairs:
            value = given.get(parameter.name, parameter)
            if value is parameter:
                if _has_specs(wanted):
                    raise TypeError(f"the argument '{parameter.name}' is missing")
                continue
            self._collect(parameter.name, value, wanted, tensors)
        return tensors

    def _collect(self, name, value, wanted, tensors):
        if isinstance(wanted, TensorSpec):
            tensors.append(fitting(value, wanted, name))
        elif isinstance(wanted, CompositeTensor):
            self._collect_composite(name, value, wanted, tensors)
        elif isinstance(wanted, Resource):
            self._collect_resource(name, value, wanted, tensors)
        elif is_nested(wanted) and _has_specs(wanted):
            flat, specs = flatten(value), flatten(wanted)
            if len(flat) != len(specs):
                raise TypeError(f"the argument '{name}' must be like {wanted}")
            for x, spec in zip(flat, specs, strict=True):
                self._collect(name, x, spec, tensors)
        elif Arguments((value,)).static != Arguments((revived(wanted),)).static:
            raise TypeError(
                f"the argument '{name}' was {revived(wanted)!r} when the function was "
                f"traced, and is a constant of the trace; got {value!r}"
            )

    def _collect_composite(self, name, value, wanted, tensors):
        if not (
            isinstance(value, CompositeTensor)
            and value._tw_static_key() == wanted._tw_static_key()
        ):
            raise TypeError(
                f"the argument '{name}' must be like {wanted}, got {value!r}"
            )
        parts = zip(value._tw_components(), wanted._tw_components(), strict=True)
        for i, (own, spec) in enumerate(parts):
            self._collect(f"{name}_{i}", own, spec, tensors)

    def _collect_resource(self, name, value, wanted, tensors):
        if getattr(value, "_tw_resource_spec", None) != wanted._tw_resource_spec:
            raise TypeError(
                f"the argument '{name}' must be like {wanted}, got {value!r}"
            )
        tensors.append(value._tw_handle)


def _has_specs(values):
    kinds = (TensorSpec, CompositeTensor, Resource)
    return any([isinstance(x, kinds) for x in flatten(values)])


def fitting(value, spec, name):
    """Convert a value to a tensor of this spec; raise ``TypeError`` or `DTypeError`."""
    try:
        tensor = value
        if not isinstance(value, Tensor):
            tensor = convert_to_tensor(value, spec.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"the argument '{name}' must be {spec}: {error}") from None
    if not spec.is_compatible_with(tensor):
        raise (TypeError if tensor.dtype == spec.dtype else DTypeError)(
            f"the argument '{name}' must have shape {spec.shape} and dtype "
            f"{spec.dtype.name}; got shape {tensor.shape}, {tensor.dtype.name}"
        )
    return tensor


def _compiling_module():
    """Return the module of the current device, or NumPy if it does not compile functions."""
    xp = current_module()
    return xp if xp is np or config.why_op_by_op(xp) is None else np


class ConcreteFunction:
    """A single trace of a `tw.function`: maps input tensors to output tensors.

    ``Function.get_concrete_function`` returns it. Call it like the function, where
    arguments that are not tensors may be omitted, or with its tensors only, in order or
    by the names of `inputs`.
    """

    def __init__(self, graph, structure=0, input_structure=None, tracer=None):
        self.graph = graph
        self.structure = structure  # of the outputs: a nest of their numbers and None
        self.input_structure, self.tracer = input_structure, tracer
        self.is_compiled = None  # False: interpreted, as arrays are of several devices
        self.module = _compiling_module()  # of the arrays, if it is compiled
        self.peeks = (), ()  # peeked elements and their specs: see `Function`
        self.specializations = None  # `Specializations`, if sizes are open
        self.created = () if tracer is None else tracer.created  # variables
        self.captured_constants = (
            {} if tracer is None else _alive(tracer.captured_constants)
        )
        captured = graph.captures.values()
        self.is_steady = all([type(x) is Tensor for x in captured])
        self._executable = self._borrows = None
        self._guards = []  # checks that the executable is still valid
        self._lock = threading.Lock()
        self.linearizations = None  # once it is called under a tape
        self.packed = packer(structure)

    # --- calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(self.tensors_of(args, kwargs))

    def tensors_of(self, args, kwargs):
        """Return the input tensors of a call; raise ``TypeError`` if it does not match."""
        if not kwargs and self._are_inputs(args):
            return args
        if self.input_structure is None:
            return self._flat(args, kwargs)
        try:
            return self.input_structure.tensors(args, kwargs)
        except TypeError as error:
            try:
                return self._flat(args, kwargs)
            except TypeError:
                kind = DTypeError if isinstance(error, DTypeError) else TypeError
                raise kind(f"{self}\n{error}") from None

    def _are_inputs(self, args):
        """Return whether these tensors have exactly the shapes and dtypes of the inputs."""
        inputs = self.graph.inputs
        if len(args) != len(inputs):
            return False
        for x, value in zip(args, inputs):
            if type(x) is not Tensor or x.array.shape != value.shape:
                return False
            if x.array.dtype != value.dtype:
                return False
        return True

    def _flat(self, args, kwargs):
        """Return the tensors of a call that has only tensors, in order or by name."""
        values = self.graph.inputs
        rest = [value.name for value in values[len(args) :]]
        if len(args) > len(values) or set(rest) != set(kwargs):
            names = ", ".join([str(value.name) for value in values])
            raise TypeError(f"the tensors of '{self.name}' are ({names})")
        tensors = [*args, *[kwargs[name] for name in rest]]
        pairs = zip(tensors, values, strict=True)
        return [fitting(x, _spec(value), value.name) for x, value in pairs]

    def run(self, tensors):
        """Return the result for the tensors among the arguments."""
        return self.packed(self.flat_call(tensors))

    def holds(self):
        """Return whether the outer tensors that the trace uses are still valid.

        They are not if one of them belongs to a trace that has ended, or if a tape now
        tracks one that is a constant here.
        """
        if not self.is_steady:
            for x in self.graph.captures.values():
                if type(x) is not Tensor and not _is_traced_now(x):
                    return False
        if not self.captured_constants or active_interpreter() is None:
            return True
        interpreters = active_interpreters()
        # An interpreter that traces hides the tapes outside.
        traced = any([r.traces for r in interpreters])
        tapes = [r for r in interpreters if isinstance(r, Tape)]
        for reference in self.captured_constants.values():
            key = getattr(reference(), "key", None)
            if type(key) is int and (traced or any([key in t.known for t in tapes])):
                return False
        return True

    def flat_call(self, tensors):
        """Return the output tensors for input tensors, under any interpreters."""
        if self.specializations is not None:
            return self.specializations.pick(tensors).flat_call(tensors)
        interpreter = active_interpreter()
        if self.is_compiled is None and not any(
            [type(x) is SymbolicTensor for x in tensors]
        ):
            self.is_compiled = self._is_of_one_device(tensors)
        if not self.is_compiled or kernels_are_wrapped("check", "placement"):
            return self.interpreted(tensors)
        if interpreter is None or interpreter is ARRAY_EVAL:
            captures = self.graph.captures
            if captures:
                tensors = [*tensors, *captures.values()]
            executable = self._executable
            if executable is None or self._guards:
                executable = self.executable
            outputs = executable.run([x.array for x in tensors])
            return [new_tensor(a) for a in outputs]
        interpreters = active_interpreters()
        if all([r.only_watches_variables or isinstance(r, Tape) for r in interpreters]):
            return record_call(self, tensors, interpreters)
        return self.interpreted(tensors)

    @ignoring_float_errors  # as in a replay
    def interpreted(self, tensors):
        """Return the output tensors, op by op, as active interpreters see them."""
        if active_tracer() is not None:
            return interpret(self.graph, tensors)
        return restoring(written_variables(self.graph), interpret, self.graph, tensors)

    def _is_of_one_device(self, tensors):
        """Return whether all arrays belong to one module, which compiles functions.

        GPU arrays may be accompanied by constants, handles and small variables on the
        host.
        """
        given = [x.array for x in (*tensors, *self.graph.captures.values())
                 if type(x) is Tensor and kind_of(x.array.dtype) in "biufc"]  # fmt: skip
        variables = [v._array for v in self.graph.variables()]
        large = [a for a in variables
                 if a.nbytes > ON_HOST or array_module(type(a)) is not np]  # fmt: skip
        modules = {array_module(type(a)) for a in (*given, *large)}
        if len(modules) > 1:
            return False
        self.module = modules.pop() if modules else current_module()
        return self.module is np or config.why_op_by_op(self.module) is None

    def borrows(self, tensors):
        """Return whether no memory of the inputs outlives a replay."""
        if self.specializations is not None:
            return self.specializations.pick(tensors).borrows(tensors)
        if not self.is_compiled or active_interpreter() is not None:
            return False
        executable = self.executable
        if self._borrows is None:
            self._borrows = _leaves_inputs(executable)
        return self._borrows

    @property
    def executable(self):
        """The `Executable`, compiled on first use, and when settings of optimizers change."""
        executable = self._executable
        if executable is None or not all([guard() for guard in self._guards]):
            with self._lock:
                if self._executable is executable:
                    self._compile()
                executable = self._executable
        return executable

    def _compile(self):
        from ..pipeline import make_executable  # see `compiler`

        with use_module(self.module):
            executable = make_executable(self.graph)
        guards = [update.guard() for update in updates_in(self.graph)]
        self._executable, self._borrows = executable, None
        self._guards = [guard for guard in guards if guard is not None]

    # --- what it is made of

    @property
    def name(self) -> str:
        return self.graph.name

    @property
    def inputs(self):
        """The symbolic input tensors: arguments, then captures."""
        values = [*self.graph.inputs, *self.graph.captures]
        return [SymbolicTensor(value, self.tracer) for value in values]

    @property
    def outputs(self):
        """The output tensors, symbolic unless they are constants."""
        outputs = self.graph.outputs
        return [SymbolicTensor(x, self.tracer) if is_value(x) else x for x in outputs]

    @property
    def structured_input_signature(self):
        """``(args, kwargs)`` with a `TensorSpec` for each tensor, other arguments as given."""
        if self.input_structure is None:
            return tuple([_spec(value) for value in self.graph.inputs]), {}
        return self.input_structure.structured()

    @property
    def structured_outputs(self) -> Any:
        """The result of a call, with a `TensorSpec` for each tensor."""
        return self.packed([_spec(x) for x in self.graph.outputs])

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that are read or written, each once."""
        return tuple(self.graph.variables())

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        return tuple([v for v in self.variables if v.trainable])

    @property
    def captured_inputs(self):
        """The outer tensors that the trace uses and that tapes may track."""
        return list(self.graph.captures.values())

    # --- showing; its modules are loaded when they are needed

    def pretty(self, target: Literal["cuda", "native", "numpy"] | None = None) -> str:
        """Return the executable as text: NumPy calls, machine-code loops, or CUDA graphs.

        For a trace of all sizes, this is the executable for the sizes of the latest
        call.

        Args:
            target: Target to show, by default the current target; for another CPU
                target the trace is compiled for display.

        Raises:
            ValueError: If there is no such target, or if machine code is not available
                here.
        """
        if self.specializations is not None:
            return self._latest("pretty").pretty(target)
        executable = self._executable_for(target)
        if executable.target == "native":
            from ..inspection.native_text import native_text as text
        elif executable.target == "cuda":
            from ..inspection.cuda_text import cuda_text as text
        else:
            from ..inspection.pretty import executable_text as text
        return text(executable, self.graph)

    def pipeline(self) -> str:
        """Return the passes of the current target as text, with the sizes they leave.

        A line has the number of nodes of the graph, or of instructions of the program, after
        a pass.

        Example:
            >>> import tapewright as tw
            >>> f = tw.function(lambda x: -tw.negative(x) + 1.0)
            >>> with tw.config.use_target("numpy"):
            ...     print(f.get_concrete_function(tw.constant([1.0])).pipeline())
            function <lambda> on the target numpy
                 3 nodes         trace
                 3 nodes         dead_nodes
                 2 nodes         algebra
                 2 nodes         dead_stores
                 2 nodes         constant_folding
                 2 nodes         common_subexpressions
                 2 nodes         narrow_control
                 1 node          dead_nodes
                 1 instruction   lower
                 1 instruction   merge_equal
                 1 instruction   uniform_constants
                 1 instruction   drop_unused
                 1 instruction   overlap_all_reduces
                 1 instruction   row_blocks
        """
        if self.specializations is not None:
            return self._latest("pipeline").pipeline()
        from ..inspection.pretty import pipeline_text

        return pipeline_text(self.graph)

    def _executable_for(self, target):
        if target is None or target == self.executable.target:
            return self.executable
        from ..pipeline import make_executable

        if target == "cuda":
            raise ValueError(
                f"pretty: '{self.name}' is not a GPU function: none of its arrays is "
                "on a GPU"
            )
        if target not in ("native", "numpy"):
            raise ValueError(
                f"pretty: target must be 'cuda', 'native', 'numpy' or None, got {target!r}"
            )
        with use_module(np), config.use_target(target):
            if config.target() != target:
                reason = config.report()["target"]["note"]
                raise ValueError(f"pretty: machine code is not available: {reason}")
            return make_executable(self.graph)

    def explain(self, *args, repeats=None):
        """Time each call of a replay: return an `Explanation`, which prints as a table.

        Variables have their old values afterwards.

        Args:
            *args: Tensors to run on; ones by default (zeros for integers).
            repeats: Number of replays, chosen automatically by default.
        """
        tensors = [convert_to_tensor(x) for x in args]
        if self.specializations is not None:
            sized = (
                self.specializations.pick(tensors)
                if tensors
                else self._latest("explain")
            )
            return sized.explain(*tensors, repeats=repeats)
        tensors += self.graph.captures.values() if tensors else ()
        arrays = [x.array for x in tensors] or None
        from ..inspection.timings import explain

        return explain(self.executable, self.graph, arrays, repeats)

    def dot(self) -> str:
        """Return the graph in Graphviz's language, to be drawn with ``dot -Tsvg``."""
        from ..inspection.pretty import dot_text

        return dot_text(self.graph)

    @property
    def peak_bytes(self) -> int:
        """Peak memory of a replay in bytes, without its inputs and the variables."""
        if self.specializations is not None:
            return self._latest("peak_bytes").peak_bytes
        from ..inspection.timings import peak_bytes

        return peak_bytes(self.executable)

    def _latest(self, who):
        if self.specializations.latest is None:
            raise ValueError(
                f"{who}: '{self.name}' is compiled for the sizes of each call, and "
                "was not called yet: call it first"
            )
        return self.specializations.latest

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """Return parameters, output and captures as text, in TensorFlow's format."""
        args, kwargs = self.structured_input_signature
        if self.input_structure is None:
            parameters = [(value.name, "", _spec(value)) for value in self.graph.inputs]
        else:
            parameters = [
                (p.name, f" ({p.kind.name})", x)
                for p, x in zip(
                    self.input_structure.signature.parameters,
                    self.input_structure.shown(),
                )
            ]
        outputs = self.structured_outputs
        if not verbose:
            listing = ", ".join([f"{name}: {x}" for name, _, x in parameters])
            return f"({listing}) -> {outputs}"
        captures = [f"{v.name}: {_spec(v)}" for v in self.graph.captures]
        captures += [f"{v.path}: {_spec(v)}" for v in self.variables]
        lines = ["Input Parameters:"]
        lines += [f"  {name}{kind}: {x}" for name, kind, x in parameters] or ["  None"]
        lines += ["Output Type:", f"  {outputs}", "Captures:"]
        return "\n".join(lines + [f"  {c}" for c in captures or ["None"]])

    def __str__(self):
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    def __repr__(self):
        return f"<ConcreteFunction {self.name}{self.pretty_printed_signature(False)}>"


class UntracedFunction(ConcreteFunction):
    """A function that is traced for the sizes of each call.

    Its code needs a size, or a rank, as a number. Its outputs and variables are not
    available, as only a trace for all sizes has them.
    """

    def run(self, tensors):
        return self.specializations.pick(tensors).run(tensors)

    def _unknown(self):
        raise TracingError(
            f"'{self.name}' is traced for the sizes of each call, so its outputs and "
            f"variables are unknown before a call: {self.specializations.reason}"
        )

    outputs = structured_outputs = variables = property(_unknown)

    def dot(self):
        self._unknown()

    def pretty_printed_signature(self, verbose=True):
        """Return the parameters as text, with a note that the outputs depend on the sizes."""
        shown = [f"{value.name}: {_spec(value)}" for value in self.graph.inputs]
        if not verbose:
            return f"({', '.join(shown)}) -> <depends on the sizes>"
        lines = ["Input Parameters:", *[f"  {x}" for x in shown or ["None"]]]
        return "\n".join([*lines, "Output Type:", "  depends on the sizes"])


def _leaves_inputs(executable):
    """Return whether no array that outlives a replay shares memory with inputs."""
    kept = set(executable.assignment.escaping)
    for instruction in executable.program.instructions:
        if instruction.has_effect:
            kept.update([buffer.base for buffer in instruction.operands])
    return kept.isdisjoint(executable.program.inputs)


def _alive(references):
    """Select the weak references to live objects."""
    return {name: ref for name, ref in references.items() if ref() is not None}


def _is_traced_now(x):
    return type(x) is SymbolicTensor and not x.tracer.graph.finished


def _spec(x):
    return TensorSpec(static_shapes(x.shape), x.dtype)
