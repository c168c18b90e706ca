"""`aggregated_states`: the states of metrics, combined over all replicas."""

from contextlib import contextmanager

from tapewright.core.state.replica_context import in_replica_context, replica_context
from tapewright.core.variable import writing
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import zeros_like
from tapewright.ops.array.joining import concat
from tapewright.ops.array.shape import reshape
from tapewright.ops.collective import all_reduce


@contextmanager
def aggregated_states(metrics):
    """Return a context in which metrics have the combined states of all replicas.

    Each variable is reduced by its ``aggregation``, see `Metric.add_variable`, in one
    all-reduce per dtype, which all replicas must call. Inside there is no replica
    context; at the end the variables have the values of this replica again. Outside of
    a replica context nothing changes.

    Raises:
        ValueError: If a variable has no ``aggregation``.
    """
    context = replica_context()
    if context is None:
        yield
        return
    variables = [v for metric in metrics for v in _aggregated(metric)]
    variables = list({id(v): v for v in variables}.values())
    with writing(variables):
        own = [v.read() for v in variables]
        try:
            for variable, value in zip(variables, _reduced(variables, own, context)):
                variable.assign(value)
            with in_replica_context(None):
                yield
        finally:
            for variable, value in zip(variables, own):
                variable.assign(value)


def _aggregated(metric):
    """Return the variables that are aggregated over the replicas."""
    for variable in metric._tw_all_variables():
        if not isinstance(variable.aggregation, str):  # not made by `add_variable`
            raise ValueError(
                f"metric '{metric.name}': with several replicas each variable "
                f"needs an aggregation, but '{variable.path}' has none; create it "
                "with add_variable(..., aggregation='sum'), or 'none' if it "
                "never changes"
            )
    return [v for v in metric.variables if v.aggregation != "none"]


def _reduced(variables, values, context):
    """Return the values combined over all replicas, after one all-reduce per dtype."""
    reduced = list(values)
    for dtype in dict.fromkeys([value.dtype for value in values]):
        members = [i for i, value in enumerate(values) if value.dtype == dtype]
        terms = [_term(variables[i], values[i], context) for i in members]
        totals = all_reduce(concat([reshape(term, (-1,)) for term in terms], 0))
        start = 0
        for i in members:
            stop = start + values[i].array.size
            total = reshape(totals[start:stop], values[i].array.shape)
            if variables[i].aggregation == "mean":
                total = cast(total / context.num_replicas, dtype)
            reduced[i], start = total, stop
    return reduced


def _term(variable, value, context):
    """Return this replica's term in the sum over all replicas."""
    if variable.aggregation == "only_first_replica" and context.replica_id:
        return zeros_like(value)
    return value
