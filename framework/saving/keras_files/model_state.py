"""What the kinds of model files share: making a model of a config, compiling, its state.

Beside what Keras keeps, files have a group of our own, ``tapewright``, which Keras passes
over: in ``random`` the states of the model's random generators, so that a run goes on as
if it had never stopped.
"""

import math
import warnings

from ...errors import SavingError
from ...registration import from_file
from ..storage.filling import Filling
from ..storage.limits import check_size
from .blank_weights import blank_weights
from .objects import deserialize_keras_object
from .older_configs import in_present_form
from .optimizer_state import pairs_by_name, pairs_in_order

__all__ = [
    "OWN_GROUP", "compile_as_saved", "filled_model", "restore_optimizer",
    "write_own_state",
]  # fmt: skip

OWN_GROUP = "tapewright"
FORMAT = 1


def write_own_state(root, model):
    """Writes the group of our own. Returns it."""
    group = root.group(OWN_GROUP)
    group.integer("format", FORMAT)
    for i, state in enumerate(_random_states(model)):
        group.array(f"random/{i}", state._array)
    return group


def _random_states(model):
    weights = {id(v) for v in model.weights}
    return [v for v in model.variables if id(v) not in weights]


# ------------------------------------------------------------------------------- reading


def filled_model(root, place, config, build_config, weights, read):
    """The model of a config that a file holds, with the weights that it holds.

    ``place``: where the config stands, for errors; ``weights``: the groups that hold them;
    ``read(model, filling)`` notes what belongs to what. No more memory is taken than the
    weights in the file need, and nothing is drawn at random for them.
    """
    path = root.path
    check_size(config, path, place)
    numbers = sum([_numbers_in(group) for group in weights])
    with blank_weights(path, numbers, place) as room:
        with from_file(path, place):
            model = deserialize_keras_object(in_present_form(config), kind="layer")
        if not hasattr(model, "compile"):
            kind = type(model).__name__
            raise SavingError(path, f"the config is that of a {kind}, no model", place)
        _build(model, build_config, path, place)
        filling = Filling(path)
        read(model, filling)
        _note_random(root, model, filling)
        filling.apply()
        room.settle()
    return model


def _numbers_in(group):
    """How many numbers the arrays below have. Raises: `SavingError` for unstored ones."""
    arrays = [each for each in group.walk() if hasattr(each, "read_into")]
    return sum([math.prod(array.check().shape) for array in arrays])


def _build(model, build_config, path, place):
    if not build_config or model.built:
        return
    try:
        model.build_from_config(build_config)
    except SavingError:
        raise
    except Exception as error:  # whatever the config of a model makes its build say
        reason = f"the model cannot be built for {build_config!r:.200}: {error}"
        raise SavingError(path, reason, place) from error


def _note_random(root, model, filling):
    group = root.find(f"{OWN_GROUP}/random")
    if group is None:
        return
    arrays, states = group.numbered(), _random_states(model)
    if len(arrays) == len(states):
        for state, array in zip(states, arrays):
            filling.pair(state, array)
        return
    warnings.warn(
        f"{root.path}: the states of {len(arrays)} random generators are stored, the model "
        f"has {len(states)}: they start anew",
        stacklevel=6,
    )


def compile_as_saved(model, config, path, place):
    """Compiles by a ``compile_config`` of a file. Returns whether it did."""
    if not isinstance(config, dict):
        raise SavingError(path, "the config of compile must be a dict", place)
    if not config.get("optimizer"):
        warnings.warn(
            f"{path}: the model was saved with a compile config that lacks an optimizer; "
            "it is not compiled, call compile()",
            stacklevel=5,
        )
        return False
    try:
        with from_file(path, place):
            model.compile_from_config(in_present_form(config))
    except SavingError as error:
        error.add_note("compile=False loads the model without it")
        raise
    except Exception as error:  # whatever losses and metrics say of their configs
        reason = f"the model cannot be compiled as it was: {error}"
        wrapped = SavingError(path, reason, place)
        wrapped.add_note("compile=False loads the model without it")
        raise wrapped from error
    return True


def restore_optimizer(model, arrays, path, names=None):
    """Gives the optimizer the state that a file holds: ``arrays``, or None for nothing.

    What does not fit is left, with a warning. ``names`` of the arrays, where these are in
    the order of Keras 2.
    """
    optimizer = model.optimizer
    if arrays is None:
        _warn_fresh(path, optimizer, "the file holds no state of it")
        return
    if len(arrays) != len(optimizer.variables):
        optimizer.build(model.trainable_variables)
    pairs = pairs_in_order(optimizer, arrays)
    if names is not None and any([name.endswith(":0") for name in names]):
        optimizer.build(model.trainable_variables)
        pairs = pairs_by_name(optimizer, names, arrays)
    filling = Filling(path)
    for variable, array in [] if isinstance(pairs, str) else pairs:
        filling.pair(variable, array)
    if filling.problems:
        pairs = filling.problems[0][1]
    if isinstance(pairs, str):
        _warn_fresh(path, optimizer, pairs)
    else:
        filling.apply()


def _warn_fresh(path, optimizer, reason):
    warnings.warn(
        f"{path}: the optimizer '{optimizer.name}' starts anew: {reason}", stacklevel=5
    )
