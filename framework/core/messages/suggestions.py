"""Suggestions in errors about unknown names: the similar name, or the name used here.

Every message on a name that is not among a known set ends with `did_you_mean` or
`suggestion`. Arguments that other libraries call differently are in `RENAMED_ARGUMENTS`;
names of PyTorch that are attributes, functions or modules there are in
`names_of_pytorch`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..typing import P, R

Class = TypeVar("Class", bound=type)
_PACKAGE = __name__.partition(".")[0]
_LEAST = 0.7  # similarity of a name; 'val_acc' and 'val_accuracy' have 0.706
_LEAST_OF_SHORT = 0.65  # 'mes' and 'mse' have 0.667, as 'nothing' and 'hinge'
_LISTED = 40
_COMPARED = 1000  # names may come from a file: the time is bounded

_INPUTS = "leave it out: the size of the inputs is known at the first call"
# Argument of PyTorch, NumPy or Keras 1 -> the arguments here, of which the first that a
# function has is suggested; or a sentence that starts in lower case, with a space in it.
RENAMED_ARGUMENTS: dict[str, tuple[str, ...]] = {
    name: tuple(here)
    for names, *here in (
        ("lr", "learning_rate", "initial_learning_rate"),
        ("betas", "use 'beta_1' and 'beta_2'"),
        ("eps", "epsilon"),
        ("gamma", "decay_rate", "rho"),
        ("max_norm clip_norm", "global_clipnorm", "clipnorm"),
        ("dim dims", "axis", "axes", "perm", "shape"),
        ("keepdim keep_dims", "keepdims"),
        ("reduction_indices", "axis"),
        ("input tensor tensors other self", "inputs", "values", "input_tensor", "x", "a"),
        ("size newshape", "shape"),
        ("std", "stddev"),
        ("low", "minval"),
        ("high", "maxval"),
        ("bias", "use_bias"),
        ("p", "rate"),
        ("drop_prob dropout_p", "rate", "dropout"),
        ("activation_fn nonlinearity", "activation"),
        ("out_features hidden_size", "units"),
        ("out_channels nb_filter", "filters"),
        ("in_features in_channels input_size", _INPUTS),
        ("kernel", "kernel_size", "pool_size"),
        ("kernel_size", "pool_size"),
        ("stride subsample", "strides"),
        ("dilation", "dilation_rate", "dilations"),
        ("scale_factor", "size"),
        ("num_embeddings", "input_dim"),
        ("embedding_dim", "output_dim"),
        ("embed_dim", "key_dim"),
        ("batch_first inplace", "leave it out"),
        ("bidirectional", "use tw.layers.Bidirectional(layer)"),
        ("init kernel_init weight_init", "kernel_initializer", "initializer"),
        ("W_regularizer weight_regularizer", "kernel_regularizer"),
        ("b_regularizer", "bias_regularizer"),
        ("affine elementwise_affine", "use 'center' and 'scale'"),
        ("track_running_stats", "use trainable=False"),
        ("num_features normalized_shape num_channels", _INPUTS),
        ("ignore_index", "ignore_class"),
        ("size_average reduce", "reduction"),
        ("criterion loss_fn loss_function", "loss"),
        ("nb_epoch num_epochs n_epochs max_epochs", "epochs"),
        ("bs", "batch_size"),
        ("val_data", "validation_data"),
        ("drop_last", "drop_remainder"),
        ("num_workers", "num_parallel_calls", "workers"),
        ("retain_graph", "persistent"),
        ("create_graph", "use a tape inside a tape"),
        ("requires_grad", "trainable", "use tape.watch(x), or tw.Variable"),
        ("device", "use `with tw.device(name):` around the call"),
        ("jit", "jit_compile"),
    )
    for name in names.split()
}  # fmt: skip


def did_you_mean(name: Any, known: Iterable[Any], least: float | None = None) -> str:
    """Return the end of a message: the known name most like ``name``, or "".

    Case and underscores do not count. Of equally similar names up to three are given, and
    those that start with ``name`` where no other is similar.

    Args:
        name: The unknown name.
        known: The names that exist.
        least: The least similarity of a name, from 0 to 1; give more for many names.

    Example:
        >>> from tapewright.core.messages.suggestions import did_you_mean
        >>> did_you_mean("activaton", ["units", "activation"])
        ". Did you mean 'activation'?"
        >>> did_you_mean("nothing", ["like", "it"])
        ''
    """
    near = _nearest(str(name), [str(each) for each in known], least)
    return f". Did you mean {' or '.join(map(repr, near))}?" if near else ""


def suggestion(name: Any, known: Iterable[Any], listing: str = "known are") -> str:
    """Return `did_you_mean`, or where nothing is similar, the list of known names.

    Args:
        name: The unknown name.
        known: The names that exist.
        listing: Words in front of the list.

    Example:
        >>> from tapewright.core.messages.suggestions import suggestion
        >>> suggestion("rat", ["rate", "seed"]), suggestion("other", ["rate", "seed"])
        (". Did you mean 'rate'?", '; known are rate, seed')
    """
    known = [str(each) for each in known]
    hint = did_you_mean(name, known)
    if hint or not known:
        return hint
    by_letters = {}
    for each in known:
        by_letters.setdefault(_letters(each), each)
    known = list(by_letters.values())
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    return f"; {listing} {', '.join(known[:_LISTED])}{more}"


def explain_argument(name: str, known: Iterable[str]) -> str:
    """Return the end of a message on an unknown argument: what to write instead, or "".

    Args:
        name: The unknown argument.
        known: The arguments that the function has.

    Example:
        >>> from tapewright.core.messages.suggestions import explain_argument
        >>> explain_argument("lr", ["learning_rate"]), explain_argument("betas", ["beta_1"])
        (". Did you mean 'learning_rate'?", ": use 'beta_1' and 'beta_2'")
    """
    known = list(known)
    for here in RENAMED_ARGUMENTS.get(name, ()):
        if " " in here:
            return f": {here}"
        if here in known:
            return f". Did you mean {here!r}?"
    return did_you_mean(name, known)


def unknown_arguments(who: str, unknown: dict[str, Any], known: Iterable[str]) -> str:
    """Return the message of an error about arguments that a function does not have.

    Args:
        who: The function or class.
        unknown: The unknown arguments, with the values given.
        known: The arguments that it has.

    Example:
        >>> from tapewright.core.messages.suggestions import unknown_arguments
        >>> unknown_arguments("Dense", {"unit": 4}, ["units", "activation"])
        "Dense: unknown argument 'unit' (given 4). Did you mean 'units'?"
    """
    known = list(known)
    hints = {name: explain_argument(name, known) for name in unknown}
    parts = [
        f"unknown argument {name!r} (given {value!r:.60}){hints[name]}"
        for name, value in unknown.items()
    ]
    text = f"{who}: {' '.join([p if p[-1] == '?' else f'{p};' for p in parts])}"
    text = text.removesuffix(";")
    if all(hints.values()):
        return text
    return f"{text}; the arguments are {', '.join(known)}"


def suggesting_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: the TypeError of a misspelt argument says which argument was meant.

    For functions that take long: a call takes 0.1 microseconds more.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            explain_call(error, function, kwargs)
            raise

    return call


def explain_call(error: TypeError, function: Any, kwargs: dict[str, Any]) -> None:
    """Name the argument meant in an error of Python's, raised by a call of ``function``.

    It is called where the error is caught first, around the call: an error from inside of
    the function is left alone.
    """
    if error.__traceback__ is None or error.__traceback__.tb_next is not None:
        return
    known = _parameters(function)
    unknown = {name: value for name, value in kwargs.items() if name not in known}
    if unknown and not function.__code__.co_flags & 0x08:  # CO_VARKEYWORDS
        known = [name for name in known if name != "self"]
        error.args = (unknown_arguments(function.__name__, unknown, known),)


def explain_keyword(error: TypeError, function: Any) -> None:
    """Name the argument meant in an error of Python's about a keyword of ``function``."""
    text = str(error)
    start = (
        f"{getattr(function, '__qualname__', '')}() got an unexpected keyword argument "
    )
    if text.startswith(start) and hasattr(function, "__code__"):
        name = text.removeprefix(start).strip("'")
        error.args = (text + explain_argument(name, _parameters(function)[1:]),)


_UNEXPECTED = "() got an unexpected keyword argument "
_FUNCTIONS = (FunctionType, MethodType, staticmethod, classmethod)


def explain_uncaught(error: BaseException) -> None:
    """Name the argument meant in an error of Python's that is about to be printed.

    It is for functions that are too fast for `suggesting_arguments`: nothing is found or
    wrapped before the program has ended with the error.
    """
    if type(error) is not TypeError or error.__traceback__ is None:
        return
    text = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    title, found, quoted = text.partition(_UNEXPECTED)
    name, _, rest = quoted[1:].partition("'")
    if not found or rest:  # Python 3.13 suggests some
        return
    step = error.__traceback__
    while step.tb_next is not None:
        step = step.tb_next
    hints = set()
    for function in _functions(step.tb_frame, title):
        if not str(function.__module__).startswith(f"{_PACKAGE}."):
            return  # it may be the one that was called
        if name not in _parameters(function):
            hints.add(explain_argument(name, _parameters(function)))
    hints.discard("")
    if len(hints) == 1:
        error.args = (f"{text}{hints.pop()}",)


def _functions(frame, title):
    """The functions of this qualified name that the code of a frame can refer to.

    It refers to variables, to their attributes, to the attributes of these, and so on.
    """
    code, variables = frame.f_code, {**frame.f_globals, **frame.f_locals}
    names = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
    names.add(title.rpartition(".")[2])  # `__init__` stands in no code
    values_by_id, waiting = {}, [variables]
    while waiting and len(values_by_id) < _COMPARED:
        space = waiting.pop()
        for value in [space[name] for name in names & space.keys()]:
            if id(value) not in values_by_id:
                values_by_id[id(value)] = value
                cls = value if isinstance(value, type) else type(value)
                waiting += [vars(base) for base in cls.__mro__]
                waiting.append(getattr(value, "__dict__", {}))
    functions = [each for each in values_by_id.values() if isinstance(each, _FUNCTIONS)]
    functions = [inspect.unwrap(getattr(f, "__func__", f)) for f in functions]
    return [each for each in functions if getattr(each, "__qualname__", None) == title]


def suggesting_methods(cls: Class) -> Class:
    """Class decorator: `suggesting_arguments` for all public methods of a class."""
    for name, value in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, FunctionType):
            setattr(cls, name, suggesting_arguments(value))
        elif isinstance(value, (staticmethod, classmethod)):
            setattr(cls, name, type(value)(suggesting_arguments(value.__func__)))
    return cls


def _parameters(function):
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _nearest(name, known, least):
    """The names most like ``name``: the best, or up to three that are as good."""
    # An import of 1 ms, for mistakes only.
    from difflib import SequenceMatcher, get_close_matches

    def score(each):
        other_case = each[:1].isupper() != name[:1].isupper()  # a class, not a function
        return SequenceMatcher(None, _letters(each), wanted).ratio() - other_case / 10

    wanted, alike = _letters(name), {}
    if least is None:
        least = _LEAST if len(wanted) > 4 else _LEAST_OF_SHORT
    for each in known[:_COMPARED]:
        alike.setdefault(_letters(each), []).append(each)
    near = get_close_matches(wanted, alike, 3, least)
    if not near and len(wanted) >= 4:
        near = [each for each in alike if each.startswith(wanted)]
    names = [each for letters in near for each in alike[letters]]
    best = max(map(score, names), default=0)
    return [each for each in names if score(each) == best][:3]


def _letters(name):
    return name[:50].replace("_", "").lower()
