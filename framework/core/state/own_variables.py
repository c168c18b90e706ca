"""The default hooks by which layers and optimizers save and load their variables.

These are Keras' hooks: a ``store`` is a dict of arrays, which a file keeps for the
object.
"""

from __future__ import annotations

from typing import Any

from .assignment import assign_all


def save_own_variables(self, store: Any) -> None:
    """Save the direct variables of the object in ``store`` as "0", "1", ...

    Override it together with `load_own_variables` to save something else.

    Args:
        store: Dict to which arrays are added, by name.
    """
    for i, variable in enumerate(_own(self)):
        store[str(i)] = variable.numpy()


def load_own_variables(self, store: Any) -> None:
    """Assign the values that `save_own_variables` saved in ``store``.

    Args:
        store: Dict of arrays, by name.

    Raises:
        ValueError: If the number of values or a shape differs; nothing is assigned
            then.
    """
    variables = _own(self)
    if len(store.keys()) != len(variables) and hasattr(
        self, "_tw_own_variables_before"
    ):
        before = self._tw_own_variables_before()
        variables = before if len(store.keys()) == len(before) else variables
    if len(store.keys()) != len(variables):
        raise ValueError(
            f"'{self.name}' has {len(variables)} variables, but {len(store.keys())} "
            "were saved"
        )
    values = [store[str(i)] for i in range(len(variables))]
    assign_all(f"'{self.name}'", variables, values, cast=True)


def keeps_plainly(owner):
    """Return whether the class of an object overrides neither hook."""
    cls = type(owner)
    return (
        cls.save_own_variables is save_own_variables
        and cls.load_own_variables is load_own_variables
    )


def _own(owner):
    if hasattr(owner, "_tw_own_variables"):
        return owner._tw_own_variables()
    return owner.variables
