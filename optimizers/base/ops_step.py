"""One step of a rule in ops, run at once or traced: `take_step`.

What depends on the count of steps is chosen by ops, so that a trace has all cases.
"""

from __future__ import annotations

from functools import partial

from tapewright.compiler.control_flow.cond import cond
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import zeros_like
from tapewright.ops.math.comparison import where

from .arithmetic import ACCUMULATOR, AVERAGE
from .flat_buffers import computed_in


def take_step(rule, update, count, gradients, share, clipped):
    """Assign the results of one step to the variables.

    Args:
        rule: The optimizer, or a proxy that records the settings that are read.
        update: The `Update`.
        count: Number of steps before, an int or a tensor.
        gradients: Gradients of the update.
        share: Factor of the gradients.
        clipped: Function ``(gradients, clipnorm, clipvalue, global_clipnorm, share)``
            that returns clipped gradients, a list of dense tensors.
    """
    variables = [variable for _, variable, _ in update.present]
    every = rule.gradient_accumulation_steps or 1

    def apply(gradients, share):
        rate = rule.learning_rate
        gradients = clipped(gradients, *rule._tw_limits, share)
        rule._apply_weight_decay(variables)
        rule._backend_update_step(gradients, variables, rate)

    def apply_means():
        apply([total / every for total in sums], 1.0)
        for _, total in totals:
            total.assign(zeros_like(total))

    if every == 1:
        apply(gradients, share)
        steps = count
    else:
        totals = _extras(update, ACCUMULATOR)
        total_of = {id(variable): total for variable, total in totals}
        sums = [total_of[id(variable)] for variable in variables]
        for total, gradient in zip(sums, clipped(gradients, None, None, None, 1.0)):
            part = _wide(gradient) if share == 1 else _wide(gradient) * share
            total.assign(cast(_wide(total) + part, total.dtype))
        cond(count % every == every - 1, apply_means, lambda: None)
        steps = count // every
    if rule.use_ema:
        _average(rule, update, steps)
    for variable, *_ in update.constrained:
        rule._tw_constrain(variable)


def _average(rule, update, steps):
    """Move the averages toward the variables, after ``steps`` steps.

    As in Keras the first average is the variable itself.
    """
    weight, every = 1 - rule.ema_momentum, rule.ema_overwrite_frequency
    is_first = steps == 0
    # A remainder of ``steps + 1``, from the loop of the step, would split the loop.
    is_due = steps % every == every - 1 if every else False
    for variable, average in _extras(update, AVERAGE):
        if weight != 1:
            moved = partial(_moved, average, variable, weight)
            average.assign(_choose(is_first, variable.read, moved))
        else:
            average.assign(variable)
        if every:
            variable.assign(_choose(is_due, average.read, variable.read))


def _moved(mean, x, weight):
    """Return a mean after a step toward ``x``: see `approach`."""
    return cast(_wide(mean) + _wide(x - mean) * weight, x.dtype)


def _wide(x):
    """Cast to the dtype in which a step is computed."""
    dtype = x.dtype.dtype
    wide = computed_in(dtype)
    return x if wide is dtype else cast(x, wide)


def _choose(condition, x, y):
    """Return ``x()`` or ``y()``; traced ones both, as they are fused with the step."""
    if type(condition) is bool:
        return x() if condition else y()
    return where(condition, x(), y())


def _extras(update, name):
    """Return pairs of each trained variable and its extra of this name."""
    return [
        pair
        for segment in update.segments
        for pair in zip(segment.variables, segment.extras[name])
    ]
