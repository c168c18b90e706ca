"""`Muon`: orthogonalized momentum for matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from tapewright.core.messages.argument_validation import whole
from tapewright.core.patterns import pattern_of
from tapewright.ops.array.conversion import cast
from tapewright.ops.linalg.matmul import matmul
from tapewright.ops.linalg.matrix_functions import norm
from tapewright.ops.math.elementwise import power, sqrt, square

from .base.optimizer import LearningRate, Optimizer, OptimizerOptions

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.variable import Variable

__all__ = ["Muon"]


class Muon(Optimizer):
    """The Muon optimizer: orthogonalized momentum for matrices, `AdamW` for the rest.

        momentum <- momentum * m + g
        x         = orthogonal(g + momentum * m)      with ``nesterov``, else of momentum
        w        <- w - learning_rate * rms_rate * sqrt(max(rows, columns)) * x

    ``orthogonal`` divides by the norm, then applies ``x <- a x + (b y + c y^2) x`` with
    ``y = x x^T`` ``ns_steps`` times: a Newton-Schulz iteration that moves singular
    values near 1. `AdamW` updates variables with a rank other than 2, embeddings, and
    variables whose paths match a pattern of ``exclude_layers``, at the rate
    ``learning_rate * adam_lr_ratio``.

    Args:
        learning_rate: Number, `keras.optimizers.schedules.LearningRateSchedule`, or
            function that returns the rate.
        adam_beta_1: ``beta_1`` of `AdamW`.
        adam_beta_2: ``beta_2`` of `AdamW`.
        adam_weight_decay: Weight decay of the variables that `AdamW` updates.
        epsilon: ``epsilon`` of `AdamW`.
        weight_decay: Weight decay of the matrices.
        exclude_layers: Regular expressions; `AdamW` updates variables whose paths
            match.
        exclude_embeddings: If True, `AdamW` updates variables with "embedding" in their
            paths.
        muon_a: The coefficient a of the iteration.
        muon_b: The coefficient b of the iteration.
        muon_c: The coefficient c of the iteration.
        adam_lr_ratio: Factor of the learning rate for `AdamW`.
        momentum: Decay rate ``m`` of the momentum.
        ns_steps: Number of Newton-Schulz iterations, from 0 to 100.
        nesterov: If True, use Nesterov momentum.
        rms_rate: Factor of the steps; None drops it and ``sqrt(max(rows, columns))``.
        **kwargs: Base class arguments; see `keras.optimizers.Optimizer`.

    Raises:
        ValueError: If ``ns_steps`` is out of range, or a base class argument is unknown
            or out of range.

    References:
        Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024).

        Liu et al., arXiv 2502.16982 (2025), for the scale of the steps.

    Example:
        >>> from tapewright import Variable
        >>> v = Variable([[1.0, 0.0], [0.0, 1.0]])
        >>> optimizer = keras.optimizers.Muon(0.1, weight_decay=None)
        >>> optimizer.apply([[[3.0, 0.0], [0.0, -4.0]]], [v])
        >>> v.numpy().round(2)
        array([[0.98, 0.  ],
               [0.  , 1.03]], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        adam_beta_1: float = 0.9,
        adam_beta_2: float = 0.999,
        adam_weight_decay: float | None = 0.004,
        epsilon: float = 1e-7,
        weight_decay: float | None = 0.004,
        *,  # in Keras after the options of all optimizers
        exclude_layers: Sequence[str] | None = None,
        exclude_embeddings: bool = True,
        muon_a: float = 3.4445,
        muon_b: float = -4.7750,
        muon_c: float = 2.0315,
        adam_lr_ratio: float = 1,
        momentum: float = 0.95,
        ns_steps: int = 5,
        nesterov: bool = True,
        rms_rate: float | None = 0.2,
        **kwargs: Unpack[OptimizerOptions],
    ):
        super().__init__(learning_rate, weight_decay, **kwargs)
        self.adam_beta_1 = adam_beta_1
        self.adam_beta_2 = adam_beta_2
        self.adam_weight_decay = adam_weight_decay
        self.epsilon = epsilon
        self.exclude_layers = exclude_layers or []
        for pattern in self.exclude_layers:
            pattern_of(pattern)  # refuses what is no regular expression
        self.exclude_embeddings = exclude_embeddings
        self.muon_a = muon_a
        self.muon_b = muon_b
        self.muon_c = muon_c
        self.adam_lr_ratio = adam_lr_ratio
        self.momentum = momentum
        self.ns_steps = whole(self, "ns_steps", ns_steps, 0, 100)
        self.nesterov = nesterov
        self.rms_rate = rms_rate

    def build(self, variables: Sequence[Variable]) -> None:
        super().build(variables)
        self._momentums, self._velocities = [], []
        for variable in self._trainable_variables:
            velocity = None
            self._momentums.append(
                self.add_variable_from_reference(variable, "momentum")
            )
            if not self._tw_is_matrix(variable):
                velocity = self.add_variable_from_reference(variable, "velocity")
            self._velocities.append(velocity)

    def _tw_is_matrix(self, variable):
        """Return whether the rule for matrices updates this variable."""
        is_embedding = "embedding" in variable.path.lower()
        return (
            len(variable.shape) == 2
            and not (self.exclude_embeddings and is_embedding)
            and not any(
                [pattern_of(p).search(variable.path) for p in self.exclude_layers]
            )
        )

    def update_step(
        self, gradient: Tensor, variable: Variable, learning_rate: Tensor
    ) -> None:
        gradient, rate = (cast(x, variable.dtype) for x in (gradient, learning_rate))
        at = self._get_variable_index(variable)
        momentum, velocity = self._momentums[at], self._velocities[at]
        if velocity is not None:
            rate *= self.adam_lr_ratio
            self._tw_adam_step(gradient, variable, rate, momentum, velocity)
            return
        self.assign(momentum, momentum * self.momentum + gradient)
        ahead = gradient + momentum * self.momentum if self.nesterov else momentum
        change = self._tw_orthogonal(ahead) * rate
        if self.rms_rate is not None:
            change *= max(variable.shape) ** 0.5 * self.rms_rate
        self.assign_sub(variable, change)

    def _tw_adam_step(self, gradient, variable, rate, momentum, velocity):
        step = cast(self.iterations + 1, variable.dtype)
        lost_1, lost_2 = (
            power(beta, step) for beta in (self.adam_beta_1, self.adam_beta_2)
        )
        alpha = rate * sqrt(1 - lost_2) / (1 - lost_1)
        self.assign_add(momentum, (gradient - momentum) * (1 - self.adam_beta_1))
        self.assign_add(
            velocity, (square(gradient) - velocity) * (1 - self.adam_beta_2)
        )
        self.assign_sub(variable, momentum * alpha / (sqrt(velocity) + self.epsilon))

    def _tw_orthogonal(self, x):
        """Return a matrix with the singular vectors of ``x`` and singular values near 1."""
        is_tall = x.shape[0] > x.shape[1]  # the smaller of the two products is enough
        x = x / (norm(x) + 1e-7)
        for _ in range(self.ns_steps):
            y = matmul(x, x, transpose_a=is_tall, transpose_b=not is_tall)
            y = self.muon_b * y + self.muon_c * matmul(y, y)
            x = self.muon_a * x + (matmul(x, y) if is_tall else matmul(y, x))
        return x

    def _apply_weight_decay(self, variables) -> None:
        for variable in variables:
            at = self._get_variable_index(variable)
            matrix = self._velocities[at] is None
            decay = self.weight_decay if matrix else self.adam_weight_decay
            if decay and self._tw_decayed[at]:
                self._tw_decay(variable, decay)
