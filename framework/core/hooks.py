"""Hooks: the points where a file calls code that a file of a higher floor defines.

The comment on a `Hook` says what it does and who calls it; its argument is the file that
fills it. An `Event` has any number of listeners. Code that is loaded late is behind a
function that imports it, in the ``__init__`` of a folder that is loaded early.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar

from .errors import InternalError

if TYPE_CHECKING:
    from .tensor import Tensor
    from .typing import DTypeLike, TensorLike
    from .variable import Variable

P = ParamSpec("P")
R = TypeVar("R")
Function = TypeVar("Function", bound=Callable[..., Any])


class Hook(Generic[P, R]):
    """Function that lower floors call, as ``hook.call(...)``, and a higher floor defines.

    Args:
        owner: File that fills the hook.
    """

    __slots__ = ("owner", "call")
    owner: str
    call: Callable[P, R]  # an attribute: a method would cost each eager op a call

    def __init__(self, owner: str):
        self.owner, self.call = owner, self._fail

    def _fail(self, *args: Any, **kwargs: Any) -> Any:
        raise InternalError(f"the hook of {self.owner} is called before it is filled")

    def fill(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorator: set the function, once."""
        if self.call != self._fail:
            raise InternalError(f"the hook of {self.owner} is filled twice")
        self.call = function
        return function


class Event(Generic[P]):
    """List of functions that are called, in order, when something happens."""

    __slots__ = ("listeners",)

    def __init__(self) -> None:
        self.listeners: list[Callable[P, object]] = []

    def add(self, listener: Function) -> Function:
        """Decorator: call the function from now on."""
        self.listeners.append(listener)
        return listener

    def call(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all listeners."""
        for listener in self.listeners:
            listener(*args, **kwargs)


# ------------------------------------------------------------------- tensors and variables

# Record on tapes that a tensor is converted, to "numpy()" or another name, so that
# `tape.explain` can say where a gradient ends. Called by the conversions of `Tensor`.
export: Hook[[Tensor, str], None] = Hook("core/tape.py")
# Stack tensors, cast to a dtype unless it is None: an op, so that gradients pass through a
# list ``[x, y]``. Called by `convert_to_tensor`.
pack: Hook[[Sequence[Tensor], DTypeLike | None], Tensor] = Hook("ops/array/joining.py")
# Create a tensor from a nest of symbolic sizes, with a dtype and a preferred dtype. Called
# by `convert_to_tensor`.
size_tensor: Hook[[Any, DTypeLike | None, DTypeLike | None], Tensor] = Hook(
    "ops/array/sizes.py"
)
# Cast a tensor. Called by variables of other dtypes than their layers or values.
cast: Hook[[TensorLike, DTypeLike], Tensor] = Hook("ops/operators.py")
# Write a value to ``variable[index]``. Called by `Tensor.assign`.
assign_part: Hook[[Variable, Any, TensorLike], Variable] = Hook("ops/operators.py")
# Define all ops. Called by `op_registry`, to find an op whose family is not loaded.
define_ops: Hook[[], None] = Hook("ops/__init__.py")
# Numbers become threads of native code and of BLAS calls. Called by `config.set_threads`.
threads_changed: Event[[int]] = Event()
# Called at the first use of float16, and at the first of bfloat16.
half_is_used: Event[[]] = Event()
# Called before the first array of strings is created.
text_is_used: Event[[]] = Event()


# ------------------------------------------------------------------------------- compiler


class Compiler(NamedTuple):
    """Facts about the compiler, for `config`."""

    switches: dict[str, bool]  # name of each optional pass -> default, in order
    why_native_unavailable: Callable[[], str | None]  # None if it is available
    native_description: Callable[[], str]
    # returns the product of two large matrices
    native_product: Callable[[], Callable[[Any, Any], Any]]
    # why functions on arrays of a GPU's module run op by op, or None
    why_op_by_op: Callable[[Any], str | None]


# Load the passes and targets. Called by `config`.
compiler: Hook[[], Compiler] = Hook("compiler/__init__.py")
# Convert the Python control flow of a function. Called by `interpreters.converted`.
convert: Hook[[Callable[..., Any]], Callable[..., Any]] = Hook("compiler/__init__.py")
# Return why the control flow of the traced function is not converted, or None. Called when
# a traced tensor is used as a condition.
why_not_converted: Hook[[], str | None] = Hook("compiler/__init__.py")
# Return the text of a graph. Called by ``Graph.__str__``.
graph_text: Hook[[Any], str] = Hook("compiler/__init__.py")
# Trace a branch, and a loop over rows. Called by `confluence`, for gradients of
# factorizations whose values may coincide.
branch: Hook[[str, Tensor, Sequence[Callable[[], Any]]], Any] = Hook(
    "compiler/__init__.py"
)
map_fn: Hook[[Callable[..., Any], Any], Any] = Hook("compiler/__init__.py")


# ------------------------------------------------------------------------------------ Keras

# Return module, name and, unless None, registered name of a built-in object in Keras'
# files. Called by `object_config.serialize`.
class_path: Hook[[Any], tuple[Any, ...]] = Hook("__init__.py")
# Call the function of `keras.ops` that equals an op, given by name, or another function, on
# symbolic tensors; return None if there is none. Called by `KerasTensor`.
translate_op: Hook[[str, Sequence[Any], dict[str, Any]], Any] = Hook("__init__.py")
translate_function: Hook[[Callable[..., Any], Sequence[Any], dict[str, Any]], Any] = (
    Hook("__init__.py")
)
# Return the `OperationDef` of a function of `keras.ops`, by its name in files. Called by
# `OpCall`.
find_operation: Hook[[str], Any] = Hook("__init__.py")
# Return the public names of tapewright. Called by errors about names of NumPy.
public_names: Hook[[], Sequence[str]] = Hook("__init__.py")


# --------------------------------------------------------------------------------- profiler

# Class or module, name of a function in it, category, label: read by the profiler, which
# loads late.
watched_methods: list[tuple[Any, str, str, Any]] = []


def watch_method(owner: Any, name: str, category: str, label: Any = None) -> None:
    """Record the calls of ``owner.name``, of a class or module, in profiles.

    ``label`` is the name shown there, or a function that returns it from the arguments.
    """
    watched_methods.append((owner, name, category, label or name))
