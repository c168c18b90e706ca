"""A traced function in a group of a file, and a function built from such a group.

The group has an attribute ``function`` (name, parameters), the constants of all its
graphs, and a group ``call_0``, ``call_1``... for each signature: attribute ``call``
(the kinds of arguments, the structure of the result, and for each trace the shapes that
it serves, null where open, and its assumptions about open sizes), and a group
``trace_0``... with the ``graph`` of each trace. Variables are numbers in a list that
the caller keeps.
"""

import inspect

from tapewright.compiler.function.arguments import revived, weakened
from tapewright.compiler.function.concrete_function import (
    ConcreteFunction,
    InputStructure,
)
from tapewright.compiler.function.coverage import covering_traces, reason_of
from tapewright.compiler.function.function import Function
from tapewright.compiler.function.methods import Method
from tapewright.compiler.function.outputs import packer
from tapewright.compiler.function.signature import Signature
from tapewright.compiler.function.specialization import Trace, is_open
from tapewright.core.composite import CompositeTensor
from tapewright.core.errors import SavingError
from tapewright.core.nest import flatten, is_nested, map_structure
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.shapes.tensor_shape import UnrankedShape
from tapewright.core.tensor import Tensor, TensorSpec
from tapewright.core.variable import Variable

from .constants import ConstantReader, ConstantWriter
from .graph_checks import identifier, short_text
from .graph_reader import FAULTS, GraphReader
from .graph_writer import ONLY_OPS, GraphWriter
from .loaded_function import Restored, RestoredConcrete, SavedTraces
from .symbolic_dims import decode_guards, encode_guards
from .values import Numbered, decode, encode, item_of, number_of

MANY = 10_000


def write_function(group, function, variables, gradients=True, optimizers=None):
    """Write a traced function (or one trace of it) into a group.

    Every traced signature is written. A function with an ``input_signature`` is traced
    for all shapes that it allows, if necessary.

    Args:
        group: A `GroupWriter`.
        function: The function or trace.
        variables: List, to which missing variables of the function are appended.
        gradients: Whether to write custom gradients.
        optimizers: An `OptimizerWriter`, if the file can hold optimizers.

    Raises:
        SavingError: If a file cannot store something; it names the line of user code.
    """
    function = getattr(function, "_tw_function", function)
    calls, constants = list(_calls(function, group.path)), ConstantWriter()
    name = getattr(function, "name", "function")
    if not calls:
        raise SavingError(group.path, f"function '{name}' {why_untraced(function)}")
    parameters = [_parameter(p, constants, variables) for p in calls[0].parameters]
    input_signature = getattr(function, "input_signature", None)
    head = {
        "name": name,
        "parameters": parameters,
        "input_signature": encode(input_signature),
        "calls": len(calls),
    }
    for i, call in enumerate(calls):
        part = group.group(f"call_{i}")
        call.write(part, variables, constants, gradients, optimizers)
    group.json("function", head)
    constants.write(group)


def has_traces(function):
    """Return True if a function has anything to write."""
    function = getattr(function, "_tw_function", function)
    if isinstance(function, ConcreteFunction):
        return True
    return function.input_signature is not None or bool(function.concrete_functions)


def why_untraced(function):
    """Return why a function has nothing to write, as the end of a sentence."""
    for reason in function.eager_reasons:
        return f"runs eagerly, so it cannot be saved ({reason})"
    return "was not traced yet: call it before saving, or give it an input_signature"


def read_function(group, variables, optimizers=()):
    """Return the `Function` of a group, on these variables and optimizers.

    It accepts the arguments of the saved function, and also runs under tapes and in
    traces.

    Raises:
        SavingError: If the group was not written by `write_function`.
    """
    try:
        return _read(group, variables, optimizers)
    except SavingError:
        raise
    except FAULTS as error:
        return group.fail(f"contains no valid function: {error}")


def _calls(function, path):
    """Yield a `_Call` for each signature."""
    if isinstance(function, ConcreteFunction):
        yield _Call.of_concrete(function, path)
    elif not isinstance(function, (Function, Method)):
        raise SavingError(path, f"{function!r} is not a traced function")
    elif isinstance(function, Restored) or function.input_signature is None:
        for concrete in function.concrete_functions:
            yield _Call.of_concrete(concrete, path, function.signature)
    else:
        yield _Call.of_signature(function, path)


class _Call:
    """One signature of a function, to be written."""

    def __init__(self, name, path, signature, values, named, shapes):
        self.name, self.path, self.parameters = name, path, signature.parameters
        self.values, self.named, self.shapes = values, named, shapes
        self.concrete = self.retrace = None

    @classmethod
    def of_signature(cls, function, path):
        """Specification from an ``input_signature``."""
        arguments = function.signature.arguments(function.input_signature, {})
        shapes = tuple([shape for shape, *_ in arguments.specs])
        values = [weakened(x) for x in arguments.values]
        names = arguments.names
        call = cls(function.name, path, function.signature, values, names, shapes)
        traced = [c for c in function.concrete_functions if c.holds()]
        call.concrete = traced[-1] if traced else None
        call.retrace = lambda shapes: function.trace_for(arguments, shapes)
        return call

    @classmethod
    def of_concrete(cls, concrete, path, signature=None):
        """Specification from an existing trace."""
        family, form = concrete.specializations, concrete.input_structure
        if family is None:
            shapes = tuple([tuple(v.shape) for v in concrete.graph.inputs])
        else:
            shapes = family.shapes
            form = form or _form_of(family)
        if form is None:
            form = _form_by_inputs(concrete)
        signature = form.signature if signature is None else signature
        call = cls(concrete.name, path, signature, form.values, form.named, shapes)
        call.concrete = concrete
        call.retrace = None if family is None else family.trace
        return call

    def write(self, group, variables, constants, gradients, optimizers):
        traces, refusals = self._traces(gradients)
        structure = traces[0].concrete.structure
        if any(_differ(t.concrete.structure, structure) for t in traces):
            raise SavingError(
                self.path, f"function '{self.name}' returns different structures for "
                           "different shapes of its arguments",
            )  # fmt: skip
        call = {
            "values": [self._value(x, variables) for x in self._opened()],
            "named": [x if isinstance(x, str) else None for x in self.named],
            "structure": encode(structure),
            "shapes": [None if s is None else [*s] for s in self.shapes],
            "refusals": [[ranks, reason] for ranks, reason in refusals],
            "traces": [],
        }
        for i, trace in enumerate(traces):
            scope = trace.guards
            writer = GraphWriter(
                self.path, variables, constants, gradients, scope, optimizers
            )
            try:
                form = writer.form(trace.concrete.graph)
            except SavingError as error:
                raise SavingError(
                    self.path, f"function '{self.name}': {error.reason}"
                ) from error
            group.group(f"trace_{i}").json("graph", form)
            # Behind it: the gradients of the graph may have asked for more.
            call["traces"].append({
                "pattern": [None if s is None else [*s] for s in trace.pattern],
                "assumptions": None if scope is None else encode_guards(scope),
            })  # fmt: skip
        group.json("call", call)

    def _traces(self, gradients):
        """Return the traces for the allowed shapes, and the ranks that no trace serves."""
        try:
            return covering_traces(self.concrete, self.shapes, self.retrace, gradients)
        except Exception as error:  # whatever the Python code may raise
            raise SavingError(
                self.path,
                f"function '{self.name}' cannot be traced: {reason_of(error)}. {ONLY_OPS}",
            ) from error

    def _opened(self):
        """Return the values, with the specs that this call allows."""
        shapes = iter(self.shapes)

        def opened(spec):
            return TensorSpec(next(shapes), spec.dtype, spec.name)

        return [map_specs(opened, x) for x in self.values]

    def _value(self, x, variables):
        def plain(leaf):
            leaf = revived(leaf)
            if not isinstance(leaf, Variable):
                return leaf
            return Numbered(number_of(leaf, variables))

        try:
            return encode(_mapped(plain, x))
        except TypeError as error:
            raise SavingError(
                self.path,
                f"function '{self.name}' was called with an argument that cannot be "
                f"saved: {error}",
            ) from None


def map_specs(function, x):
    """Map the specs in a value, also those in indexed slices, in the order of tensors."""

    def mapped(leaf):
        if isinstance(leaf, CompositeTensor):
            return leaf._tw_with_components([mapped(x) for x in leaf._tw_components()])
        return function(leaf) if isinstance(leaf, TensorSpec) else leaf

    return _mapped(mapped, x)


def specs_of(x):
    """Return the specs in a value, in the order of tensors."""
    specs = []

    def listed(spec):
        specs.append(spec)
        return spec

    map_specs(listed, x)
    return specs


def _mapped(function, x):
    return map_structure(function, x) if is_nested(x) else function(x)


def _differ(x, y):
    return encode(x) != encode(y)


def _form_of(family):
    """Return the `InputStructure` of any trace of a family."""
    forms = [concrete.input_structure for concrete in family.functions()]
    return next((form for form in forms if form is not None), None)


def _form_by_inputs(concrete):
    """Return an `InputStructure` of tensors only."""
    values, names = concrete.graph.inputs, []
    for i, value in enumerate(values):
        name = value.name if str(value.name).isidentifier() else f"input_{i}"
        names.append(name if name not in names else f"{name}_{i}")
    specs = [TensorSpec(_known(v.shape), v.dtype) for v in values]

    def function(*args):
        """Replace the Python code."""

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in names]
    function.__signature__ = inspect.Signature(parameters)
    return InputStructure(
        Signature(function, concrete.name), specs, [None] * len(specs)
    )


def _known(shape):
    if isinstance(shape, UnrankedShape):
        return None
    return [None if is_symbolic(n) else n for n in shape]


def _parameter(parameter, constants, variables):
    """Return a parameter as JSON: name, kind, and its default, if there is one."""
    default = parameter.default
    head = [parameter.name, parameter.kind.name]
    if default is parameter.empty:
        return head
    if isinstance(default, Tensor):
        return [*head, {"constant": constants.number(default)}]
    if isinstance(default, Variable):
        return [*head, {"value": encode(Numbered(number_of(default, variables)))}]
    try:
        return [*head, {"value": encode(default)}]
    except TypeError:  # a call of the loaded function must pass the argument
        return head


# --------------------------------------------------------------------------- reading


def _read(group, variables, optimizers):
    head = group.json("function")
    constants = ConstantReader(group)
    parameters = [
        _read_parameter(each, constants, variables) for each in head["parameters"]
    ]
    count = head["calls"]
    if type(count) is not int or not 0 < count <= MANY or len(parameters) > MANY:
        raise ValueError(f"{count!r} is not a number of signatures")
    name, input_signature = short_text(head["name"]), head["input_signature"]
    if input_signature is not None:
        input_signature = decode(input_signature)
    saved = [
        _read_call(group.group(f"call_{i}"), name, variables, constants, optimizers)
        for i in range(count)
    ]
    function = Restored(name, parameters, [c for c, _, _ in saved], input_signature)
    for concrete, values, named in saved:
        if len(values) != len(parameters):
            raise ValueError("a signature must have a value for each parameter")
        concrete.input_structure = InputStructure(function.signature, values, named)
    return function


def _read_parameter(value, constants, variables):
    name, kind, *default = value
    kind = getattr(inspect.Parameter, str(kind))
    if not default:
        return inspect.Parameter(identifier(name), kind)
    ((tag, inner),) = default[0].items()
    if tag == "constant":
        default = constants[inner]
    else:
        default = _with_variables(decode(inner), variables)
    return inspect.Parameter(identifier(name), kind, default=default)


def _read_call(group, name, variables, constants, optimizers):
    """Return the trace of one signature, its values and their names."""
    call = group.json("call")
    values = [_with_variables(decode(x), variables) for x in call["values"]]
    specs = [s for x in values for s in specs_of(x)]
    shapes = _patterns(call["shapes"], specs)
    structure, listed = decode(call["structure"]), call["traces"]
    if not isinstance(listed, list) or not 0 < len(listed) <= MANY:
        raise ValueError("there must be a list of traces")
    context = specs, structure, variables, constants, optimizers
    traces = [
        _read_trace(group.group(f"trace_{i}"), each, *context)
        for i, each in enumerate(listed)
    ]
    first = traces[0].concrete
    if is_open(shapes):
        refusals = [(list(ranks), str(why)) for ranks, why in call["refusals"]]
        first = RestoredConcrete(first.graph, structure)
        first.specializations = SavedTraces(name, shapes, traces, refusals)
    elif len(traces) > 1 or traces[0].guards is not None:
        raise ValueError("one signature without open sizes must have one trace")
    return first, values, [x if isinstance(x, str) else None for x in call["named"]]


def _with_variables(x, variables):
    def restored(leaf):
        is_variable = type(leaf) is Numbered
        return item_of(variables, leaf.number, "variable") if is_variable else leaf

    return _mapped(restored, x)


def _patterns(listed, specs):
    """Return a shape for each spec, None where a size is open."""
    if len(listed) != len(specs):
        raise ValueError("there must be a shape for each tensor among the arguments")
    for shape, spec in zip(listed, specs):
        for n in shape or ():
            if n is not None and (type(n) is not int or n < 0):
                raise ValueError(f"{shape} is not a shape")
        if not spec.shape.is_compatible_with(TensorSpec(shape).shape):
            raise ValueError(f"{shape} is not a shape of {spec}")
    return tuple([None if shape is None else tuple(shape) for shape in listed])


def _read_trace(group, head, specs, structure, variables, constants, optimizers):
    pattern, scope = _patterns(head["pattern"], specs), None
    if is_open(pattern):
        scope = decode_guards(head["assumptions"], pattern)
    reader = GraphReader(group, variables, constants, scope, optimizers)
    graph = reader.graph(group.json("graph"))
    if len(graph.inputs) != len(pattern) or graph.captures:
        raise ValueError("a trace must have an input for each tensor of its arguments")
    for i, (value, shape, spec) in enumerate(zip(graph.inputs, pattern, specs)):
        if value.dtype != spec.dtype.dtype or not _is_input(value.shape, shape, i):
            raise ValueError(f"input {i} of a trace must be {spec}")
    numbers = range(len(graph.outputs))
    for n in flatten(structure, expand_composites=True):
        if n is not None and n not in numbers:
            raise ValueError("the results must be outputs of the trace")
    packer(structure)
    return Trace(pattern, RestoredConcrete(graph, structure), scope)


def _is_input(shape, pattern, number):
    """Return True if a shape is the pattern, filled with the sizes of this input."""
    if pattern is None:
        return isinstance(shape, UnrankedShape) and shape.shape_symbol == (number, None)
    if isinstance(shape, UnrankedShape) or len(shape) != len(pattern):
        return False
    for axis, (n, wanted) in enumerate(zip(shape, pattern)):
        if wanted is None:
            if not is_symbolic(n) or n.expression != (
                "poly",
                ((((number, axis),), 1),),
            ):
                return False
        elif is_symbolic(n) or n != wanted:
            return False
    return True
