"""`SpectralNormalization`: a layer whose kernel is kept at spectral norm 1 in training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.argument_validation import whole
from tapewright.ops.array.conversion import cast, stop_gradient
from tapewright.ops.array.shape import reshape
from tapewright.ops.linalg.matmul import matmul
from tapewright.ops.math.comparison import equal, where
from tapewright.ops.math.reduction import reduce_all
from tapewright.ops.nn.normalization import l2_normalize

from . import initializers
from .base.layer import InputSpec
from .wrappers import Wrapper

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Shape
    from tapewright.core.variable import Variable

    from .base.layer import Layer
    from .base.layer_types import RegularizedLayerOptions

__all__ = ["SpectralNormalization"]


class SpectralNormalization(Wrapper):
    """Divides the kernel of ``layer`` by its largest singular value, call by call.

        v <- u @ K^T / |u @ K^T|,  u <- v @ K / |v @ K|,  K <- K / (v @ K @ u^T)

    ``K`` is the ``kernel`` (or ``embeddings``) as a matrix ``[..., outputs]``. This
    happens in training, ``power_iterations`` times in a row; the kernel itself is
    assigned. As in Keras, no gradient passes through the division: that of the kernel is
    its gradient as divided. Weight ``vector_u [1, outputs]``, not trainable.

    Raises: ``ValueError`` if ``layer`` has no kernel and no embeddings.

    Reference: Miyato et al., "Spectral normalization for generative adversarial networks"
    (2018).
    """

    def __init__(
        self,
        layer: Layer,
        power_iterations: int = 1,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(layer, **kwargs)
        self.power_iterations: int = whole(self, "power_iterations", power_iterations)

    def build(self, input_shape: Shape) -> None:
        super().build(input_shape)
        self.input_spec: InputSpec = InputSpec(min_ndim=1, axes={-1: input_shape[-1]})
        self.kernel: Any = self._kernel_of_layer()
        self.vector_u: Variable = self.add_weight(
            name="vector_u",
            shape=(1, self.kernel.shape[-1]),
            initializer=initializers.TruncatedNormal(stddev=0.02),
            trainable=False,
            dtype=self.kernel.dtype,
        )

    def call(self, inputs: Tensor, training: bool | None = False) -> Any:
        if training:
            self._normalize()
        outputs = self.layer(inputs)
        return cast(outputs, inputs.dtype) if inputs.dtype.is_floating else outputs

    def _kernel_of_layer(self):
        for name in ("kernel", "embeddings"):
            if hasattr(self.layer, name):
                return getattr(self.layer, name)
        raise ValueError(
            f"{self._title}: layer must have a kernel or embeddings, got {self.layer!r}"
        )

    def _normalize(self):
        kernel, u = stop_gradient(self.kernel), stop_gradient(self.vector_u)
        matrix = reshape(kernel, (-1, kernel.shape[-1]))
        for _ in range(self.power_iterations):
            v = l2_normalize(matmul(u, matrix, transpose_b=True), epsilon=1e-14)
            u = l2_normalize(matmul(v, matrix), epsilon=1e-14)
        norm = matmul(matmul(v, matrix), u, transpose_b=True)
        zero = reduce_all(equal(kernel, 0.0))  # has no direction, and stays as it is
        self.vector_u.assign(where(zero, self.vector_u, u))
        self.kernel.assign(kernel / reshape(where(zero, 1.0, norm), ()))

    def compute_output_shape(self, input_shape: Shape) -> Any:
        return self.layer.compute_output_shape(input_shape)
