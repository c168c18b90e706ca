"""`DistributedGradientTape`: gradients averaged over all processes."""

from __future__ import annotations

from typing import Any

from tapewright.autodiff.gradient_tape import GradientTape, UnconnectedGradients
from tapewright.core.rules import check_choice
from tapewright.core.typing import TensorNest

from .collectives import all_reduce


class DistributedGradientTape:
    """Gradient tape whose gradients are averaged over all processes.

    The mean gives all processes the same weight. With batches of different sizes,
    divide the loss by the total number of examples (``tw.nn.compute_average_loss``) and
    set ``op="sum"``. All processes must call `gradient` for the same sources, and
    equally often.

    Args:
        tape: A `GradientTape`, whose other methods remain available.
        op: "mean", or "sum" for losses that are divided by the total number of
            examples.
        compression: "float16" to send gradients in half precision, or None.

    Raises:
        TypeError: If ``tape`` is not a `GradientTape`.
        ValueError: If ``op`` or ``compression`` is unknown.

    Example:
        >>> import tapewright as tw
        >>> x = tw.Variable(3.0)
        >>> with tw.GradientTape() as tape:
        ...     y = x * x
        >>> tape = tw.distribute.DistributedGradientTape(tape)
        >>> tape.gradient(y, x).numpy()  # of one process
        np.float32(6.0)
    """

    def __init__(
        self, tape: GradientTape, op: str = "mean", compression: str | None = None
    ):
        if not isinstance(tape, GradientTape):
            raise TypeError(
                "DistributedGradientTape: tape must be a GradientTape, got "
                f"{type(tape).__name__}"
            )
        check_choice("DistributedGradientTape", "op", op, ("mean", "sum"))
        check_choice(
            "DistributedGradientTape", "compression", compression, (None, "float16")
        )
        self._tape, self._op, self._compression = tape, op, compression

    def __repr__(self) -> str:
        return f"<DistributedGradientTape op={self._op!r} of {self._tape!r}>"

    def gradient(
        self,
        target: TensorNest,
        sources: TensorNest,
        output_gradients: TensorNest = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """Return `GradientTape.gradient`, reduced over all processes; None stays None.

        `IndexedSlices` are gathered; in a traced function they are made dense and
        reduced.

        Args:
            target: Tensor or nest of tensors to differentiate.
            sources: Tensors or variables to differentiate with respect to, or a nest of
                them.
            output_gradients: Cotangents of ``target``, or None for ones.
            unconnected_gradients: "none" or "zero", the gradient of sources that
                ``target`` does not depend on.

        Raises:
            CollectiveError: If the calls of the processes differ.
        """
        gradients = self._tape.gradient(
            target, sources, output_gradients, unconnected_gradients
        )
        return all_reduce(gradients, self._op, self._compression)

    def __enter__(self) -> DistributedGradientTape:
        self._tape.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._tape.__exit__(*exc)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._tape, name)
