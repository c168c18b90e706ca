"""`shard_optimizer`: the state and the update of an optimizer, divided among processes."""

from __future__ import annotations

from typing import Any, TypeVar

OptimizerT = TypeVar("OptimizerT")


def shard_optimizer(optimizer: OptimizerT) -> OptimizerT:
    """Divide the state and the update of an optimizer among the processes of the job.

    Each of ``N`` processes keeps ``1 / N`` of the slots (moments, averages, sums of
    gradients), updates that part of the variables, and receives the other parts from
    the other processes. The results are the same up to rounding. This is stage 1 of
    ZeRO. In a single process nothing changes.

    - In a step of a strategy (`Strategy.run`, `fit`), `apply` receives the gradients of
      this process, and each process gets the sums of its part only (reduce-scatter).
      In other loops, `apply` receives the same gradients in all processes, which
      `DistributedGradientTape` computes; the first step compares them. A traced function
      replaces the all-reduce of the tape by a reduce-scatter.
    - Rules in blocks, all built-in ones except Adafactor, Lamb and Muon, divide the
      sequence of all entries evenly. The others, and optimizers that define
      ``update_step``, distribute whole variables by size; such a method must access the
      slots of its variable only.
    - Reading a slot gathers it, so all processes must read it, and save models and
      checkpoints together; the first process writes the file. It contains the whole
      state, for any number of processes.

    Args:
        optimizer: Optimizer that is not built yet.

    Returns:
        The same optimizer.

    Raises:
        TypeError: If ``optimizer`` is not an optimizer.
        ValueError: If the optimizer is built already.

    References:
        Rajbhandari et al., "ZeRO: memory optimizations toward training trillion
        parameter models" (2020).

    Example:
        >>> optimizer = tw.distribute.shard_optimizer(tw.keras.optimizers.Adam(0.1))
        >>> v = tw.Variable([1.0, 2.0])
        >>> with tw.GradientTape() as tape:
        ...     loss = tw.reduce_sum(v * v)
        >>> tape = tw.distribute.DistributedGradientTape(tape)
        >>> optimizer.apply(tape.gradient(loss, [v]), [v])
        >>> v.numpy().round(3)  # on any number of processes
        array([0.9, 1.9], dtype=float32)
    """
    shard: Any = getattr(type(optimizer), "_tw_shard", None)
    if shard is None:
        raise TypeError(
            f"shard_optimizer: optimizer must be an Optimizer, got {optimizer!r}"
        )
    shard(optimizer)
    return optimizer
