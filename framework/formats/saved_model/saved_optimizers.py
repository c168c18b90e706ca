"""Optimizers of saved functions and modules: configs, and state by number.

Each is ``{"config": {...}, "variables": [0, 1], "spared": [1], "constraints": [...],
"state": {"iteration": 2, "momentum/0": 3...}}``: the trained variables, the variables
without weight decay, their constraints, and the optimizer's state variables. All are
variables of the file by number. ``{"child": "inner_optimizer", "of": 0}`` is a child of
another one.
"""

from tapewright.core.errors import SavingError, TracingError
from tapewright.core.hardware.devices import to_numpy
from tapewright.serialization import object_config
from tapewright.serialization.configured import Configured
from tapewright.serialization.load_errors import from_file
from tapewright.storage.reader import Group

from ..checkpoints.object_tree import explore
from .graph_reader import FAULTS
from .values import item_of, number_of

MANY = 10_000
NAME = "optimizers"


def is_optimizer(x: object) -> bool:
    """Return whether ``x`` is an optimizer, built-in or user-defined."""
    return isinstance(x, Configured) and type(x)._tw_kind == "optimizer"


class OptimizerWriter:
    """Number optimizers; ``path`` is the file, for messages."""

    def __init__(self, path):
        self.path, self._listed, self._configs = path, [], []

    def number(self, optimizer: Configured) -> int:
        """Return the number of an optimizer.

        Raises:
            TracingError: If it could not be rebuilt from its config.
        """
        for number, known in enumerate(self._listed):
            if known is optimizer:
                return number
        self._configs.append(self._config(optimizer))
        self._listed.append(optimizer)
        return len(self._listed) - 1

    def _config(self, optimizer):
        """Return the config, after checking that a file may name everything in it."""
        try:
            config = object_config.serialize(optimizer)
            with from_file(self.path, NAME):
                object_config.deserialize("optimizer", config)
                for variable in optimizer._trainable_variables:
                    object_config.resolve("constraint", _constraint(variable))
        except (TypeError, ValueError, LookupError, NotImplementedError) as error:
            reason = getattr(error, "reason", error)
            raise TracingError(
                f"the optimizer {type(optimizer).__name__} cannot be saved: {reason}"
            ) from error
        return config

    def form(self, variables: list) -> list[dict]:
        """Return the JSON once all functions are written; append to the variables."""
        children = {
            id(child): {"child": name, "of": number}
            for number, optimizer in enumerate(self._listed)
            for name, child in _children(optimizer).items()
        }
        return [
            children.get(id(optimizer)) or _form(optimizer, config, variables)
            for optimizer, config in zip(self._listed, self._configs)
        ]


def _children(optimizer):
    """Return the optimizers that are parts of one, by name."""
    children = optimizer.__children__()
    return {name: x for name, x in children.items() if is_optimizer(x)}


def _form(optimizer, config, variables):
    trained = optimizer._trainable_variables
    spared = {id(v) for v in optimizer._tw_excluded_from_weight_decay()}
    numbers = [number_of(v, variables) for v in trained] if optimizer.built else None
    state = explore([("", optimizer)]).variables
    return {
        "config": config,
        "variables": numbers,
        "spared": [i for i, v in enumerate(trained) if id(v) in spared],
        "constraints": [_constraint(v) for v in trained],
        "state": {name: number_of(v, variables) for name, v in state.items()},
    }


def _constraint(variable):
    return object_config.plain(getattr(variable, "constraint", None))


# --------------------------------------------------------------------------- reading


def read_optimizers(root: Group, variables: list) -> list:
    """Return the optimizers of a file; their state variables replace the file's variables.

    Raises:
        SavingError: If a class is not registered, or is not an optimizer.
    """
    forms = root.json(NAME) if root.has(NAME) else []
    if not isinstance(forms, list) or len(forms) > MANY:
        root.fail("must be a list of optimizers", NAME)
    optimizers, taken = {}, set()
    try:
        with from_file(root.path, NAME):
            for number, form in enumerate(forms):
                if "of" not in form:
                    optimizers[number] = _read(form, variables, taken)
            for number, form in enumerate(forms):
                if "of" in form:
                    optimizers[number] = _children(optimizers[form["of"]])[
                        form["child"]
                    ]
    except SavingError:
        raise
    except FAULTS as error:
        root.fail(f"contains no valid optimizer: {error}", NAME)
    return [optimizers[number] for number in range(len(forms))]


def _read(form, variables, taken):
    optimizer = object_config.deserialize("optimizer", form["config"])
    if not is_optimizer(optimizer):
        raise ValueError(f"{type(optimizer).__name__} is not an optimizer class")
    if form["variables"] is not None:
        trained = [item_of(variables, n, "variable") for n in form["variables"]]
        spared = [item_of(trained, i, "variable") for i in form["spared"]]
        for variable, constraint in zip(trained, form["constraints"], strict=True):
            if constraint is not None:
                variable.constraint = object_config.resolve("constraint", constraint)
        if spared:
            optimizer.exclude_from_weight_decay(spared)
        optimizer.build(trained)
    own, numbers = explore([("", optimizer)]).variables, form["state"]
    if set(own) != set(numbers):
        raise ValueError(
            f"{type(optimizer).__name__} has the state {sorted(own)[:8]}, but the "
            f"file has {sorted(numbers)[:8]}"
        )
    for name, variable in own.items():
        _take_over(name, variable, variables, numbers[name], taken)
    return optimizer


def _take_over(name, own, variables, number, taken):
    """Give a variable of an optimizer the value and name of a variable of the file."""
    read = item_of(variables, number, "variable")
    if number in taken:
        raise ValueError(f"the variable {number} is the state of two optimizers")
    taken.add(number)
    if read._array.shape != own._array.shape or read._array.dtype != own._array.dtype:
        raise ValueError(
            f"{name} must be {own._array.dtype} of shape {own._array.shape}, got "
            f"{read._array.dtype} of shape {read._array.shape}"
        )
    own.assign(to_numpy(read._array))
    own.name, own.path = read.name, read.path
    variables[number] = own
