"""The variables of a model, its optimizer and its metrics, as dicts nested by path."""

from tapewright.core.messages.argument_validation import one_of
from tapewright.core.state.assignment import assign_all
from tapewright.core.state.stateless_scope import paired

FORMATS = {
    "backend_tensor": lambda v: v._tw_read_uncast(),
    "numpy_array": lambda v: v.numpy(),
}


def _groups(model):
    optimizer = getattr(model, "optimizer", None)
    groups = {
        "trainable_variables": model.trainable_variables,
        "non_trainable_variables": model.non_trainable_variables,
        "optimizer_variables": [] if optimizer is None else optimizer.variables,
        "metrics_variables": model.metrics_variables,
    }
    return {name: _by_path(variables) for name, variables in groups.items()}


def _by_path(variables):
    found = {}
    for variable in variables:
        if variable.path in found:
            raise ValueError(
                f"get_state_tree: two variables have the path {variable.path!r}; give the "
                "layers, or other objects, different names"
            )
        found[variable.path] = variable
    return found


def state_tree(model, value_format):
    """Return the values of all variables; see `Model.get_state_tree`."""
    one_of("get_state_tree", "value_format", value_format, tuple(FORMATS))
    tree = {}
    for name, variables in _groups(model).items():
        tree[name] = {}
        for path, variable in variables.items():
            *parents, last = path.split("/")
            inner = tree[name]
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[last] = FORMATS[value_format](variable)
    return tree


def assign_state_tree(model, tree):
    """Assign the values of a tree, all or none of them; see `Model.set_state_tree`."""
    groups, pairs = _groups(model), []
    for name, inner in tree.items():
        if name not in groups:
            raise ValueError(
                f"set_state_tree: unknown key {name!r}; the keys are {', '.join(groups)}"
            )
        for path, value in _leaves(inner):
            variable = groups[name].get(path)
            if variable is None:
                raise ValueError(
                    f"set_state_tree: no variable of {name} has the path {path!r}"
                )
            pairs += paired(f"set_state_tree: {path}", "it", [variable], [value])
    variables, values = [v for v, _ in pairs], [x for _, x in pairs]
    assign_all("set_state_tree", variables, values, cast=True)


def _leaves(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", value
